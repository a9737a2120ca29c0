//! Side files: everything that is written about sessions outside of the tables of their store.
//!
//! [`SideFile::ALL`] is the only list of them. Redactions, removals and expiries treat each kind, `doctor` names those that exist,
//! and the security page has a row for each, which a test compares. A new kind does not compile before redaction and removal know
//! it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstitch_runtime::CALL_TIMES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input_history;
use crate::id::SessionId;
use crate::ports::{ErasureMode, OpenError};
use crate::redaction::{SensitiveValue, redact_content};

/// Directory of guard bindings, beside a store.
pub const GUARD: &str = "guard";
/// Directory of apply marks, beside a store.
pub const APPLIES: &str = "applies";
/// Directory of server locks, beside a store.
pub const SERVERS: &str = "mcp";
/// Directory of the states of directories, beside a store.
pub const STATES: &str = "workspaces";
/// The file of a guard binding that names its session.
pub const BOUND_SESSION: &str = "session.json";

/// A kind of side files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SideFile {
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
    /// Which files a directory had, and what git runs in it.
    DirectoryStates,
    /// What `--log-file` names.
    LogFile,
}

/// Side files that an erasure has changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SideFileChange {
    /// Name of the kind.
    pub kind: String,
    /// The file or directory.
    pub path: PathBuf,
    /// Number of messages or files.
    pub entries: usize,
}

impl SideFile {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::InputHistory,
        Self::GuardBindings,
        Self::ApplyMarks,
        Self::ServerLocks,
        Self::CallTimes,
        Self::DirectoryStates,
        Self::LogFile,
    ];

    /// Returns the name of the kind, as people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::InputHistory => "input history",
            Self::GuardBindings => "guard bindings",
            Self::ApplyMarks => "apply marks",
            Self::ServerLocks => "server locks",
            Self::CallTimes => "call times",
            Self::DirectoryStates => "directory states",
            Self::LogFile => "log files",
        }
    }

    /// Returns the file or directory of the kind, by the directory of the store. The command does not know where log files are.
    pub fn path(self, store: &Path) -> Option<PathBuf> {
        match self {
            Self::InputHistory => input_history::path(),
            Self::GuardBindings => Some(store.join(GUARD)),
            Self::ApplyMarks => Some(store.join(APPLIES)),
            Self::ServerLocks => Some(store.join(SERVERS)),
            Self::CallTimes => Some(store.join(CALL_TIMES)),
            Self::DirectoryStates => Some(store.join(STATES)),
            Self::LogFile => None,
        }
    }

    fn change(self, path: PathBuf, entries: io::Result<usize>) -> Result<Option<SideFileChange>, OpenError> {
        match entries {
            Ok(0) => Ok(None),
            Ok(entries) => Ok(Some(SideFileChange { kind: self.name().to_owned(), path, entries })),
            Err(source) => Err(OpenError::Io { path, source }),
        }
    }
}

/// Where the side files of a store are.
#[derive(Debug, Clone)]
pub struct SidePlaces {
    /// The directory of the store.
    pub store: PathBuf,
    /// The input history, if it holds messages of sessions of the store.
    pub input_history: Option<PathBuf>,
}

impl SidePlaces {
    /// Returns the places that exist, each with its kind.
    fn all(&self) -> impl Iterator<Item = (SideFile, PathBuf)> {
        SideFile::ALL.into_iter().filter_map(|file| {
            let path = match file {
                SideFile::InputHistory => self.input_history.clone(),
                file => file.path(&self.store),
            };
            Some((file, path.filter(|path| path.exists())?))
        })
    }
}

/// Removes a value from the side files.
pub fn redact(
    places: &SidePlaces,
    value: &SensitiveValue,
    mode: ErasureMode,
) -> Result<Vec<SideFileChange>, OpenError> {
    let mut changes = Vec::new();
    for (file, path) in places.all() {
        let entries = match file {
            SideFile::InputHistory => input_history::rewrite(&path, mode, |message| {
                Some(match value.is_in(message.as_bytes()) {
                    true => String::from_utf8_lossy(&redact_content(message.as_bytes(), value)).into_owned(),
                    false => message.to_owned(),
                })
            }),
            SideFile::GuardBindings => redact_reports(&path, value, mode),
            SideFile::DirectoryStates => {
                remove_all(mode, entries_of(&path), |entry| is_in_settings(entry, value))
            }
            // They hold ids and times only.
            SideFile::ApplyMarks | SideFile::ServerLocks | SideFile::CallTimes | SideFile::LogFile => Ok(0),
        };
        changes.extend(file.change(path, entries)?);
    }
    Ok(changes)
}

