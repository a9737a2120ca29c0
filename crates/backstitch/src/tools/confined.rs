//! Processes of tools in a sandbox: how they are started, and their description for the model.

use std::path::PathBuf;

use backstitch_runtime::{hide_secrets, probe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::journal::Effect;
use crate::ports::{ProcessExit, ProcessSpec, Sandbox, SandboxMode};
use crate::tool::{CommandLimit, ContextError, ToolContext, ToolError, ToolOutcome, ToolResult};

/// The outcome of a command.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CommandOutcome {
    /// Its exit code.
    exit_code: i32,
    /// Its standard output; the middle of a long one is left out.
    stdout: String,
    /// Its standard error; the middle of a long one is left out.
    stderr: String,
    /// What the sandbox refused, as far as the output shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
}

/// Runs a command in a sandbox. Keys are replaced in its output. An exit code that is not accepted is a failure, as are a
/// signal and a time limit that has passed, which `too_long` describes.
pub(crate) async fn run_confined(
    context: &ToolContext,
    spec: ProcessSpec,
    sandbox: &Sandbox,
    is_accepted: impl Fn(i32) -> bool,
    too_long: String,
) -> ToolOutcome {
    let ran = match context.run_process(spec.sandbox(sandbox.clone())).await {
        Ok(ran) => ran.redacted(&context.secrets()),
        Err(ContextError::Process(error)) => {
            let text = format!("the command could not be run: {error}");
            return Err(ToolError::of_kind("could_not_start", text));
        }
        Err(error) => return Err(error.into()),
    };
    let refused: Vec<_> = ran.refused.iter().map(ToString::to_string).collect();
    let sandbox = (!refused.is_empty()).then(|| refused.join("\n"));
    let (stdout, stderr) = (ran.stdout.text(), ran.stderr.text());
    let (kind, mut text) = match ran.exit {
        ProcessExit::Code(exit_code) if is_accepted(exit_code) => {
            let ended = CommandOutcome { exit_code, stdout, stderr, sandbox };
            return Ok(ToolResult::default().with_value(ended)?);
        }
        ProcessExit::Code(code) => (
            "exit_code",
            format!("exit code {code}; what the command changed in the workspace was rolled back"),
        ),
        ProcessExit::Signal(signal) => ("killed", format!("the command was killed by signal {signal}")),
        ProcessExit::TimedOut => ("timed_out", too_long),
    };
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        if !output.trim().is_empty() {
            text.push_str(&format!("\n{name}:\n{}", output.trim_end()));
        }
    }
    if let Some(refused) = sandbox {
        text.push_str(&format!("\nsandbox:\n{refused}"));
    }
    Err(match ran.exit {
        ProcessExit::TimedOut => ToolError::retryable(kind, text),
        _ => ToolError::of_kind(kind, text),
    })
}

/// Returns the effect of a tool whose processes run in a sandbox. If the sandbox keeps all effects in the
/// workspace, and the system enforces that, an interrupted call can be rolled back and run again.
pub(crate) fn effect_within(sandbox: &Sandbox, declared: Effect) -> Effect {
    let is_kept_inside = sandbox.keeps_effects_inside() && probe().enforces(sandbox);
    if declared == Effect::External && is_kept_inside { Effect::Workspace } else { declared }
}

/// Returns what commands in a sandbox may change; `None` if they are not confined. That they change nothing is only promised
/// if the system enforces it.
pub(crate) fn command_limit(sandbox: &Sandbox) -> Option<CommandLimit> {
    let is_kept_inside = sandbox.keeps_effects_inside() && probe().enforces(sandbox);
    match sandbox.mode {
        SandboxMode::Off => None,
        SandboxMode::ReadOnly if is_kept_inside => Some(CommandLimit::Nothing),
        SandboxMode::Workspace | SandboxMode::ReadOnly => Some(CommandLimit::Workspace),
    }
}

/// Hides the places of secrets of this user, and the stores, which may be elsewhere. A sandbox that is off hides nothing.
pub(crate) fn hide_places(sandbox: &mut Sandbox) {
    if sandbox.is_off() {
        return;
    }
    #[cfg(feature = "store")]
    sandbox.hide.extend(crate::stores::state_directory().ok());
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    hide_secrets(sandbox, home.as_deref());
}

/// Describes a sandbox to the model, as sentences that follow others. Empty if there is none.
pub(crate) fn description(sandbox: &Sandbox) -> String {
    let mut text = match sandbox.mode {
        SandboxMode::Off => return String::new(),
        SandboxMode::Workspace => " It can write files only in the workspace and in $TMPDIR".to_owned(),
        SandboxMode::ReadOnly => " It can write files only in $TMPDIR, and not in the workspace".to_owned(),
    };
    for path in &sandbox.write {
        text.push_str(&format!(", {}", path.display()));
    }
    text.push_str("; $TMPDIR is empty at first and deleted after the call.");
    if !sandbox.network {
        text.push_str(" It has no network.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_sandbox_changes_the_effect() {
        let quiet = Sandbox::workspace().without_network();
        let expected = if probe().enforces(&quiet) { Effect::Workspace } else { Effect::External };
        assert_eq!(effect_within(&quiet, Effect::External), expected);
        assert_eq!(effect_within(&quiet, Effect::Pure), Effect::Pure);
        for open in [Sandbox::off(), Sandbox::workspace(), quiet.write("/cache")] {
            assert_eq!(effect_within(&open, Effect::External), Effect::External);
        }
    }

    #[test]
    fn a_sandbox_limits_what_commands_write() {
        let quiet = Sandbox::read_only().without_network();
        let nothing = if probe().enforces(&quiet) { CommandLimit::Nothing } else { CommandLimit::Workspace };
        for (sandbox, limit) in [
            (Sandbox::off(), None),
            (Sandbox::workspace(), Some(CommandLimit::Workspace)),
            (Sandbox::read_only(), Some(CommandLimit::Workspace)),
            (quiet.clone().write("/cache"), Some(CommandLimit::Workspace)),
            (quiet, Some(nothing)),
        ] {
            assert_eq!(command_limit(&sandbox), limit, "{sandbox:?}");
        }
    }

    #[test]
    fn the_description_says_what_commands_can_write() {
        assert_eq!(description(&Sandbox::off()), "");
        let text = description(&Sandbox::workspace().write("/cache").without_network());
        assert!(
            text.contains("in the workspace and in $TMPDIR, /cache;") && text.ends_with("no network."),
            "{text}"
        );
        assert!(description(&Sandbox::read_only()).contains("not in the workspace"));
    }
}
