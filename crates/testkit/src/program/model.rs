//! A scripted model on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

/// Starts a model, and returns its address. `events` makes the answer to a request: server-sent events, or nothing, which
/// closes the connection.
pub fn model(events: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    let address = listener.local_addr().expect("the address of the port");
    let events = Arc::new(events);
    // The threads end with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let events = events.clone();
            std::thread::spawn(move || answer(stream, &*events));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, events: &dyn Fn(&Value) -> Option<String>) -> Option<()> {
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
    stream.write_all(format!("{head}{}", events(&request)?).as_bytes()).ok()
}
