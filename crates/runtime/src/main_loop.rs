//! For people with their own storage: a loop that answers requests, and keeps a snapshot of each while it is on its way.
//!
//! A [`MainLoop`] makes a session and an agent for each request. With a [`CheckpointHandler`] it looks first whether an earlier
//! attempt left a snapshot, resumes from it if so, saves one before each action and after each call, and clears it when there is
//! an answer. Snapshots are saved with their content inlined, so that they resume in any store. One that cannot be saved stops
//! the loop before its next action. Whoever keeps sessions in a durable store needs none of this.
//!
//! Where a pending call may have had an effect outside, `execute` fails with `ToolIdempotencyError` each time, until the tool's
//! `reconcile` hook knows better, or somebody decides: adopt the snapshot, resolve the call in that session, and save what
//! [`LiveSession::export_snapshot`](crate::LiveSession::export_snapshot) returns.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backstitch_core::prompt::BoundPrompt;
use backstitch_core::session::{SessionError, Snapshot, SnapshotRestoreError};

use crate::agent::Agent;
use crate::driver::{Answered, Mission, ResumeOptions, Saver};
use crate::error::RuntimeError;
use crate::evaluate::{Begin, Evaluator};
use crate::runtime::{Runtime, SessionOptions};

/// A loop that answers requests.
pub trait MainLoop: Send + Sync {
    /// What is asked.
    type Request: Send + Sync;

    /// Where sessions live while they are driven.
    fn runtime(&self) -> &Runtime;

    /// What a session for a request lives with.
    fn create_session(&self, request: &Self::Request) -> SessionOptions;

    /// Who answers a request, and what it is asked.
    fn create_prompt(&self, request: &Self::Request) -> Task;

    /// Where snapshots are kept, if they are.
    fn checkpoints(&self) -> Option<Arc<dyn CheckpointHandler<Self::Request>>> {
        None
    }

    /// Answers a request: from a snapshot of an earlier attempt if there is one, from the beginning otherwise.
    fn execute(
        &self,
        request: Arc<Self::Request>,
    ) -> impl Future<Output = Result<Answered, MainLoopError>> + Send
    where
        Self::Request: 'static,
    {
        async move {
            let handler = self.checkpoints();
            let options = self.create_session(&request);
            let saved = match &handler {
                Some(handler) => handler.load(&request).map_err(MainLoopError::Checkpoint)?,
                None => None,
            };
            let saver = handler.clone().map(|handler| {
                let request = request.clone();
                Saver::new(move |snapshot| handler.save(&request, snapshot))
            });
            let runtime = self.runtime();
            let (agent, prompt, mission) = match self.create_prompt(&request) {
                Task::Mission(agent, mission) => (agent, None, mission),
                Task::Prompt(agent, prompt) => {
                    let mission = Mission::new(prompt.mission().to_vec());
                    (agent, Some(prompt), mission)
                }
            };
            let evaluator = Evaluator::of(*agent).saving(saver);
            let (session, begin) = match &saved {
                Some(snapshot) => {
                    let session = evaluator.adopt_session(runtime, snapshot, options).await?;
                    (session, Begin::Resume(ResumeOptions::default()))
                }
                None => (evaluator.create_session(runtime, options).await?, Begin::Mission(mission)),
            };
            let ended = evaluator.run(prompt.as_ref(), &session, begin, || {}).await;
            session.release().await?;
            let ended = ended?;
            let answered = ended.answer()?;
            if let Some(handler) = &handler {
                handler.clear(&request).map_err(MainLoopError::Checkpoint)?;
            }
            Ok(answered)
        }
    }
}

/// What a request makes of whoever answers it.
#[derive(Debug, Clone)]
pub enum Task {
    /// An agent as it is, asked this.
    Mission(Box<Agent>, Mission),
    /// An agent, driven by a prompt: its name and system message give way to the prompt's.
    Prompt(Box<Agent>, BoundPrompt),
}

impl From<(Agent, Mission)> for Task {
    fn from((agent, mission): (Agent, Mission)) -> Self {
        Self::Mission(Box::new(agent), mission)
    }
}

impl From<(Agent, BoundPrompt)> for Task {
    fn from((agent, prompt): (Agent, BoundPrompt)) -> Self {
        Self::Prompt(Box::new(agent), prompt)
    }
}

/// A request could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MainLoopError {
    /// The session could not be driven to an answer.
    #[error(transparent)]
    Runtime(RuntimeError),
    /// A snapshot could not be loaded, saved or cleared.
    #[error(transparent)]
    Checkpoint(CheckpointError),
}

impl From<RuntimeError> for MainLoopError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Checkpoint(error) => Self::Checkpoint(*error),
            other => Self::Runtime(other),
        }
    }
}

/// Where snapshots of requests are kept.
pub trait CheckpointHandler<R>: Send + Sync {
    /// The snapshot of an earlier attempt, if there is one.
    fn load(&self, request: &R) -> Result<Option<Snapshot>, CheckpointError>;

    /// Keeps a snapshot in place of the one before.
    fn save(&self, request: &R, snapshot: &Snapshot) -> Result<(), CheckpointError>;

    /// Forgets the snapshot of a request that was answered.
    fn clear(&self, request: &R) -> Result<(), CheckpointError>;
}

/// A snapshot could not be kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Where.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// The file is no snapshot: it is damaged, or of another program. Clear it to start again.
    #[error("{path} is no snapshot that can be restored")]
    Restore {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: SnapshotRestoreError,
    },
    /// The session cannot be written down.
    #[error(transparent)]
    Snapshot(#[from] SessionError),
    /// The name of a request cannot be the name of a file.
    #[error("{name:?} cannot be the name of a file")]
    Name {
        /// The name.
        name: String,
    },
}

/// Snapshots as files of a directory. A file is written whole or not at all: beside, synced, renamed.
pub struct FileCheckpointHandler<N> {
    directory: PathBuf,
    name: N,
}

impl<N> FileCheckpointHandler<N> {
    /// Keeps snapshots in a directory; `name` gives the name of a request, under which its file is found again.
    pub fn new(directory: impl Into<PathBuf>, name: N) -> Self {
        Self { directory: directory.into(), name }
    }

    fn path<R>(&self, request: &R) -> Result<PathBuf, CheckpointError>
    where
        N: Fn(&R) -> String,
    {
        let name = (self.name)(request);
        let legal = !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character));
        match legal {
            true => Ok(self.directory.join(format!("{name}.json"))),
            false => Err(CheckpointError::Name { name }),
        }
    }
}

impl<R, N> CheckpointHandler<R> for FileCheckpointHandler<N>
where
    N: Fn(&R) -> String + Send + Sync,
{
    fn load(&self, request: &R) -> Result<Option<Snapshot>, CheckpointError> {
        let path = self.path(request)?;
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let snapshot = Snapshot::from_json(&text);
                snapshot.map(Some).map_err(|source| CheckpointError::Restore { path, source })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CheckpointError::File { path, source }),
        }
    }

    fn save(&self, request: &R, snapshot: &Snapshot) -> Result<(), CheckpointError> {
        let (path, text) = (self.path(request)?, snapshot.to_json()?);
        write_whole(&self.directory, &path, text.as_bytes())
            .map_err(|source| CheckpointError::File { path, source })
    }

    fn clear(&self, request: &R) -> Result<(), CheckpointError> {
        let path = self.path(request)?;
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(CheckpointError::File { path, source })
            }
            _ => Ok(()),
        }
    }
}

fn write_whole(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let beside = path.with_extension("json.new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    File::open(directory)?.sync_all()
}
