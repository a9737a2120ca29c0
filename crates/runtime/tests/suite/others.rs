//! Sessions that work in one directory at the same time.

use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::id::CallId;
use backstitch_core::journal::{Decision, Effect, EvaluationResumed};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Workspace, WriteMode};
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{Tool, ToolContext, ToolResult};
use backstitch_filesystem::FilePath;
use backstitch_runtime::{CallOutcome, ObservedCall, ObservedSession};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::disk::Disk;
use crate::harness::Harness;

#[derive(Deserialize, JsonSchema)]
struct File {
    path: String,
}

fn write(context: &ToolContext, name: &str) {
    let (files, path) = (context.filesystem().unwrap(), FilePath::new(name).unwrap());
    files.write_bytes(&path, b"written", WriteMode::Overwrite).unwrap();
}

/// A session in the same directory, a second later, with a tool that writes the file in its arguments and another one.
async fn other_session(disk: &Disk) -> Harness {
    let tool = Tool::builder("write", "Writes a file.").unwrap().effect(Effect::Workspace);
    let tool = tool.handler(|context: ToolContext, file: File| async move {
        write(&context, &file.path);
        write(&context, "unnamed");
        Ok(ToolResult::ok("done"))
    });
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:06Z".parse().unwrap()));
    let workspace = Some(disk.workspace.clone() as Arc<dyn Workspace>);
    let other =
        Harness::with(disk.store.clone(), clock, Resources::default(), [tool], workspace, |_| {}).await;
    let directory = disk.workspace.host_directory().unwrap().to_string_lossy().into_owned();
    let resumed =
        EvaluationResumed { directory: Some(directory), ..EvaluationResumed::new(other.evaluation) };
    other.live.record(vec![resumed.into()]).await.unwrap();
    other
}

#[tokio::test]
async fn a_failing_call_leaves_what_file_tools_of_other_sessions_changed() {
    let disk = Disk::new();
    let other = Arc::new(other_session(&disk).await);
    let tool = Tool::builder("tear", "Fails.").unwrap().effect(Effect::Workspace);
    let tool = tool.handler(move |context: ToolContext, file: File| {
        let other = other.clone();
        async move {
            write(&context, &file.path);
            let written = other.run("write", json!({"path": "theirs"})).await;
            assert!(matches!(written, CallOutcome::Succeeded(_)), "{written:?}");
            Ok(ToolResult::failed("torn"))
        }
    });
    let harness = disk.harness(vec![tool]).await;
    let CallOutcome::Failed(message) = harness.run("tear", json!({"path": "half"})).await else {
        panic!("it fails");
    };
    assert!(disk.path("theirs").exists());
    assert!(!disk.path("half").exists(), "the call's own file");
    assert!(!disk.path("unnamed").exists(), "anybody may have written it while both calls ran");
    let message = serde_json::to_string(&message).unwrap();
    assert!(message.contains("not rolled back: theirs (changed by others)"), "{message}");
}

/// Starts a call of a program, which never reports an end.
async fn start_call(harness: &Harness) -> CallId {
    let observed = ObservedSession::new(harness.live.clone(), PolicyName::new("loom").unwrap());
    observed.record_call_start(ObservedCall::new("toolu_1", "work", json!({}))).await.unwrap()
}

/// Ends an interrupted call by decision, which restores what it changed.
async fn fail(harness: &Harness, call: CallId) {
    harness.live.resolve(Some(call), Decision::Fail { reason: None }, None).await.unwrap();
}

#[tokio::test]
async fn an_interrupted_call_leaves_the_recorded_work_of_other_sessions() {
    let disk = Disk::new();
    let other = other_session(&disk).await;
    let harness = disk.harness(Vec::new()).await;
    let call = start_call(&harness).await;
    std::fs::write(disk.path("half"), "half").unwrap();
    let written = other.run("write", json!({"path": "theirs"})).await;
    assert!(matches!(written, CallOutcome::Succeeded(_)), "{written:?}");
    fail(&harness, call).await;
    assert!(disk.path("theirs").exists() && disk.path("unnamed").exists());
    assert!(!disk.path("half").exists(), "the call's own file");
}

/// Records that the last process of a call is dead, as its supervisor does. Returns that moment.
#[cfg(target_os = "linux")]
async fn record_death(disk: &Disk, harness: &Harness, call: CallId) -> i64 {
    let attempt = {
        let state = harness.live.state().await;
        state.view.call(call).unwrap().intent.as_ref().unwrap().record.attempt
    };
    let clock = disk.directory.path().join("clock");
    std::fs::write(&clock, "").unwrap();
    let dead = changed_at(&clock);
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let times = json!({"boot": boot.trim(), "started": 0, "alive": 0, "dead": dead});
    let place = disk.workspace.own_directory().unwrap().join("calls").join(harness.live.id().to_string());
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join(format!("{call}-{attempt}.7")), times.to_string()).unwrap();
    dead
}

#[cfg(target_os = "linux")]
fn changed_at(path: &std::path::Path) -> i64 {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path).unwrap();
    found.ctime() * 1_000_000_000 + found.ctime_nsec()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_moment_of_death_divides_the_changes_of_a_call_from_later_ones() {
    let disk = Disk::new();
    std::fs::write(disk.path("edited"), "old").unwrap();
    std::fs::write(disk.path("removed"), "old").unwrap();
    let harness = disk.harness(Vec::new()).await;
    let call = start_call(&harness).await;
    std::fs::write(disk.path("half"), "half").unwrap();
    std::fs::remove_file(disk.path("removed")).unwrap();
    let dead = record_death(&disk, &harness, call).await;
    // More than a tick of the system later.
    while changed_at(&disk.path("edited")) <= dead + 20_000_000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        std::fs::write(disk.path("edited"), "by hand").unwrap();
    }
    fail(&harness, call).await;
    assert!(!disk.path("half").exists(), "the call's own file");
    assert_eq!(std::fs::read_to_string(disk.path("removed")).unwrap(), "old", "its directory is older");
    assert_eq!(std::fs::read_to_string(disk.path("edited")).unwrap(), "by hand");
}

/// Returns what the supervisor of this process has recorded about it.
#[cfg(target_os = "linux")]
fn recorded_times(disk: &Disk) -> Option<serde_json::Value> {
    let place = disk.workspace.own_directory()?.join("calls");
    let session = std::fs::read_dir(place).ok()?.flatten().next()?.path();
    let mut files = std::fs::read_dir(session).ok()?.flatten();
    let file = files.find(|file| file.file_name().to_string_lossy().starts_with("runtime."))?;
    serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_without_a_process_ends_with_its_runtime() {
    backstitch_runtime::set_supervisor(env!("CARGO_BIN_EXE_backstitch-supervisor"));
    let disk = Arc::new(Disk::new());
    let tool = Tool::builder("look", "Is watched.").unwrap().effect(Effect::Workspace);
    let watched = disk.clone();
    let tool = tool.handler(move |_: ToolContext, (): ()| {
        let disk = watched.clone();
        async move {
            let times = recorded_times(&disk).expect("it is watched before it starts");
            assert!(times["started"].is_i64() && times["dead"].is_null(), "{times}");
            Ok(ToolResult::ok("watched"))
        }
    });
    let harness = disk.harness(vec![tool]).await;
    for _ in 0..2 {
        let ended = harness.run("look", json!({})).await;
        assert!(matches!(ended, CallOutcome::Succeeded(_)), "{ended:?}");
    }
    harness.live.release().await.unwrap();
    assert_eq!(recorded_times(&disk), None, "no call is open");
}
