//! Hooks in `config.toml` of Codex, for people who have theirs there.
//!
//! Codex reads `hooks.json` beside it too, and warns about the two places. So where a person has hooks in `config.toml`, those of
//! this guard are added there, and everything else in the file stays as it is.

use std::path::{Path, PathBuf};

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::error::SettingsError;
use super::{InstalledHook, file, is_own};
use crate::hooks;
use crate::program::Program;

/// The table with the hashes of trusted hooks, which holds no hooks.
const STATE: &str = "state";

/// A `config.toml` with hooks.
#[derive(Debug)]
pub(super) struct HookTables {
    path: PathBuf,
    document: DocumentMut,
}

impl HookTables {
    /// Reads the hooks of a file. Returns `None` if it has none, or in a form that cannot be added to.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, SettingsError> {
        let Some(text) = file::read(path)? else { return Ok(None) };
        let document = file::parse_toml(path, &text)?;
        let file = Self { path: path.to_owned(), document };
        let has_hooks = file.hooks().is_some_and(|hooks| hooks.iter().any(|(name, _)| name != STATE));
        let is_known = file.hooks().is_some_and(|hooks| {
            hooks.iter().all(|(name, groups)| name == STATE || groups.is_array_of_tables())
        });
        Ok((has_hooks && is_known).then_some(file))
    }

    fn hooks(&self) -> Option<&Table> {
        self.document.get("hooks")?.as_table()
    }

    /// Returns the hooks of this guard.
    pub(super) fn installed(&self) -> Vec<InstalledHook> {
        let groups = self.hooks().into_iter().flat_map(Table::iter);
        let groups = groups.filter_map(|(event, groups)| Some((event, groups.as_array_of_tables()?)));
        let entries = groups.flat_map(|(event, groups)| {
            let entries =
                groups.iter().filter_map(|group| group.get("hooks")?.as_array_of_tables()).flatten();
            entries.filter_map(own_command).map(move |command| (event.to_owned(), command))
        });
        entries.map(|(event, command)| InstalledHook { event, command }).collect()
    }

    /// Adds the hooks, in place of those that were there. Returns whether the file changed.
    pub(super) fn install(mut self, command: &str) -> Result<bool, SettingsError> {
        let before = self.document.to_string();
        self.remove();
        let Some(own) = self.document.get_mut("hooks").and_then(Item::as_table_mut) else {
            return Ok(false);
        };
        for event in hooks::events(Program::Codex) {
            let mut entry = Table::new();
            entry.insert("type", value("command"));
            entry.insert("command", value(hooks::command_for(event, command)));
            let timeout = hooks::timeout(Program::Codex, event);
            entry.insert("timeout", value(i64::try_from(timeout).unwrap_or(60)));
            let mut entries = ArrayOfTables::new();
            entries.push(entry);
            let mut group = Table::new();
            group.set_implicit(false);
            group.insert("hooks", Item::ArrayOfTables(entries));
            let groups = own.entry(event).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
            if let Some(groups) = groups.as_array_of_tables_mut() {
                groups.push(group);
            }
        }
        self.write(&before)
    }

    /// Removes the hooks. Returns whether there were any.
    pub(super) fn uninstall(mut self) -> Result<bool, SettingsError> {
        let before = self.document.to_string();
        self.remove();
        self.write(&before)
    }

    fn write(&self, before: &str) -> Result<bool, SettingsError> {
        let text = self.document.to_string();
        if text == before {
            return Ok(false);
        }
        file::write(&self.path, &text)?;
        Ok(true)
    }

    /// Removes the groups that hold only hooks of this guard, and such hooks from others.
    fn remove(&mut self) {
        let Some(hooks) = self.document.get_mut("hooks").and_then(Item::as_table_mut) else { return };
        let mut emptied = Vec::new();
        for (event, groups) in hooks.iter_mut() {
            let Some(groups) = groups.as_array_of_tables_mut() else { continue };
            let count = groups.len();
            groups.retain(|group| !is_only_own(group));
            for group in groups.iter_mut() {
                if let Some(entries) = group.get_mut("hooks").and_then(Item::as_array_of_tables_mut) {
                    entries.retain(|entry| own_command(entry).is_none());
                }
            }
            if groups.is_empty() && count > 0 {
                emptied.push(event.get().to_owned());
            }
        }
        for event in emptied {
            hooks.remove(&event);
        }
    }
}

fn own_command(entry: &Table) -> Option<String> {
    let command = entry.get("command")?.as_str()?;
    is_own(Program::Codex, command).then(|| command.to_owned())
}

fn is_only_own(group: &Table) -> bool {
    let entries = group.get("hooks").and_then(Item::as_array_of_tables);
    entries.is_some_and(|entries| {
        !entries.is_empty() && entries.iter().all(|entry| own_command(entry).is_some())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const COMMAND: &str = "/opt/backstitch guard hook codex";

    #[test]
    fn hooks_are_added_beside_those_of_a_person_and_removed_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let own = "model = \"m\" # mine\n\n[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\n\
            command = 'mine'   # kept\n\n[z]\na = 1\n";
        fs::write(&path, own).unwrap();
        let read = || HookTables::read(&path).unwrap().unwrap();
        assert!(read().install(COMMAND).unwrap());
        assert_eq!(read().installed().len(), hooks::events(Program::Codex).len());
        let text = fs::read_to_string(&path).unwrap();
        assert!(!read().install(COMMAND).unwrap(), "a second time changes nothing: {text}");
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str(), Some("mine"));
        assert_eq!(parsed["hooks"]["PreToolUse"][1]["hooks"][0]["command"].as_str(), Some(COMMAND));
        assert_eq!(parsed["hooks"]["Stop"][0]["hooks"][0]["timeout"].as_integer(), Some(60));
        assert!(read().install(&format!("{COMMAND} --strict")).unwrap());
        assert_eq!(read().installed().len(), hooks::events(Program::Codex).len());
        assert!(read().uninstall().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), own);
    }

    #[test]
    fn files_without_hooks_or_with_strange_ones_are_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        assert!(HookTables::read(&path).unwrap().is_none());
        let forms = [
            "",
            "[hooks.state.\"k\"]\ntrusted_hash = \"x\"\n",
            "hooks = 1\n",
            "[hooks]\nStop = []\n",
            "[hooks]\n",
        ];
        for text in forms {
            fs::write(&path, text).unwrap();
            assert!(HookTables::read(&path).unwrap().is_none(), "{text}");
        }
        fs::write(&path, "= 1").unwrap();
        assert!(HookTables::read(&path).is_err());
    }
}
