//! Running commands.
//!
//! A command that ends with a code other than 0 has told something, as `grep` and tests do: that is a result, and what it
//! wrote stands, unless the call asks for it to be rolled back. Failures are what the command did not decide itself: it
//! could not start, took too long, or was killed. Those roll back.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::Files;
use crate::journal::Effect;
use crate::ports::{OutputCaps, ProcessError, ProcessExit, ProcessOutcome, ProcessSpec};
use crate::tool::{ContextError, Tool, ToolContext, ToolError, ToolExample, ToolOutcome, ToolResult};

const DESCRIPTION: &str = "Runs a command with /bin/sh in the workspace, and gives its exit code and what it wrote. \
     An exit code other than 0 is a result like any other; the files that it changed stay changed, unless \
     rollback_on_error is true. A command that takes too long is killed with all that it started, and its changes are rolled back. \
     A rollback covers the files of the workspace. It does not cover anything outside, the workspace's own .git, or excluded \
     paths; other paths that it does not cover are named in the result. \
     When the command has ended, everything that it started is killed, in the background too. Only a process that erases its \
     environment (env -i) after its parent has ended may survive: do not start daemons.";

/// How commands are run.
#[derive(Debug, Clone)]
pub struct Shell {
    effect: Effect,
    timeout: Duration,
    longest_timeout: Duration,
    caps: OutputCaps,
    hidden: Vec<String>,
}

impl Default for Shell {
    /// Anything may happen outside; two minutes, at most an hour where a call asks for it; 16 KiB of the beginning and as
    /// much of the end of each stream.
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
    /// Says what commands may do to the world. [`Effect::Workspace`] promises that they change files of the workspace only,
    /// so that an interrupted one is run again.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Says how long a command may take when the call does not, and how long a call may allow.
    #[must_use]
    pub fn timeout(mut self, usual: Duration, longest: Duration) -> Self {
        self.timeout = usual.min(longest);
        self.longest_timeout = longest;
        self
    }

    /// Says how much of each stream is given.
    #[must_use]
    pub fn output(mut self, caps: OutputCaps) -> Self {
        self.caps = caps;
        self
    }

    /// Keeps a variable of the environment from commands, such as a key.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.hidden.push(name.into());
        self
    }

    /// The tool.
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
                    "the command took longer than {} s and was killed; give a longer timeout_seconds (at most {}), or less to do",
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
            return Err(ToolError::Validation { message: "timeout_seconds: give at least 1".to_owned() });
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

/// A tool that runs commands which may do anything.
pub fn shell() -> Tool {
    Shell::default().tool()
}

/// A command.
#[derive(Deserialize, JsonSchema)]
struct Command {
    /// The command, as one would type it.
    command: String,
    /// The directory to run it in, relative to the workspace; the workspace itself when left out.
    #[serde(default)]
    directory: String,
    /// How long it may take, in seconds.
    timeout_seconds: Option<u32>,
    /// What it reads from its standard input.
    #[serde(default)]
    input: String,
    /// Whether an exit code other than 0 is a failure, after which the files of the workspace are rolled back.
    #[serde(default)]
    rollback_on_error: bool,
}

/// How a command ended.
#[derive(Serialize, JsonSchema)]
struct CommandOutcome {
    /// Its exit code.
    exit_code: i32,
    /// What it wrote; the middle is left out where it is long.
    #[serde(skip_serializing_if = "String::is_empty")]
    stdout: String,
    /// What it wrote beside that.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
}

fn could_not_start(error: &ProcessError) -> ToolError {
    ToolError::of_kind("could_not_start", format_args!("the command could not be run: {error}"))
}

/// A failure, with what the command had said until then.
fn with_output(mut text: String, outcome: &ProcessOutcome) -> String {
    for (name, output) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        let output = output.text();
        if !output.trim().is_empty() {
            text.push_str(&format!("\n{name}:\n{}", output.trim_end()));
        }
    }
    text
}
