//! What people read about hooks of Codex.

/// What a person has to know about hooks of a project.
pub(super) const PROJECT: &str = "Codex runs the hooks of a project only if it trusts the project: `codex` asks at its start, `codex exec` does it";

/// Returns what a person has to do before the hooks run, and why this command has not done it.
pub(super) fn trust_advice(reason: Option<&str>) -> String {
    let advice = "Codex skips hooks that are not trusted, without a message: start `codex`, enter `/hooks`, and trust those of backstitch";
    match reason {
        Some(reason) => format!("they are not trusted yet: {reason}\n{advice}"),
        None => advice.to_owned(),
    }
}
