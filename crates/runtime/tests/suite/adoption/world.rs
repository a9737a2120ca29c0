//! A tool that is stopped inside of its handler, and the ways to offer it and to resume its session.

use std::sync::{Arc, Mutex};

use backstitch_core::journal::Effect;
use backstitch_core::message::PolicyName;
use backstitch_core::prompt::{BoundPrompt, Prompt, Section};
use backstitch_core::session::Snapshot;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_core::view::{ConversationState, Transcript};
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{
    Agent, DriveOutcome, Evaluator, LiveSession, ResumeOptions, Runtime, RuntimeError, SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::tailor::reply;

/// The context that one attempt of a call received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) key: String,
    pub(super) is_resume: bool,
}

/// The effects outside, of all processes.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    attempts: Arc<Mutex<Vec<Attempt>>>,
    /// How many attempts never return.
    stops: usize,
}

impl World {
    pub(super) fn stopping(stops: usize) -> Self {
        Self { stops, ..Self::default() }
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }

    pub(super) async fn until(&self, attempts: usize) {
        while self.attempts.lock().unwrap().len() < attempts {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Records an attempt of a handler, and never returns if it is one of the first `stops`.
    pub(super) async fn enter(&self, context: &ToolContext) {
        let attempt = Attempt { key: context.idempotency_key().to_string(), is_resume: context.is_resume() };
        let nth = {
            let mut attempts = self.attempts.lock().unwrap();
            attempts.push(attempt);
            attempts.len()
        };
        if nth <= self.stops {
            std::future::pending::<()>().await;
        }
    }

    /// A tool that records each attempt here.
    pub(super) fn pay(&self, effect: Effect) -> Tool {
        let world = self.clone();
        let builder = Tool::builder("pay", "Pays.").unwrap().effect(effect).workspace(WorkspaceUse::None);
        builder.handler(move |context: ToolContext, (): ()| {
            let world = world.clone();
            async move {
                world.enter(&context).await;
                Ok(ToolResult::ok("paid"))
            }
        })
    }
}

/// How a tool is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    Agent,
    Section,
    /// Not offered by the process that resumes.
    Nowhere,
}

/// How a session is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    Store,
    Snapshot,
    /// A snapshot without provenance, as older versions wrote it.
    BareSnapshot,
    Conversation,
}

pub(super) const PATHS: [Path; 4] = [Path::Store, Path::Snapshot, Path::BareSnapshot, Path::Conversation];
pub(super) const EFFECTS: [Effect; 4] =
    [Effect::Pure, Effect::Workspace, Effect::Idempotent, Effect::External];

pub(super) fn replies() -> Vec<ScriptedReply> {
    vec![reply("paying", &[("pay", json!({}))]), reply("done", &[])]
}

/// An agent with scripted answers, without a prompt of its own.
pub(super) fn nameless(replies: Vec<ScriptedReply>) -> Agent {
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    Agent::new("").policy(Arc::new(policy))
}

pub(super) fn offering(tool: &Tool, offer: Offer) -> (Agent, BoundPrompt) {
    let (agent, section) = (nameless(replies()), Section::new("task", "Task").body("Pay."));
    let (agent, section) = match offer {
        Offer::Agent => (agent.tools(Tools::new([tool.clone()]).unwrap()), section),
        Offer::Section => (agent, section.tool(tool.clone())),
        Offer::Nowhere => (agent, section),
    };
    let prompt = Prompt::builder("tests", "paying").section(section).build().unwrap();
    (agent, prompt.bind(&()).unwrap().asking("pay"))
}

/// A process: its store, its session, and what it evaluates.
pub(super) struct Process {
    pub(super) runtime: Runtime,
    pub(super) session: Arc<LiveSession>,
    evaluator: Evaluator,
    prompt: BoundPrompt,
}

impl Process {
    /// A process that is stopped inside of the handler of its first call.
    pub(super) async fn stopped(world: &World, tool: &Tool, offer: Offer) -> Self {
        let (agent, prompt) = offering(tool, offer);
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let evaluator = Evaluator::of(agent);
        let session = evaluator.create_session(&runtime, SessionOptions::default()).await.unwrap();
        let process = Self { runtime, session, evaluator, prompt };
        process.drive_until_stopped(world, false).await;
        process
    }

    /// Evaluates in the background until the handler stops; the evaluation never ends.
    pub(super) async fn drive_until_stopped(&self, world: &World, resume: bool) {
        let before = world.attempts().len();
        let (evaluator, prompt, session) =
            (self.evaluator.clone(), self.prompt.clone(), self.session.clone());
        tokio::spawn(async move { evaluator.evaluate(&prompt, &session, resume).await });
        world.until(before + 1).await;
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        let text = self.session.state().await.session.snapshot().to_json().unwrap();
        Snapshot::from_json(&text).unwrap()
    }

    pub(super) async fn conversation(&self) -> ConversationState {
        let state = self.session.state().await;
        let transcript = Transcript::of(&state.session).unwrap();
        let conversation = transcript.conversation(transcript.latest_evaluation_id().unwrap()).unwrap();
        serde_json::from_str(&serde_json::to_string(&conversation).unwrap()).unwrap()
    }

    /// Another process, which opens or adopts the session by this path. Only `Path::Store` shares the store.
    pub(super) async fn reopened(&self, tool: &Tool, offer: Offer, path: Path) -> Self {
        let (agent, prompt) = offering(tool, offer);
        let evaluator = Evaluator::of(agent.clone());
        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let options = SessionOptions::default();
        let (runtime, session) = match path {
            Path::Store => {
                let options = SessionOptions { take_over: true, ..options };
                let session = evaluator.open_session(&self.runtime, self.session.id(), options).await;
                (self.runtime.clone(), session.unwrap())
            }
            Path::Snapshot | Path::BareSnapshot => {
                let mut snapshot = self.snapshot().await;
                if path == Path::BareSnapshot {
                    snapshot = snapshot.with_provenance(None);
                }
                let session = evaluator.adopt_session(&elsewhere, &snapshot, options).await.unwrap();
                (elsewhere, session)
            }
            Path::Conversation => {
                let conversation = self.conversation().await;
                let session = evaluator.adopt_conversation(&elsewhere, &conversation, options).await.unwrap();
                (elsewhere, session)
            }
        };
        Self { runtime, session, evaluator, prompt }
    }

    pub(super) async fn resume(&self, options: ResumeOptions) -> Result<DriveOutcome, RuntimeError> {
        self.evaluator.evaluate(&self.prompt, &self.session, options).await
    }
}
