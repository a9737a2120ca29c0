//! The hooks that Codex knows, and whether it trusts them.

use std::path::PathBuf;

use serde_json::Value;

/// Whether Codex runs a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustStatus {
    /// It runs.
    Trusted,
    /// It is skipped, because no person has trusted it.
    Untrusted,
    /// It is skipped, because it was changed after a person trusted it.
    Changed,
}

/// A hook that Codex knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedHook {
    /// Its key in the settings of Codex.
    pub key: String,
    /// The command that it runs.
    pub command: String,
    /// The file that it is in.
    pub source: Option<PathBuf>,
    /// The hash that has to be stored so that it is trusted.
    pub hash: String,
    /// Whether it runs.
    pub trust: TrustStatus,
}

impl ListedHook {
    /// Reads the answer to `hooks/list`. Entries without a key, a command or a hash are left out.
    pub(super) fn all(answer: &Value) -> Option<Vec<Self>> {
        let directories = answer.get("data")?.as_array()?;
        let hooks = directories.iter().filter_map(|directory| directory.get("hooks")?.as_array()).flatten();
        Some(hooks.filter_map(Self::one).collect())
    }

    fn one(hook: &Value) -> Option<Self> {
        let text = |name: &str| hook.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_managed = hook.get("isManaged").and_then(Value::as_bool).unwrap_or(false);
        let trust = match text("trustStatus").as_deref() {
            Some("trusted" | "managed") => TrustStatus::Trusted,
            Some("modified" | "changed") => TrustStatus::Changed,
            _ if is_managed => TrustStatus::Trusted,
            _ => TrustStatus::Untrusted,
        };
        let is_enabled = hook.get("enabled").and_then(Value::as_bool).unwrap_or(true);
        Some(Self {
            key: text("key")?,
            command: text("command")?,
            source: text("sourcePath").map(PathBuf::from),
            hash: text("currentHash")?,
            trust: if is_enabled { trust } else { TrustStatus::Untrusted },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_read_whatever_else_is_there() {
        let known = json!({"key": "/h/hooks.json:stop:0:0", "command": "x", "sourcePath": "/h/hooks.json", "currentHash": "sha256:1",
            "trustStatus": "trusted", "new": [1]});
        let changed =
            json!({"key": "k", "command": "y", "currentHash": "sha256:2", "trustStatus": "modified"});
        let strange = json!([{"command": 7}, null, {"key": "k", "command": "mcp"}]);
        let answer = json!({"data": [{"hooks": [known, changed]}, {"hooks": strange}, {"cwd": "/"}, 3]});
        let hooks = ListedHook::all(&answer).unwrap();
        assert_eq!(hooks.len(), 2);
        assert_eq!(hooks[0].source, Some(PathBuf::from("/h/hooks.json")));
        assert_eq!((hooks[0].trust, hooks[1].trust), (TrustStatus::Trusted, TrustStatus::Changed));
        assert_eq!(ListedHook::all(&json!({})), None);
        assert_eq!(ListedHook::all(&json!({"data": {}})), None);
    }
}