/// Removes messages from the input history. `typed` are the texts of people in the sessions that are about to be removed: once
/// they are gone, nobody knows which messages were theirs.
pub fn forget_messages(
    places: &SidePlaces,
    typed: &HashSet<String>,
    mode: ErasureMode,
) -> Result<Option<SideFileChange>, OpenError> {
    let Some(path) = places.input_history.clone().filter(|_| !typed.is_empty()) else { return Ok(None) };
    // At the prompt, a backslash before an `@` keeps it from naming a file.
    let is_typed = |message: &str| typed.contains(message) || typed.contains(&message.replace("\\@", "@"));
    let keep = |message: &str| (!is_typed(message.trim())).then(|| message.to_owned());
    let entries = input_history::rewrite(&path, mode, keep);
    SideFile::InputHistory.change(path, entries)
}

/// Removes what side files hold about sessions, except for [messages](forget_messages).
pub fn remove(
    places: &SidePlaces,
    sessions: &HashSet<SessionId>,
    mode: ErasureMode,
) -> Result<Vec<SideFileChange>, OpenError> {
    let mut changes = Vec::new();
    for (file, path) in places.all() {
        let entries = match file {
            SideFile::GuardBindings => remove_all(mode, bindings(&path), |entry| {
                let bound = bound_session(entry);
                bound.is_some_and(|bound| sessions.contains(&bound)) || names_session(entry, sessions)
            }),
            SideFile::ApplyMarks | SideFile::ServerLocks | SideFile::CallTimes => {
                remove_all(mode, entries_of(&path), |entry| names_session(entry, sessions))
            }
            // States belong to directories, which other sessions use too.
            SideFile::InputHistory | SideFile::DirectoryStates | SideFile::LogFile => Ok(0),
        };
        changes.extend(file.change(path, entries)?);
    }
    Ok(changes)
}

/// Returns the session of a binding.
fn bound_session(binding: &Path) -> Option<SessionId> {
    let bound: Value = serde_json::from_slice(&fs::read(binding.join(BOUND_SESSION)).ok()?).ok()?;
    bound["session"].as_str()?.parse().ok()
}

/// Whether a file is named after one of these sessions.
fn names_session(file: &Path, sessions: &HashSet<SessionId>) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str());
    name.and_then(|name| name.parse::<SessionId>().ok()).is_some_and(|session| sessions.contains(&session))
}

/// Whether a file holds settings and hooks of git with a value. A state that is gone is captured again before the next call.
fn is_in_settings(file: &Path, value: &SensitiveValue) -> bool {
    if file.extension().is_none_or(|extension| extension != "git") {
        return false;
    }
    let Ok(bytes) = fs::read(file) else { return false };
    value.is_in(&bytes) || value.is_in(&percent_decoded(&bytes))
}

