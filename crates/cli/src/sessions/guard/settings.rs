//! The hooks in the settings of a program.
//!
//! Both programs have the same form of JSON: `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`. Only
//! entries with the command of this guard are added and removed; everything else stays, in its order. What a file held
//! before is kept, so that `uninstall` restores it to the byte if nobody has edited it since.

use std::path::{Path, PathBuf};

use backstitch::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::file::{self, Memory, invalid};
use super::program::{Program, Scope};

/// A settings file with hooks.
#[derive(Debug)]
pub(super) struct SettingsFile {
    program: Program,
    path: PathBuf,
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

/// A hook that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstalledHook {
    pub(super) event: String,
    pub(super) command: String,
}

impl SettingsFile {
    /// Reads a settings file. A file that does not exist is empty.
    pub(super) fn read(program: Program, path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = file::read(path)?;
        let settings = match text.as_deref().filter(|text| !text.trim().is_empty()) {
            None => Map::new(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                invalid(format!("{name} is not a JSON object, and was left as it is: {error}"))
            })?,
        };
        let file = Self { program, path: path.to_owned(), text, settings };
        file.check()?;
        Ok(file)
    }

    /// Refuses a file whose hooks have another form, because an edit could lose something.
    fn check(&self) -> anyhow::Result<()> {
        let Some(hooks) = self.settings.get("hooks") else { return Ok(()) };
        let is_known = hooks.as_object().is_some_and(|hooks| hooks.values().all(Value::is_array));
        if !is_known {
            let message =
                format!("`hooks` in {} has an unknown form, and was left as it is", self.path.display());
            return Err(invalid(message).into());
        }
        Ok(())
    }

    /// Returns the hooks of this guard.
    pub(super) fn installed(&self) -> Vec<InstalledHook> {
        let hooks = self.settings.get("hooks").and_then(Value::as_object);
        let events = hooks.into_iter().flatten();
        let of_event = |(event, groups): (&String, &Value)| {
            let groups = groups.as_array().cloned().unwrap_or_default();
            let entries = groups
                .iter()
                .flat_map(|group| group.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default());
            let own = entries.filter_map(|entry| self.own_command(&entry).map(str::to_owned));
            own.map(|command| InstalledHook { event: event.clone(), command }).collect::<Vec<_>>()
        };
        events.flat_map(of_event).collect()
    }

    fn own_command<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        let command = entry.get("command")?.as_str()?;
        is_own(self.program, command).then_some(command)
    }

    /// Adds the hooks, in place of those that were there. Returns whether the file changed.
    pub(super) fn install(mut self, command: &str) -> anyhow::Result<bool> {
        let installed = self.installed();
        let program = self.program;
        let has = |event: &str| {
            let command = program.hook_command(event, command);
            installed.iter().any(|hook| hook.event == event && hook.command == command)
        };
        if installed.len() == self.program.events().len()
            && self.program.events().iter().all(|event| has(event))
        {
            return Ok(false);
        }
        let (former, directory_is_new) = match self.former() {
            // Hooks that are there already were added to an even earlier text.
            Some(former) if self.is_as_written(&former) => (former.text, former.directory_is_new),
            _ => (self.text.clone(), self.path.parent().is_some_and(|directory| !directory.exists())),
        };
        self.remove();
        let hooks = self.settings.entry("hooks").or_insert_with(|| Value::Object(Map::new()));
        for event in self.program.events() {
            let command = program.hook_command(event, command);
            let entry = json!({"type": "command", "command": command, "timeout": program.timeout(event)});
            if let Some(hooks) = hooks.as_object_mut()
                && let Some(groups) = hooks.entry(*event).or_insert_with(|| json!([])).as_array_mut()
            {
                groups.push(json!({ "hooks": [entry] }));
            }
        }
        let text = rendered(&self.settings)?;
        self.remember(former, directory_is_new, &text)?;
        file::write(&self.path, &text)?;
        Ok(true)
    }

    /// Removes the hooks. Returns whether there were any.
    pub(super) fn uninstall(mut self) -> anyhow::Result<bool> {
        if self.installed().is_empty() {
            return Ok(false);
        }
        let former = self.former();
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
            file::write(&self.path, &rendered(&self.settings)?)?;
        }
        self.memory().forget();
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
                entries.retain(|entry| {
                    let command = entry.get("command").and_then(Value::as_str);
                    !command.is_some_and(|command| is_own(program, command))
                });
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

    fn memory(&self) -> Memory {
        Memory::of(&self.path, "")
    }

    fn former(&self) -> Option<FormerFile> {
        self.memory().get()
    }

    fn is_as_written(&self, former: &FormerFile) -> bool {
        let now = self.text.as_deref().unwrap_or_default();
        Digest::of(now.as_bytes()).to_string() == former.written
    }

    fn remember(&self, text: Option<String>, directory_is_new: bool, written: &str) -> anyhow::Result<()> {
        // Without a state directory, `uninstall` removes the entries and restores nothing.
        let written = Digest::of(written.as_bytes()).to_string();
        self.memory().set(&FormerFile { v: 1, path: self.path.clone(), text, directory_is_new, written })
    }
}

