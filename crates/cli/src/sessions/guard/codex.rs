//! What is particular to Codex: its hooks run only if a person trusts them.

use super::program::Scope;

/// Returns what a person has to do before the hooks run.
pub(super) fn trust_advice(scope: Scope) -> Option<String> {
    let trust = "Codex skips hooks that are not trusted, without a message: start `codex`, enter `/hooks`, and trust those of backstitch";
    Some(match scope {
        Scope::User => trust.to_owned(),
        Scope::Project => format!("{trust}; the project has to be trusted too"),
    })
}
