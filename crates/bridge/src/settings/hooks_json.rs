//! Hooks in settings of JSON.
//!
//! Both programs have the same form: `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`. Only
//! entries with the command of this guard are added and removed; everything else stays, in its order. What a file held
//! before is kept, so that `uninstall` restores it to the byte if nobody has edited it since.

use std::path::{Path, PathBuf};

use backstitch_core::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::SettingsError;
use super::memory::{FileMemory, Memory};
use super::{InstalledHook, file, is_own};
use crate::hooks;
use crate::program::Program;

/// A settings file with hooks.
#[derive(Debug)]
pub(super) struct SettingsFile {
    program: Program,
    path: PathBuf,
    memory: FileMemory,
    /// Its text; none if it does not exist.
    text: Option<String>,
    settings: Map<String, Value>,
}

/// A settings file before the hooks were added.
#[derive(Debug, Serialize, Deserialize)]
struct FormerFile {
    v: u32,
    path: PathBuf,
    text: Option<String>,
    /// Whether its directory did not exist.
    #[serde(default)]
    directory_is_new: bool,
    /// Digest of the file with the hooks.
    written: String,
}

impl SettingsFile {
    /// Reads a settings file. A file that does not exist is empty.
    pub(super) fn read(program: Program, path: &Path, memory: &Memory) -> Result<Self, SettingsError> {
        let text = file::read(path)?;
        let settings: Map<String, Value> = match text.as_deref().filter(|text| !text.trim().is_empty()) {
            None => Map::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|source| SettingsError::NotJson { path: path.to_owned(), source })?,
        };
        // An edit of hooks in another form could lose something.
        let is_known = |hooks: &Value| hooks.as_object().is_some_and(|all| all.values().all(Value::is_array));
        if !settings.get("hooks").is_none_or(is_known) {
            return Err(SettingsError::UnknownForm { path: path.to_owned() });
        }
        Ok(Self { program, path: path.to_owned(), memory: memory.of(path, ""), text, settings })
    }

    /// Returns the hooks of this guard.
    pub(super) fn installed(&self) -> Vec<InstalledHook> {
        let hooks = self.settings.get("hooks").and_then(Value::as_object);
        let mut installed = Vec::new();
        for (event, groups) in hooks.into_iter().flatten() {
            let groups = groups.as_array().into_iter().flatten();
            let entries = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
            let own = entries.filter_map(|entry| own_command(self.program, entry));
            installed.extend(own.map(|command| InstalledHook { event: event.clone(), command }));
        }
        installed
    }

    /// Adds the hooks, in place of those that were there. Returns whether the file changed.
    pub(super) fn install(mut self, command: &str) -> Result<bool, SettingsError> {
        let installed = self.installed();
        let (program, events) = (self.program, hooks::events(self.program));
        let has = |event: &str| {
            let command = hooks::command_for(event, command);
            installed.iter().any(|hook| hook.event == event && hook.command == command)
        };
        if installed.len() == events.len() && events.iter().all(|event| has(event)) {
            return Ok(false);
        }
        let (former, directory_is_new) = match self.memory.get::<FormerFile>() {
            // Hooks that are there already were added to an even earlier text.
            Some(former) if self.is_as_written(&former) => (former.text, former.directory_is_new),
            _ => (self.text.clone(), self.path.parent().is_some_and(|directory| !directory.exists())),
        };
        self.remove();
        let own = self.settings.entry("hooks").or_insert_with(|| Value::Object(Map::new()));
        for event in events {
            let (command, timeout) = (hooks::command_for(event, command), hooks::timeout(program, event));
            let entry = json!({"type": "command", "command": command, "timeout": timeout});
            if let Some(own) = own.as_object_mut()
                && let Some(groups) = own.entry(*event).or_insert_with(|| json!([])).as_array_mut()
            {
                groups.push(json!({ "hooks": [entry] }));
            }
        }
        let text = self.render();
        // Without a memory, `uninstall` removes the entries and restores nothing.
        let written = Digest::of(text.as_bytes()).to_string();
        let path = self.path.clone();
        self.memory.set(&FormerFile { v: 1, path, text: former, directory_is_new, written })?;
        file::write(&self.path, &text)?;
        Ok(true)
    }

    /// Removes the hooks. Returns whether there were any.
    pub(super) fn uninstall(mut self) -> Result<bool, SettingsError> {
        if self.installed().is_empty() {
            return Ok(false);
        }
        let former: Option<FormerFile> = self.memory.get();
        if let Some(former) = former.filter(|former| self.is_as_written(former)) {
            match former.text {
                Some(text) => file::write(&self.path, &text)?,
                None => file::remove(&self.path)?,
            }
            if former.directory_is_new
                && let Some(directory) = self.path.parent()
            {
                // It stays if anything else is in it.
                let _ = std::fs::remove_dir(directory);
            }
        } else {
            self.remove();
            file::write(&self.path, &self.render())?;
        }
        self.memory.forget();
        Ok(true)
    }

    /// Removes the entries of this guard, and what is empty without them.
    fn remove(&mut self) {
        let program = self.program;
        let Some(hooks) = self.settings.get_mut("hooks").and_then(Value::as_object_mut) else { return };
        let mut emptied = Vec::new();
        for (event, groups) in hooks.iter_mut() {
            let Some(groups) = groups.as_array_mut() else { continue };
            let before = groups.len();
            groups.retain_mut(|group| {
                let Some(entries) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
                let count = entries.len();
                entries.retain(|entry| own_command(program, entry).is_none());
                entries.len() == count || !entries.is_empty()
            });
            if groups.is_empty() && before > 0 {
                emptied.push(event.clone());
            }
        }
        for event in &emptied {
            hooks.shift_remove(event);
        }
        if hooks.is_empty() && !emptied.is_empty() {
            self.settings.shift_remove("hooks");
        }
    }

    fn render(&self) -> String {
        file::pretty(&Value::Object(self.settings.clone()))
    }

    fn is_as_written(&self, former: &FormerFile) -> bool {
        let now = self.text.as_deref().unwrap_or_default();
        Digest::of(now.as_bytes()).to_string() == former.written
    }
}