fn rendered(settings: &Map<String, Value>) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(settings)?))
}

/// Returns whether a command is a hook of this guard, of any version and with any options, wherever the command was
/// installed and whatever it was named then.
pub(super) fn is_own(program: Program, command: &str) -> bool {
    let Some(words) = shlex::split(command) else { return false };
    matches!(words.as_slice(), [_, guard, hook, name, rest @ ..]
        if guard == "guard" && hook == "hook" && name == program.name()
            && rest.first().is_none_or(|next| next.starts_with("--") || next == "||"))
}

/// Returns the file that the command of a hook starts, if it is named by a path.
pub(super) fn file_of(command: &str) -> Option<PathBuf> {
    let first = shlex::split(command)?.into_iter().next()?;
    Some(PathBuf::from(first)).filter(|path| path.is_absolute())
}

/// Returns the settings file that turns all hooks of Claude Code off, if one does. What is nearer to the project counts more.
pub(super) fn disabled_by(project: &Path) -> Option<PathBuf> {
    let user = Program::ClaudeCode.settings(Scope::User, project);
    let files = [
        Some(project.join(".claude/settings.local.json")),
        Some(project.join(".claude/settings.json")),
        user,
    ];
    files
        .into_iter()
        .flatten()
        .find_map(|path| {
            let settings: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            Some((settings.get("disableAllHooks")?.as_bool()?, path))
        })
        .and_then(|(is_disabled, path)| is_disabled.then_some(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const COMMAND: &str = "/opt/backstitch guard hook claude-code";

    fn file(path: &Path) -> SettingsFile {
        SettingsFile::read(Program::ClaudeCode, path).unwrap()
    }

    #[test]
    fn hooks_are_added_once_and_removed_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        let own = r#"{ "model": "x", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]},
            "number": 1.50, "deep": {"b": 1, "a": [null]} }"#;
        fs::write(&path, own).unwrap();
        assert!(file(&path).install(COMMAND).unwrap());
        assert_eq!(file(&path).installed().len(), Program::ClaudeCode.events().len());
        assert!(!file(&path).install(COMMAND).unwrap(), "a second time changes nothing");
        assert!(file(&path).install(&format!("{COMMAND} --strict")).unwrap());
        assert!(!file(&path).install(&format!("{COMMAND} --strict")).unwrap());
        assert_eq!(file(&path).installed().len(), Program::ClaudeCode.events().len());
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
    }

    #[test]
    fn broken_settings_are_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        for text in ["{", "[]", "// note\n{}", r#"{"hooks": []}"#, r#"{"hooks": {"Stop": {}}}"#, "\u{0}"] {
            fs::write(&path, text).unwrap();
            assert!(SettingsFile::read(Program::ClaudeCode, &path).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn only_commands_of_this_guard_are_its_own() {
        let own = |command| is_own(Program::ClaudeCode, command);
        assert!(own(COMMAND) && own("'/a b/backstitch' guard hook claude-code --strict"));
        assert!(own("/opt/other guard hook claude-code --strict || exit 2"), "whatever it is named");
        assert!(!own("echo guard hook claude-code later") && !own("'guard hook claude-code"));
        assert!(!own("backstitch guard hook claude-code2"));
        assert!(!own("backstitch guard hook codex"));
    }
}
