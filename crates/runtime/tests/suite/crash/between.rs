//! Killed, and before the session is resumed, another session and a person write in its directory.
//!
//! For every way of resuming: what they wrote is in the directory afterwards, whichever call was open when the process was killed. Only a
//! resume that is to undo changes of others moves it, into files that the session has saved, and so does the failure of a sub-agent
//! that was continued. Files of which it is unknown who changed them are restored: none of these is what they wrote.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backstitch_core::crash::POINTS;
use backstitch_core::journal::{ObservationCause, PauseReason, Position, Record, RecordBody, WorkspaceRoot};
use backstitch_core::ports::FilePath;
use backstitch_runtime::{DriftPolicy, DriveOutcome, PointSpec, ResumeOptions, RuntimeError, read_records};
use serde_json::{Value, json};

use super::child::{Death, Role, kill_at};
use super::matrix::hits_to_try;
use super::outcome::{collect, files};
use super::points::Crash;
use super::session::{self, Unseen, agent, to_the_end};
use super::stage::{Place, Plot, Stage};
use super::tools::tools;
use crate::tailor::{reply, scripted};

/// What the others write: a new file of a person, a new file of another session, and an edit of a file that was there.
const WRITTEN: [(&str, &str); 3] =
    [("mine.txt", "by hand\n"), ("theirs.txt", "all of theirs.txt\n"), ("untouched.txt", "edited\n")];

/// A way in which a session is resumed, or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is resumed to its end; calls with unknown effects run again.
    Retry,
    /// It is resumed to its end; calls with unknown effects count as failed.
    Fail,
    /// It is resumed with the files as they are.
    Adopt,
    /// It is resumed with the files as they were recorded.
    RestoreDrift,
    /// It is rewound to its start, that is undone, and repeated.
    Rewind,
    /// All files that it changed are restored.
    Restore,
    /// It is forked.
    Fork,
}

const WAYS: [Way; 7] =
    [Way::Retry, Way::Fail, Way::Adopt, Way::RestoreDrift, Way::Rewind, Way::Restore, Way::Fork];

/// A stage with one more file, which the session does not change.
fn stage_of(plot: Plot) -> Stage {
    let stage = Stage::of(Place::Host, plot);
    std::fs::write(stage.file("untouched.txt"), "as it was\n").unwrap();
    stage.supervise();
    stage
}

