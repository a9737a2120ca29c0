//! The session that records a conversation of a program.
//!
//! A directory beside the store holds one directory for each conversation, with the id of its session and a lock. The lock
//! lets the hooks of a conversation work one after the other. After a rewind, a conversation that continues from there
//! under another id is bound to the same session.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstitch::digest::Digest;
use backstitch::id::SessionId;
use backstitch::stores::make_private;
use backstitch::stores::side_files::{BOUND_SESSION, GUARD};
use backstitch_bridge::Program;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// Time between two attempts to get what another process holds.
pub(super) const STEP: Duration = Duration::from_millis(5);

const FILE: &str = BOUND_SESSION;

/// The directory of a conversation.
#[derive(Debug)]
pub(crate) struct Binding {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct BoundSession {
    v: u32,
    /// The conversation, as the program names it.
    conversation: String,
    session: SessionId,
    /// The directory that is guarded. A program may change to another one during the conversation.
    project: Option<PathBuf>,
}

/// The lock of a conversation, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConversationLock {
    _file: File,
}

impl Binding {
    /// Opens the directory of a conversation, and creates it if it does not exist.
    pub(crate) fn open(store: &Path, program: Program, conversation: &str) -> io::Result<Self> {
        let name = Digest::of(conversation.as_bytes()).to_string();
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        let directory = store.join(GUARD).join(program.name()).join(name);
        make_private(&directory)?;
        Ok(Self { directory })
    }

    /// Returns the conversation of an existing directory.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Locks the conversation. Returns `None` if another hook holds it for too long.
    pub(crate) fn lock(&self, until: Instant) -> io::Result<Option<ConversationLock>> {
        let path = self.directory.join("lock");
        let open = || File::options().create(true).truncate(false).write(true).open(&path);
        let file = match open() {
            // The directory has just been removed, since nothing needed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private(&self.directory)?;
                open()?
            }
            opened => opened?,
        };
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(ConversationLock { _file: file })),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(STEP),
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the session of the conversation, if there is one.
    pub(crate) fn session(&self) -> Option<SessionId> {
        self.bound().map(|bound| bound.session)
    }

    /// Returns the directory that the conversation was bound with.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        self.bound()?.project.filter(|project| project.is_dir())
    }

    fn bound(&self) -> Option<BoundSession> {
        serde_json::from_slice(&fs::read(self.directory.join(FILE)).ok()?).ok()
    }

    /// Takes over the session of another binding, which then has none. Returns whether there was one.
    pub(crate) fn take_over(&self, other: &Self) -> bool {
        fs::rename(other.directory.join(FILE), self.directory.join(FILE)).is_ok()
    }

    /// Records the session of the conversation.
    pub(crate) fn bind(
        &self,
        conversation: &str,
        session: SessionId,
        project: Option<&Path>,
    ) -> io::Result<()> {
        let project = project.map(Path::to_owned);
        let bound = BoundSession { v: 1, conversation: conversation.to_owned(), session, project };
        let temporary = self.directory.join(format!("{FILE}.{}", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(&bound)?)?;
        fs::rename(temporary, self.directory.join(FILE))
    }
}
