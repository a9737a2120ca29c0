//! Exports of Lisp agents contain their programs, the tasks of these, and the turns.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::journal::{Effect, LargeRecord};
use backstitch_core::session::Snapshot;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_core::view::ConversationState;
use backstitch_repl::LispAgent;
use backstitch_runtime::{Agent, Driver, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::lisp::answers;

/// Three programs. The first and its turn are too large for a record. So is the task of the second program,
/// which is stopped in the call after that task.
fn programs() -> [String; 3] {
    let long = "x".repeat(80_000);
    [
        format!("(def long \"{long}\") (def one (tool/twice 1))"),
        "(def more (task \"more\" (str long (tool/twice 2)))) (def most (tool/twice 3))".to_owned(),
        "(return [one (count more) most])".to_owned(),
    ]
}

/// The numbers that were doubled, in all processes.
type Doubled = Arc<Mutex<Vec<i64>>>;

/// A tool that doubles numbers. The first attempt to double 3 never returns.
fn twice(doubled: &Doubled, stops: &Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Number {
        n: i64,
    }
    let (doubled, stops) = (doubled.clone(), stops.clone());
    let builder = Tool::builder("twice", "Doubles.").unwrap().effect(Effect::Workspace);
    builder.workspace(WorkspaceUse::None).handler(move |_, number: Number| {
        let (doubled, stops) = (doubled.clone(), stops.clone());
        async move {
            if number.n == 3 && stops.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            doubled.lock().unwrap().push(number.n);
            Ok(ToolResult::ok("").with_value(number.n * 2).unwrap())
        }
    })
}

fn agent(doubled: &Doubled, stops: &Arc<AtomicUsize>) -> Agent {
    let tools = Tools::new([twice(doubled, stops)]).unwrap();
    let programs = programs();
    let policy = answers(&programs.each_ref().map(String::as_str));
    Agent::lisp("tests/lisp", policy, LispAgent::new(), tools).unwrap()
}

/// Adopts the JSON export of a stopped session in a new store.
async fn adopted(stopped: &Driver, agent: Agent, as_conversation: bool) -> Driver {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (session, options) = (stopped.session(), SessionOptions::default());
    if as_conversation {
        let conversation = session.export_conversation(None).await.unwrap().unwrap();
        let text = serde_json::to_string(&conversation).unwrap();
        let conversation: ConversationState = serde_json::from_str(&text).unwrap();
        return runtime.adopt_conversation(agent, &conversation, options).await.unwrap();
    }
    let text = session.export_snapshot().await.unwrap().to_json().unwrap();
    runtime.adopt_snapshot(agent, &Snapshot::from_json(&text).unwrap(), options).await.unwrap()
}

#[tokio::test]
async fn programs_continue_elsewhere_where_they_were_stopped() {
    for as_conversation in [false, true] {
        let what = if as_conversation { "a conversation" } else { "a snapshot" };
        let (doubled, stops) = (Doubled::default(), Arc::default());
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let agent = || agent(&doubled, &stops);
        let stopped = Arc::new(runtime.create(agent(), SessionOptions::default()).await.unwrap());
        let running = stopped.clone();
        tokio::spawn(async move { running.start("Double.").await });
        while stops.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let known = |view: &backstitch_core::view::JournalView| {
            let known = view.latest_evaluation().unwrap();
            (known.programs.clone(), known.tasks.clone(), known.finished_turns.clone())
        };
        let before = known(&stopped.session().state().await.view);
        assert_eq!((before.0.len(), before.1.len(), before.2.len()), (2, 1, 1), "{what}");
        let large = [before.0[0].large_object(), before.1[0].large_object(), before.2[0].large_object()];
        assert!(large.iter().all(Option::is_some), "{what}: {large:?}");

        let driver = adopted(&stopped, agent(), as_conversation).await;
        assert_eq!(known(&driver.session().state().await.view), before, "{what}");
        let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(answered.output, Some(json!([2, 80_001, 6])), "{what}");
        assert_eq!(*doubled.lock().unwrap(), [1, 2, 3], "{what}: what was done elsewhere is not done again");
        let turns = driver.session().state().await.view.latest_evaluation().unwrap().finished_turns.len();
        assert_eq!(turns, 3, "{what}");
    }
}