fn own_command(program: Program, entry: &Value) -> Option<String> {
    let command = entry.get("command")?.as_str()?;
    is_own(program, command).then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const COMMAND: &str = "/opt/backstitch guard hook claude-code";

    fn read(path: &Path) -> Result<SettingsFile, SettingsError> {
        SettingsFile::read(Program::ClaudeCode, path, &Memory::new(path.parent()))
    }

    fn file(path: &Path) -> SettingsFile {
        read(path).unwrap()
    }

    #[test]
    fn hooks_are_added_once_and_removed_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        let own = r#"{ "model": "x", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]},
            "number": 1.50, "deep": {"b": 1, "a": [null]} }"#;
        fs::write(&path, own).unwrap();
        assert!(file(&path).install(COMMAND).unwrap());
        assert_eq!(file(&path).installed().len(), hooks::events(Program::ClaudeCode).len());
        assert!(!file(&path).install(COMMAND).unwrap(), "a second time changes nothing");
        assert!(file(&path).install(&format!("{COMMAND} --strict")).unwrap());
        assert!(!file(&path).install(&format!("{COMMAND} --strict")).unwrap());
        assert_eq!(file(&path).installed().len(), hooks::events(Program::ClaudeCode).len());
        let both: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(both["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "mine");
        assert_eq!(both["deep"].to_string(), r#"{"b":1,"a":[null]}"#);

        // Edited in between: the entries go, and the edit stays.
        let mut edited = both.as_object().unwrap().clone();
        edited.insert("new".to_owned(), json!(true));
        fs::write(&path, serde_json::to_string(&edited).unwrap()).unwrap();
        assert!(file(&path).uninstall().unwrap());
        let after: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let mut expected: Value = serde_json::from_str(own).unwrap();
        expected["new"] = json!(true);
        assert_eq!(after, expected);
        assert!(!file(&path).uninstall().unwrap());

        // Not edited: the file is as it was, to the byte.
        fs::write(&path, own).unwrap();
        assert!(file(&path).install(COMMAND).unwrap());
        assert!(file(&path).uninstall().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), own);
    }

    #[test]
    fn broken_settings_are_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        for text in ["{", "[]", "// note\n{}", r#"{"hooks": []}"#, r#"{"hooks": {"Stop": {}}}"#, "\u{0}"] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
