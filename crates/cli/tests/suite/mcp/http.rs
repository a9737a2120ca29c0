//! The server over HTTP: many clients, revisions, cancellation, identity, and processes that are killed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::client::{failed, has_stopped_waiting, worked};
use super::http_client::{HttpServer, TOKEN};
use crate::stage::{Stage, text_of, wait_until};

/// A script that says when it has begun, and waits.
fn waiting(name: &str) -> Value {
    json!({"script": format!("echo half > {name}.half; while [ ! -e ../go ]; do sleep 0.05; done; echo done > {name}.done")})
}

#[test]
fn clients_share_one_session_and_their_calls_are_transactions() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    let listed = clients[0].request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 10, "{listed}");
    std::thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..3 {
                    let path = format!("{number}-{round}.txt");
                    worked(&client.call("write_file", json!({"path": path, "text": "seven\n"})));
                    let script = format!("echo x >> {path}; exit 3");
                    failed(&client.call("mend", json!({"script": script})));
                }
            });
        }
    });
    for number in 0..4 {
        for round in 0..3 {
            assert_eq!(stage.file(&format!("{number}-{round}.txt")).unwrap(), "seven\n");
        }
    }
    let points = worked(&clients[3].call("checkpoints", json!({})));
    assert_eq!(points.matches("before:").count(), 24, "{points}");
    let unknown = clients[1].call("knit", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let ran = server.end();
    assert_eq!(ran.code, Some(130), "{}", ran.errors);
    assert_eq!(stage.json(&["ls"])["status"], "idle");
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains(TOKEN) && !ran.errors.contains(TOKEN), "{}", ran.errors);
}

#[test]
fn a_call_that_is_repeated_over_another_connection_runs_nothing() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let once = json!({"command": "echo once >> ../once"});
    let first = server.client().call_as("toolu_1", "shell", once.clone());
    let again = server.client().call_as("toolu_1", "shell", once.clone());
    assert_eq!(worked(&first), worked(&again));
    assert_eq!(again["result"]["_meta"]["backstitch/call"]["repeated"], true, "{again}");
    let newest = server.newest_client().call_as("toolu_1", "shell", once.clone());
    assert_eq!(worked(&first), worked(&newest));
    let reused = server.client().call_as("toolu_1", "shell", json!({"command": "true"}));
    assert_eq!(reused["error"]["code"], -32602, "{reused}");
    server.kill();
    let server = HttpServer::start(&stage, &[]);
    worked(&server.client().call_as("toolu_1", "shell", once));
    assert_eq!(std::fs::read_to_string(stage.path("once")).unwrap(), "once\n");
}

#[test]
fn a_call_that_is_repeated_while_it_runs_has_one_result() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let clients = [server.client(), server.client()];
    let (_, first) = clients[0].post_call(Some("toolu_1"), "mend", waiting("a"));
    wait_until("the call", || stage.file("a.half").is_some());
    // The connection of the first request breaks, and the client asks again.
    drop(first);
    let (_, second) = clients[1].post_call(Some("toolu_1"), "mend", waiting("a"));
    std::fs::write(stage.path("go"), "").unwrap();
    worked(&second.answer());
    let points = worked(&clients[0].call("checkpoints", json!({})));
    assert_eq!(points.matches("before:").count(), 1, "{points}");
}

#[test]
fn a_client_that_leaves_is_forgotten_and_its_calls_are_finished() {
    let stage = Stage::new();
    let log = text_of(&stage.path("server.log"));
    let server = HttpServer::start(&stage, &["--log-file", &log]);
    let client = server.client();
    let (_, _answer) = client.post_call(Some("toolu_1"), "mend", waiting("a"));
    wait_until("the call", || stage.file("a.half").is_some());
    assert_eq!(client.leave(), 204);
    wait_until("the farewell", || client.post("tools/list", json!({})).1.status == 404);
    wait_until("the SDK to stop waiting for the handler", || has_stopped_waiting(&log));
    std::fs::write(stage.path("go"), "").unwrap();
    worked(&server.client().call_as("toolu_1", "mend", waiting("a")));
    assert_eq!(stage.file("a.done").unwrap(), "done\n");
}

#[test]
fn a_client_that_is_gone_leaves_its_call_running() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.client();
    let (_, answer) = client.post_call(None, "mend", waiting("a"));
    wait_until("the call", || stage.file("a.half").is_some());
    drop(answer);
    drop(client);
    std::fs::write(stage.path("go"), "").unwrap();
    wait_until("the end of the call", || stage.file("a.done").is_some());
    let other = server.client();
    wait_until("its record", || worked(&other.call("checkpoints", json!({}))).contains("completed"));
    assert!(stage.file("a.half").is_some());
}

