//! A real HTTP server on loopback, with configurable misbehaviour.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use backstitch_providers::Provider;
use backstitch_providers::validate::validate;
use backstitch_testkit::request_form::check_form;
use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The response to one request: bytes, after which the connection is closed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Served {
    pieces: Vec<Vec<u8>>,
}

impl Served {
    /// Closes the connection without a response.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// These bytes and nothing else.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![bytes.into()] }
    }

    /// A complete response.
    pub(crate) fn whole(status: u16, kind: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = head(status, kind, headers);
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        Self { pieces: vec![head.into_bytes(), body.as_bytes().to_vec()] }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::whole(200, "application/json", &[], &body.to_string())
    }

    /// A complete response without a content type.
    pub(crate) fn unnamed(body: &str) -> Self {
        let head =
            format!("HTTP/1.1 200 Said\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        Self { pieces: vec![head.into_bytes(), body.as_bytes().to_vec()] }
    }

    /// A stream, in pieces of this number of bytes. Each is a chunk of its own on the wire, so that they are
    /// not joined.
    pub(crate) fn stream(text: &str, piece: usize) -> Self {
        let mut served = Self::open_stream(text, piece);
        served.pieces.push(b"0\r\n\r\n".to_vec());
        served
    }

    /// A stream that announces more than it sends.
    pub(crate) fn open_stream(text: &str, piece: usize) -> Self {
        let mut head = head(200, "text/event-stream; charset=utf-8", &[]);
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        let mut pieces = vec![head.into_bytes()];
        for bytes in text.as_bytes().chunks(piece) {
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend_from_slice(bytes);
            chunk.extend_from_slice(b"\r\n");
            pieces.push(chunk);
        }
        Self { pieces }
    }

    /// A stream that ends with its connection, so that the client cannot know whether it is complete.
    pub(crate) fn closing_stream(text: &str) -> Self {
        let mut head = head(200, "text/event-stream", &[]);
        head.push_str("\r\n");
        Self { pieces: vec![head.into_bytes(), text.as_bytes().to_vec()] }
    }
}

fn head(status: u16, kind: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

type Answering = dyn FnMut(usize, &Seen) -> Served + Send;

/// A server that answers until it is dropped.
pub(crate) struct Server {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers the requests in order with these responses.
    pub(crate) fn with(answers: Vec<Served>) -> Self {
        Self::answering(move |index, _| {
            let exhausted = || Served::whole(418, "text/plain", &[], "an unexpected request");
            answers.get(index).cloned().unwrap_or_else(exhausted)
        })
    }

    /// Answers each request with the result of a function, which gets the number of earlier requests.
    pub(crate) fn answering(answer: impl FnMut(usize, &Seen) -> Served + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (seen, stopped) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<AtomicBool>::default());
        let (log, stop) = (seen.clone(), stopped.clone());
        let mut answer: Box<Answering> = Box::new(answer);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut stream) = stream else { continue };
                let Some(request) = read_request(&mut stream) else { continue };
                let index = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                let answer = refused(&request).unwrap_or_else(|| answer(index, &request));
                write(&mut stream, answer);
            }
        });
        Self { address, seen, stopped, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes up the thread.
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The response of a strict server to a request that breaks a rule or does not have the published form.
fn refused(request: &Seen) -> Option<Served> {
    let line = request.head.lines().next()?;
    let provider = match line {
        line if line.contains("/chat/completions") => Provider::OpenAiChat,
        line if line.contains("/responses") => Provider::OpenAiResponses,
        line if line.contains("/messages") => Provider::Anthropic,
        line if line.contains("generatecontent") => Provider::Gemini,
        _ => return None,
    };
    let valid = validate(provider, &request.body).map_err(|error| error.to_string());
    let valid = valid.and_then(|()| check_form(provider.as_str(), &request.body));
    let body = json!({"error": {"message": valid.err()?, "type": "invalid_request_error"}});
    Some(Served::whole(400, "application/json", &[], &body.to_string()))
}

fn write(stream: &mut TcpStream, served: Served) {
    let _ = stream.set_nodelay(true);
    for piece in served.pieces {
        // The client has closed the connection.
        if stream.write_all(&piece).and_then(|()| stream.flush()).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    // Reads the remaining bytes, since closing a connection with unread data resets it.
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(5)));
    let _ = stream.read(&mut [0; 64]);
}

fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let body = &bytes[end + 4..];
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(Seen { head, body: serde_json::from_slice(body).unwrap() });
        }
    }
}
