//! Forks: sessions that continue from a point of another session.
//!
//! The parent's records before the point also belong to the fork. Nothing is copied, and the parent is not
//! changed. The fork has its own id, its own seed, and its own files, in a directory other than the parent's.

use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, CallChanges, ChangeCounts, Origin, SessionCreated};
use backstitch_core::ports::{ChangeKind, Store, Workspace};
use backstitch_core::rng::Seed;
use backstitch_core::session::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::effects::DiscardedEffect;
use super::locate::locate;
use super::repeats::{effects_after, pauses_for};
use super::rewind::check_kept;
use crate::adapters::DirectoryError;
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, SessionEnvironment, blocking, load_view};
use crate::point::PointSpec;
use crate::report::Version;

/// The arguments of a fork.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The session to fork.
    pub parent: SessionId,
    /// The point to fork at.
    pub at: PointSpec,
    /// The seed of the fork.
    pub seed: Seed,
    /// The definition of the agent that drives the fork. `None` means that of its parent.
    pub definition: Option<Value>,
}

/// The result of a fork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ForkReport {
    /// The version of this form.
    pub v: Version,
    /// The new session.
    pub session: SessionId,
    /// The session that it is a fork of.
    pub fork_of: SessionId,
    /// The directory of its files, where they are on a disk.
    pub workspace: Option<String>,
    /// The calls of the parent with an effect outside that lie after the point. A call of the fork that would repeat
    /// one waits for a decision, or has the same idempotency key.
    pub effects: Vec<DiscardedEffect>,
}

impl LiveSession {
    /// Forks a session into a new one with this id. The parent need not be claimed. The workspace of the environment has
    /// to be the fork's own.
    pub async fn fork(
        environment: SessionEnvironment,
        fork: Fork,
        id: SessionId,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let store = environment.store.clone();
        let view = load_view(&*store, fork.parent, None).await?;
        let place = locate(&*store, &view, &fork.at).await?;
        let prefix = load_view(&*store, place.session, Some(place.cut)).await?;
        if prefix.files().is_some() && environment.workspace.is_none() {
            return Err(RuntimeError::NoWorkspace { session: fork.parent });
        }
        check_kept(&*store, prefix.files()).await?;
        let pauses = pauses_for(&*store, &prefix, place.session).await?;
        let agent = fork.definition.unwrap_or_else(|| view.created().agent.clone());
        let directory = environment.workspace.as_ref().and_then(|workspace| workspace.host_directory());
        let directory = directory.map(|directory| directory.to_string_lossy().into_owned());
        let created = SessionCreated {
            directory: directory.filter(|directory| !names_directory(&agent, directory)),
            origin: Origin::Fork { session: place.session, position: place.cut },
            parent_head: Some(if place.session == fork.parent {
                view.head()
            } else {
                store.head(place.session).await?
            }),
            agent,
            tags: view.tags().clone(),
            ..SessionCreated::new(id, environment.clock.now(), fork.seed)
        };
        crash_point!("fork.before");
        let first = |at| {
            let mut batch = Batch::at(at).with(created);
            for pause in pauses {
                batch.push(pause);
            }
            batch
        };
        let live = Self::begin(environment, id, Some(&prefix), first, set_up).await?;
        crash_point!("fork.created");
        live.settle_files().await?;
        crash_point!("fork.restored");
        Ok(live)
    }
}

/// Fails if the directory of a fork holds files that the files of its point would overwrite or delete. They are not the session's.
pub(crate) async fn check_room(
    store: &dyn Store,
    parent: SessionId,
    at: &PointSpec,
    workspace: Arc<dyn Workspace>,
) -> Result<()> {
    let Some(directory) = workspace.host_directory() else { return Ok(()) };
    let view = load_view(store, parent, None).await?;
    let place = locate(store, &view, at).await?;
    let Some(wanted) = load_view(store, place.session, Some(place.cut)).await?.files() else {
        return Ok(());
    };
    check_kept(store, Some(wanted)).await?;
    let files = blocking(move || {
        let found = workspace.rescue(wanted.coverage, u64::MAX)?;
        let changes = workspace.changes(wanted.root, found.captured.root, &found.captured.objects)?;
        // What cannot be captured would be lost.
        let mut others: Vec<String> = found.left_out.into_iter().map(|left| left.path).collect();
        match changes {
            // A file that is not there yet, or has another mode, is not an obstacle.
            CallChanges::Paths(paths) => others.extend(paths.into_iter().filter_map(|changed| {
                matches!(changed.change, ChangeKind::Added | ChangeKind::Modified).then_some(changed.path)
            })),
            CallChanges::Counts(ChangeCounts { added: 0, modified: 0, .. }) => {}
            CallChanges::Counts(counts) => others.push(format!("{} files", counts.added + counts.modified)),
        }
        Ok(others)
    });
    match files.await? {
        files if files.is_empty() => Ok(()),
        files => Err(DirectoryError::OtherFiles { directory, session: parent, files }.into()),
    }
}

/// Whether a definition of an agent names a directory. Those of agents that were built in Rust name none.
fn names_directory(agent: &Value, directory: &str) -> bool {
    let workspace = &agent["workspace"];
    [workspace, &workspace["path"]].into_iter().any(|named| named.as_str() == Some(directory))
}

/// Lists the calls with an effect outside that lie after a point of a session: those that a rewind to it or a fork at
/// it leaves behind.
pub async fn discarded_effects(
    store: &dyn Store,
    session: SessionId,
    point: &PointSpec,
) -> Result<Vec<DiscardedEffect>> {
    let view = load_view(store, session, None).await?;
    let place = locate(store, &view, point).await?;
    effects_after(store, &view, (place.session, place.cut)).await
}
