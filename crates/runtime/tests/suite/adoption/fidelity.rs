//! Permitted differences between the agent of a resume and the agent that started the evaluation, for each
//! way to resume.

use std::sync::Arc;

use backstitch_core::journal::{Effect, Position, RecordBody};
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    Agent, Driver, Fidelity, PointSpec, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools,
    read_records,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::world::World;
use crate::tailor::{reply, scripted};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Nothing,
    Name,
    System,
    ToolGone,
    ToolAdded,
    /// The tool of the pending call has another description.
    ToolWords,
    /// The tool of the pending call requires another argument.
    ToolArguments,
}

const CHANGES: [Changed; 7] = [
    Changed::Nothing,
    Changed::Name,
    Changed::System,
    Changed::ToolGone,
    Changed::ToolAdded,
    Changed::ToolWords,
    Changed::ToolArguments,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    Store,
    Snapshot,
    Conversation,
    /// Without provenance, as other programs and older versions write it: only slices and messages.
    BareSnapshot,
    BareConversation,
}

const PATHS: [Path; 5] =
    [Path::Store, Path::Snapshot, Path::Conversation, Path::BareSnapshot, Path::BareConversation];

fn tool(world: &World, name: &str, words: &str, wanted: Option<&str>) -> Tool {
    let world = world.clone();
    let properties = wanted.map(|wanted| json!({ wanted: {"type": "string"} }));
    let required: Vec<_> = wanted.into_iter().collect();
    let builder = Tool::builder(name, words).unwrap().effect(Effect::Workspace).workspace(WorkspaceUse::None);
    let mut tool = builder.handler(move |context: ToolContext, (): ()| {
        let world = world.clone();
        async move {
            world.enter(&context).await;
            Ok(ToolResult::ok("paid"))
        }
    });
    Arc::make_mut(&mut tool.spec).parameters =
        json!({"type": "object", "properties": properties.unwrap_or(json!({})), "required": required});
    tool
}

fn agent(world: &World, changed: Changed) -> Agent {
    let pay = match changed {
        Changed::ToolWords => tool(world, "pay", "Pays at once.", None),
        Changed::ToolArguments => tool(world, "pay", "Pays.", Some("to")),
        _ => tool(world, "pay", "Pays.", None),
    };
    let more = (changed == Changed::ToolAdded).then(|| tool(world, "refund", "Pays back.", None));
    let offered = Some(pay).filter(|_| changed != Changed::ToolGone).into_iter().chain(more);
    let mut agent = scripted(vec![reply("", &[("pay", json!({}))]), reply("done", &[])]);
    agent = agent.tools(Tools::new(offered).unwrap());
    match changed {
        Changed::Name => agent.key = "another".into(),
        Changed::System => agent.system = Some("You unpick.".into()),
        _ => {}
    }
    agent
}

/// Whether a mode refuses a change.
fn refuses(fidelity: Fidelity, changed: Changed, path: Path) -> bool {
    match fidelity {
        Fidelity::Forced => false,
        Fidelity::Compatible => matches!(changed, Changed::Name | Changed::ToolGone | Changed::ToolArguments),
        // Without a record to compare with, equality cannot be shown.
        Fidelity::Strict => {
            changed != Changed::Nothing || matches!(path, Path::BareSnapshot | Path::BareConversation)
        }
    }
}

