//! A client of MCP over HTTP that writes the bytes by hand, so that it shares no code with the server.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

/// Time limit of an answer. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The token of the servers.
pub const TOKEN: &str = "silk-thread-of-seven-spools";

/// The answer to one request.
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    headers: HashMap<String, String>,
    body: BufReader<Body>,
}

/// A client of one server.
pub struct HttpClient {
    address: String,
    /// What the server named the client.
    session: Option<String>,
    token: String,
    /// The result of the handshake.
    pub information: Value,
    revision: &'static str,
    next: AtomicU64,
}

/// Sends a head and a body to a server, and reads the head of the answer.
pub fn exchange(address: &str, head: &str, body: &[u8]) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).expect("the server answers");
    stream.set_read_timeout(Some(PATIENCE)).expect("the server answers");
    stream.write_all(head.as_bytes()).expect("the server answers");
    // A server that refuses the head need not read the body.
    let _ = stream.write_all(body);
    HttpAnswer::read(stream)
}

impl HttpClient {
    /// Returns a client of the revision without a handshake, of the server at `HOST:PORT`.
    pub fn newest(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            session: None,
            token: TOKEN.to_owned(),
            information: Value::Null,
            revision: "2026-07-28",
            next: AtomicU64::new(1),
        }
    }

    /// Connects a client with a handshake. It has these capabilities.
    pub fn connect(address: &str, capabilities: &Value) -> Self {
        Self::newest(address).shake_hands(capabilities)
    }

    /// Sends another token.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self }
    }

    /// Makes the handshake.
    #[must_use]
    pub fn shake_hands(mut self, capabilities: &Value) -> Self {
        self.revision = "2025-11-25";
        let information = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "needle", "version": "1"},
        });
        let mut answer = self.post("initialize", information).1;
        assert_eq!(answer.status, 200);
        self.session = answer.header("mcp-session-id");
        assert!(self.session.is_some());
        self.information = answer.event()["result"].clone();
        assert_eq!(self.information["protocolVersion"], "2025-11-25");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.send(&ready).status, 202);
        self
    }

    /// Sends a message, and reads the head of the answer.
    pub fn send(&self, message: &Value) -> HttpAnswer {
        let body = message.to_string();
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {}\r\nContent-Length: {}\r\n\
             Connection: close\r\n",
            self.address,
            self.token,
            self.revision,
            body.len()
        );
        if let Some(session) = &self.session {
            head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        if let (None, Some(method)) = (&self.session, message["method"].as_str()) {
            head.push_str(&format!("Mcp-Method: {method}\r\n"));
            if let Some(name) = message["params"]["name"].as_str() {
                head.push_str(&format!("Mcp-Name: {name}\r\n"));
            }
        }
        head.push_str("\r\n");
        exchange(&self.address, &head, body.as_bytes())
    }

    /// Says farewell to the server. Returns the status.
    pub fn leave(&self) -> u16 {
        let session = self.session.as_deref().unwrap_or_default();
        let head = format!(
            "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nMcp-Session-Id: {session}\r\n\
             Connection: close\r\n\r\n",
            self.address
        );
        exchange(&self.address, &head, b"").status
    }

    /// Sends a request. Returns its id, and the answer, of which only the head was read.
    pub fn post(&self, method: &str, mut parameters: Value) -> (u64, HttpAnswer) {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        if self.revision == "2026-07-28" && method != "initialize" {
            let meta = &mut parameters["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "needle", "version": "2"});
            if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            }
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        (id, self.send(&message))
    }

    /// Sends a request and waits for its answer.
    pub fn request(&self, method: &str, parameters: Value) -> Value {
        self.post(method, parameters).1.answer()
    }

    /// Sends a call, with the client's own id if there is one.
    pub fn post_call(&self, id: Option<&str>, name: &str, arguments: Value) -> (u64, HttpAnswer) {
        let mut parameters = json!({"name": name, "arguments": arguments});
        if let Some(id) = id {
            parameters["_meta"] = json!({"claudecode/toolUseId": id});
        }
        self.post("tools/call", parameters)
    }

    /// Sends a call, and waits for its answer.
    pub fn call(&self, name: &str, arguments: Value) -> Value {
        self.post_call(None, name, arguments).1.answer()
    }

    /// Sends a call with the client's own id, and waits for its answer.
    pub fn call_as(&self, id: &str, name: &str, arguments: Value) -> Value {
        self.post_call(Some(id), name, arguments).1.answer()
    }
}

impl HttpAnswer {
    fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).expect("the server answers");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).expect("the server answers") == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.entry(name.to_ascii_lowercase()).or_insert_with(|| value.trim().to_owned());
            }
        }
        let is_chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let body = Body { stream, is_chunked, left: length.unwrap_or(0), is_ended: false };
        Self { status, headers, body: BufReader::new(body) }
    }

    /// Returns a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }

    /// Reads the whole body as text.
    pub fn text(mut self) -> String {
        self.read_text()
    }

    fn read_text(&mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).expect("the server answers");
        text
    }

    /// Reads the whole body.
    pub fn bytes(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.body.read_to_end(&mut bytes).expect("the server answers");
        bytes
    }

    /// Waits for the next line of the body; `None` at its end, also if the connection breaks off.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.body.read_line(&mut line) {
            Ok(read) if read > 0 => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
            _ => None,
        }
    }

    /// Waits for the next message of the stream, or reads the only one.
    pub fn event(&mut self) -> Value {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            return serde_json::from_str(&self.read_text()).expect("the server answers");
        }
        loop {
            let mut line = String::new();
            let read = self.body.read_line(&mut line).expect("the server answers");
            assert!(read > 0, "the stream ended before the answer, status {}", self.status);
            if let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty()) {
                return serde_json::from_str(data).expect("the server answers");
            }
        }
    }

    /// Waits for the answer, and skips notifications.
    pub fn answer(mut self) -> Value {
        loop {
            let event = self.event();
            if event.get("result").is_some() || event.get("error").is_some() {
                return event;
            }
        }
    }
}

/// A body, without its chunks.
struct Body {
    stream: BufReader<TcpStream>,
    is_chunked: bool,
    left: usize,
    is_ended: bool,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && self.is_chunked && !self.is_ended {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                if self.stream.read_line(&mut line)? == 0 {
                    self.is_ended = true;
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or_default();
            self.is_ended = self.left == 0;
        }
        if self.left == 0 {
            return Ok(0);
        }
        let most = buffer.len().min(self.left);
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// Returns the text of the result of a call, and whether it is an error.
pub fn text(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content in {answer}"));
    let text = blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
    (text, result["isError"] == true)
}

/// Asserts that a call succeeded, and returns its text.
pub fn worked(answer: &Value) -> String {
    let (text, is_error) = text(answer);
    assert!(!is_error, "{text}");
    text
}

/// Asserts that a call failed, and returns its text.
pub fn failed(answer: &Value) -> String {
    let (text, is_error) = text(answer);
    assert!(is_error, "{text}");
    text
}
