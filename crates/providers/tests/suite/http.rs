//! Every provider against a real server that behaves badly.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use backstitch_core::message::{Part, PolicyName};
use backstitch_core::ports::{Answer, Policy, PolicyError};
use backstitch_providers::{ApiKey, Http, ModelPolicy, Provider, RequestOptions, Target};
use serde_json::{Value, json};

use super::support::{MODEL, Talk, streamed_answer, whole_answer};

/// Answers one request with these pieces, and gives the request back.
fn serve(pieces: Vec<Vec<u8>>) -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&mut stream);
        stream.set_nodelay(true).unwrap();
        for piece in pieces {
            if stream.write_all(&piece).and_then(|()| stream.flush()).is_err() {
                break;
            }
        }
        request
    });
    (address, server)
}

fn read_request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the request ends early");
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return (head.to_lowercase(), serde_json::from_str(body).unwrap());
        }
    }
}

fn head(status: &str, kind: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}\r\n").into_bytes()
}

fn ask(provider: Provider, address: &str, stream: bool) -> Result<Answer, PolicyError> {
    let target = Target::new(provider, MODEL).at(address);
    let name = PolicyName::new("model").unwrap();
    let options = RequestOptions { stream, ..RequestOptions::default() };
    let policy =
        ModelPolicy::new(name, target, Some(ApiKey::new("sk-hunter2")), Arc::new(Http::new().unwrap()));
    let question = Talk::new().user("How is the weather?").question();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on({
        let policy = policy.with_options(options);
        let described = policy.describe(&question);
        async move { policy.decide(question, described).await }
    })
}

#[test]
fn answers_come_in_awkward_pieces() {
    for provider in Provider::ALL {
        let mut pieces = vec![head("200 OK", "text/event-stream", "")];
        pieces.extend(streamed_answer(provider).as_bytes().chunks(5).map(<[u8]>::to_vec));
        let (address, server) = serve(pieces);
        let answer = ask(provider, &address, true).unwrap();
        assert_eq!((answer.parts, answer.calls.len()), (vec![Part::text("Checking.")], 2), "{provider}");
        let (head, _) = server.join().unwrap();
        assert!(head.starts_with("post /") && head.contains("sk-hunter2"), "{head}");
        assert!(!head.lines().next().unwrap().contains("hunter2"), "{head}");
    }
}

#[test]
fn answers_come_whole() {
    for provider in Provider::ALL {
        let body = whole_answer(provider).to_string();
        let length = format!("content-length: {}\r\n", body.len());
        let (address, server) = serve(vec![head("200 OK", "application/json", &length), body.into_bytes()]);
        let answer = ask(provider, &address, false).unwrap();
        assert_eq!(answer.calls.len(), 2, "{provider}");
        server.join().unwrap();
    }
}

#[test]
fn connections_that_drop_are_cut_streams() {
    for provider in Provider::ALL {
        let text = streamed_answer(provider).into_bytes();
        // More is promised than comes.
        let length = format!("content-length: {}\r\n", text.len());
        let pieces = vec![head("200 OK", "text/event-stream", &length), text[..text.len() / 2].to_vec()];
        let (address, server) = serve(pieces);
        let error = ask(provider, &address, true).unwrap_err();
        assert_eq!((error.kind.as_str(), error.retryable), ("cut_stream", true), "{provider}");
        server.join().unwrap();
    }
}

#[test]
fn statuses_have_their_kinds() {
    for provider in Provider::ALL {
        for (status, kind, retryable) in [
            ("429 Too Many Requests", "rate_limited", true),
            ("500 Internal Server Error", "server", true),
            ("529 Overloaded", "overloaded", true),
            ("400 Bad Request", "invalid_request", false),
            ("302 Found", "invalid_request", false),
        ] {
            let body = json!({"error": {"message": "m"}}).to_string();
            let more = format!(
                "content-length: {}\r\nretry-after: 3\r\nlocation: http://127.0.0.1:1/\r\n",
                body.len()
            );
            let (address, server) = serve(vec![head(status, "application/json", &more), body.into_bytes()]);
            let error = ask(provider, &address, true).unwrap_err();
            assert_eq!((error.kind.as_str(), error.retryable), (kind, retryable), "{provider} {status}");
            assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(3)));
            server.join().unwrap();
        }
    }
}

#[test]
fn nobody_there_is_an_error_of_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = ask(Provider::OpenAiChat, &address, true).unwrap_err();
    assert_eq!((error.kind.as_str(), error.retryable), ("network", true));
}