async fn resumed(path: Path, fidelity: Fidelity, changed: Changed) -> Result<(), RuntimeError> {
    let world = World::stopping(1);
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let begun = agent(&world, Changed::Nothing);
    let stopped = Arc::new(runtime.create(begun, SessionOptions::default()).await.unwrap());
    let running = stopped.clone();
    tokio::spawn(async move { running.start("pay").await });
    world.until(1).await;

    let (agent, elsewhere) = (agent(&world, changed), Runtime::new(Arc::new(MemoryStore::new())));
    let options = SessionOptions { take_over: true, ..SessionOptions::default() };
    let session = stopped.session();
    let driver: Driver = match path {
        Path::Store => runtime.open(session.id(), agent, options).await.unwrap(),
        Path::Snapshot => {
            let snapshot = session.export_snapshot().await.unwrap();
            elsewhere.adopt_snapshot(agent, &snapshot, options).await.unwrap()
        }
        Path::BareSnapshot => {
            let snapshot = session.export_snapshot().await.unwrap().with_provenance(None);
            elsewhere.adopt_snapshot(agent, &snapshot, options).await.unwrap()
        }
        Path::Conversation | Path::BareConversation => {
            let mut conversation = session.export_conversation(None).await.unwrap().unwrap();
            if path == Path::BareConversation {
                conversation.provenance = None;
            }
            elsewhere.adopt_conversation(agent, &conversation, options).await.unwrap()
        }
    };
    driver.resume(ResumeOptions { fidelity, ..ResumeOptions::default() }).await.map(drop)
}

#[tokio::test]
async fn each_mode_refuses_the_same_changes_by_every_path() {
    for path in PATHS {
        for fidelity in [Fidelity::Strict, Fidelity::Compatible, Fidelity::Forced] {
            for changed in CHANGES {
                let what = format!("{fidelity:?} by {path:?}, changed: {changed:?}");
                match (resumed(path, fidelity, changed).await, refuses(fidelity, changed, path)) {
                    (Ok(()), false) | (Err(RuntimeError::PromptMismatch { .. }), true) => {}
                    (other, _) => panic!("{what}: {other:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_never_was_is_answered_and_no_mismatch() {
    let world = World::stopping(0);
    let agent = || {
        let replies = vec![reply("", &[("fly", json!({}))]), reply("done", &[])];
        scripted(replies).tools(Tools::new([tool(&world, "pay", "Pays.", None)]).unwrap())
    };
    for path in [Path::Store, Path::Snapshot, Path::Conversation] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = runtime.create(agent(), SessionOptions::default()).await.unwrap();
        driver.start("fly").await.unwrap().answer().unwrap();
        // Answer and result became durable together, so a process that ends leaves no call without its
        // result. A rewind to a cut between them does.
        let session = driver.session();
        let records = read_records(&**session.store(), session.id(), Position::START, None).await.unwrap();
        let is_call = |body: &RecordBody| matches!(body, RecordBody::MessageAppended(said) if said.message.option_call().is_some());
        let called = records.iter().find(|record| is_call(&record.body)).unwrap();
        session.rewind(&PointSpec::Position(called.position.next()), None).await.unwrap();
        let pending = session.state().await.view.pending_calls().map(|call| call.name.clone()).next();
        assert_eq!(pending.as_deref(), Some("fly"), "{path:?}");

        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let options = SessionOptions { take_over: true, ..SessionOptions::default() };
        let resumed: Driver = match path {
            Path::Snapshot => {
                let snapshot = session.export_snapshot().await.unwrap();
                elsewhere.adopt_snapshot(agent(), &snapshot, options).await.unwrap()
            }
            Path::Conversation => {
                let conversation = session.export_conversation(None).await.unwrap().unwrap();
                elsewhere.adopt_conversation(agent(), &conversation, options).await.unwrap()
            }
            _ => runtime.open(session.id(), agent(), options).await.unwrap(),
        };
        let ended = resumed.resume(ResumeOptions::default()).await.unwrap();
        assert_eq!(ended.answer().unwrap().text, "done", "{path:?}");
        let transcript = resumed.session().state().await.view.transcript().unwrap();
        let mut results = transcript.all().iter().filter_map(|said| said.message.option_result());
        let (result, more) = (results.next().unwrap(), results.next());
        assert!(result.is_error && more.is_none(), "{path:?}: {result:?}");
        assert_eq!(result.error_type.as_deref(), Some("unknown_tool"), "{path:?}");
    }
    assert!(world.attempts().is_empty(), "no tool has run");
}
