//! A client of the server, which writes the bytes by hand, so that it shares no code with it.

use serde_json::Value;

use crate::mcp::{HttpAnswer, exchange};

/// A client of one server.
#[derive(Debug, Clone)]
pub struct ApiClient {
    /// `HOST:PORT`.
    pub address: String,
    /// The token that it sends.
    pub token: String,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Its name.
    pub name: String,
    /// Its id, if it has one.
    pub id: Option<u64>,
    /// Its data.
    pub data: Value,
}

/// An open stream of events.
pub struct EventReader(HttpAnswer);

impl ApiClient {
    /// Returns a client of the server at `HOST:PORT`.
    pub fn new(address: impl Into<String>, token: impl Into<String>) -> Self {
        Self { address: address.into(), token: token.into() }
    }

    /// Reads the link that the command prints.
    pub fn of_link(link: &str) -> Self {
        let (address, token) = link.trim().split_once("/#token=").expect("the link has a token");
        Self::new(address.trim_start_matches("http://"), token)
    }

    /// Sends a request with these headers, each a line, and this body.
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> HttpAnswer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let has = |name: &str| headers.iter().any(|header| header.to_ascii_lowercase().starts_with(name));
        if !has("host:") {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        if !has("authorization:") {
            head.push_str(&format!("authorization: Bearer {}\r\n", self.token));
        }
        if !has("content-length:") && (!body.is_empty() || method != "GET") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        head.push_str("\r\n");
        exchange(&self.address, &head, body)
    }

    /// Reads a path: the status, and the body as JSON.
    pub fn try_get(&self, path: &str) -> (u16, Value) {
        answered(self.send("GET", path, &[], b""))
    }

    /// Reads a path.
    pub fn get(&self, path: &str) -> Value {
        let (status, body) = self.try_get(path);
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// Sends JSON: the status, and the body of the answer as JSON.
    pub fn try_post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        answered(self.send("POST", path, &["content-type: application/json"], body.as_bytes()))
    }

    /// Sends JSON.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.try_post(path, body);
        assert!((200..300).contains(&status), "POST {path} {body}: {status} {answer}");
        answer
    }

    /// Deletes: the status, and the body of the answer as JSON.
    pub fn try_delete(&self, path: &str) -> (u16, Value) {
        answered(self.send("DELETE", path, &[], b""))
    }

    /// Opens a stream of events, possibly after the last event that was received.
    pub fn events(&self, path: &str, last: Option<u64>) -> EventReader {
        let last = last.map(|last| format!("last-event-id: {last}"));
        let headers: Vec<&str> = last.iter().map(String::as_str).collect();
        let answer = self.send("GET", path, &headers, b"");
        assert_eq!(answer.status, 200, "GET {path}");
        EventReader(answer)
    }
}

fn answered(answer: HttpAnswer) -> (u16, Value) {
    let status = answer.status;
    let text = answer.text();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

impl Iterator for EventReader {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        let mut event = StreamEvent { name: String::new(), id: None, data: Value::Null };
        loop {
            let line = self.0.line()?;
            match line.split_once(": ") {
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("id", id)) => event.id = id.parse().ok(),
                Some(("data", data)) => event.data = serde_json::from_str(data).expect("the data is JSON"),
                None if line.is_empty() && !event.name.is_empty() => return Some(event),
                _ => {}
            }
        }
    }
}
