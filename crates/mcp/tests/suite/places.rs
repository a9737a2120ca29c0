//! Who takes the places of a server over HTTP.

use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use backstitch_testkit::mcp::{TOKEN, worked};
use serde_json::json;

use crate::server::{LocalServer, handshake};

/// Held by tests with hundreds of connections, of which this process has both ends. Tests may share a process.
static MANY_CONNECTIONS: Mutex<()> = Mutex::new(());

fn head(server: &LocalServer, method: &str, more: &str, length: usize) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{more}\r\n",
        server.address
    )
}

#[test]
fn connections_without_a_token_take_no_place() {
    let _alone = MANY_CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = LocalServer::start();
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let client = server.client();
    worked(&client.call("note", json!({"text": "1"})));
    // Those who came first have left to make room.
    let closed = silent.iter().take(20).filter(|stream| {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        matches!(std::io::Read::read(&mut &**stream, &mut [0]), Ok(0) | Err(_))
    });
    assert_eq!(closed.count(), 20);
}

#[test]
fn streams_of_events_take_no_place_of_a_request() {
    let _alone = MANY_CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = LocalServer::start();
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
    worked(&server.client().call("note", json!({"text": "1"})));
}

#[test]
fn clients_that_vanish_do_not_lock_the_server() {
    let server = LocalServer::start();
    let first = server.client();
    worked(&first.call("note", json!({"text": "1"})));
    let body = handshake().to_string();
    for number in 0..1005 {
        let answer =
            server.exchange(&head(&server, "POST", "Connection: close\r\n", body.len()), body.as_bytes());
        assert_eq!(answer.status, 200, "{number}");
    }
    worked(&server.client().call("note", json!({"text": "1"})));
    // The one that was silent for longest is forgotten, and learns it.
    let (_, answer) = first.post_call(None, "note", json!({"text": "1"}));
    assert_eq!(answer.status, 404);
}

#[test]
fn other_names_targets_and_ports_are_refused() {
    let server = LocalServer::start();
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