/// Waits until the supervisors of a killed process have recorded its end.
async fn await_recorded_death(stage: &Stage) {
    let is_recorded = || {
        let sessions = std::fs::read_dir(stage.path("store/calls")).into_iter().flatten().flatten();
        let mut files = sessions.flat_map(|session| std::fs::read_dir(session.path()).into_iter().flatten());
        files.all(|file| {
            let times = file.and_then(|file| std::fs::read(file.path())).unwrap_or_default();
            let times: Value = serde_json::from_slice(&times).unwrap_or_default();
            times["dead"].is_i64()
        })
    };
    let began = Instant::now();
    while !is_recorded() {
        assert!(began.elapsed() < Duration::from_secs(60), "the end of a process is not recorded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A person and another session write in the directory.
async fn write_between(stage: &Stage) {
    await_recorded_death(stage).await;
    // Later than the death of the process by more than the margin in which it is unknown who wrote.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let [mine, theirs, edited] = WRITTEN;
    for (name, text) in [mine, edited] {
        std::fs::write(stage.file(name), text).unwrap();
    }
    let opened = stage.open();
    let write = ("write", json!({"path": theirs.0, "text": theirs.1}));
    let other = scripted(vec![reply("beside", &[write]), reply("done", &[])]).tools(tools(stage));
    let driver = opened.runtime.create(other, opened.plain_options()).await.unwrap();
    driver.start("write beside it").await.unwrap().answer().unwrap();
    driver.session().release().await.unwrap();
}

/// Resumes a session in this way.
async fn resume(stage: &Stage, way: Way) {
    match way {
        Way::Retry => finish(stage, Unseen::Retry).await,
        Way::Fail => finish(stage, Unseen::Fail).await,
        Way::Adopt => drive(stage, DriftPolicy::Adopt).await,
        Way::RestoreDrift => drive(stage, DriftPolicy::Restore).await,
        Way::Rewind => {
            let opened = stage.open();
            let live = opened.runtime.open_idle(session::id(), opened.plain_options()).await.unwrap();
            live.rewind(&PointSpec::Start, None).await.unwrap();
            live.undo().await.unwrap();
            live.redo().await.unwrap();
            live.release().await.unwrap();
        }
        Way::Restore => {
            let opened = stage.open();
            let live = opened.runtime.open_idle(session::id(), opened.plain_options()).await.unwrap();
            match live.restore_files(&PointSpec::Start, vec![FilePath::root()]).await {
                // The session has changed nothing yet.
                Ok(_) | Err(RuntimeError::NothingToRewind { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            live.release().await.unwrap();
        }
        Way::Fork => {
            let opened = stage.open_at("forked");
            let start = PointSpec::Start;
            let fork =
                opened.runtime.fork_session(session::id(), start, opened.plain_options()).await.unwrap();
            fork.release().await.unwrap();
        }
    }
}

/// Resumes a session to its end. Files of which it is unknown who changed them are restored.
async fn finish(stage: &Stage, unseen: Unseen) {
    let is_doubtful =
        |ended: &DriveOutcome| matches!(ended, DriveOutcome::Paused { reason: PauseReason::Files, .. });
    while is_doubtful(&to_the_end(stage, &stage.open(), unseen).await.unwrap()) {
        drive(stage, DriftPolicy::Restore).await;
    }
}

/// Resumes a session, which may end or wait for a decision.
async fn drive(stage: &Stage, drift: DriftPolicy) {
    let opened = stage.open();
    let driver = opened.runtime.open(session::id(), agent(stage), opened.plain_options()).await.unwrap();
    let options = ResumeOptions { drift: Some(drift), ..ResumeOptions::default() };
    driver.resume(options).await.unwrap();
    driver.session().release().await.unwrap();
}

/// The files that the session has saved before it restored others.
async fn saved(stage: &Stage) -> Vec<BTreeMap<String, String>> {
    let opened = stage.open_at("saved");
    let records = read_records(&*opened.store, session::id(), Position::START, None).await.unwrap();
    let roots = records.iter().filter_map(|record| match &record.body {
        RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted => {
            Some(observed.root)
        }
        RecordBody::CallFinished(finished) => finished.rescue,
        RecordBody::Rewound(rewound) => rewound.rescue,
        _ => None,
    });
    let read = |root: WorkspaceRoot| {
        opened.workspace.restore(root).unwrap();
        let mut found = BTreeMap::new();
        collect(&stage.path("saved"), "", &mut found);
        found
    };
    roots.map(read).collect()
}

/// Kills a process at these points, lets others write, and resumes in every way.
async fn killed_and_written(plot: Plot, points: &[&str], most: u64) {
    let reference = stage_of(plot);
    assert!(!reference.play(Role::End, &Death::None));
    let (hits, expected) = (reference.hits(), files(&reference));
    let mut tried = 0;
    for point in POINTS.iter().filter(|point| points.iter().any(|wanted| point.starts_with(wanted))) {
        let reached = hits.get(*point).copied().unwrap_or_default();
        for hit in hits_to_try(reached, most) {
            for way in WAYS {
                let what = format!("killed at {point}, time {hit} of {reached}, {way:?}");
                let stage = stage_of(plot);
                let _ = stage.play(Role::End, &Death::At(Crash::at(point, hit)));
                write_between(&stage).await;
                let before = files(&stage);
                resume(&stage, way).await;
                let after = files(&stage);
                check(&stage, &after, way, &what).await;
                match way {
                    Way::Retry => {
                        let own = |files: &BTreeMap<String, String>| {
                            let is_own = |name: &String| WRITTEN.iter().all(|(path, _)| path != name);
                            files.clone().into_iter().filter(|(name, _)| is_own(name)).collect::<Vec<_>>()
                        };
                        assert_eq!(own(&after), own(&expected), "{what}: its own files");
                    }
                    Way::Fork => assert_eq!(after, before, "{what}: the fork has files of its own"),
                    _ => {}
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 0, "no point starts with {points:?}");
}

/// Whether a call that was interrupted and continued, as that of a sub-agent, has failed, and was rolled back as a whole.
async fn has_rolled_back(stage: &Stage) -> bool {
    let records = read_records(&*stage.open().store, session::id(), Position::START, None).await.unwrap();
    let resumed = |record: &Record| matches!(record.body, RecordBody::EvaluationResumed(_));
    let Some(resumed) = records.iter().position(resumed) else { return false };
    let began = records[..resumed].iter().filter_map(|record| match &record.body {
        RecordBody::CallStarted(call) => Some(call.call_id),
        _ => None,
    });
    let began: Vec<_> = began.collect();
    records[resumed..].iter().any(|record| {
        matches!(&record.body, RecordBody::CallFinished(call)
            if call.rescue.is_some() && began.contains(&call.call_id))
    })
}

/// Checks that what others wrote is in the directory, or, where it is to be undone, in files that the session has saved. Without
/// supervisors, everything counts as changed by a call that was open.
async fn check(stage: &Stage, after: &BTreeMap<String, String>, way: Way, what: &str) {
    let may_be_saved =
        way == Way::RestoreDrift || cfg!(not(target_os = "linux")) || has_rolled_back(stage).await;
    let saved = if may_be_saved { saved(stage).await } else { Vec::new() };
    for (name, text) in WRITTEN {
        let holds = |files: &BTreeMap<String, String>| files.get(name).map(String::as_str) == Some(text);
        assert!(holds(after) || saved.iter().any(holds), "{what}: {name} is lost: {after:?}");
    }
}

#[tokio::test]
async fn others_write_after_a_kill_inside_of_a_call() {
    killed_and_written(Plot::Alone, &["call.after_intent", "call.in_handler"], 2).await;
}

#[tokio::test]
async fn others_write_after_a_kill_at_the_end_of_a_call() {
    killed_and_written(Plot::Alone, &["call.handler_done", "call.files_captured", "call.finished"], 2).await;
}

#[tokio::test]
async fn others_write_after_a_kill_while_files_are_restored() {
    let points = &["call.before_restore", "call.after_restore", "workspace.restore."];
    killed_and_written(Plot::Alone, points, 1).await;
}

#[tokio::test]
async fn others_write_after_a_kill_between_calls() {
    killed_and_written(Plot::Alone, &["ask.", "snapshot."], 1).await;
}

#[tokio::test]
async fn others_write_after_a_kill_in_a_sub_agent() {
    killed_and_written(Plot::Agents, &["call.in_handler", "child."], 1).await;
}

/// The same for a rewind that was killed: the next process completes it.
#[tokio::test]
async fn others_write_after_a_kill_during_a_rewind_or_a_restore() {
    for role in [Role::Rewind, Role::Restore] {
        let reference = stage_of(Plot::Alone);
        assert!(!reference.play(Role::End, &Death::None));
        assert!(!reference.play(role, &Death::None));
        let hits = reference.hits();
        let wanted = ["rewind.", "workspace.restore."];
        let points = hits.iter().filter(|(name, _)| wanted.iter().any(|wanted| name.starts_with(wanted)));
        for (point, reached) in points {
            for hit in hits_to_try(*reached, 1) {
                for way in [Way::Retry, Way::Rewind, Way::Restore, Way::Fork] {
                    let (stage, killed) = kill_at(role, point, hit, async || {
                        let stage = stage_of(Plot::Alone);
                        assert!(!stage.play(Role::End, &Death::None));
                        stage
                    })
                    .await;
                    let what = format!("{killed}, {way:?}");
                    write_between(&stage).await;
                    resume(&stage, way).await;
                    check(&stage, &files(&stage), way, &what).await;
                }
            }
        }
    }
}
