//! Who is let in, and the headers of every answer.

use backstitch_testkit::api::ApiClient;
use serde_json::json;

use crate::stage::{Stage, StageOptions};

const CHECKED: [&str; 6] = ["/health", "/ready", "/", "/main.js", "/api/v1/sessions", "/api/v1/openapi.json"];

#[test]
fn a_wrong_token_is_refused_and_none_is_too() {
    let stage = Stage::new(StageOptions::default());
    let stranger = ApiClient::new(stage.client.address.clone(), "silk-thread-of-seven-spoolx");
    for path in ["/api/v1/sessions", "/api/v1/server", "/api/v1/nothing", "/metrics"] {
        let (status, problem) = stranger.try_get(path);
        assert_eq!((status, &problem["code"]), (401, &json!("access_denied")), "{path}");
        let without = stage.client.send("GET", path, &["authorization: "], b"");
        assert_eq!(without.status, 401, "{path}");
        assert!(without.header("www-authenticate").is_some());
    }
    // A token in the target is not a token.
    let (status, _) = stranger.try_get(&format!("/api/v1/sessions?token={}", stage.client.token));
    assert_eq!(status, 401);
    assert_eq!(stranger.get("/health")["status"], "ok");
    assert_eq!(stranger.get("/ready")["status"], "ready");
}

#[test]
fn names_of_others_and_pages_of_others_are_refused_on_every_path() {
    let stage = Stage::new(StageOptions::default());
    let port = stage.client.address.rsplit(':').next().unwrap().to_owned();
    for path in CHECKED {
        for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"] {
            let answer = stage.client.send("GET", path, &[&format!("host: {host}")], b"");
            assert_eq!(answer.status, 403, "{path} at {host}");
            assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"));
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"] {
            let answer = stage.client.send("GET", path, &[&format!("origin: {origin}")], b"");
            assert_eq!(answer.status, 403, "{path} from {origin}");
        }
    }
    let own = format!("origin: http://localhost:{port}");
    let host = format!("host: localhost:{port}");
    assert_eq!(stage.client.send("GET", "/api/v1/sessions", &[&own, &host], b"").status, 200);
    // A page of another origin cannot ask what it may send.
    let asked = stage.client.send(
        "OPTIONS",
        "/api/v1/sessions",
        &["origin: http://evil.example", "access-control-request-method: POST"],
        b"",
    );
    assert_eq!(asked.status, 403);
    assert_eq!(asked.header("access-control-allow-origin"), None);
}

#[test]
fn every_answer_has_the_headers_that_protect_browsers() {
    let stage = Stage::new(StageOptions::default());
    let answers = [
        ("/health", 200),
        ("/api/v1/sessions", 200),
        ("/api/v1/sessions/0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d", 404),
        ("/api/v1/sessions?limit=x", 400),
        ("/nothing", 404),
        ("/api/v1/openapi.json", 200),
    ];
    for (path, status) in answers {
        let answer = stage.client.send("GET", path, &[], b"");
        assert_eq!(answer.status, status, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name).as_deref(), Some(value), "{path}: {name}");
        }
        if path.starts_with("/api/") {
            assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"), "{path}");
        }
        assert_eq!(answer.header("set-cookie"), None);
        if status >= 400 {
            assert_eq!(answer.header("content-type").as_deref(), Some("application/problem+json"), "{path}");
        }
    }
    let wrong = stage.client.send("PUT", "/api/v1/sessions", &[], b"");
    assert_eq!(wrong.status, 405);
    assert!(wrong.header("allow").is_some_and(|allow| allow.contains("POST")), "{:?}", wrong.header("allow"));
}
