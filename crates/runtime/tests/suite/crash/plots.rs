//! Other plots: sub-agents of sub-agents, and a prompt whose sections are opened.

use backstitch_core::prompt::{BoundPrompt, OPEN_SECTIONS, Prompt, Section};
use backstitch_core::tool::Tool;
use backstitch_runtime::{Agent, DriveOutcome, Evaluator, RuntimeError, SubAgent, Tools};
use serde_json::json;

use super::session::{self, counted};
use super::stage::{Opened, Place, Stage};
use super::tools::tools;
use crate::tailor::{reply, scripted};

fn write(path: &str) -> (&'static str, serde_json::Value) {
    ("write", json!({"path": path, "text": format!("all of {path}\n")}))
}

fn asks(agent: &'static str) -> (&'static str, serde_json::Value) {
    (agent, json!({"mission": format!("do what a {agent} does")}))
}

fn with(tools: &Tools, agents: impl IntoIterator<Item = SubAgent>) -> Tools {
    let agents = agents.into_iter().map(SubAgent::into_tool);
    Tools::new(tools.iter().cloned().chain(agents).collect::<Vec<Tool>>()).unwrap()
}

/// An agent with two sub-agents: one succeeds, with a sub-agent of its own, and one fails.
pub(super) fn caller(stage: &Stage) -> Agent {
    let tools = tools(stage);
    let named = |mut agent: Agent, key: &str| {
        agent.key = key.to_owned();
        counted(stage, agent)
    };
    let apprentice = scripted(vec![
        reply("sorting", &[write("a/pins.txt"), ("order", json!({"to": "pins"}))]),
        reply("sorted", &[]),
    ]);
    let apprentice = named(apprentice.tools(tools.clone()), "apprentice");
    let mut work = vec![
        reply(
            "cutting",
            &[write("a/cut.txt"), ("mail", json!({"to": "ada"})), ("read", json!({"path": "a/cut.txt"}))],
        ),
        reply("tearing", &[("tear", json!({"path": "notes.txt"}))]),
        reply("helped", &[asks("apprentice"), write("a/helped.txt")]),
        reply("pressing", &[("shell", json!({}))]),
        reply("deploying", &[("deploy", json!({"path": "a/site.txt"}))]),
        reply("mended", &[]),
    ];
    if stage.place == Place::Memory {
        // No process sees files in memory.
        work.retain(|reply| reply.calls.iter().all(|call| call.name != "shell"));
    }
    let helper = SubAgent::new("apprentice", "Sorts.", apprentice).unwrap();
    let tailor = named(scripted(work).tools(with(&tools, [helper])), "tailor");
    let clumsy = scripted(vec![
        reply("", &[("write", json!({"path": "notes.txt", "text": "spoilt twice\n"}))]),
        reply("", &[write("a/clumsy.txt")]),
        reply("", &[]),
    ]);
    let clumsy = named(clumsy.tools(tools.clone()).max_turns(2), "clumsy");
    let agents = [
        SubAgent::new("tailor", "Mends.", tailor).unwrap(),
        SubAgent::new("clumsy", "Spoils.", clumsy).unwrap(),
    ];
    let replies = vec![
        reply("by myself", &[write("notes.txt")]),
        reply("with help", &[asks("tailor"), write("after.txt")]),
        reply("with help that fails", &[asks("clumsy")]),
        reply("done", &[]),
    ];
    counted(stage, scripted(replies).tools(with(&tools, agents)))
}

/// An agent that opens sections of its prompt.
pub(super) fn narrator(stage: &Stage) -> Agent {
    let replies = vec![
        reply("looking", &[write("notes.txt"), ("mail", json!({"to": "ada"}))]),
        reply(
            "opening",
            &[write("a/lost.txt"), (OPEN_SECTIONS, json!({"section_keys": ["room"], "reason": "work"}))],
        ),
        reply("working", &[write("a/room.txt"), ("order", json!({"to": "thread"}))]),
        reply("deeper", &[(OPEN_SECTIONS, json!({"section_keys": ["room.iron"], "reason": "heat"}))]),
        reply("pressing", &[write("a/iron.txt"), ("mail", json!({"to": "bob"}))]),
        reply("done", &[]),
    ];
    // One of its tools belongs to a section of the prompt.
    let own = tools(stage).iter().filter(|tool| tool.name().as_str() != "order").cloned().collect::<Vec<_>>();
    counted(stage, scripted(replies).tools(Tools::new(own).unwrap()))
}

pub(super) fn prompt(stage: &Stage) -> BoundPrompt {
    let iron = Section::new("iron", "Iron").body("It is hot.").summarised("An iron.");
    let room = Section::new("room", "Room").body("There are machines.").summarised("A room.").child(iron);
    let order = tools(stage).get("order").unwrap().clone();
    let task = Section::new("task", "Task").body("Mend the $cloth.").tool(order);
    let prompt = Prompt::builder("tests", "workshop").section(task).section(room).build().unwrap();
    prompt.bind(&json!({"cloth": "coat"})).unwrap().asking("begin")
}

/// Starts or resumes the evaluation of the prompt, and runs it to its end.
pub(super) async fn evaluated(stage: &Stage, opened: &Opened) -> Result<DriveOutcome, RuntimeError> {
    let evaluator = Evaluator::of(narrator(stage));
    let session = match evaluator.open_session(&opened.runtime, session::id(), opened.options()).await {
        Err(RuntimeError::SessionNotFound { .. }) => {
            evaluator.create_session(&opened.runtime, opened.options()).await?
        }
        other => other?,
    };
    let mut ended = match evaluator.evaluate(&prompt(stage), &session, true).await {
        Err(RuntimeError::ConversationNotFound { .. }) => {
            evaluator.evaluate(&prompt(stage), &session, false).await?
        }
        other => other?,
    };
    while let DriveOutcome::Paused { call: Some(call), detail, .. } = &ended {
        let decision = session::decide(stage, session::id(), *call, detail, session::Unseen::Retry);
        session.resolve(Some(*call), decision, Some("a person".into())).await?;
        ended = evaluator.evaluate(&prompt(stage), &session, true).await?;
    }
    session.release().await?;
    Ok(ended)
}
