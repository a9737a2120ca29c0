//! Which sessions a running `guard -- COMMAND` records, and which ones a killed one has left.
//!
//! Each guard locks a file beside the store until it ends. A file that is not locked therefore belongs to a guard that was
//! killed: the next one records the gap in its session, with the files as they are then.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backstitch::id::SessionId;
use backstitch::journal::EvaluationOutcome;
use backstitch::ports::Store as _;
use backstitch::stores::make_private;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::sessions::guard::session;
use crate::sessions::place::{OpenStore, short};

/// How long the recording of a gap waits for other processes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Extension of a file that is not locked yet.
const BEGUN: &str = "begun";

/// The file of a guard that runs.
#[derive(Debug)]
pub(super) struct RunningGuard {
    path: PathBuf,
    _file: File,
}

#[derive(Debug, Serialize, Deserialize)]
struct GuardNote {
    v: u32,
    session: SessionId,
    directory: PathBuf,
    /// The guard.
    process: u32,
}

fn place_of(store: &Path) -> PathBuf {
    store.join("guard").join(NAME)
}

fn is_locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

fn read(file: &mut File) -> Option<GuardNote> {
    let mut text = Vec::new();
    file.take(64 * 1024).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl RunningGuard {
    /// Claims a session for this process, until it ends.
    pub(super) fn new(store: &Path, session: SessionId, directory: &Path) -> io::Result<Self> {
        let place = place_of(store);
        make_private(&place)?;
        let path = place.join(session.to_string());
        // Under its own name it is locked from the beginning.
        let begun = path.with_extension(BEGUN);
        let mut file = File::options().create_new(true).read(true).write(true).open(&begun)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let note = GuardNote { v: 1, session, directory: directory.to_owned(), process: std::process::id() };
        file.write_all(&serde_json::to_vec(&note)?)?;
        fs::rename(begun, &path)?;
        Ok(Self { path, _file: file })
    }

    /// Removes the file: everything is recorded.
    pub(super) fn done(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Removes the file if the end of the command is recorded. Otherwise the next guard records it.
    pub(super) fn ended(self, is_recorded: bool) {
        if is_recorded {
            self.done();
        }
    }

    /// Returns the process that guards the command of a session, if it runs.
    pub(super) fn of(store: &Path, session: SessionId) -> Option<u32> {
        let mut file = File::open(place_of(store).join(session.to_string())).ok()?;
        is_locked(&file).then(|| read(&mut file).map_or(0, |note| note.process))
    }
}

/// Records the gaps of guards that were killed. It is only about older sessions, so a failure is only said, and the next guard
/// tries again.
pub(super) async fn record_killed(place: &OpenStore) {
    let Ok(entries) = fs::read_dir(place_of(&place.directory())) else { return };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_none_or(|extension| extension != BEGUN)) {
        let Ok(mut file) = File::open(&path) else { continue };
        if is_locked(&file) {
            continue;
        }
        let recorded = match read(&mut file) {
            Some(note) if place.store.head(note.session).await.is_ok() && note.directory.is_dir() => {
                record_gap(place, &note).await
            }
            // The session is gone, or never began.
            _ => Ok(()),
        };
        match recorded {
            Ok(()) => _ = fs::remove_file(&path),
            Err(error) => eprintln!("guard: the end of an earlier command could not be recorded: {error:#}"),
        }
    }
}

async fn record_gap(place: &OpenStore, note: &GuardNote) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    let opened = session::open(place, NAME, note.session, &note.directory, until).await?;
    let text = "the guard was killed, or could not record the end; what the command did since is not divided"
        .to_owned();
    let done = async {
        opened.gap(text).await?;
        opened.boundary(Some("found later"), &*place.store).await?;
        opened.answered(None, EvaluationOutcome::Cancelled).await
    };
    let done = done.await;
    opened.live().release().await?;
    done?;
    eprintln!(
        "guard: the guard of session {} did not record its end; the log shows the gap",
        short(note.session)
    );
    Ok(())
}
