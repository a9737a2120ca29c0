//! Reports that were lost.
//!
//! Each hook leaves a file while it works, and removes it at the end. A file of a process that is gone therefore shows that a
//! hook was killed, or could not record its event. The next hook of the conversation records that and removes the file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backstitch_bridge::hooks::HookEvent;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The most lost reports that are recorded one by one.
const MOST: usize = 20;

/// The most characters of a reason.
const LONGEST: usize = 300;

/// A hook that has begun.
#[derive(Debug)]
pub(super) struct BegunHook {
    path: PathBuf,
    note: HookNote,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HookNote {
    event: String,
    tool: Option<String>,
    process: u32,
    /// Why the event was not recorded; none if the hook was killed.
    failed: Option<String>,
}

impl HookNote {
    fn text(&self) -> String {
        let tool = self.tool.as_ref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        match &self.failed {
            Some(reason) => format!("{}{tool} was not recorded: {reason}", self.event),
            None => format!("the hook for {}{tool} was killed, so its report may be missing", self.event),
        }
    }
}

impl BegunHook {
    /// Leaves the file of this hook.
    pub(super) fn new(directory: &Path, event: &HookEvent) -> io::Result<Self> {
        let process = std::process::id();
        let short = |text: String| text.chars().take(80).collect::<String>();
        let note =
            HookNote { event: short(event.name()), tool: event.tool().map(short), process, failed: None };
        let begun = Self { path: directory.join(format!("{process}.hook")), note };
        begun.write()?;
        Ok(begun)
    }

    fn write(&self) -> io::Result<()> {
        fs::write(&self.path, serde_json::to_vec(&self.note)?)
    }

    /// Removes the file: the event is recorded.
    pub(super) fn clear(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Leaves the reason for the next hook.
    pub(super) fn keep_reason(mut self, reason: &str) {
        self.note.failed = Some(reason.chars().take(LONGEST).collect());
        let _ = self.write();
    }
}

/// Takes the notes that ended hooks have left, and returns their texts.
pub(super) fn take(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut texts = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "hook") {
            continue;
        }
        let note = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<HookNote>(&text).ok());
        match note {
            Some(note) if note.failed.is_none() && lives(note.process) => continue,
            Some(note) => texts.push(note.text()),
            // It is being written.
            None if process_of(&path).is_some_and(lives) => continue,
            None => texts.push("a hook was killed as it began, so its report is missing".to_owned()),
        }
        let _ = fs::remove_file(&path);
    }
    texts.sort();
    if texts.len() > MOST {
        let more = texts.len() - MOST;
        texts.truncate(MOST);
        texts.push(format!("{more} more events were not recorded"));
    }
    texts
}

/// Returns the process after which the file of a hook is named.
fn process_of(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn lives(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_ended_hooks_are_taken_once() {
        let directory = tempfile::tempdir().unwrap();
        let event = HookEvent::parse(br#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#).unwrap();
        let begun = BegunHook::new(directory.path(), &event).unwrap();
        begun.keep_reason("the store is full");
        assert_eq!(take(directory.path()), ["PreToolUse of Bash was not recorded: the store is full"]);
        assert!(take(directory.path()).is_empty());
        BegunHook::new(directory.path(), &event).unwrap().clear();
        assert!(take(directory.path()).is_empty());
        fs::write(directory.path().join("1.hook"), b"").unwrap();
        assert!(take(directory.path()).is_empty(), "process 1 is about to write it");
        fs::rename(directory.path().join("1.hook"), directory.path().join("0.hook")).unwrap();
        let living = HookNote { event: "Stop".into(), tool: None, process: 1, failed: None };
        fs::write(directory.path().join("2.hook"), serde_json::to_vec(&living).unwrap()).unwrap();
        assert_eq!(take(directory.path()).len(), 1, "process 1 lives");
    }
}
