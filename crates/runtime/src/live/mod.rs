//! A session that this process drives.
//!
//! A [`LiveSession`] holds the claim to a session, its view and its execution state, and is the only one who writes its
//! journal. Every write goes through [`LiveSession::commit`]: records are appended first, and only what was appended is
//! applied, so memory never runs ahead of the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use backstitch_core::execution::{ExecutionState, Resources, WorkspaceResource};
use backstitch_core::extra::Extra;
use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{
    Batch, InnerMessage, PauseReason, Paused, Position, RecordBody, SessionCreated,
};
use backstitch_core::message::Message;
use backstitch_core::ports::{Claim, Lease, Owner, Store, StoreError, Workspace};
use backstitch_core::rng::Seed;
use backstitch_core::session::{Prepared, Session};
use backstitch_core::time::{Clock, Timestamp};
use backstitch_core::view::JournalView;
use tokio::sync::{Mutex, MutexGuard, RwLock};

use crate::error::RuntimeError;

/// How many records are read at a time.
const READ_LIMIT: usize = 1_000;

/// What a session lives with, besides its journal.
pub struct Surroundings {
    /// Where the journal is kept.
    pub store: Arc<dyn Store>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who claims the session.
    pub owner: Owner,
    /// What tools use.
    pub resources: Resources,
    /// The files, if there are any.
    pub workspace: Option<Arc<dyn Workspace>>,
}

/// A session that this process drives.
pub struct LiveSession {
    id: SessionId,
    store: Arc<dyn Store>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    workspace: Option<Arc<dyn Workspace>>,
    /// Granted in the order in which it is asked for, so that of two calls of one turn the later sees the earlier's files.
    pub(crate) files: Arc<RwLock<()>>,
    state: Mutex<LiveState>,
    deadlines: std::sync::Mutex<HashMap<EvaluationId, Timestamp>>,
    poisoned: AtomicBool,
}

/// What a driven session holds in memory.
#[derive(Debug)]
pub struct LiveState {
    /// Everything that follows from the journal.
    pub view: JournalView,
    /// Everything that can change.
    pub execution: ExecutionState,
}

/// What is appended and applied as one.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) batch: Batch,
    pub(crate) prepared: Option<Prepared>,
}

