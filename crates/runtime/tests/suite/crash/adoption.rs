//! Processes that are killed and leave only checkpoints: their sessions are adopted in another store.
//!
//! An adopted session has no files to restore, so only its external effects are compared with those of an
//! undisturbed session: no effect that must not be repeated happens twice, and none happens under two keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backstitch_core::crash::POINTS;
use backstitch_core::id::CallId;
use backstitch_core::journal::{Decision, InnerMessage, PauseReason};
use backstitch_core::message::OptionResult;
use backstitch_core::session::Snapshot;
use backstitch_core::view::{ConversationState, Transcript};
use backstitch_runtime::{
    Agent, CheckpointHandler, DriveOutcome, Evaluator, FileCheckpointHandler, LiveSession, MainLoop,
    MainLoopError, Mission, ResumeOptions, Runtime, RuntimeError, SessionOptions, Task,
};
use backstitch_store::SqliteStore;
use serde_json::Value;

use super::child::{Death, Role};
use super::matrix::hits_to_try;
use super::plots;
use super::points::Crash;
use super::session::{agent, outside};
use super::stage::{Opened, Place, Plot, Stage};
use super::tools::done;

/// The kind of checkpoint that survives when a store is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Snapshot,
    Conversation,
}

/// Runs the session, and writes checkpoints after each message.
pub(super) async fn plays(stage: &Stage) {
    let opened = stage.open();
    let agent = writing(stage, agent(stage));
    let ended = match stage.plot {
        Plot::Sections => {
            let evaluator = Evaluator::of(agent);
            let session = evaluator.create_session(&opened.runtime, opened.options()).await.unwrap();
            evaluator.evaluate(&plots::prompt(stage), &session, false).await.unwrap()
        }
        _ => opened.runtime.create(agent, opened.options()).await.unwrap().start("sew").await.unwrap(),
    };
    ended.answer().unwrap();
}

fn writing(stage: &Stage, agent: Agent) -> Agent {
    let (snapshot, conversation) = (stage.path("snapshot.json"), stage.path("conversation.json"));
    agent.and_set_up(move |session| {
        let (snapshot, conversation) = (snapshot.clone(), conversation.clone());
        session.observe::<InnerMessage>(move |observation| {
            let write = |path: &std::path::Path, text: String| {
                let beside = path.with_extension("new");
                std::fs::write(&beside, text)?;
                std::fs::rename(beside, path)
            };
            write(&snapshot, observation.session.snapshot().to_json()?)?;
            let transcript = Transcript::of(observation.session)?;
            let latest = transcript.latest_evaluation_id().and_then(|latest| transcript.conversation(latest));
            write(&conversation, serde_json::to_string(&latest)?)?;
            Ok(())
        });
    })
}

/// Adopts the checkpoint of the session in a new store, and resumes it to the end. Calls with unknown effects
/// are resolved by the record of external effects. Returns `None` if there is no checkpoint.
async fn adopted(stage: &Stage, left: Left) -> Option<DriveOutcome> {
    let file = if left == Left::Snapshot { "snapshot.json" } else { "conversation.json" };
    let text = std::fs::read_to_string(stage.path(file)).ok()?;
    let opened = elsewhere(stage);
    let options = SessionOptions::with_workspace(opened.workspace.clone());
    let agent = agent(stage);
    let driver = match left {
        Left::Snapshot => {
            let snapshot = Snapshot::from_json(&text).unwrap();
            opened.runtime.adopt_snapshot(agent.clone(), &snapshot, options).await.unwrap()
        }
        Left::Conversation => {
            let conversation: ConversationState = serde_json::from_str(&text).unwrap();
            opened.runtime.adopt_conversation(agent.clone(), &conversation, options).await.unwrap()
        }
    };
    let session = driver.session().clone();
    let evaluator = Evaluator::of(agent);
    loop {
        let ended = match stage.plot {
            Plot::Sections => evaluator.evaluate(&plots::prompt(stage), &session, true).await.unwrap(),
            _ => driver.resume(ResumeOptions::default()).await.unwrap(),
        };
        let DriveOutcome::Paused {
            reason: PauseReason::EffectUnknown,
            call: Some(call),
            detail,
            session: None,
            ..
        } = &ended
        else {
            return Some(ended);
        };
        decide(stage, &session, *call, detail).await;
    }
}

async fn decide(stage: &Stage, session: &LiveSession, call: CallId, tool: &str) {
    let key = session.state().await.view.idempotency_key(call);
    let decision = if outside(stage).iter().any(|happened| happened.key == key.as_str()) {
        let result = OptionResult::new(call, tool, Value::String(done(tool)));
        Decision::Happened { result: Box::new(result) }
    } else {
        Decision::Fail { reason: None }
    };
    session.resolve(Some(call), decision, Some("a person".into())).await.unwrap();
}

/// Opens the files with a new store.
fn elsewhere(stage: &Stage) -> Opened {
    let number = (0..).find(|number| !stage.path(&format!("elsewhere{number}")).exists()).unwrap();
    let directory = stage.path(&format!("elsewhere{number}"));
    std::fs::create_dir(&directory).unwrap();
    stage.open_over(Arc::new(SqliteStore::open(directory.join("store.db")).unwrap()), "files")
}

