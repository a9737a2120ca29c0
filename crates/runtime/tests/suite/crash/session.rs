//! The session that is played, and how somebody goes on with it.

use std::sync::Arc;

use backstitch_core::id::{CallId, IdStream, SessionId};
use backstitch_core::journal::{Decision, IdempotencyKey, PauseReason};
use backstitch_core::message::OptionResult;
use backstitch_core::time::FixedClock;
use backstitch_runtime::{Agent, Driver, Ended, ResumeOptions, RuntimeError};
use serde_json::{Value, json};

use super::stage::{Mode, Opened, Place, Stage};
use super::tools::{done, tools};
use crate::driving::{reply, scripted};

/// What is said of a call with an effect outside that nobody saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// It is to run again.
    Retry,
    /// It counts as failed.
    Fail,
}

/// The session.
pub(crate) fn id() -> SessionId {
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    IdStream::from_seed([5; 32], clock).next()
}

/// The agent: one call in a turn and several, side by side and one after the other, one that fails, one that is refused, and
/// tools of every effect class.
pub(crate) fn agent(stage: &Stage) -> Agent {
    match stage.mode {
        Mode::Json => json_agent(stage),
        Mode::Lisp => super::lisp::agent(stage),
    }
}

fn json_agent(stage: &Stage) -> Agent {
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
        reply("what there is", &[("count", json!({})), ("write", json!({"path": 7})), ("hum", json!({}))]),
        reply("done", &[]),
    ];
    if stage.place == Place::Memory {
        // No process sees files in memory.
        replies.retain(|reply| reply.calls.iter().all(|call| call.name != "shell"));
    }
    scripted(replies).with_tools(tools(stage))
}

/// Goes on with the session from wherever it is, until it ends or pauses; it begins with it if there is none.
pub(crate) async fn go_on(stage: &Stage, opened: &Opened) -> Result<(Driver, Ended), RuntimeError> {
    let opening = opened.runtime.open(id(), agent(stage), opened.options()).await;
    let driver = match opening {
        Err(RuntimeError::ConversationNotFound { .. }) => {
            opened.runtime.create(agent(stage), opened.options()).await?
        }
        other => other?,
    };
    let ended = match driver.resume(ResumeOptions::default()).await {
        Err(RuntimeError::NothingToDo(_)) => driver.start("sew").await?,
        other => other?,
    };
    Ok((driver, ended))
}

/// Goes on to the end, and says what became of calls that nobody knows of.
pub(crate) async fn to_the_end(
    stage: &Stage,
    opened: &Opened,
    unseen: Unseen,
) -> Result<Ended, RuntimeError> {
    let (driver, mut ended) = go_on(stage, opened).await?;
    while let Ended::Paused { reason: PauseReason::EffectUnknown, call: Some(call), detail, .. } = &ended {
        let decision = decide(stage, *call, detail, unseen);
        let by = Some("a person".into());
        match unseen {
            Unseen::Retry => driver.session().resolve(Some(*call), decision, by).await?,
            // As somebody would who does not hold the session.
            Unseen::Fail => drop(opened.runtime.decide(id(), Some(*call), decision, by).await?),
        }
        ended = driver.resume(ResumeOptions::default()).await?;
    }
    driver.session().release().await?;
    Ok(ended)
}

/// What a person says who looks at the world outside.
pub(crate) fn decide(stage: &Stage, call: CallId, tool: &str, unseen: Unseen) -> Decision {
    let key = IdempotencyKey::new(id(), call);
    match outside(stage).iter().any(|happened| happened.key == key.as_str()) {
        true => {
            let result = OptionResult::new(call, tool, Value::String(done(tool)));
            Decision::Happened { result: Box::new(result) }
        }
        false if unseen == Unseen::Retry => Decision::Retry,
        false => Decision::Fail { reason: None },
    }
}

/// Something that happened outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) tool: String,
    pub(crate) key: String,
    /// Whether the call was told that an earlier attempt was cut off.
    pub(crate) again: bool,
}

/// All that happened outside, in order.
pub(crate) fn outside(stage: &Stage) -> Vec<Happened> {
    let text = std::fs::read_to_string(stage.path("outside")).unwrap_or_default();
    let lines = text.lines().map(|line| {
        let [tool, key, again] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        Happened { tool: tool.to_owned(), key: key.to_owned(), again: again == "true" }
    });
    lines.collect()
}
