//! Hooks: what Claude Code and Codex report to them, and what they answer.
//!
//! Both programs start a command for each event and pass the event to it as JSON. Claude Code passes the same JSON to an
//! engine's callbacks. So there is one reader ([`HookEvent`]), and here are the events that are used.

mod event;
mod output;

use crate::program::Program;

pub use event::{HookError, HookEvent, HookReport};
#[cfg(feature = "engines")]
pub(crate) use output::changed_input;
pub use output::{HookDecision, decision, prompt_context};

/// The events that Claude Code awaits from an engine. `SessionEnd` is not among them: it comes after the end of the input.
#[cfg(feature = "engines")]
pub(crate) const AWAITED: [&str; 6] =
    ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStop", "Stop"];

/// Returns the events for which hooks are installed.
pub fn events(program: Program) -> &'static [&'static str] {
    match program {
        Program::ClaudeCode => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "SubagentStop",
            "Stop",
            "SessionEnd",
        ],
        Program::Codex => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "SubagentStop",
            "Stop",
            "Interrupt",
            "SessionEnd",
        ],
    }
}

/// Returns the command of the hook for an event. If the calls that cannot be guarded are denied, those are too that find
/// no command.
pub(crate) fn command_for(event: &str, command: &str) -> String {
    let denies = event == "PreToolUse" && command.contains(" --strict");
    if denies { format!("{command} || exit 2") } else { command.to_owned() }
}

/// Seconds after which a program ends a hook. Codex warns if a hook at its end may take longer.
pub(crate) fn timeout(program: Program, event: &str) -> u64 {
    match (program, event) {
        (Program::Codex, "SessionEnd" | "Interrupt") => 3,
        _ => 60,
    }
}
