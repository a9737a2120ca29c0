//! Processes of tools in a sandbox: how they are started, and their description for the model.

use backstitch_runtime::probe;

use crate::journal::Effect;
use crate::ports::{ProcessOutcome, ProcessSpec, Sandbox, SandboxMode};
use crate::tool::{ContextError, ToolContext};

/// Runs a process in a sandbox. Keys are replaced in its output. Also returns what the sandbox refused, for
/// the model.
pub(crate) async fn run_confined(
    context: &ToolContext,
    spec: ProcessSpec,
    sandbox: &Sandbox,
) -> Result<(ProcessOutcome, Option<String>), ContextError> {
    let outcome = context.run_process(spec.sandbox(sandbox.clone())).await?.redacted(&context.secrets());
    let refused: Vec<_> = outcome.refused.iter().map(ToString::to_string).collect();
    let refused = (!refused.is_empty()).then(|| refused.join("\n"));
    Ok((outcome, refused))
}

/// Returns the effect of a tool whose processes run in a sandbox. If the sandbox keeps all effects in the
/// workspace, and the system enforces that, an interrupted call can be rolled back and run again.
pub(crate) fn effect_within(sandbox: &Sandbox, declared: Effect) -> Effect {
    let is_kept_inside = sandbox.keeps_effects_inside() && probe().enforces(sandbox);
    if declared == Effect::External && is_kept_inside { Effect::Workspace } else { declared }
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
