//! A tool that runs commands.
//!
//! An exit code other than 0 is a result, because commands such as `grep` and test runners report with it.
//! The changes of the command are kept, unless the call asks to roll them back. A command that could not
//! start, timed out or was killed is a failure, and is rolled back.
//!
//! Commands can run in a [`Sandbox`]. If it keeps all effects in the workspace, a command that a crash
//! interrupted is rolled back and run again. A command can ask for more than its sandbox allows (`needs`): then a person
//! has to approve it, and it counts as external.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::confined::{CommandOutcome, command_limit, description, effect_within, hide_places, run_confined};
use super::files::Files;
use crate::journal::Effect;
use crate::mode::AgentMode;
use crate::ports::{CommandNeeds, OutputCaps, ProcessSpec, Sandbox};
use crate::tool::{Tool, ToolContext, ToolError, ToolExample, ToolOutcome};

const DESCRIPTION: &str = "Runs a command with /bin/sh in the workspace, and returns its exit code and its output. \
     An exit code other than 0 is a result like any other; the changed files are kept, unless rollback_on_error is true. \
     A command that takes too long is killed with all processes that it started, and its changes are rolled back. \
     A rollback covers the files of the workspace. It does not cover files outside, the workspace's own .git, or excluded \
     paths; other paths that it does not cover are named in the result. \
     When the command has ended, all processes that it started are killed, also in the background. Only a process that erases \
     its environment (env -i) after its parent has ended may survive: do not start daemons.";

/// How a command asks for more than its sandbox allows.
const NEEDS: &str = "needs";

const NEEDS_DESCRIPTION: &str = " A command that needs the network, sockets of other programs, hidden files or files outside \
     of the workspace asks for them with needs, and gives the reason; a person decides. Ask only for what it needs.";

/// Options of the shell tool.
///
/// ```
/// use backstitch::ports::Sandbox;
/// use backstitch::tools::Shell;
///
/// let sandbox = Sandbox::workspace().without_network().write("/home/tailor/.cache");
/// let shell = Shell { sandbox, ..Shell::default() }.tool();
/// ```
#[derive(Debug, Clone)]
pub struct Shell {
    /// Possible effects of commands. [`Effect::Workspace`] promises that they change only files of the workspace, so that an
    /// interrupted command is run again.
    pub effect: Effect,
    /// Time limit of a command if the call sets none.
    pub timeout: Duration,
    /// Longest time limit that a call may ask for.
    pub longest_timeout: Duration,
    /// How much of each stream is returned.
    pub caps: OutputCaps,
    /// Environment variables that commands do not see, such as API keys.
    pub hidden: Vec<String>,
    /// Limits of commands. A sandbox without network and without further paths gives them the effect [`Effect::Workspace`], if the
    /// system enforces it.
    pub sandbox: Sandbox,
}

impl Default for Shell {
    /// The sandbox of the mode [`Auto`](AgentMode::Auto), external effects where the system does not enforce it, a time limit of
    /// two minutes (a call may ask for up to an hour), and the first and last 16 KiB of each stream.
    fn default() -> Self {
        Self::of_mode(AgentMode::Auto)
    }
}

impl Shell {
    /// Returns the options of an agent in this [mode](crate::Agent::mode). In all modes but `full`, commands have no network,
    /// reach no sockets of other programs, and cannot read the [places of secrets](crate::ports::SECRET_PLACES) of this user.
    pub fn of_mode(mode: AgentMode) -> Self {
        let mut sandbox = mode.sandbox();
        if mode.hides_secrets() {
            hide_places(&mut sandbox);
        }
        Self {
            effect: Effect::External,
            timeout: Duration::from_secs(120),
            longest_timeout: Duration::from_secs(3600),
            caps: OutputCaps { head: 16 * 1024, tail: 16 * 1024 },
            hidden: Vec::new(),
            sandbox,
        }
    }
}

impl Shell {
    /// Builds the tool.
    pub fn tool(self) -> Tool {
        let arguments = serde_json::Map::from_iter([
            ("command".to_owned(), "cargo test --quiet".into()),
            ("timeout_seconds".to_owned(), 600.into()),
        ]);
        let example = ToolExample {
            description: "Run the tests, which may take long".to_owned(),
            arguments,
            result: None,
        };
        let is_confined = !self.sandbox.is_off();
        let asking = if is_confined { NEEDS_DESCRIPTION } else { "" };
        let text = format!("{DESCRIPTION}{}{asking}", description(&self.sandbox));
        let mut builder = Tool::builder("shell", text).expect("invariant: the name is one");
        if is_confined {
            builder = builder.rights_argument(NEEDS);
        }
        let mut tool = builder
            .effect(effect_within(&self.sandbox, self.effect))
            .commands(command_limit(&self.sandbox))
            .workspace(crate::tool::WorkspaceUse::Write)
            .output::<CommandOutcome>()
            .example(example)
            .handler(move |context: ToolContext, command: Command| {
                let shell = self.clone();
                async move { shell.run(&context, command).await }
            });
        if !is_confined {
            // There is nothing that a command could need.
            let spec = Arc::make_mut(&mut tool.spec);
            if let Some(properties) =
                spec.parameters.get_mut("properties").and_then(|all| all.as_object_mut())
            {
                properties.remove(NEEDS);
            }
        }
        tool
    }

    async fn run(&self, context: &ToolContext, command: Command) -> ToolOutcome {
        let spec = self.spec(context, &command)?;
        let sandbox = self.sandbox_of(command.needs.as_ref())?;
        let is_accepted = |code: i32| code == 0 || !command.rollback_on_error;
        let too_long = format!(
            "the command took longer than {} s and was killed; set a longer timeout_seconds (at most {}), or split it",
            self.allowed(&command).as_secs(),
            self.longest_timeout.as_secs()
        );
        run_confined(context, spec, &sandbox, is_accepted, too_long).await
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

    /// Returns the sandbox of a command. What it asks for was approved, or it would not run.
    fn sandbox_of(&self, needs: Option<&CommandNeeds>) -> Result<Sandbox, ToolError> {
        let Some(needs) = needs.filter(|needs| !needs.is_empty() && !self.sandbox.is_off()) else {
            return Ok(self.sandbox.clone());
        };
        let checked = |name: &str, paths: &[PathBuf]| -> Result<Vec<PathBuf>, ToolError> {
            let all = paths.iter().map(|path| plain_path(path));
            let checked: Result<_, String> = all.collect();
            checked.map_err(|problem| ToolError::Validation { message: format!("needs.{name}: {problem}") })
        };
        let (read, write) = (checked("read", &needs.read)?, checked("write", &needs.write)?);
        Ok(CommandNeeds { read, write, ..needs.clone() }.widen(&self.sandbox))
    }

    fn allowed(&self, command: &Command) -> Duration {
        let asked =
            command.timeout_seconds.map_or(self.timeout, |seconds| Duration::from_secs(seconds.into()));
        asked.min(self.longest_timeout)
    }
}

/// Returns the shell tool with default options: its commands write only in the workspace, and have no network.
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
    /// Rights beyond the sandbox, which a person has to approve.
    #[serde(default)]
    needs: Option<CommandNeeds>,
}

/// Checks that a path is what it says, so that what was approved is what is opened: absolute, there, and without links.
fn plain_path(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("{shown} is not an absolute path"));
    }
    match path.canonicalize() {
        Ok(found) if found == path => Ok(found),
        Ok(found) => Err(format!("{shown} leads to {}; ask for that path", found.display())),
        Err(error) => Err(format!("{shown} cannot be used: {error}")),
    }
}
