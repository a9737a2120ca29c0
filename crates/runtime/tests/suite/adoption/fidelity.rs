//! How far an agent may differ from the one that an evaluation was started with, by each way to resume it.

use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    Agent, Driver, Fidelity, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools,
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
    /// The tool of the pending call is described in other words.
    ToolWords,
    /// The tool of the pending call wants another argument.
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
    /// As other programs and older versions write them: nothing but slices and messages.
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
    agent = agent.with_tools(Tools::new(offered).unwrap());
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
        // Where nothing is recorded to compare with, nothing can be the same.
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
        scripted(replies).with_tools(Tools::new([tool(&world, "pay", "Pays.", None)]).unwrap())
    };
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let seen: Arc<std::sync::Mutex<Option<String>>> = Arc::default();
    let first = seen.clone();
    // The checkpoint right after the answer, in which the call is pending.
    let observed = agent().and_set_up(move |session| {
        let first = first.clone();
        session.observe::<backstitch_core::journal::InnerMessage>(move |observation| {
            let snapshot = observation.session.snapshot();
            let calls = snapshot.all::<backstitch_core::journal::InnerMessage>()?;
            if calls.iter().last().is_some_and(|last| last.message.option_call().is_some()) {
                first.lock().unwrap().get_or_insert(snapshot.to_json()?);
            }
            Ok(())
        });
    });
    // Told apart from its result, which would be joined with it.
    let driver = runtime.create(observed, SessionOptions::default()).await.unwrap();
    driver.start("fly").await.unwrap().answer().unwrap();
    let Some(text) = seen.lock().unwrap().clone() else {
        // Answer and result became durable together, so no checkpoint can lie between them.
        return;
    };
    let snapshot = backstitch_core::session::Snapshot::from_json(&text).unwrap();
    let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
    let adopted = elsewhere.adopt_snapshot(agent(), &snapshot, SessionOptions::default()).await.unwrap();
    assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
}
