//! Take-overs of sessions that work in a directory, while the runtime that drives them lives: in this process and in
//! another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch::ports::{Workspace as _, directory_holder};
use backstitch::prelude::*;
use backstitch::store::SqliteStore;
use backstitch::workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

/// Irons the coat. The first attempt stops halfway until it is stopped, and then tries to write more.
#[tool(effect = "workspace")]
async fn iron(context: ToolContext) -> Result<String, ToolError> {
    let coat = "coat.txt".parse()?;
    let files = context.filesystem()?;
    files.write_bytes(&coat, b"half ironed", WriteMode::Overwrite)?;
    if !context.is_resume() {
        let (late, stopped) = (files.clone(), context.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            let _ = late.write_bytes(&"late.txt".parse().unwrap(), b"late", WriteMode::Overwrite);
        });
        context.cancelled().await;
        std::future::pending::<()>().await;
    }
    files.write_bytes(&coat, b"ironed", WriteMode::Overwrite)?;
    Ok("ironed".to_owned())
}

const SCRIPT: &str = r#"
[[reply]]
call = [{ name = "iron", arguments = {} }]
[[reply]]
text = "The coat is ironed."
"#;

fn agent(place: &Path) -> Agent {
    let policy = ScriptedPolicy::from_toml(SCRIPT).unwrap();
    Agent::new("laundry").policy(policy).tools([iron()]).workspace(place.join("shop"))
}

fn runtime(place: &Path) -> Runtime {
    Runtime::at(place.join("store/store.db")).unwrap()
}

fn coat(place: &Path) -> String {
    std::fs::read_to_string(place.join("shop/coat.txt")).unwrap_or_default()
}

/// Waits until the first attempt is halfway.
async fn half_ironed(place: &Path) {
    while coat(place) != "half ironed" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn taking_over() -> SessionOptions {
    SessionOptions { take_over: true, ..SessionOptions::default() }
}

/// Takes the session over with a runtime of its own, and drives it to its answer.
async fn taken_over(place: &Path, session: SessionId) {
    let (runtime, agent) = (runtime(place), agent(place));
    let held = runtime.resume(session, &agent).await.unwrap_err();
    assert_eq!(held.kind(), "session_held", "{held}");
    let run = runtime.resume_with(session, &agent, ResumeOptions::default(), taking_over()).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "The coat is ironed.");
    assert_eq!(coat(place), "ironed");
}

#[tokio::test]
async fn a_session_is_taken_over_with_its_directory() {
    let place = TempDir::new().unwrap();
    let first = runtime(place.path());
    let run = first.start(&agent(place.path()), "Iron the coat.").await.unwrap();
    half_ironed(place.path()).await;
    taken_over(place.path(), run.session()).await;
    let lost = run.outcome().await.unwrap_err();
    assert_eq!(lost.kind(), "lease_lost", "{lost}");
    assert_eq!(coat(place.path()), "ironed");
    assert!(!place.path().join("shop/late.txt").exists(), "a stopped call writes nothing");
    assert!(!first.drives(run.session()));
}

#[tokio::test]
async fn a_runtime_can_take_over_from_itself() {
    let place = TempDir::new().unwrap();
    let (runtime, agent) = (runtime(place.path()), agent(place.path()));
    let run = runtime.start(&agent, "Iron the coat.").await.unwrap();
    half_ironed(place.path()).await;
    let options = ResumeOptions::default();
    let again = runtime.resume_with(run.session(), &agent, options, taking_over()).await.unwrap();
    assert_eq!(run.outcome().await.unwrap_err().kind(), "lease_lost");
    assert_eq!(again.answer::<String>().await.unwrap(), "The coat is ironed.");
}

const PLACE: &str = "BACKSTITCH_TEST_TAKE_OVER";

/// The other process of the next test. On its own it does nothing.
#[tokio::test]
async fn the_process_that_is_taken_over_from() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let run = runtime(&place).start(&agent(&place), "Iron the coat.").await.unwrap();
    std::fs::write(place.join("started"), run.session().to_string()).unwrap();
    let lost = run.outcome().await.unwrap_err();
    std::fs::write(place.join("lost"), lost.kind()).unwrap();
}

/// Starts the other process.
fn other_process(place: &Path) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["take_over::the_process_that_is_taken_over_from", "--exact"])
        .env(PLACE, place)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the first attempt of the other process is halfway, and returns its session.
