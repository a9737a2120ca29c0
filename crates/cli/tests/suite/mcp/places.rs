//! Who takes the places of a server over HTTP, and where its token may appear.

use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::worked;
use super::http_client::{HttpServer, TOKEN};
use crate::stage::Stage;

fn head(server: &HttpServer, method: &str, more: &str, length: usize) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{more}\r\n",
        server.address
    )
}

fn handshake() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "needle", "version": "1"},
    }})
}

#[test]
fn connections_without_a_token_take_no_place() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let client = server.client();
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1\n"})));
    // Those who came first have left to make room.
    let closed = silent.iter().take(20).filter(|stream| {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        matches!(std::io::Read::read(&mut &**stream, &mut [0]), Ok(0) | Err(_))
    });
    assert_eq!(closed.count(), 20);
}

#[test]
fn streams_of_events_take_no_place_of_a_request() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let mut streams = Vec::new();
    let mut statuses = Vec::new();
    // One more than there are places for.
    for _ in 0..257 {
        let body = handshake().to_string();
        let answer =
            server.exchange(&head(&server, "POST", "Connection: close\r\n", body.len()), body.as_bytes());
        let session = answer.header("mcp-session-id").unwrap();
        let answer =
            server.exchange(&head(&server, "GET", &format!("Mcp-Session-Id: {session}\r\n"), 0), b"");
        statuses.push(answer.status);
        streams.push(answer);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 256);
    assert_eq!(statuses.last(), Some(&503));
    worked(&server.client().call("write_file", json!({"path": "a.txt", "text": "1\n"})));
}

#[test]
fn clients_that_vanish_do_not_lock_the_server() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let first = server.client();
    worked(&first.call("shell", json!({"command": "true"})));
    let body = handshake().to_string();
    for number in 0..1005 {
        let answer =
            server.exchange(&head(&server, "POST", "Connection: close\r\n", body.len()), body.as_bytes());
        assert_eq!(answer.status, 200, "{number}");
    }
    worked(&server.client().call("shell", json!({"command": "true"})));
    // The one that was silent for longest is forgotten, and learns it.
    let (_, answer) = first.post_call(None, "shell", json!({"command": "true"}));
    assert_eq!(answer.status, 404);
}

#[test]
fn other_names_targets_and_ports_are_refused() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let body = handshake().to_string();
    let port = server.port();
    let exchange = |target: &str, host: &str, origin: &str| {
        let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n{origin}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        server.exchange(&head, body.as_bytes()).status
    };
    let own = format!("localhost:{port}");
    let other = format!("http://localhost:{}", port.parse::<u16>().unwrap() ^ 1);
    assert_eq!(exchange("/mcp", &own, ""), 200);
    assert_eq!(exchange("/mcp", &own, &format!("http://{own}")), 200);
    assert_eq!(exchange(&format!("http://{own}/mcp"), &own, ""), 200);
    assert_eq!(exchange("/mcp", "", ""), 403);
    assert_eq!(exchange(&format!("http://{own}/mcp"), "", ""), 403);
    assert_eq!(exchange("http://evil.example/mcp", &own, ""), 403);
    assert_eq!(exchange("/mcp", &own, &other), 403);
}

#[test]
fn the_token_of_a_file_is_redacted() {
    let stage = Stage::new();
    let token = "spool-of-the-token-file-7";
    let file = stage.write("token", token);
    let server = HttpServer::start(&stage, &["--token-file", &file]);
    let client = server.client_with_token(token);
    let shown = worked(&client.call("shell", json!({"command": format!("cat {file}")})));
    assert!(!shown.contains(token) && shown.contains("[secret]"), "{shown}");
    drop(server);
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains(token));
}
