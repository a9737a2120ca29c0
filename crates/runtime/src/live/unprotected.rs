//! Notes about protection that a process does not have.
//!
//! A process runs without what its system cannot enforce, and without a supervisor if the program names none. The
//! first such process of a live session is noted in the journal, for the command line and for `log`.

use std::sync::Once;

use backstitch_core::journal::{Note, RecordBody};
use backstitch_core::ports::Sandbox;
use serde_json::json;

use super::LiveSession;
use super::condition::MissingProtection;
use crate::process::{Directories, has_supervisor, probe, unprotected};

/// The topic of the note.
const TOPIC: &str = "sandbox";

/// The topic of the note about a missing supervisor.
const PROCESSES: &str = "processes";

/// What a process without a supervisor can do.
const UNSUPERVISED: &str =
    "commands have no supervisor: one that erases its environment can leave a process behind";

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
        if !self.condition().note_once(MissingProtection::Sandbox) {
            return None;
        }
        let support = probe();
        let data = json!({
            "sandbox": sandbox, "landlock": support.landlock, "seccomp": support.seccomp,
        });
        Some(Note::new(TOPIC, text).with_data(data))
    }

    /// Returns the note for a process without a supervisor. Only the first process of the session is noted, in the batch of its
    /// record, and one line is logged for all sessions.
    pub(crate) async fn unsupervised_note(&self) -> Option<Note> {
        static LOGGED: Once = Once::new();

        if has_supervisor() {
            return None;
        }
        LOGGED.call_once(|| {
            tracing::warn!("{UNSUPERVISED}; call `supervise_if_asked` first in `main`, or `set_supervisor`");
        });
        if !self.condition().note_once(MissingProtection::Supervisor) {
            return None;
        }
        let is_first = self.view().await.calls().all(|call| call.processes.is_empty());
        is_first.then(|| Note::new(PROCESSES, UNSUPERVISED))
    }
}
