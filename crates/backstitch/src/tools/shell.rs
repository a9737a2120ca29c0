//! A tool that runs commands.
//!
//! An exit code other than 0 is a result, because commands such as `grep` and test runners report with it.
//! The changes of the command are kept, unless the call asks to roll them back. A command that could not
//! start, timed out or was killed is a failure, and is rolled back.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::Files;
use crate::journal::Effect;
use crate::ports::{OutputCaps, ProcessError, ProcessExit, ProcessOutcome, ProcessSpec};
use crate::tool::{ContextError, Tool, ToolContext, ToolError, ToolExample, ToolOutcome, ToolResult};

const DESCRIPTION: &str = "Runs a command with /bin/sh in the workspace, and returns its exit code and its output. \
     An exit code other than 0 is a result like any other; the changed files are kept, unless rollback_on_error is true. \
     A command that takes too long is killed with all processes that it started, and its changes are rolled back. \
     A rollback covers the files of the workspace. It does not cover files outside, the workspace's own .git, or excluded \
     paths; other paths that it does not cover are named in the result. \
     When the command has ended, all processes that it started are killed, also in the background. Only a process that erases \
     its environment (env -i) after its parent has ended may survive: do not start daemons.";

/// Options of the shell tool.
#[derive(Debug, Clone)]
pub struct Shell {
    effect: Effect,
    timeout: Duration,
    longest_timeout: Duration,
    caps: OutputCaps,
    hidden: Vec<String>,
}

impl Default for Shell {
    /// External effects, a time limit of two minutes (a call may ask for up to an hour), and the first and
    /// last 16 KiB of each stream.
    fn default() -> Self {
        Self {
            effect: Effect::External,
            timeout: Duration::from_secs(120),
            longest_timeout: Duration::from_secs(3600),
            caps: OutputCaps { head: 16 * 1024, tail: 16 * 1024 },
            hidden: Vec::new(),
        }
    }
}

impl Shell {
    /// Sets the possible effects of commands. [`Effect::Workspace`] promises that they change only files of
    /// the workspace, so that an interrupted command is run again.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the default time limit of a command, and the longest one that a call may ask for.
    #[must_use]
    pub fn timeout(mut self, usual: Duration, longest: Duration) -> Self {
        self.timeout = usual.min(longest);
        self.longest_timeout = longest;
        self
    }

    /// Sets how much of each stream is returned.
    #[must_use]
    pub fn output(mut self, caps: OutputCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Removes an environment variable from commands, such as an API key.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.hidden.push(name.into());
        self
    }

    /// Builds the tool.
    pub fn tool(self) -> Tool {
        let arguments = serde_json::Map::from_iter([
            ("command".to_owned(), "cargo test --quiet".into()),
            ("timeout_seconds".to_owned(), 600.into()),
        ]);
        let description = "Run the tests, which may take long".to_owned();
        Tool::builder("shell", DESCRIPTION)
            .expect("invariant: the name is one")
            .effect(self.effect)
            .workspace(crate::tool::WorkspaceUse::Write)
            .output::<CommandOutcome>()
            .example(ToolExample { description, arguments, result: None })
            .handler(move |context: ToolContext, command: Command| {
                let shell = self.clone();
                async move { shell.run(&context, command).await }
            })
    }

    async fn run(&self, context: &ToolContext, command: Command) -> ToolOutcome {
        let spec = self.spec(context, &command)?;
        let outcome = match context.run_process(spec).await {
            Ok(outcome) => outcome.redacted(&context.secrets()),
            Err(ContextError::Process(error)) => return Err(could_not_start(&error)),
            Err(error) => return Err(error.into()),
        };
        let code = match outcome.exit {
            ProcessExit::Code(code) => code,
            ProcessExit::Signal(signal) => {
                let text = format!("the command was killed by signal {signal}");
                return Err(ToolError::of_kind("killed", with_output(text, &outcome)));
            }
            ProcessExit::TimedOut => {
                let text = format!(
                    "the command took longer than {} s and was killed; set a longer timeout_seconds (at most {}), or split it",
                    self.allowed(&command).as_secs(),
                    self.longest_timeout.as_secs()
                );
                return Err(ToolError::retryable("timed_out", with_output(text, &outcome)));
            }
        };
        if code != 0 && command.rollback_on_error {
            let text = format!("exit code {code}; what the command changed in the workspace was rolled back");
            return Err(ToolError::of_kind("exit_code", with_output(text, &outcome)));
        }
        let ended =
            CommandOutcome { exit_code: code, stdout: outcome.stdout.text(), stderr: outcome.stderr.text() };
        Ok(ToolResult::default().with_value(ended)?)
    }

    fn spec(&self, context: &ToolContext, command: &Command) -> Result<ProcessSpec, ToolError> {
        if command.command.trim().is_empty() {
            return Err(ToolError::Validation { message: "command: it is empty".to_owned() });
        }
        if command.timeout_seconds == Some(0) {
            return Err(ToolError::Validation { message: "timeout_seconds: set at least 1".to_owned() });
        }
        let directory = Files::of(context)?.path(&command.directory)?;
        let spec = ProcessSpec::shell(command.command.clone())
            .in_directory(directory)
            .input(command.input.clone())
            .caps(self.caps)
            .timeout(self.allowed(command));
        Ok(self.hidden.iter().fold(spec, ProcessSpec::without_env))
    }

    fn allowed(&self, command: &Command) -> Duration {
        let asked =
            command.timeout_seconds.map_or(self.timeout, |seconds| Duration::from_secs(seconds.into()));
        asked.min(self.longest_timeout)
    }
}

/// Returns the shell tool with default options: its commands may have external effects.
pub fn shell() -> Tool {
    Shell::default().tool()
}

/// A command.
#[derive(Deserialize, JsonSchema)]
struct Command {
    /// The command, in the syntax of the shell.
    command: String,
    /// The directory to run it in, relative to the workspace. Default: the workspace itself.
    #[serde(default)]
    directory: String,
    /// Time limit in seconds.
    timeout_seconds: Option<u32>,
    /// Text for its standard input.
    #[serde(default)]
    input: String,
    /// Whether an exit code other than 0 is a failure, after which the files of the workspace are rolled
    /// back.
    #[serde(default)]
    rollback_on_error: bool,
}

/// The outcome of a command.
#[derive(Serialize, JsonSchema)]
struct CommandOutcome {
    /// Its exit code.
    exit_code: i32,
    /// Its standard output; the middle of a long one is left out.
    stdout: String,
    /// Its standard error; the middle of a long one is left out.
    stderr: String,
}

fn could_not_start(error: &ProcessError) -> ToolError {
    ToolError::of_kind("could_not_start", format_args!("the command could not be run: {error}"))
}

/// Adds the output of the command to the text of a failure.
fn with_output(mut text: String, outcome: &ProcessOutcome) -> String {
    for (name, output) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let output = output.text();
        if !output.trim().is_empty() {
            text.push_str(&format!("\n{name}:\n{}", output.trim_end()));
        }
    }
    text
}