#[test]
fn requests_without_a_handshake_are_served_and_a_closed_response_cancels() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.newest_client();
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 10, "{listed}");
    worked(&client.call("write_file", json!({"path": "a.txt", "text": "1\n"})));
    let url = server.address.clone();
    let (begun, ended) = std::sync::mpsc::channel::<()>();
    let parameters = json!({"name": "mend", "arguments": waiting("b"), "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    // Written by hand: the answer has no head before the call has ended.
    let sender = std::thread::spawn(move || {
        use std::io::Write as _;
        let body =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": parameters}).to_string();
        let mut stream = std::net::TcpStream::connect(&url).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {url}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: mend\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let _ = ended.recv();
    });
    wait_until("the call", || stage.file("b.half").is_some());
    drop(begun);
    sender.join().unwrap();
    wait_until("the rollback", || stage.file("b.half").is_none());
    assert_eq!(stage.file("a.txt").unwrap(), "1\n");
    worked(&client.call("read_file", json!({"path": "a.txt"})));
}

#[test]
fn a_cancelled_call_is_rolled_back() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.client();
    let (id, _answer) = client.post_call(None, "mend", waiting("a"));
    wait_until("the call", || stage.file("a.half").is_some());
    // The same number of another client is another request.
    let other = server.client();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(other.send(&cancel).status, 202);
    worked(&other.call("checkpoints", json!({})));
    assert!(stage.file("a.half").is_some());
    assert_eq!(client.send(&cancel).status, 202);
    wait_until("the rollback", || stage.file("a.half").is_none());
    worked(&client.call("shell", json!({"command": "true"})));
}

#[test]
fn a_signal_rolls_back_and_the_client_is_told() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let (_, answer) = server.client().post_call(None, "mend", waiting("a"));
    wait_until("the call", || stage.file("a.half").is_some());
    let ended = std::thread::spawn(move || server.end());
    failed(&answer.answer());
    let ran = ended.join().unwrap();
    assert_eq!(ran.code, Some(130), "{}", ran.errors);
    assert_eq!(stage.file("a.half"), None);
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}

#[test]
fn a_killed_server_leaves_files_that_the_next_one_restores() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.client();
    worked(&client.call("write_file", json!({"path": "note.txt", "text": "seven\n"})));
    let script = json!({"script": "echo broken > note.txt; echo half > half.txt; sleep 600"});
    let _answer = client.post_call(Some("toolu_1"), "mend", script.clone());
    wait_until("the change", || stage.file("half.txt").is_some());
    let port = server.port();
    server.kill();
    let server = HttpServer::start_at(&stage, &port, &[]);
    assert_eq!(stage.file("note.txt").unwrap(), "seven\n");
    assert_eq!(stage.file("half.txt"), None);
    let told = failed(&server.client().call_as("toolu_1", "mend", script));
    assert!(told.contains("interrupted"), "{told}");
    // The name that the killed server gave its client is not known any more: the client has to begin again.
    let lost = client.post("tools/list", json!({})).1;
    assert_eq!(lost.status, 404);
    let ran = server.end();
    assert_eq!(ran.code, Some(130), "{}", ran.errors);
}

#[test]
fn a_question_and_progress_arrive_with_the_response() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &["--approve", "write_file"]);
    let client = server.client_with(&json!({"elicitation": {}}));
    for (action, is_run) in [("decline", false), ("accept", true)] {
        let (_, mut answer) = client.post_call(None, "write_file", json!({"path": "a.txt", "text": "1\n"}));
        let question = answer.event();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert!(question["params"]["message"].as_str().unwrap().contains("a.txt"), "{question}");
        let content = if is_run { json!({"decision": "approve"}) } else { Value::Null };
        let decision =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": content}});
        assert_eq!(client.send(&decision).status, 202);
        let answer = answer.answer();
        if is_run {
            worked(&answer)
        } else {
            failed(&answer)
        };
        assert_eq!(stage.file("a.txt").is_some(), is_run);
    }
    let slow = json!({"command": "for n in 1 2 3 4 5 6 7 8; do echo stitch $n; sleep 0.3; done"});
    let meta = json!({"progressToken": "thread-1"});
    let (_, mut answer) =
        client.post("tools/call", json!({"name": "shell", "arguments": slow, "_meta": meta}));
    let first = answer.event();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    assert_eq!(first["params"]["progressToken"], "thread-1", "{first}");
    assert!(first["params"]["message"].as_str().unwrap().contains("stitch"), "{first}");
    worked(&answer.answer());
}

#[test]
fn many_clients_at_once_are_served() {
    let stage = Stage::new();
    let server = Arc::new(HttpServer::start(&stage, &[]));
    let threads: Vec<_> = (0..24)
        .map(|number| {
            let server = server.clone();
            std::thread::spawn(move || {
                let client = if number % 2 == 0 { server.client() } else { server.newest_client() };
                let told = worked(&client.call("shell", json!({"command": format!("echo {number}-of-24")})));
                assert!(told.contains(&format!("{number}-of-24")), "{told}");
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