async fn halfway(place: &Path) -> SessionId {
    half_ironed(place).await;
    let started = place.join("started");
    loop {
        if let Ok(session) = std::fs::read_to_string(&started).unwrap_or_default().parse() {
            return session;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The process is killed, as by any crash, and the session is free.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_process_that_holds_a_session_is_ended() {
    let place = TempDir::new().unwrap();
    let mut other = other_process(place.path());
    let session = halfway(place.path()).await;
    let runtime = runtime(place.path());
    let holder = runtime.holder(session).await.unwrap().unwrap();
    assert_eq!(holder.process.map(|process| process.pid), Some(other.id()));
    assert!(other.try_wait().unwrap().is_none(), "a question ends nothing");
    runtime.end_holder(session).await.unwrap();
    assert!(!other.wait().unwrap().success());
    assert_eq!(runtime.holder(session).await.unwrap(), None);
    let run = runtime.resume(session, &agent(place.path())).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "The coat is ironed.");
    runtime.end_holder(session).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_never_ends_itself() {
    let place = TempDir::new().unwrap();
    let first = runtime(place.path());
    let session = first.start(&agent(place.path()), "Iron the coat.").await.unwrap().session();
    for runtime in [first, runtime(place.path())] {
        let error = runtime.end_holder(session).await.unwrap_err();
        assert_eq!(error.kind(), "session_held");
        assert!(error.to_string().contains("it is this process"), "{error}");
    }
}

/// A store in memory does not know the process, like a store that another machine uses.
#[tokio::test]
async fn a_holder_that_cannot_be_ended_loses_its_claim() {
    let place = TempDir::new().unwrap();
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent(place.path()), "Iron the coat.").await.unwrap();
    half_ironed(place.path()).await;
    let holder = runtime.holder(run.session()).await.unwrap().unwrap();
    assert_eq!(holder.process, None);
    runtime.end_holder(run.session()).await.unwrap();
    assert_eq!(runtime.holder(run.session()).await.unwrap(), None);
    assert_eq!(run.outcome().await.unwrap_err().kind(), "lease_lost");
}

#[tokio::test]
async fn a_session_is_taken_over_from_another_process_that_lives_on() {
    let place = TempDir::new().unwrap();
    let mut other = other_process(place.path());
    let session = halfway(place.path()).await;
    taken_over(place.path(), session).await;
    let status = tokio::task::spawn_blocking(move || other.wait()).await.unwrap().unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_to_string(place.path().join("lost")).unwrap(), "lease_lost");
    assert_eq!(coat(place.path()), "ironed");
    assert!(!place.path().join("shop/late.txt").exists(), "a stopped call writes nothing");
}

/// Holds the directory under a name, as a process does that hangs.
fn hold(place: &Path, holder: String) -> HostWorkspace {
    let store = Arc::new(SqliteStore::open(place.join("store/store.db")).unwrap());
    let mut options = OpenOptions::new(place.join("shop"), place.join("store"), store);
    options.holder = holder;
    HostWorkspace::open(options).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_is_not_released_is_not_touched() {
    let place = TempDir::new().unwrap();
    let (runtime, policy) =
        (runtime(place.path()), ScriptedPolicy::from_toml("[[reply]]\ntext = 'Done.'").unwrap());
    let agent = Agent::new("laundry").policy(policy).workspace(place.path().join("shop"));
    let run = runtime.start(&agent, "Iron the coat.").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let take_over = || runtime.resume_with(session, &agent, ResumeOptions::default(), taking_over());

    let held = hold(place.path(), directory_holder(session));
    let error = take_over().await.unwrap_err();
    assert_eq!(error.kind(), "workspace_held");
    let text = error.to_string();
    let process = format!("session {session} (process {})", std::process::id());
    assert!(text.contains(&process) && text.contains("end that process"), "{text}");
    assert_eq!(
        runtime.store().holder(session).await.unwrap(),
        None,
        "the session is free for the next attempt"
    );
    drop(held);
    assert_eq!(take_over().await.unwrap().answer::<String>().await.unwrap(), "Done.");

    // Another session is not taken over from.
    let name = directory_holder(runtime.new_id().unwrap());
    let other = hold(place.path(), name.clone());
    let error = take_over().await.unwrap_err();
    assert!(matches!(error, RuntimeError::Directory { .. }), "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    assert!(other.capture().is_ok());
}
