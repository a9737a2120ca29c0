//! Notes about sandboxes that the system does not enforce.
//!
//! A process runs without what its system cannot enforce. The first such process of a live session is noted in
//! the journal, for the command line and for `log`.

use std::sync::atomic::Ordering;

use backstitch_core::journal::{Note, RecordBody};
use backstitch_core::ports::Sandbox;
use serde_json::json;

use super::LiveSession;
use crate::process::{Directories, probe, unprotected};

/// The topic of the note.
const TOPIC: &str = "sandbox";

/// What is not protected from the processes of a session although their sandbox asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxGap {
    /// The gap, for people.
    pub text: String,
}

impl SandboxGap {
    /// Returns the gap that a record describes.
    pub fn of(record: &RecordBody) -> Option<Self> {
        let RecordBody::Note(note) = record else { return None };
        (note.topic == TOPIC).then(|| Self { text: note.text.clone() })
    }
}

impl LiveSession {
    /// Returns the note for a process whose sandbox is not enforced completely. Only the first one is noted.
    pub(crate) fn unprotected_note(&self, sandbox: &Sandbox, directories: &Directories) -> Option<Note> {
        let text = unprotected(sandbox, directories.root.as_deref(), directories.own.as_deref())?;
        if self.noted_unprotected.swap(true, Ordering::SeqCst) {
            return None;
        }
        let support = probe();
        let data = json!({
            "sandbox": sandbox, "landlock": support.landlock, "seccomp": support.seccomp,
        });
        Some(Note::new(TOPIC, text).with_data(data))
    }
}
