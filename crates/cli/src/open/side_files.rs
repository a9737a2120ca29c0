//! Side files: everything that the command writes about sessions outside of the tables of their store.
//!
//! [`SideFile::ALL`] is the only list of them. `redact` and `rm` treat each kind, `doctor` names those that exist, and the security
//! page has a row for each, which a test compares. A new kind does not compile before redaction and removal know it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use backstitch::id::SessionId;
use backstitch::ports::ErasureMode;
use backstitch::redaction::{SensitiveValue, redact_content};
use serde::Serialize;

use super::guarded::Binding;
use super::input_history;

/// A kind of side files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideFile {
    /// Messages that were typed at the prompt.
    InputHistory,
    /// Which conversation of a guarded program a session records, and reports that hooks could not record.
    GuardBindings,
    /// Sessions whose changes are being applied.
    ApplyMarks,
    /// Sessions that have an MCP server.
    ServerLocks,
    /// When the processes of interrupted calls ran.
    CallTimes,
    /// What `--log-file` names.
    LogFile,
}

/// Side files that an erasure has changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SideFileChange {
    /// Name of the kind.
    pub(crate) kind: &'static str,
    pub(crate) path: PathBuf,
    /// Number of messages or files.
    pub(crate) entries: usize,
}

impl SideFile {
    pub(crate) const ALL: [Self; 6] = [
        Self::InputHistory,
        Self::GuardBindings,
        Self::ApplyMarks,
        Self::ServerLocks,
        Self::CallTimes,
        Self::LogFile,
    ];

    /// Returns the name of the kind, as people read it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InputHistory => "input history",
            Self::GuardBindings => "guard bindings",
            Self::ApplyMarks => "apply marks",
            Self::ServerLocks => "server locks",
            Self::CallTimes => "call times",
            Self::LogFile => "log files",
        }
    }

    /// Returns the file or directory of the kind, by the directory of the store. The command does not know where log files are.
    pub(crate) fn path(self, store: &Path) -> Option<PathBuf> {
        match self {
            Self::InputHistory => input_history::path(),
            Self::GuardBindings => Some(store.join("guard")),
            Self::ApplyMarks => Some(store.join("applies")),
            Self::ServerLocks => Some(store.join("mcp")),
            Self::CallTimes => Some(store.join("calls")),
            Self::LogFile => None,
        }
    }

    fn change(self, path: PathBuf, entries: io::Result<usize>) -> anyhow::Result<Option<SideFileChange>> {
        let kind = self.name();
        let entries =
            entries.with_context(|| format!("the {kind} in {} cannot be changed", path.display()))?;
        Ok((entries > 0).then_some(SideFileChange { kind, path, entries }))
    }
}

/// Removes a value from the side files.
pub(crate) fn redact(
    store: &Path,
    value: &SensitiveValue,
    mode: ErasureMode,
) -> anyhow::Result<Vec<SideFileChange>> {
    let mut changes = Vec::new();
    for file in SideFile::ALL {
        let Some(path) = file.path(store) else { continue };
        let entries = match file {
            SideFile::InputHistory => input_history::rewrite(&path, mode, |message| {
                Some(match value.is_in(message.as_bytes()) {
                    true => String::from_utf8_lossy(&redact_content(message.as_bytes(), value)).into_owned(),
                    false => message.to_owned(),
                })
            }),
            SideFile::GuardBindings => redact_reports(&path, value, mode),
            // They hold ids and times only.
            SideFile::ApplyMarks | SideFile::ServerLocks | SideFile::CallTimes | SideFile::LogFile => Ok(0),
        };
        changes.extend(file.change(path, entries)?);
    }
    Ok(changes)
}

/// Removes what side files hold about sessions. `typed` are the messages of people in them.
pub(crate) fn remove(
    store: &Path,
    sessions: &HashSet<SessionId>,
    typed: &HashSet<String>,
    mode: ErasureMode,
) -> anyhow::Result<Vec<SideFileChange>> {
    let mut changes = Vec::new();
    for file in SideFile::ALL {
        let Some(path) = file.path(store) else { continue };
        let entries = match file {
            SideFile::InputHistory => input_history::rewrite(&path, mode, |message| {
                (!typed.contains(message.trim())).then(|| message.to_owned())
            }),
            SideFile::GuardBindings => remove_all(mode, bindings(&path), |directory| {
                Binding::at(directory.to_owned()).session().is_some_and(|bound| sessions.contains(&bound))
            }),
            SideFile::ApplyMarks | SideFile::ServerLocks | SideFile::CallTimes => {
                remove_all(mode, entries_of(&path), |entry| names_session(entry, sessions))
            }
            SideFile::LogFile => Ok(0),
        };
        changes.extend(file.change(path, entries)?);
    }
    Ok(changes)
}

/// Whether a file is named after one of these sessions.
fn names_session(file: &Path, sessions: &HashSet<SessionId>) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str());
    name.and_then(|name| name.parse::<SessionId>().ok()).is_some_and(|session| sessions.contains(&session))
}

/// Returns the directories of conversations, which are below those of programs.
fn bindings(guard: &Path) -> Vec<PathBuf> {
    entries_of(guard).iter().flat_map(|program| entries_of(program)).collect()
}

/// Lists a directory. What cannot be listed has no entries.
fn entries_of(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Removes selected files and directories, and returns their number.
fn remove_all(
    mode: ErasureMode,
    entries: Vec<PathBuf>,
    is_selected: impl Fn(&Path) -> bool,
) -> io::Result<usize> {
    let mut count = 0;
    for entry in entries.iter().filter(|entry| is_selected(entry)) {
        count += 1;
        if mode == ErasureMode::Now {
            if entry.is_dir() { fs::remove_dir_all(entry)? } else { fs::remove_file(entry)? }
        }
    }
    Ok(count)
}

/// Removes a value from the reports that hooks have left.
fn redact_reports(guard: &Path, value: &SensitiveValue, mode: ErasureMode) -> io::Result<usize> {
    let mut count = 0;
    for path in bindings(guard).iter().flat_map(|binding| entries_of(binding)) {
        if path.extension().is_none_or(|extension| extension != "hook") {
            continue;
        }
        // A hook that has just ended has removed its file.
        let Ok(bytes) = fs::read(&path) else { continue };
        if value.is_in(&bytes) {
            count += 1;
            if mode == ErasureMode::Now {
                fs::write(&path, redact_content(&bytes, value))?;
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_security_page_has_a_row_for_each_kind() {
        let page = include_str!("../../../../docs/security.md");
        for file in SideFile::ALL {
            assert!(page.contains(&format!("| {} |", file.name())), "{}", file.name());
        }
    }
}
