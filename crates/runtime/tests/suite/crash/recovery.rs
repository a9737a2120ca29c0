//! Killed during the recovery from an earlier kill, during a decision, and with deleted files.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch_core::journal::Effect;
use backstitch_core::ports::ProcessSpec;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult};
use backstitch_runtime::{Driver, PointSpec, ResumeOptions, SessionOptions, Tools};
use serde_json::json;

use super::child::{Death, Role};
use super::matrix::{Reference, resumed};
use super::points::Crash;
use super::session::{self, Unseen, outside};
use super::stage::{Place, Stage};
use super::tools::tools;
use crate::tailor::{reply, scripted};

/// Kills a process in a step of a tool, then a second one that resumes at each of these points, and resumes
/// again.
async fn killed_twice(first: &'static str, role: Role, points: &[(&str, u64)]) {
    let unseen = if role == Role::Fail { Unseen::Fail } else { Unseen::Retry };
    let once = {
        let stage = Stage::new(Place::Host);
        assert!(stage.play(role, &Death::In(first)));
        resumed(&stage, unseen).await
    };
    let expected = match unseen {
        Unseen::Retry => Reference::of(Place::Host).await.outcome,
        Unseen::Fail => once.clone(),
    };
    once.assert_is(&expected, first);
    for (point, most) in points {
        for hit in 1..=*most {
            let what = format!("killed in {first}, and again at {point}, time {hit}");
            let stage = Stage::new(Place::Host);
            assert!(stage.play(role, &Death::In(first)), "{what}");
            assert!(stage.play(role, &Death::At(Crash::at(point, hit))), "{what}: the second was not");
            resumed(&stage, unseen).await.assert_is(&expected, &what);
        }
    }
}

#[tokio::test]
async fn killed_while_recovering_from_a_write() {
    let points = [
        ("recover.before", 1),
        ("recover.rescued", 1),
        ("recover.restored", 1),
        ("workspace.restore.begun", 1),
        ("workspace.restore.done", 1),
        ("append.before", 2),
        ("append.after", 2),
        ("store.before_commit", 2),
    ];
    killed_twice("write:2", Role::End, &points).await;
}

#[tokio::test]
async fn killed_while_recovering_from_a_failure() {
    let points = [("recover.rescued", 1), ("workspace.restore.half", 2), ("workspace.restore.done", 1)];
    killed_twice("tear:2", Role::End, &points).await;
}

#[tokio::test]
async fn killed_while_recovering_from_a_shell() {
    let points = [("recover.before", 1), ("recover.rescued", 1), ("recover.restored", 1)];
    killed_twice("shell:1", Role::End, &points).await;
}

#[tokio::test]
async fn killed_while_a_call_is_resolved_as_happened() {
    let points =
        [("resolve.before", 1), ("append.before", 2), ("append.after", 2), ("store.after_commit", 3)];
    killed_twice("deploy:3", Role::End, &points).await;
}

#[tokio::test]
async fn killed_while_a_call_is_resolved_to_run_again() {
    let points = [("resolve.before", 1), ("append.before", 3), ("append.after", 3), ("recover.rescued", 1)];
    killed_twice("deploy:2", Role::End, &points).await;
}

#[tokio::test]
async fn killed_while_a_call_is_resolved_as_failed() {
    let points = [
        ("resolve.before", 1),
        ("workspace.restore.begun", 1),
        ("workspace.restore.done", 1),
        ("resolve.restored", 1),
        ("append.before", 3),
        ("append.after", 3),
    ];
    killed_twice("deploy:2", Role::Fail, &points).await;
}

#[tokio::test]
async fn a_call_that_failed_by_decision_leaves_nothing() {
    let stage = Stage::new(Place::Host);
    assert!(stage.play(Role::Fail, &Death::In("deploy:2")));
    assert!(stage.file("site.txt").exists(), "it was killed after it wrote");
    resumed(&stage, Unseen::Fail).await;
    assert!(!stage.file("site.txt").exists());
    assert!(outside(&stage).iter().all(|happened| happened.tool != "deploy"));
}

