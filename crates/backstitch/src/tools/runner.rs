//! Tools that run one program each.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::confined::run_confined;
use super::files::Files;
use super::shell::{CommandOutcome, could_not_start, with_output};
use crate::ports::{BoxFuture, OutputCaps, ProcessExit, ProcessSpec, Sandbox};
use crate::tool::{
    ContextError, Tool, ToolBuilder, ToolContext, ToolError, ToolHandler, ToolOutcome, ToolResult,
};

type CommandLine = dyn Fn(&Map<String, Value>) -> Result<Vec<String>, String> + Send + Sync;

/// What a program gets as standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardInput {
    Empty,
    /// The arguments of the call, as JSON.
    Arguments,
}

/// Runs a program for each call of a tool.
#[derive(Clone)]
pub(crate) struct CommandRunner {
    /// Returns the program and its arguments for the arguments of a call.
    pub(crate) command: Arc<CommandLine>,
    pub(crate) stdin: StandardInput,
    /// Directory below the workspace.
    pub(crate) directory: String,
    pub(crate) timeout: Duration,
    /// Exit codes that are results; every other one is a failure.
    pub(crate) exit_codes: Vec<i32>,
    pub(crate) caps: OutputCaps,
    pub(crate) sandbox: Sandbox,
    /// Environment variables that are removed.
    pub(crate) hidden: Vec<String>,
}

impl CommandRunner {
    /// Builds the tool.
    pub(crate) fn tool(self, builder: ToolBuilder) -> Tool {
        builder.output::<CommandOutcome>().build(Arc::new(self))
    }

    fn spec(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ProcessSpec, ToolError> {
        let line = (self.command)(arguments).map_err(|message| ToolError::Validation { message })?;
        let (program, rest) = line
            .split_first()
            .ok_or_else(|| ToolError::of_kind("could_not_start", "the command is empty"))?;
        let input = match self.stdin {
            StandardInput::Empty => Vec::new(),
            StandardInput::Arguments => serde_json::to_vec(arguments).unwrap_or_default(),
        };
        let spec = ProcessSpec::new(program)
            .args(rest)
            .in_directory(Files::of(context)?.path(&self.directory)?)
            .input(input)
            .caps(self.caps)
            .timeout(self.timeout);
        Ok(self.hidden.iter().fold(spec, ProcessSpec::without_env))
    }

    async fn run(&self, context: &ToolContext, arguments: &Map<String, Value>) -> ToolOutcome {
        let spec = self.spec(context, arguments)?;
        let (outcome, refused) = match run_confined(context, spec, &self.sandbox).await {
            Ok(ran) => ran,
            Err(ContextError::Process(error)) => return Err(could_not_start(&error)),
            Err(error) => return Err(error.into()),
        };
        let with_output = |text| with_output(text, &outcome, refused.as_deref());
        match outcome.exit {
            ProcessExit::Code(code) if self.exit_codes.contains(&code) => {
                let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
                let ended = CommandOutcome { exit_code: code, stdout, stderr, sandbox: refused.clone() };
                Ok(ToolResult::default().with_value(ended)?)
            }
            ProcessExit::Code(code) => {
                let text =
                    format!("exit code {code}; what the command changed in the workspace was rolled back");
                Err(ToolError::of_kind("exit_code", with_output(text)))
            }
            ProcessExit::Signal(signal) => {
                let text = format!("the command was killed by signal {signal}");
                Err(ToolError::of_kind("killed", with_output(text)))
            }
            ProcessExit::TimedOut => {
                let text =
                    format!("the command took longer than {} s and was killed", self.timeout.as_secs_f64());
                Err(ToolError::retryable("timed_out", with_output(text)))
            }
        }
    }
}

impl ToolHandler for CommandRunner {
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move { self.run(&context, &arguments).await })
    }
}
