//! The session that the processes run, and how it is resumed.

use std::io::Write as _;
use std::sync::Arc;

use backstitch_core::id::{CallId, IdStream, SessionId};
use backstitch_core::journal::{Decision, IdempotencyKey, PauseReason, Position, RecordBody, Role};
use backstitch_core::message::{OptionResult, PolicyName};
use backstitch_core::ports::{
    BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo, Store as _,
};
use backstitch_core::time::FixedClock;
use backstitch_runtime::{Agent, DriveOutcome, Driver, ResumeOptions, RuntimeError, read_records};
use backstitch_store::SqliteStore;
use serde_json::{Value, json};

use super::plots;
use super::stage::{Opened, Place, Plot, Stage};
use super::tools::{done, tools};
use crate::tailor::{reply, scripted};

/// The decision about an external call whose effect did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// The call runs again.
    Retry,
    /// The call counts as failed.
    Fail,
}

/// The id of the session.
pub(crate) fn id() -> SessionId {
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    IdStream::from_seed([5; 32], clock).next()
}

/// The agent that drives the session.
pub(crate) fn agent(stage: &Stage) -> Agent {
    match stage.plot {
        Plot::Alone => alone(stage),
        Plot::Agents => plots::caller(stage),
        Plot::Sections => plots::narrator(stage),
        Plot::Programs => super::lisp::agent(stage),
        Plot::Fallbacks => super::fallbacks::agent(stage),
    }
}

/// An agent with turns of one and of several calls, concurrent and sequential, failing and refused calls, and
/// tools of every effect class.
fn alone(stage: &Stage) -> Agent {
    let write = |path: &str| ("write", json!({"path": path, "text": format!("all of {path}\n")}));
    let read = |path: &str| ("read", json!({"path": path}));
    let to = |tool, to: &str| (tool, json!({"to": to}));
    let mut replies = vec![
        reply("one call", &[write("notes.txt")]),
        reply(
            "several",
            &[
                write("a/one.txt"),
                read("a/one.txt"),
                to("mail", "ada"),
                write("a/two.txt"),
                read("notes.txt"),
            ],
        ),
        reply("one that fails", &[("tear", json!({"path": "notes.txt"}))]),
        reply("inside and outside", &[to("order", "thread"), write("old.txt"), to("mail", "bob")]),
        reply("outside alone", &[("deploy", json!({"path": "site.txt"}))]),
        reply("a shell", &[("shell", json!({}))]),
        reply(
            "side by side",
            &[read("notes.txt"), to("mail", "eve"), write("a/three.txt"), read("a/three.txt")],
        ),
        reply("and again", &[write("notes.txt"), to("order", "needles")]),
        reply("what there is", &[("count", json!({})), ("write", json!({"path": 7})), ("hum", json!({}))]),
        reply("done", &[]),
    ];
    if stage.place == Place::Memory {
        // No process sees files in memory.
        replies.retain(|reply| reply.calls.iter().all(|call| call.name != "shell"));
    }
    counted(stage, scripted(replies).tools(tools(stage)))
}

/// The agent, with a policy that logs each request.
pub(crate) fn counted(stage: &Stage, mut agent: Agent) -> Agent {
    agent.policy = Arc::new(Counted { inner: agent.policy, file: stage.path("asked") });
    agent
}

struct Counted {
    inner: Arc<dyn Policy>,
    file: std::path::PathBuf,
}

impl Policy for Counted {
    fn name(&self) -> &PolicyName {
        self.inner.name()
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        self.inner.describe(question)
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.file).unwrap();
        writeln!(file, "{} {} {}", question.session_id, question.evaluation_id, question.turn).unwrap();
        self.inner.decide(question, described)
    }
}

/// The logged requests: session, evaluation and turn of each.
pub(crate) fn asked(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.path("asked")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The recorded answers, in the same form.
pub(crate) async fn answered(stage: &Stage) -> Vec<String> {
    let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
    let mut answers = Vec::new();
    for session in store.sessions().await.unwrap() {
        for record in read_records(&store, session, Position::START, None).await.unwrap() {
            if let RecordBody::MessageAppended(message) = record.body
                && message.role() == Role::Assistant
            {
                answers.push(format!("{session} {} {}", message.evaluation_id, message.turn));
            }
        }
    }
    answers.dedup();
    answers
}

/// Resumes the session, or creates it, until it ends or pauses.
pub(crate) async fn drive(stage: &Stage, opened: &Opened) -> Result<(Driver, DriveOutcome), RuntimeError> {
    let opening = opened.runtime.open(id(), agent(stage), opened.options()).await;
    let driver = match opening {
        Err(RuntimeError::SessionNotFound { .. }) => {
            opened.runtime.create(agent(stage), opened.options()).await?
        }
        other => other?,
    };
    let ended = match driver.resume(ResumeOptions::default()).await {
        Err(RuntimeError::ConversationNotFound { .. }) => driver.start("sew").await?,
        other => other?,
    };
    Ok((driver, ended))
}

/// Resumes the session to its end, and resolves calls with unknown effects.
pub(crate) async fn to_the_end(
    stage: &Stage,
    opened: &Opened,
    unseen: Unseen,
) -> Result<DriveOutcome, RuntimeError> {
    if stage.plot == Plot::Sections {
        return plots::evaluated(stage, opened).await;
    }
    let (driver, mut ended) = drive(stage, opened).await?;
    while let DriveOutcome::Paused {
        reason: PauseReason::EffectUnknown,
        call: Some(call),
        detail,
        session,
        ..
    } = &ended
    {
        let by = Some("a person".into());
        if let Some(child) = session {
            // The decision belongs to the child session, which waits for it.
            let view = opened.runtime.view(*child).await?;
            let pause = view.pause().unwrap();
            let (call, tool) = (pause.call_id.unwrap(), pause.detail.clone().unwrap_or_default());
            let decision = decide(stage, *child, call, &tool, unseen);
            opened.runtime.decide(*child, Some(call), decision, by).await?;
            ended = driver.resume(ResumeOptions::default()).await?;
            continue;
        }
        let decision = decide(stage, id(), *call, detail, unseen);
        match unseen {
            Unseen::Retry => driver.session().resolve(Some(*call), decision, by).await?,
            // Sent by a process that does not hold the session.
            Unseen::Fail => drop(opened.runtime.decide(id(), Some(*call), decision, by).await?),
        }
        ended = driver.resume(ResumeOptions::default()).await?;
    }
    driver.session().release().await?;
    Ok(ended)
}

/// The decision of a person who checks whether the effect happened.
pub(crate) fn decide(
    stage: &Stage,
    session: SessionId,
    call: CallId,
    tool: &str,
    unseen: Unseen,
) -> Decision {
    let key = IdempotencyKey::new(session, call);
    if outside(stage).iter().any(|happened| happened.key == key.as_str()) {
        let result = OptionResult::new(call, tool, Value::String(done(tool)));
        Decision::Happened { result: Box::new(result) }
    } else if unseen == Unseen::Retry {
        Decision::Retry
    } else {
        Decision::Fail { reason: None }
    }
}

/// An external effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) tool: String,
    pub(crate) key: String,
    /// Whether the handler saw that an earlier attempt was interrupted.
    pub(crate) again: bool,
}

/// All external effects, in order.
pub(crate) fn outside(stage: &Stage) -> Vec<Happened> {
    let text = std::fs::read_to_string(stage.path("outside")).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let [tool, key, again] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        Happened { tool: tool.to_owned(), key: key.to_owned(), again: again == "true" }
    });
    lines.collect()
}
