//! A workflow with a sub-agent and an approval, which can be killed at any moment and resumed.
//!
//!     workflow start STORE        start a session, and run until it pauses or answers
//!     workflow resume STORE       resume the latest session
//!     workflow approve STORE      approve the pending call
//!     workflow deny STORE         deny the pending call
//!
//! A sub-agent, the researcher, collects notes. Publishing them needs a person's approval and happens once.
//! The exit code is 3 while a decision is pending. The models are scripts: the program runs offline.
#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backstitch::prelude::*;

/// Looks something up. It takes a while.
#[tool(effect = "pure", workspace = "none")]
async fn look_up(
    context: ToolContext,
    /// What to look up.
    topic: String,
) -> Result<String, ToolError> {
    context.output(format!("looking up {topic}\n"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(format!("Everything about {topic}."))
}

/// Publishes a text. Readers see it at once, so a person decides first.
fn publish(board: PathBuf) -> Result<Tool, Box<dyn Error>> {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Text {
        /// The text.
        text: String,
    }
    let tool = Tool::builder("publish", "Publishes a text. Readers see it at once.")?.needs_approval();
    Ok(tool.handler(move |context: ToolContext, Text { text }: Text| {
        let board = board.clone();
        async move {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(board)?;
            writeln!(file, "{} {text}", context.idempotency_key())?;
            Ok(ToolResult::ok("published"))
        }
    }))
}

fn script(name: &str) -> String {
    format!("scripted:{}/workflow/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn editor(store: &Path) -> Result<Agent, Box<dyn Error>> {
    let researcher = Agent::new("researcher").model(script("researcher")).tools([look_up()]);
    let researcher = SubAgent::new("research", "Researches a topic.", researcher)?;
    Ok(Agent::new("editor")
        .model(script("editor"))
        .instructions("You have topics researched, and publish the results.")
        .tools([researcher.into(), publish(store.with_extension("board"))?]))
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [command, store] = arguments.as_slice() else {
        return Err("usage: workflow start|resume|approve|deny STORE".into());
    };
    let store = PathBuf::from(store);
    let (runtime, agent) = (Runtime::at(&store)?, editor(&store)?);
    let latest = runtime.sessions(SessionQuery::roots()).await?.sessions.first().map(IndexedSession::id);
    let mut run = match (command.as_str(), latest) {
        ("start", _) => runtime.start(&agent, "Publish something about seams.").await?,
        ("resume", Some(session)) => runtime.resume(session, &agent).await?,
        ("approve" | "deny", Some(session)) => {
            let waiting = runtime.waiting_calls(session).await?;
            let waiting = waiting.first().ok_or("no call is pending")?;
            match command.as_str() {
                "approve" => runtime.approve(waiting.session, waiting.call).await?,
                _ => runtime.deny(waiting.session, waiting.call, "not today").await?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        (_, None) => return Err("there is no session yet".into()),
        _ => return Err(format!("unknown command {command}").into()),
    };
    while let Some(event) = run.next().await {
        println!("{event}");
    }
    match run.outcome().await? {
        DriveOutcome::Paused { reason: PauseReason::Approval, .. } => Ok(ExitCode::from(3)),
        ended => {
            println!("{}", ended.answer()?.text);
            Ok(ExitCode::SUCCESS)
        }
    }
}