/// Replaces each `%XX` by its byte. Everything else stays.
fn percent_decoded(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// Returns the directories of conversations, which are below those of programs, and the notes of guarded commands beside them.
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
    for entry in entries.iter().filter(|entry| is_selected(entry.as_path())) {
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

    const ONE: &str = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d";
    const OTHER: &str = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1e";

    /// Writes side files of two sessions. Their reports and the history have a value.
    fn write_files() -> (tempfile::TempDir, SidePlaces) {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().to_owned();
        for (name, session) in [("a", ONE), ("b", OTHER)] {
            let binding = store.join(GUARD).join("claude").join(name);
            fs::create_dir_all(&binding).unwrap();
            let bound = format!(r#"{{"v":1,"conversation":"{name}","session":"{session}","project":null}}"#);
            fs::write(binding.join(BOUND_SESSION), bound).unwrap();
            fs::write(binding.join("1.hook"), format!("{name} said hunter2-leaked")).unwrap();
            for (kind, file) in [(APPLIES, session.to_owned()), (SERVERS, format!("{session}.lock"))] {
                fs::create_dir_all(store.join(kind)).unwrap();
                fs::write(store.join(kind).join(file), "").unwrap();
            }
            fs::create_dir_all(store.join(GUARD).join("command")).unwrap();
            fs::write(store.join(GUARD).join("command").join(session), "").unwrap();
            fs::create_dir_all(store.join(CALL_TIMES).join(session)).unwrap();
            fs::write(store.join(CALL_TIMES).join(session).join("times"), "").unwrap();
        }
        let input_history = Some(store.join("history"));
        fs::write(store.join("history"), "#V2\nsew it\nto a@b, not \\\\@c\nhunter2-leaked\n").unwrap();
        (directory, SidePlaces { store, input_history })
    }

    fn kinds(changes: &[SideFileChange]) -> Vec<(&str, usize)> {
        changes.iter().map(|change| (change.kind.as_str(), change.entries)).collect()
    }

    #[test]
    fn a_removal_takes_the_files_of_its_sessions_only() {
        let (_directory, places) = write_files();
        let sessions = HashSet::from([ONE.parse().unwrap()]);
        let typed = HashSet::from(["sew it".to_owned(), "to a@b, not @c".to_owned()]);
        let others = ["guard bindings", "apply marks", "server locks", "call times"];
        let expected = others.map(|kind| (kind, if kind == "guard bindings" { 2 } else { 1 }));
        let rehearsed = remove(&places, &sessions, ErasureMode::DryRun).unwrap();
        assert_eq!(kinds(&rehearsed), expected);
        let removed = remove(&places, &sessions, ErasureMode::Now).unwrap();
        assert_eq!(removed, rehearsed);
        for mode in [ErasureMode::DryRun, ErasureMode::Now] {
            let forgotten = forget_messages(&places, &typed, mode).unwrap();
            assert_eq!(forgotten.map(|change| change.entries), Some(2));
        }
        let exists = |name: &str| places.store.join(name).exists();
        assert!(!exists("guard/claude/a") && exists("guard/claude/b/session.json"));
        assert!(!exists(&format!("guard/command/{ONE}")) && exists(&format!("guard/command/{OTHER}")));
        assert!(!exists(&format!("applies/{ONE}")) && exists(&format!("applies/{OTHER}")));
        assert!(!exists(&format!("mcp/{ONE}.lock")) && exists(&format!("mcp/{OTHER}.lock")));
        assert!(!exists(&format!("calls/{ONE}")) && exists(&format!("calls/{OTHER}/times")));
        assert_eq!(fs::read_to_string(places.store.join("history")).unwrap(), "#V2\nhunter2-leaked\n");
        assert_eq!(remove(&places, &sessions, ErasureMode::Now).unwrap(), []);
        assert_eq!(forget_messages(&places, &typed, ErasureMode::Now).unwrap(), None);
    }

    #[test]
    fn a_redaction_finds_the_value_in_every_kind_that_holds_texts() {
        let (_directory, places) = write_files();
        let value = SensitiveValue::new("hunter2-leaked").unwrap();
        let states = places.store.join(STATES);
        fs::create_dir_all(&states).unwrap();
        fs::write(states.join("a.git"), "url=%68unter2-leaked").unwrap();
        fs::write(states.join("b.git"), "url=x").unwrap();
        let expected = [("input history", 1), ("guard bindings", 2), ("directory states", 1)];
        assert_eq!(kinds(&redact(&places, &value, ErasureMode::DryRun).unwrap()), expected);
        assert_eq!(kinds(&redact(&places, &value, ErasureMode::Now).unwrap()), expected);
        assert_eq!(redact(&places, &value, ErasureMode::Now).unwrap(), []);
        let report = fs::read_to_string(places.store.join("guard/claude/b/1.hook")).unwrap();
        assert_eq!(report, "b said [redacted]");
        assert!(!states.join("a.git").exists() && states.join("b.git").exists());
    }

    #[test]
    fn the_security_page_has_a_row_for_each_kind() {
        let page = include_str!("../../../../docs/security.md");
        for file in SideFile::ALL {
            assert!(page.contains(&format!("| {} |", file.name())), "{}", file.name());
        }
    }
}