impl LiveSession {
    /// Creates a session. `set_up` registers reducers, policies and observers.
    pub async fn create(
        surroundings: Surroundings,
        created: SessionCreated,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>, RuntimeError> {
        let (store, id) = (surroundings.store.clone(), created.session_id);
        let lease =
            store.claim(id, surroundings.owner.clone(), Claim::IfFree).await.map_err(RuntimeError::Store)?;
        let batch = Batch::at(surroundings.clock.now()).with(created);
        let appended = store.append(id, Position::START, lease.fence, batch.clone()).await;
        appended.map_err(RuntimeError::Store)?;
        let (records, _) = batch.into_records(Position::START);
        let view = JournalView::fold(&records)?;
        Ok(Self::live(surroundings, lease, view, set_up))
    }

    /// Opens a session that exists.
    pub async fn open(
        surroundings: Surroundings,
        id: SessionId,
        claim: Claim,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>, RuntimeError> {
        let store = surroundings.store.clone();
        let lease = store.claim(id, surroundings.owner.clone(), claim).await.map_err(RuntimeError::Store)?;
        let mut records = Vec::new();
        loop {
            let from = Position::new(records.len() as u64);
            let more = store.read(id, from, READ_LIMIT).await.map_err(RuntimeError::Store)?;
            if more.is_empty() {
                break;
            }
            records.extend(more);
        }
        let view = JournalView::fold(&records)?;
        Ok(Self::live(surroundings, lease, view, set_up))
    }

    fn live(
        surroundings: Surroundings,
        lease: Lease,
        view: JournalView,
        set_up: impl FnOnce(&mut Session),
    ) -> Arc<Self> {
        let mut session = view.session(surroundings.clock.clone());
        set_up(&mut session);
        let poisoned = view.pause().is_some_and(|pause| pause.reason == PauseReason::Poisoned);
        let resources = match &surroundings.workspace {
            Some(workspace) => {
                surroundings.resources.including(Arc::new(WorkspaceResource::new(workspace.clone())))
            }
            None => surroundings.resources,
        };
        let execution = ExecutionState::new(session, resources);
        Arc::new(Self {
            id: view.session_id(),
            store: surroundings.store,
            lease,
            clock: surroundings.clock,
            workspace: surroundings.workspace,
            files: Arc::default(),
            state: Mutex::new(LiveState { view, execution }),
            deadlines: std::sync::Mutex::default(),
            poisoned: AtomicBool::new(poisoned),
        })
    }

    /// The session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Where the time comes from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Where the journal is kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The files, if there are any.
    pub fn workspace(&self) -> Option<&Arc<dyn Workspace>> {
        self.workspace.as_ref()
    }

    /// What is in memory, for reading. Nothing is committed as long as this is held.
    pub async fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().await
    }

    /// The seed of the session's chance.
    pub async fn seed(&self) -> Seed {
        self.state().await.view.created().seed
    }

    /// When an evaluation has to be done; none when it has all the time.
    pub fn deadline(&self, evaluation: EvaluationId) -> Option<Timestamp> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).get(&evaluation).copied()
    }

    /// Gives an evaluation a deadline, in place of the one that it had.
    pub fn set_deadline(&self, evaluation: EvaluationId, deadline: Timestamp) {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).insert(evaluation, deadline);
    }

    /// Appends records that change no slice.
    pub async fn record(&self, bodies: Vec<RecordBody>) -> Result<(), RuntimeError> {
        self.commit(|_| {
            let mut batch = Batch::at(self.clock.now());
            bodies.into_iter().for_each(|body| {
                batch.push(body);
            });
            Ok((Commit { batch, prepared: None }, ()))
        })
        .await
    }

    /// Says something in an evaluation: each message at the next place.
    pub async fn say(
        &self,
        evaluation: EvaluationId,
        turn: u64,
        messages: Vec<Message>,
    ) -> Result<(), RuntimeError> {
        self.commit(|state| {
            let session = &state.execution.session;
            let mut prepared = session.prepare(&session.draft())?;
            for (offset, message) in messages.into_iter().enumerate() {
                let inner = state.inner_message(evaluation, turn, message, offset as u64)?;
                session.prepare_more(&mut prepared, inner)?;
            }
            let mut batch = Batch::at(self.clock.now());
            push_changes(&mut batch, &prepared)?;
            Ok((Commit { batch, prepared: Some(prepared) }, ()))
        })
        .await
    }

    /// Appends what `build` makes of the state as it is, and applies it once it is appended.
    pub(crate) async fn commit<R>(
        &self,
        build: impl FnOnce(&mut LiveState) -> Result<(Commit, R), RuntimeError>,
    ) -> Result<R, RuntimeError> {
        let mut state = self.state.lock().await;
        self.check_sound()?;
        let (commit, result) = build(&mut state)?;
        if commit.batch.is_empty() {
            return Ok(result);
        }
        let head = state.view.head();
        let appended = self.store.append(self.id, head, self.lease.fence, commit.batch.clone()).await;
        appended.map_err(|error| self.lost_or(error))?;
        let (records, _) = commit.batch.into_records(head);
        for record in &records {
            state.view.apply(record)?;
        }
        if let Some(prepared) = commit.prepared {
            state.execution.session.apply(prepared)?;
        }
        Ok(result)
    }

    /// Stops everything: the session cannot be trusted any more. That is recorded where it still can be.
    pub(crate) async fn poison(&self, reason: String) -> RuntimeError {
        let paused = Paused {
            reason: PauseReason::Poisoned,
            call_id: None,
            detail: Some(reason.clone()),
            extra: Extra::default(),
        };
        if let Err(error) = self.record(vec![paused.into()]).await {
            tracing::error!(session = %self.id, %error, "the session is poisoned, and that could not be recorded");
        }
        self.poisoned.store(true, Ordering::SeqCst);
        RuntimeError::Poisoned { session: self.id, reason }
    }

    /// Gives the session back.
    pub async fn release(&self) -> Result<(), RuntimeError> {
        self.state().await.execution.resources.close();
        self.store.release(self.lease.clone()).await.map_err(RuntimeError::Store)
    }

    fn check_sound(&self) -> Result<(), RuntimeError> {
        match self.poisoned.load(Ordering::SeqCst) {
            true => {
                Err(RuntimeError::Poisoned { session: self.id, reason: "it was poisoned earlier".into() })
            }
            false => Ok(()),
        }
    }

    fn lost_or(&self, error: StoreError) -> RuntimeError {
        match error {
            StoreError::Fenced { .. } | StoreError::Conflict { .. } => {
                RuntimeError::LeaseLost { session: self.id, source: error }
            }
            other => RuntimeError::Store(other),
        }
    }
}

impl LiveState {
    /// A message at the next place of its evaluation, `offset` after what is recorded.
    pub(crate) fn inner_message(
        &self,
        evaluation: EvaluationId,
        turn: u64,
        message: Message,
        offset: u64,
    ) -> Result<InnerMessage, RuntimeError> {
        let known = self.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let session = &self.execution.session;
        Ok(InnerMessage {
            message_id: session.ids().next(),
            evaluation_id: evaluation,
            sequence: known.messages + offset,
            turn,
            prompt_ns: known.prompt_ns.clone(),
            prompt_key: known.prompt_key.clone(),
            created_at: self.execution.clock.now(),
            message,
            provider: None,
            extra: Extra::default(),
        })
    }
}

/// The records that journal what was prepared.
pub(crate) fn push_changes(batch: &mut Batch, prepared: &Prepared) -> Result<(), RuntimeError> {
    for change in prepared.changes() {
        for body in RecordBody::of_change(change)? {
            batch.push(body);
        }
    }
    Ok(())
}
