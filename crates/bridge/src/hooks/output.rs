//! The output of hooks, which both programs read in the same form.

use serde_json::{Value, json};

/// What a hook decides about the call that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookDecision {
    /// The program asks the person. Codex runs the call instead.
    Ask,
    /// The call does not run, and the model reads the reason.
    Deny,
}

/// Returns the output of a hook that decides about a call.
pub fn decision(decision: HookDecision, reason: &str) -> Value {
    let word = match decision {
        HookDecision::Ask => "ask",
        HookDecision::Deny => "deny",
    };
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": reason,
    }})
}

/// Returns the output of a hook that lets a prompt pass, and gives the model a text with it.
pub fn prompt_context(text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": text } })
}

/// Returns the output of a hook that changes the arguments of a call.
#[cfg(feature = "engines")]
pub(crate) fn changed_input(input: &Value) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
    }})
}
