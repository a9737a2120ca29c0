//! Limits of what clients send and get, and typed answers beyond them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_server::ServerLimits;
use serde_json::json;

use crate::stage::{Stage, StageOptions};

#[test]
fn large_bodies_targets_and_heads_are_refused() {
    let limits = ServerLimits { body_bytes: 1_000, ..ServerLimits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() });
    let large = json!({ "mission": "x".repeat(2_000) });
    let (status, problem) = stage.client.try_post("/api/v1/sessions", &large);
    assert_eq!((status, &problem["code"]), (413, &json!("too_large")));
    // Without a length, the bytes are counted.
    let chunked = format!("7d0\r\n{}\r\n0\r\n\r\n", "x".repeat(2_000));
    let headers = ["content-type: application/json", "transfer-encoding: chunked", "content-length:"];
    let mut stream = TcpStream::connect(&stage.client.address).unwrap();
    let head = format!(
        "POST /api/v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{}\r\n{}\r\nconnection: close\r\n\r\n",
        stage.client.address, stage.client.token, headers[0], headers[1]
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(chunked.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.starts_with("HTTP/1.1 413"), "{text}");
    assert_eq!(stage.client.try_get(&format!("/api/v1/sessions?search={}", "x".repeat(20_000))).0, 414);
    assert_eq!(stage.client.try_get(&format!("/api/v1/sessions?search={}", "x".repeat(300))).0, 413);
    assert_eq!(stage.client.try_get(&format!("/api/v1/query?sql={}", "x".repeat(9_000))).0, 413);
    let header = format!("x-large: {}", "x".repeat(100_000));
    assert_eq!(stage.client.send("GET", "/health", &[&header], b"").status, 431);
    assert_eq!(stage.client.get("/api/v1/sessions")["sessions"], json!([]));
}

#[test]
fn bodies_are_json_with_known_fields() {
    let stage = Stage::new(StageOptions::default());
    let form = stage.client.send(
        "POST",
        "/api/v1/sessions",
        &["content-type: application/x-www-form-urlencoded"],
        b"{\"mission\":\"x\"}",
    );
    assert_eq!(form.status, 415, "a page of another origin could send this without a question");
    for wrong in [json!({}), json!({ "mission": 1 }), json!({ "mission": "x", "odd": 1 }), json!([])] {
        let (status, problem) = stage.client.try_post("/api/v1/sessions", &wrong);
        assert_eq!((status, &problem["code"]), (400, &json!("request_invalid")), "{wrong}");
    }
    for wrong in [json!({ "mission": " " }), json!({ "mission": "x", "mode": "odd" })] {
        assert_eq!(stage.client.try_post("/api/v1/sessions", &wrong).0, 400, "{wrong}");
    }
}

#[test]
fn clients_that_leave_in_the_middle_harm_nobody() {
    let stage = Stage::new(StageOptions::default());
    let session = stage.started("Sew.");
    for head in [
        "POST /api/v1/sessions HTTP/1.1\r\n".to_owned(),
        format!(
            "POST /api/v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"mission\": \"half",
            stage.client.address, stage.client.token
        ),
        "\0\u{1}\u{2} nonsense\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(&stage.client.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        drop(stream);
    }
    // Many connections that say nothing.
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&stage.client.address).unwrap()).collect();
    let sessions = stage.client.get("/api/v1/sessions");
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(sessions["sessions"][0]["session"], session.as_str());
    drop(idle);
}

#[test]
fn too_many_requests_in_a_second_are_refused() {
    let limits = ServerLimits { requests_per_second: 1, ..ServerLimits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() });
    let answers: Vec<u16> = (0..40).map(|_| stage.client.try_get("/api/v1/server").0).collect();
    assert_eq!(answers[0], 200);
    assert!(answers.contains(&429), "{answers:?}");
    // Guesses of tokens are limited for themselves.
    let stranger = backstitch_testkit::api::ApiClient::new(stage.client.address.clone(), "wrong-wrong-wrong");
    assert_eq!(stranger.try_get("/api/v1/server").0, 401);
    // Several guess at the same time, since one alone may be slower than the limit.
    let is_refused = AtomicBool::new(false);
    let guess = || {
        for _ in 0..5_000 {
            match stranger.try_get("/api/v1/server").0 {
                429 => is_refused.store(true, Ordering::SeqCst),
                status => assert_eq!(status, 401),
            }
            if is_refused.load(Ordering::SeqCst) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(guess);
        }
    });
    assert!(is_refused.into_inner(), "no guess was refused");
}

#[test]
fn queries_end_at_their_limits() {
    let limits =
        ServerLimits { query_rows: 10, page_bytes: 10_000, query_seconds: 1, ..ServerLimits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() });
    let numbers = "WITH%20RECURSIVE%20n(x)%20AS%20(SELECT%201%20UNION%20ALL%20SELECT%20x%2B1%20FROM%20n";
    let rows =
        stage.client.get(&format!("/api/v1/query?sql={numbers}%20LIMIT%20100)%20SELECT%20x%20FROM%20n"));
    assert_eq!((rows["rows"].as_array().unwrap().len(), &rows["is_cut"]), (10, &json!(true)));
    let wide = stage
        .client
        .get(&format!("/api/v1/query?sql={numbers}%20LIMIT%209)%20SELECT%20hex(zeroblob(3000))%20FROM%20n"));
    assert_eq!((wide["rows"].as_array().unwrap().len(), &wide["is_cut"]), (1, &json!(true)));
    let endless = format!("/api/v1/query?sql={numbers})%20SELECT%20count(*)%20FROM%20n");
    let (status, problem) = stage.client.try_get(&endless);
    assert_eq!((status, &problem["code"]), (422, &json!("query_stopped")));
    assert_eq!(stage.client.get("/api/v1/query?sql=SELECT%201")["rows"], json!([[1]]));
}