#[tokio::test]
async fn deleted_files_are_restored_from_the_store() {
    let expected = Reference::of(Place::Host).await.outcome;
    for death in ["write:2", "order:2", "mail:1", "shell:1"] {
        let stage = Stage::new(Place::Host);
        assert!(stage.play(Role::End, &Death::In(death)));
        // A writer that survived may create a file meanwhile, and then the directory is not empty.
        let began = Instant::now();
        while let Err(error) = std::fs::remove_dir_all(stage.file("")) {
            assert!(began.elapsed() < Duration::from_secs(60), "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let outcome = resumed(&stage, Unseen::Retry).await;
        outcome.assert_is(&expected, &format!("killed in {death}, and the files were deleted"));
    }
}

#[tokio::test]
async fn another_mission_finds_the_files_of_the_previous_mission() {
    for place in [Place::Host, Place::Memory] {
        let stage = Stage::new(place);
        assert!(!stage.play(Role::End, &Death::None));
        if place == Place::Host {
            std::fs::remove_dir_all(stage.file("")).unwrap();
        }
        let opened = stage.open();
        let replies = vec![reply("done", &[("read", json!({"path": "notes.txt"}))]); 11];
        let agent = scripted([replies, vec![reply("read", &[])]].concat()).tools(tools(&stage));
        let driver = opened.runtime.open(session::id(), agent, opened.options()).await.unwrap();
        let _ = driver.start("read").await.unwrap();
        let transcript = driver.session().state().await.view.transcript().unwrap();
        let last = transcript.all().iter().rev().find_map(|message| message.message.option_result()).unwrap();
        assert_eq!(last.result.inline(), Some(&json!("all of notes.txt\n")), "{last:?}");
    }
}

/// A shell that waits for a file beside the workspace.
fn waiting_shell() -> Tool {
    let builder = Tool::builder("wait", "Waits.").unwrap().effect(Effect::Workspace);
    builder.handler(|context: ToolContext, (): ()| async move {
        let spec = ProcessSpec::shell("while [ ! -e ../go ]; do sleep 0.01; done; echo done > waited.txt");
        match context.run_process(spec).await? {
            outcome if outcome.success() => Ok(ToolResult::ok("it waited")),
            outcome => Err(ToolError::new(outcome.exit.to_string())),
        }
    })
}

/// Waits until a call of the session runs a process of its own.
async fn await_process(driver: &Driver) {
    let began = Instant::now();
    loop {
        let own = driver.session().id();
        let runs = driver.session().state().await.view.calls().any(|call| {
            let intent = call.intent.as_ref().is_some_and(|intent| intent.point.session == own);
            intent && !call.processes.is_empty()
        });
        if runs {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no process came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_fork_does_not_end_the_processes_of_its_parent() {
    let stage = Stage::new(Place::Host);
    let opened = stage.open();
    let agent = || {
        let replies = vec![reply("wait", &[("wait", json!({}))]), reply("done", &[])];
        scripted(replies).tools(Tools::new([waiting_shell()]).unwrap())
    };
    let driver = Arc::new(opened.runtime.create(agent(), opened.options()).await.unwrap());
    let parent = tokio::spawn({
        let driver = driver.clone();
        async move { driver.start("sew").await }
    });
    await_process(&driver).await;

    let beside = stage.open_over(opened.store.clone(), "forked");
    let options = || SessionOptions::with_workspace(beside.workspace.clone());
    let fork = beside.runtime.fork_session(driver.session().id(), PointSpec::Head, options()).await.unwrap();
    let id = fork.id();
    fork.release().await.unwrap();
    let fork = Arc::new(beside.runtime.open(id, agent(), options()).await.unwrap());
    let child = tokio::spawn({
        let fork = fork.clone();
        async move { fork.resume(ResumeOptions::default()).await }
    });
    await_process(&fork).await;
    std::fs::write(stage.path("go"), "").unwrap();
    for session in [parent, child] {
        assert_eq!(session.await.unwrap().unwrap().answer().unwrap().text, "done");
    }
    assert!(stage.path("forked/waited.txt").exists() && stage.file("waited.txt").exists());
    for driver in [driver, fork] {
        let transcript = driver.session().state().await.view.transcript().unwrap();
        let results = transcript.all().iter().filter_map(|message| message.message.option_result());
        let failed: Vec<_> = results.filter(|result| result.is_error).collect();
        assert!(failed.is_empty(), "{failed:?}");
    }
}
