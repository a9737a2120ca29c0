//! The lines of `config.toml` that make Codex trust a hook: `[hooks.state."KEY"]` with a `trusted_hash`.
//!
//! Everything else in the file stays as it is, with its comments and its order.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Table, value};

use super::error::SettingsError;
use super::file;

const HASH: &str = "trusted_hash";

/// A hook that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustedHook {
    pub(crate) key: String,
    pub(crate) hash: String,
}

/// The settings of Codex.
pub(crate) struct TrustFile {
    path: PathBuf,
    text: Option<String>,
    document: DocumentMut,
}

impl TrustFile {
    /// Reads the settings. A file that does not exist is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = file::read(path)?;
        let document = file::parse_toml(path, text.as_deref().unwrap_or_default())?;
        Ok(Self { path: path.to_owned(), text, document })
    }

    /// Whether the file exists.
    pub(crate) fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Adds a hook.
    pub(crate) fn add(&mut self, hook: &TrustedHook) -> Result<(), SettingsError> {
        let path = self.path.clone();
        let state = below(self.document.as_table_mut(), "hooks", &path)?;
        let state = below(state, "state", &path)?;
        let entry = state.entry(&hook.key).or_insert_with(|| Item::Table(Table::new()));
        let Some(entry) = entry.as_table_like_mut() else { return Err(unknown(&path)) };
        entry.insert(HASH, value(&hook.hash));
        Ok(())
    }

    /// Removes a hook, if it is still trusted by the same hash. Tables that only held it go with it.
    pub(crate) fn remove(&mut self, hook: &TrustedHook) {
        let Some(hooks) = self.document.get_mut("hooks").and_then(Item::as_table_mut) else { return };
        if let Some(state) = hooks.get_mut("state").and_then(Item::as_table_mut) {
            let Some(entry) = state.get_mut(&hook.key).and_then(Item::as_table_like_mut) else { return };
            if entry.get(HASH).and_then(Item::as_str) != Some(&hook.hash) {
                return;
            }
            entry.remove(HASH);
            if entry.is_empty() {
                state.remove(&hook.key);
            }
            if state.is_empty() && state.is_implicit() {
                hooks.remove("state");
            }
        }
        if hooks.is_empty() && hooks.is_implicit() {
            self.document.remove("hooks");
        }
    }

    /// Writes the file, or removes it if it is empty and `was_missing` before. Returns whether it changed.
    pub(crate) fn write(&self, was_missing: bool) -> Result<bool, SettingsError> {
        let text = self.document.to_string();
        if self.text.as_deref().unwrap_or_default() == text {
            return Ok(false);
        }
        if text.trim().is_empty() && was_missing {
            file::remove(&self.path)?;
        } else {
            file::write(&self.path, &text)?;
        }
        Ok(true)
    }
}

/// Returns a table of a table, which is created without a header of its own.
fn below<'a>(table: &'a mut Table, name: &str, path: &Path) -> Result<&'a mut Table, SettingsError> {
    let new = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    table.entry(name).or_insert_with(new).as_table_mut().ok_or_else(|| unknown(path))
}

fn unknown(path: &Path) -> SettingsError {
    SettingsError::UnknownForm { path: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn hook(number: u32) -> TrustedHook {
        TrustedHook {
            key: format!("/p/.codex/hooks.json:pre_tool_use:{number}:0"),
            hash: format!("sha256:{number}"),
        }
    }

    #[test]
    fn lines_are_added_and_removed_and_everything_else_keeps_its_form() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let forms = [
            "# mine\nmodel = \"m\"   # here\n\n[a]\nb   =  1\n",
            "[[hooks.Stop]]\nmatcher = 'x'\n[[hooks.Stop.hooks]]\ntype = \"command\" # kept\ncommand = \"c\"\n\n[z]\nlast = 1\n",
            "[hooks.state.\"other\"]\ntrusted_hash = \"sha256:0\"\n",
            "",
        ];
        for own in forms {
            fs::write(&path, own).unwrap();
            let mut file = TrustFile::read(&path).unwrap();
            for number in [1, 2] {
                file.add(&hook(number)).unwrap();
            }
            assert!(file.write(false).unwrap());
            let text = fs::read_to_string(&path).unwrap();
            assert!(own.lines().all(|line| text.contains(line)), "{text}");
            let line =
                "[hooks.state.\"/p/.codex/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = \"sha256:1\"\n";
            assert!(text.contains(line), "{text}");
            // Codex adds lines of its own in between.
            let text = format!("{text}\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
            fs::write(&path, text).unwrap();
            let mut file = TrustFile::read(&path).unwrap();
            for number in [1, 2] {
                file.remove(&hook(number));
            }
            file.write(false).unwrap();
            let expected = format!("{own}\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        }
    }

    #[test]
    fn another_hash_stays_and_a_file_of_its_own_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let mut file = TrustFile::read(&path).unwrap();
        assert!(!file.exists());
        file.add(&hook(1)).unwrap();
        assert!(file.write(true).unwrap());
        let mut file = TrustFile::read(&path).unwrap();
        file.remove(&TrustedHook { hash: "sha256:other".to_owned(), ..hook(1) });
        assert!(!file.write(true).unwrap());
        file.remove(&hook(1));
        assert!(file.write(true).unwrap());
        assert!(!path.exists());
        for broken in ["hooks = 3\n", "hooks = { state = 1 }\n", "[hooks]\nstate = []\n"] {
            fs::write(&path, broken).unwrap();
            assert!(TrustFile::read(&path).unwrap().add(&hook(1)).is_err(), "{broken}");
        }
        fs::write(&path, "x = \u{0}").unwrap();
        assert!(TrustFile::read(&path).is_err());
    }
}
