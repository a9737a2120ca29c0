//! Sessions of programs that have their own loop: their directories are captured, their reports recorded, their calls run.

use std::os::unix::net::UnixListener;
use std::path::Path;

use backstitch::host::{ObservedPrompt, OutsideCall};
use backstitch::journal::{EvaluationOutcome, Note};
use backstitch::prelude::*;
use backstitch::{RewindScope, RewoundFiles};
use serde_json::{Map, Value};
use tempfile::TempDir;

fn runtime(place: &Path) -> Runtime {
    Runtime::at(place.join("store/store.db")).unwrap()
}

#[tokio::test]
async fn a_directory_is_captured_without_an_agent() {
    let place = TempDir::new().unwrap();
    let shop = place.path().join("shop");
    std::fs::create_dir(&shop).unwrap();
    std::fs::write(shop.join("coat.txt"), "a coat").unwrap();
    let _socket = UnixListener::bind(shop.join("bell")).unwrap();
    let runtime = runtime(place.path());
    let [one, other] = [runtime.new_id().unwrap(), runtime.new_id().unwrap()];

    let uncovered = runtime.prepare_captures(&shop).await.unwrap();
    assert_eq!(uncovered.iter().map(|one| &*one.path).collect::<Vec<_>>(), ["bell"]);
    assert_eq!(runtime.uncovered_paths(&shop).await.unwrap(), uncovered, "it is remembered");
    let open = runtime.open_to_capture(&shop, one).await.unwrap();
    assert_eq!(open.host_directory(), Some(shop.canonicalize().unwrap()));
    let held = runtime.open_to_capture(&shop, other).await.err().unwrap();
    assert!(held.kind() == "workspace_held" && held.to_string().contains(&one.to_string()), "{held}");
    drop(open);
    assert!(runtime.open_to_capture(&shop, other).await.is_ok());

    let gone = runtime.open_to_capture(&place.path().join("gone"), one).await.err().unwrap();
    assert_eq!(gone.kind(), "workspace_gone", "{gone}");
    let inside = runtime.uncovered_paths(&place.path().join("store")).await.unwrap_err();
    assert_eq!(inside.kind(), "workspace_refused", "{inside}");
}

#[tokio::test]
async fn the_reports_of_a_program_are_recorded() {
    let place = TempDir::new().unwrap();
    let shop = place.path().join("shop");
    std::fs::create_dir(&shop).unwrap();
    let runtime = runtime(place.path());
    let (session, program) = (runtime.new_id().unwrap(), PolicyName::new("robot").unwrap());
    let options = SessionOptions {
        workspace: Some(runtime.open_to_capture(&shop, session).await.unwrap()),
        id: Some(session),
        ..SessionOptions::default()
    };
    let created = runtime.create_observed(Value::Null, program.clone(), options).await.unwrap();
    created.record_start().await.unwrap();
    created.prompt(ObservedPrompt { text: "Sew".to_owned(), id: None }).await.unwrap();
    let held = runtime.open_observed(session, program.clone(), SessionOptions::default()).await;
    assert_eq!(held.err().unwrap().kind(), "session_held");
    created.release().await.unwrap();
    drop(created);

    std::fs::write(shop.join("coat.txt"), "sewn").unwrap();
    let files = runtime.open_to_capture(&shop, session).await.unwrap();
    let options = SessionOptions::with_workspace(files);
    let opened = runtime.open_observed(session, program, options).await.unwrap();
    assert_eq!(opened.view().await.evaluations().count(), 1);
    opened.record_answer(Some("Sewn.".to_owned()), EvaluationOutcome::Completed).await.unwrap();
    opened.release().await.unwrap();
    drop(opened);
    assert_eq!(runtime.status(session).await.unwrap(), SessionStatus::Idle);
    // No call has reported the change, so it may be that of a person.
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    assert!(shop.join("coat.txt").exists());
    runtime.undo(session).await.unwrap();
    let scope = RewindScope { files: RewoundFiles::All, ..RewindScope::default() };
    let options = RewindOptions { scope, ..RewindOptions::default() };
    runtime.rewind_with(session, PointSpec::Start, options).await.unwrap();
    assert!(!shop.join("coat.txt").exists(), "the change is a part of the history");
}

/// Counts stitches.
#[tool(effect = "pure", workspace = "none")]
async fn count(
    /// How many there are.
    stitches: u32,
) -> Result<String, ToolError> {
    Ok(format!("{stitches} stitches"))
}

fn clerk() -> Agent {
    let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = 'Slowly.'\ndelay_ms = 30000\n").unwrap();
    Agent::new("clerk").policy(policy).tools([count()])
}

#[tokio::test]
async fn the_calls_of_a_program_run_in_a_session_of_their_own() {
    let runtime = Runtime::in_memory();
    let (session, agent) = (runtime.new_id().unwrap(), clerk());
    let open = |options, memory| runtime.open_outside(session, &agent, options, memory);
    let missing = open(SessionOptions::default(), None).await.err().unwrap();
    assert!(matches!(missing, RuntimeError::SessionNotFound { .. }), "{missing}");

    let new = SessionOptions { id: Some(session), ..SessionOptions::default() };
    let mut memory = None;
    for (attempt, options) in [new, SessionOptions::default()].into_iter().enumerate() {
        let calls = open(options, memory.take()).await.unwrap();
        assert_eq!(calls.knows("one").await, attempt == 1);
        if attempt == 1 {
            calls.add_note(Note::new("shop", "a note")).await.unwrap();
        }
        let call = OutsideCall {
            call_id: calls.identify(Some("one")).await,
            id: Some("one".to_owned()),
            name: "count".to_owned(),
            arguments: Map::from_iter([("stitches".to_owned(), 7.into())]),
            cancel: CancellationToken::new(),
            approver: None,
        };
        let result = calls.call(call).await.unwrap();
        assert_eq!(result.is_repeated, attempt == 1);
        assert!(result.message.content().contains("7 stitches"), "{}", result.message.content());
        assert!(calls.knows("one").await && !calls.knows("other").await);
        calls.close().await.unwrap();
        memory = Some(calls.memory().await);
        calls.release().await.unwrap();
        assert!(runtime.holder(session).await.unwrap().is_none());
    }
}

/// A session that an agent has not finished is refused, and left as it was.
#[tokio::test]
async fn a_session_with_an_open_evaluation_takes_no_calls_of_programs() {
    let runtime = Runtime::in_memory();
    let run = runtime.start(&clerk(), "Count").await.unwrap();
    run.pause();
    run.outcome().await.unwrap();
    let session = run.session();
    let name = PolicyName::new("outside").unwrap();
    let policy = backstitch::FunctionPolicy::new(name, |_| async { Err("no model".into()) });
    let agent = Agent::new("clerk").policy(policy).tools([count()]);
    let refused = runtime.open_outside(session, &agent, SessionOptions::default(), None).await.err().unwrap();
    assert!(matches!(refused.cause(), RuntimeError::EvaluationOpen { .. }), "{refused}");
    assert!(runtime.holder(session).await.unwrap().is_none(), "it is released");
}
