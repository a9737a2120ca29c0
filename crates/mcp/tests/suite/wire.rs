//! What reaches the server over HTTP and is not a request of a client with the token.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use backstitch_testkit::mcp::{TOKEN, worked};
use serde_json::json;

use crate::server::{LocalServer, handshake};

/// The headers of a good request, without that of its length.
fn good() -> Vec<(String, String)> {
    [
        ("Host", "localhost".to_owned()),
        ("Authorization", format!("Bearer {TOKEN}")),
        ("Content-Type", "application/json".to_owned()),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("Connection", "close".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn head(line: &str, headers: &[(String, String)], length: usize) -> String {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{line} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n")
}

/// A handshake, with a header replaced, added or (with an empty value) removed.
fn with(server: &LocalServer, name: &str, value: &str) -> u16 {
    let body = handshake().to_string();
    let mut headers = good();
    headers.retain(|(known, _)| known != name);
    if !value.is_empty() {
        headers.push((name.to_owned(), value.to_owned()));
    }
    server.exchange(&head("POST /mcp", &headers, body.len()), body.as_bytes()).status
}

#[test]
fn only_clients_with_the_token_and_a_name_of_this_machine_are_let_in() {
    let server = LocalServer::start();
    assert_eq!(with(&server, "Host", &server.address), 200);
    for (name, value, status) in [
        ("Authorization", "", 401),
        ("Authorization", "Bearer", 401),
        ("Authorization", "Bearer silk-thread-of-seven-spool", 401),
        ("Authorization", "Bearer silk-thread-of-seven-spools2", 401),
        ("Authorization", "Basic c2lsay10aHJlYWQ6", 401),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost", 200),
        ("Origin", "http://localhost:3000", 403),
        ("Host", "evil.example", 403),
        ("Host", "localhost.evil.example:80", 403),
        ("Host", "", 403),
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "", 415),
        ("Accept", "text/html", 406),
        ("MCP-Protocol-Version", "1999-01-01", 400),
    ] {
        assert_eq!(with(&server, name, value), status, "{name}: {value}");
    }
    // A page of another origin learns nothing about the token.
    let headers = [("Host", "localhost"), ("Origin", "https://evil.example")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let answer = server.exchange(&head("OPTIONS /mcp", &headers, 0), b"");
    assert_eq!(answer.status, 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    let mut headers = good();
    headers.retain(|(name, _)| name != "Authorization");
    let answer = server.exchange(&head("GET /mcp", &headers, 0), b"");
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
    assert!(!answer.text().contains(TOKEN));
    for (line, status) in [
        ("GET /", 404),
        ("POST /mcp/", 404),
        ("POST /../mcp", 404),
        ("PUT /mcp", 405),
        ("DELETE /mcp", 400),
        ("GET /mcp", 406),
    ] {
        let mut headers = good();
        headers.retain(|(name, _)| name != "Accept");
        assert_eq!(server.exchange(&head(line, &headers, 0), b"").status, status, "{line}");
    }
}

#[test]
fn bodies_that_are_not_the_protocol_are_refused_and_the_server_continues() {
    let server = LocalServer::start();
    let deep = "[".repeat(100_000);
    for body in ["", "{", "null", "[]", "7", "\"text\"", "{\"jsonrpc\": \"2.0\"}", "\u{1b}[2J", &deep] {
        let answer = server.exchange(&head("POST /mcp", &good(), body.len()), body.as_bytes());
        assert!((400..500).contains(&answer.status), "{}: {:.40}", answer.status, body);
        assert!(!answer.text().contains("panicked"));
    }
    let invalid = [0xff, 0xfe, b'{', 0, b'}'];
    assert_eq!(server.exchange(&head("POST /mcp", &good(), invalid.len()), &invalid).status / 100, 4);
    // Too large, by its announced length and by its bytes.
    let large = vec![b' '; 17 * 1024 * 1024];
    assert_eq!(server.exchange(&head("POST /mcp", &good(), large.len()), &large).status, 413);
    let mut headers = good();
    headers.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut chunked = format!("{:x}\r\n", large.len()).into_bytes();
    chunked.extend(&large);
    chunked.extend(b"\r\n0\r\n\r\n");
    assert_eq!(server.exchange(&format!("POST /mcp HTTP/1.1\r\n{lines}\r\n"), &chunked).status, 413);
    // A call over an unknown name of a client.
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let mut headers = good();
    headers.push(("Mcp-Session-Id".to_owned(), "no-such-client".to_owned()));
    assert_eq!(server.exchange(&head("POST /mcp", &headers, call.len()), call.as_bytes()).status, 404);
    worked(&server.client().call("note", json!({"text": "1"})));
}

#[test]
fn bytes_that_are_no_request_do_not_stop_the_server() {
    let server = LocalServer::start();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let mut garbage_after = head("POST /mcp", &good(), call.len()).into_bytes();
    garbage_after.extend(call.as_bytes());
    garbage_after.extend([0, 1, 2, 255, b'\r', b'\n', b'G']);
    let long_header = format!("GET /mcp HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(2_000_000));
    let many_headers = format!("GET /mcp HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(50_000));
    let inputs: Vec<Vec<u8>> = vec![
        vec![0; 4096],
        vec![0xff; 100_000],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_vec(),
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_vec(),
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        long_header.into_bytes(),
        many_headers.into_bytes(),
        garbage_after,
    ];
    for input in inputs {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(&input);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.contains("panicked") && !answer.contains(TOKEN), "{answer}");
    }
    // Clients that begin and then say nothing take no place of others.
    let silent: Vec<_> = (0..32)
        .map(|number| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let begun = match number % 3 {
                0 => String::new(),
                1 => "POST /mcp HTTP/1.1\r\nHost: loc".to_owned(),
                _ => head("POST /mcp", &good(), 1000),
            };
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    worked(&server.client().call("note", json!({"text": "1"})));
    // One byte after the other is slow, but allowed.
    let mut slow = TcpStream::connect(&server.address).unwrap();
    let body = handshake().to_string();
    for byte in (head("POST /mcp", &good(), body.len()) + &body).bytes() {
        slow.write_all(&[byte]).unwrap();
    }
    let mut answer = [0; 12];
    slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    server.end();
    drop(silent);
}
