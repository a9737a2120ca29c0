//! Revisions, requests without a handshake, and input that is not the protocol, over a pair of streams.

use backstitch_mcp::ServeError;
use backstitch_testkit::mcp::worked;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::server::{Notes, handshake, tool_server};

/// A client that writes the protocol by hand, and the server at the other end.
struct Client {
    input: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: JoinHandle<Result<(), ServeError>>,
    notes: Notes,
    next: u64,
}

impl Client {
    /// Starts a server, without a handshake.
    async fn start() -> Self {
        let (server, notes) = tool_server().await;
        let (near, far) = duplex(64 * 1024);
        let (input, output) = split(far);
        let served = tokio::spawn(server.serve(input, output, CancellationToken::new()));
        let (read, input) = split(near);
        Self { input, lines: BufReader::new(read).lines(), served, notes, next: 10 }
    }

    /// Starts a server and makes the handshake.
    async fn connected() -> Self {
        let mut client = Self::start().await;
        let answer = client.exchange(handshake()).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        client
    }

    /// Sends a line. A server that has ended reads nothing.
    async fn send(&mut self, line: &str) {
        let _ = self.input.write_all(format!("{line}\n").as_bytes()).await;
    }

    /// Sends a request, and waits for its answer.
    async fn exchange(&mut self, message: Value) -> Value {
        self.send(&message.to_string()).await;
        loop {
            let line = self.lines.next_line().await.unwrap().expect("the server answers");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == message["id"] && answer.get("method").is_none() {
                return answer;
            }
        }
    }

    async fn request(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        self.exchange(json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": parameters}))
            .await
    }

    async fn note(&mut self, text: &str) -> Value {
        self.request("tools/call", json!({"name": "note", "arguments": {"text": text}})).await
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    /// Closes the input, and waits for the end of the server. Fails if it has panicked.
    async fn leave(self) -> Result<(), ServeError> {
        drop((self.input, self.lines));
        self.served.await.unwrap()
    }
}

#[tokio::test]
async fn older_revisions_are_served() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut client = Client::start().await;
        let mut message = handshake();
        message["params"]["protocolVersion"] = json!(revision);
        let answer = client.exchange(message).await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        worked(&client.note("1").await);
        assert_eq!(client.notes(), ["1"]);
        client.leave().await.unwrap();
    }
}

#[tokio::test]
async fn requests_without_a_handshake_are_served() {
    let mut client = Client::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "needle", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = client.request("tools/list", json!({"_meta": meta})).await;
    assert!(answer["result"]["tools"].is_array(), "{answer}");
    let mut with_id = meta.clone();
    with_id["callId"] = json!("call-1");
    let call = json!({"name": "note", "arguments": {"text": "1"}, "_meta": with_id});
    worked(&client.request("tools/call", call.clone()).await);
    let again = client.request("tools/call", call).await;
    worked(&again);
    assert_eq!(again["result"]["_meta"]["backstitch/call"]["repeated"], true, "{again}");
    assert_eq!(client.notes(), ["1"]);
}

#[tokio::test]
async fn input_that_is_not_the_protocol_is_refused() {
    let mut client = Client::start().await;
    client.send("SELECT 1;").await;
    client.send("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\"}").await;
    let ended = client.leave().await;
    assert!(matches!(ended, Ok(()) | Err(ServeError::Opening(_))), "{ended:?}");
    // A client that connects and leaves is not an error.
    Client::start().await.leave().await.unwrap();

    let mut client = Client::connected().await;
    client.send("not json").await;
    client.send("[1, 2").await;
    for id in [json!(7), json!("x".repeat(600))] {
        let odd = json!({"name": "note", "arguments": {"text": "1"}, "_meta": {"callId": id}});
        assert_eq!(client.request("tools/call", odd).await["error"]["code"], -32602);
    }
    let unknown = client.request("tools/call", json!({"name": "knit", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = client.request("knit/purl", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(client.notes(), Vec::<String>::new());
    worked(&client.note("1").await);
    assert_eq!(client.notes(), ["1"]);
}
