//! A coding agent over a directory, with a tool of its own, typed state and a typed answer.
//!
//!     coder DIRECTORY [MODEL]
//!
//! Without a model it follows a script, offline. The state of the agent survives a crash together with the
//! files.
#![allow(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::error::Error;
use std::path::PathBuf;

use backstitch::prelude::*;
use backstitch::tools::file_tools;
use serde::{Deserialize, Serialize};

/// A task that the agent found in a comment.
#[derive(Debug, Serialize, Deserialize, Slice)]
#[slice(name = "task_found")]
struct TaskFound {
    file: String,
    line: usize,
    text: String,
}

/// The typed answer of the agent.
#[derive(Debug, Deserialize, JsonSchema)]
struct Report {
    /// What was done, in a sentence.
    summary: String,
    /// The files that were changed.
    changed: Vec<String>,
}

/// Finds the lines of a file that say TODO, and remembers them as tasks.
#[tool(effect = "pure")]
async fn find_tasks(
    context: ToolContext,
    /// The file.
    path: String,
) -> Result<String, ToolError> {
    let bytes = context.filesystem()?.read_bytes(&path.parse()?)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut found = 0;
    for (index, line) in text.lines().enumerate() {
        if let Some((_, task)) = line.split_once("TODO:") {
            let task = TaskFound { file: path.clone(), line: index + 1, text: task.trim().to_owned() };
            context.append(task)?;
            found += 1;
        }
    }
    Ok(format!("{found} tasks in {path}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: coder DIRECTORY [MODEL]")?);
    let script = concat!("scripted:", env!("CARGO_MANIFEST_DIR"), "/coder/script.toml");
    let model = arguments.next().unwrap_or_else(|| script.to_owned());

    let runtime = Runtime::at(directory.with_extension("store").join("store.db"))?;
    let agent = Agent::new("coder")
        .model(model)
        .instructions("You finish what the comments of a project leave to be done.")
        .tools(file_tools().into_iter().chain([find_tasks()]))
        .workspace(directory)
        .answers_with::<Report>();
    let mut run = runtime.start(&agent, "Do what the TODO of notes.txt asks for.").await?;
    while let Some(event) = run.next().await {
        println!("{event}");
    }
    let report: Report = run.answer().await?;
    println!("{} ({})", report.summary, report.changed.join(", "));
    let state = runtime.state(run.session()).await?;
    for task in state.all::<TaskFound>()?.iter() {
        println!("{}:{}: {}", task.file, task.line, task.text);
    }
    Ok(())
}
