//! The client of Codex, with a shell script as its app-server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_bridge::codex::{AppServer, AppServerSpec, Cut, ServerMessage, ThreadId, TrustStatus, TurnId};
use backstitch_runtime::EngineError;
use serde_json::json;

/// Answers the first request, as Codex does.
const HELLO: &str =
    r#"read -r line; echo '{"id":1,"result":{"userAgent":"codex/9","new":true}}'; read -r line;"#;

/// Writes an app-server that runs this script.
fn server(directory: &Path, script: &str) -> AppServerSpec {
    let program = directory.join("codex");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap().to_owned();
    AppServerSpec { program, ..AppServerSpec::new(directory) }
}

async fn failure(script: &str) -> EngineError {
    let directory = tempfile::tempdir().unwrap();
    match AppServer::start(server(directory.path(), script)).await {
        Ok(mut server) => server.hooks(directory.path()).await.unwrap_err(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn answers_are_found_among_other_messages() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        r#"{HELLO}
        read -r line
        echo '{{"method":"thread/started","params":{{"n":1}}}}'
        echo '{{"id":77,"result":"of nobody"}}'
        echo '{{"id":2,"result":{{"data":[{{"hooks":[{{"key":"k","command":"c","currentHash":"sha256:1","trustStatus":"untrusted"}}]}}]}}}}'
        read -r line; echo "$line" > asked
        echo '{{"id":3,"result":{{"thread":{{"id":"new-thread"}}}}}}'
        read -r line; echo '{{"id":4,"error":{{"code":-32600,"message":"turn not found"}}}}'
        echo '{{"id":"r1","method":"item/fileChange/requestApproval","params":{{}}}}'
        read -r line; echo "$line" > answered"#
    );
    let mut server = AppServer::start(server(directory.path(), &script)).await.unwrap();
    let hooks = server.hooks(directory.path()).await.unwrap();
    assert_eq!((hooks[0].hash.as_str(), hooks[0].trust), ("sha256:1", TrustStatus::Untrusted));
    let (thread, turn) = (ThreadId::new("t").unwrap(), TurnId::new("u").unwrap());
    let forked = server.fork(&thread, &Cut::Before(turn.clone())).await.unwrap();
    assert_eq!(forked.as_str(), "new-thread");
    let asked = fs::read_to_string(directory.path().join("asked")).unwrap();
    assert!(asked.contains(r#""params":{"threadId":"t","beforeTurnId":"u"}"#), "{asked}");
    let refused = server.fork(&thread, &Cut::After(turn)).await.unwrap_err();
    assert_eq!(refused.to_string(), "Codex failed: it refused `thread/fork`: turn not found");
    // Messages that came in between are not lost.
    let expected =
        ServerMessage::Notification { method: "thread/started".to_owned(), params: json!({"n": 1}) };
    assert_eq!(server.message().await.unwrap(), expected);
    let ServerMessage::Request { id, .. } = server.message().await.unwrap() else { panic!("a request") };
    server.answer(&id, Ok(json!({"decision": "accept"})));
    server.close().await;
    let answered = fs::read_to_string(directory.path().join("answered")).unwrap();
    assert_eq!(answered.trim(), r#"{"id":"r1","result":{"decision":"accept"}}"#);
}

#[tokio::test]
async fn a_hostile_server_is_a_typed_error() {
    let missing = AppServerSpec { program: "/nowhere/codex".to_owned(), ..AppServerSpec::new("/") };
    let missing = AppServer::start(missing).await.err().unwrap();
    assert!(matches!(missing, EngineError::Start { .. }), "{missing:?}");

    let ended = failure("echo 'WARNING: x' >&2; echo 'config is broken' >&2; exit 1").await;
    assert!(matches!(ended, EngineError::Ended { .. }), "{ended:?}");
    assert!(ended.to_string().contains("config is broken"), "{ended}");

    let text = failure(r"printf 'Welcome to \033[31mCodex\n'; cat > /dev/null").await;
    assert!(matches!(text, EngineError::Protocol { .. }), "{text:?}");
    assert!(!text.to_string().contains('\u{1b}'), "{text}");

    let long = failure("head -c 100000000 /dev/zero | tr '\\0' x; cat > /dev/null").await;
    assert!(matches!(long, EngineError::Protocol { .. }), "{long:?}");

    let incomplete = failure(&format!(r#"{HELLO} read -r line; echo '{{"id":2,"result":{{"x":1}}}}'"#)).await;
    assert!(matches!(incomplete, EngineError::Protocol { .. }), "{incomplete:?}");

    let half = failure(&format!(r#"{HELLO} read -r line; printf '{{"id":2,"result"'"#)).await;
    assert!(matches!(half, EngineError::Protocol { .. }), "{half:?}");
}

#[tokio::test]
async fn nothing_outlives_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!("sleep 600 & echo $! > child\n{HELLO}\nwait");
    let server = AppServer::start(server(directory.path(), &script)).await.unwrap();
    let child = fs::read_to_string(directory.path().join("child")).unwrap().trim().to_owned();
    let runs = || {
        let mut kill = Command::new("kill");
        kill.args(["-0", &child]).stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(runs());
    drop(server);
    let began = Instant::now();
    while runs() {
        assert!(began.elapsed() < Duration::from_secs(60), "{child} still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
