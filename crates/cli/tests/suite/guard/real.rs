//! What the tests with real programs share: a scripted model on loopback, and the commands of the programs.
//!
//! Variables name the commands; `./test` installs the programs and sets them. Without a variable its tests are skipped, and say so.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::Value;

/// Starts a model that answers requests with server-sent events.
pub(crate) fn model(
    script: Value,
    events: impl Fn(&Value, &Value) -> Option<String> + Clone + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The threads end with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (script, events) = (script.clone(), events.clone());
            std::thread::spawn(move || answer(stream, &script, &events));
        }
    });
    url
}

fn answer(
    mut stream: TcpStream,
    script: &Value,
    events: &dyn Fn(&Value, &Value) -> Option<String>,
) -> Option<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 * 1024]);
    let body = loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            break bytes[end + 4..].to_vec();
        }
    };
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(format!("{head}{}", events(script, &request)?).as_bytes()).ok()
}

/// Returns the command that a variable names.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn named(variable: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if named.is_none() {
        eprintln!("SKIPPED: {variable} does not name the command of the program");
    }
    named
}