/// Counts the distinct external effects of each tool. Asserts that only idempotent effects were repeated, and
/// that their handlers saw that it was a repetition.
fn effects(stage: &Stage, what: &str) -> BTreeMap<String, usize> {
    let happened = outside(stage);
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in &happened {
        if !keys.entry(one.tool.clone()).or_default().insert(one.key.clone()) {
            assert_eq!(one.tool, "mail", "{what}: an external effect happened twice: {happened:?}");
            assert!(one.again, "{what}: a repeated call has `is_resume`: {happened:?}");
        }
    }
    keys.into_iter().map(|(tool, keys)| (tool, keys.len())).collect()
}

fn check(found: &BTreeMap<String, usize>, expected: &BTreeMap<String, usize>, what: &str) {
    for (tool, count) in found {
        assert!(count <= &expected[tool], "{what}: {tool} happened under too many keys: {found:?}");
    }
}

/// Kills a process at these points, adopts its checkpoint, and compares the external effects.
async fn killed_and_adopted(plot: Plot, points: &[&str], most: u64) {
    let reference = Stage::of(Place::Host, plot);
    assert!(!reference.play(Role::Checkpointed, &Death::None));
    let (expected, hits) = (effects(&reference, "without kills"), reference.hits());
    let mut tried = 0;
    for point in POINTS.iter().filter(|point| points.contains(*point)) {
        for hit in hits_to_try(hits.get(*point).copied().unwrap_or_default(), most) {
            // A conversation holds one evaluation, and a script would not know its answers in earlier ones.
            let left = match plot {
                Plot::Sections => Left::Snapshot,
                _ if hit % 2 == 0 => Left::Conversation,
                _ => Left::Snapshot,
            };
            let what = format!("{plot:?} killed at {point}, time {hit}, adopted from its {left:?}");
            let stage = Stage::of(Place::Host, plot);
            stage.play(Role::Checkpointed, &Death::At(Crash::at(point, hit)));
            let Some(ended) = adopted(&stage, left).await else { continue };
            assert!(matches!(ended, DriveOutcome::Completed(_)), "{what}: {ended:?}");
            check(&effects(&stage, &what), &expected, &what);
            tried += 1;
        }
    }
    assert!(tried > 3, "only {tried} sessions were adopted");
}

#[tokio::test]
async fn killed_inside_a_handler_and_adopted() {
    killed_and_adopted(Plot::Alone, &["call.in_handler"], u64::MAX).await;
}

#[tokio::test]
async fn killed_around_calls_and_adopted() {
    killed_and_adopted(Plot::Alone, &["append.after", "call.handler_done", "call.finished"], 5).await;
}

#[tokio::test]
async fn killed_inside_a_handler_of_a_section_and_adopted() {
    killed_and_adopted(Plot::Sections, &["call.in_handler", "call.finished"], 9).await;
}

#[tokio::test]
async fn killed_inside_a_handler_of_a_sub_agent_and_adopted() {
    killed_and_adopted(Plot::Agents, &["call.in_handler", "call.finished"], 9).await;
}

/// A main loop over the session, whose store is lost with its process.
struct Playing<'a> {
    stage: &'a Stage,
    opened: Opened,
}

impl MainLoop for Playing<'_> {
    type Request = String;

    fn runtime(&self) -> &Runtime {
        &self.opened.runtime
    }

    fn create_session(&self, _: &String) -> SessionOptions {
        SessionOptions::with_workspace(self.opened.workspace.clone())
    }

    fn create_prompt(&self, _: &String) -> Task {
        match self.stage.plot {
            Plot::Sections => (agent(self.stage), plots::prompt(self.stage)).into(),
            _ => (agent(self.stage), Mission::from("sew")).into(),
        }
    }

    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<String>>> {
        let name: fn(&String) -> String = |request| request.clone();
        Some(Arc::new(FileCheckpointHandler::new(self.stage.path("checkpoints"), name)))
    }
}

async fn looped(stage: &Stage) -> Result<(), MainLoopError> {
    let playing = Playing { stage, opened: elsewhere(stage) };
    playing.execute(Arc::new("session".to_owned())).await.map(drop)
}

/// Executes the request of a main loop.
pub(super) async fn loops(stage: &Stage) {
    looped(stage).await.unwrap();
}

async fn killed_and_executed_again(plot: Plot, points: &[&str], most: u64) {
    let reference = Stage::of(Place::Host, plot);
    assert!(!reference.play(Role::Loop, &Death::None));
    let (expected, hits) = (effects(&reference, "without kills"), reference.hits());
    for point in POINTS.iter().filter(|point| points.contains(*point)) {
        for hit in hits_to_try(hits.get(*point).copied().unwrap_or_default(), most) {
            let what = format!("a main loop over {plot:?} killed at {point}, time {hit}");
            let stage = Stage::of(Place::Host, plot);
            stage.play(Role::Loop, &Death::At(Crash::at(point, hit)));
            match looped(&stage).await {
                Ok(()) | Err(MainLoopError::Runtime(RuntimeError::ToolIdempotencyError { .. })) => {}
                Err(error) => panic!("{what}: {error}"),
            }
            check(&effects(&stage, &what), &expected, &what);
        }
    }
}

#[tokio::test]
async fn a_main_loop_is_killed_and_executed_again() {
    killed_and_executed_again(Plot::Alone, &["call.in_handler", "call.finished", "append.after"], 7).await;
}

#[tokio::test]
async fn a_main_loop_with_a_prompt_is_killed_and_executed_again() {
    killed_and_executed_again(Plot::Sections, &["call.in_handler", "call.finished"], 7).await;
}
