//! Commits: the only way to change a live session. Records are appended, and then applied.
//!
//! Applying is folding: a copy of the view applies the records, and the session then shares the slices of
//! that view. The changes that reducers prepared are used to make the records and to notify observers, but
//! are not applied themselves.
//!
//! Commits without an action between them can be joined: a commit that may wait is *held* in a buffer, and
//! written to the store in one batch with the next one that may not. Held records are applied at once, so
//! that later ones build on them. Observers and telemetry are notified once they are durable. An append
//! completes even if its caller is dropped. If it turns out that it cannot be made durable, memory and store
//! may differ, and the session has to be opened again.

use std::sync::Arc;

use backstitch_core::crash_point;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    Batch, InnerMessage, LargeRecord, PauseReason, Position, QueueEntry, Record, RecordBody, SessionPaused,
    SessionRewound,
};
use backstitch_core::message::Message;
use backstitch_core::object::{Object, ObjectContent, ObjectId};
use backstitch_core::ports::{BoxFuture, StoreError, content_of, hydrate};
use backstitch_core::session::{PendingNotifications, PreparedCommit};
use backstitch_core::view::JournalView;
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument as _;

use super::build::{Commit, Durable};
use super::detached::DetachedTask;
use super::{LiveSession, LiveState};
use crate::error::{Result, RuntimeError};
use crate::spans;

/// Records that are applied, but not yet in the store.
#[derive(Default)]
pub(super) struct WriteBuffer {
    batch: Option<(Position, Batch)>,
    unobserved: Option<PendingNotifications>,
    /// Records for readers of the parent session, if there is one.
    forwarded: Vec<Arc<Record>>,
}

impl WriteBuffer {
    fn object(&self, id: ObjectId) -> Option<Object> {
        let (_, batch) = self.batch.as_ref()?;
        batch.objects().iter().find(|object| object.id() == id).cloned()
    }
}

debug_fields!(WriteBuffer { batch });

impl LiveSession {
    /// Appends records that change no slice.
    pub async fn record(&self, bodies: Vec<RecordBody>) -> Result<()> {
        self.record_when(bodies, Durable::Now).await
    }

    pub(crate) async fn record_when(&self, bodies: Vec<RecordBody>, when: Durable) -> Result<()> {
        self.commit(|commit| {
            commit.push_all(bodies).durable(when);
            Ok(())
        })
        .await
    }

    /// Appends records that may be lost if the machine ends now, and waits for no sync. While records are held, nothing is
    /// written, because held records must not depend on an append that may fail. Returns whether the records were written.
    pub(crate) async fn record_unsynced(&self, bodies: Vec<RecordBody>) -> Result<bool> {
        let mut state = self.state.clone().lock_owned().await;
        self.check_sound()?;
        if self.condition().is_unasked() || state.held.batch.is_some() || bodies.is_empty() {
            return Ok(false);
        }
        let mut commit = Commit::new(&state, self.clock.now());
        commit.push_all(bodies);
        let (mut batch, prepared, _) = commit.into_parts();
        let head = state.view.head();
        // Tried on a copy first: records that cannot be folded must not be written.
        let mut view = state.view.clone();
        view.expect(&state.session, &prepared)?;
        let records: Vec<_> = batch.records(head, batch.time()).collect();
        for record in &records {
            view.apply(record)?;
        }
        if self.channel.forwards() {
            state.held.forwarded.extend(records.into_iter().map(Arc::new));
        }
        batch.summarize(view.summary());
        let live = self.this();
        DetachedTask::plain(async move {
            live.condition().begin_append();
            let appended = live.store.append_unsynced(live.id, head, live.claim.fence, batch).await;
            if let Err(error) = appended {
                state.held.forwarded.clear();
                return Err(live.failed_append(error, false));
            }
            state.advance(view, prepared);
            live.condition().end_append();
            live.became_durable(state);
            Ok(true)
        })
        .await
    }

    /// Appends messages to an evaluation.
    pub async fn say(
        &self,
        evaluation: EvaluationId,
        turn: u64,
        messages: Vec<Message>,
    ) -> Result<Vec<Arc<InnerMessage>>> {
        self.commit(|commit| {
            messages.into_iter().map(|message| commit.say(evaluation, turn, message)).collect()
        })
        .await
    }

    /// Returns an object that records of the session refer to, even if it is not stored yet.
    pub async fn object(&self, id: ObjectId) -> Result<Option<Object>> {
        let held = self.state.lock().await.held.object(id);
        match held {
            Some(object) => Ok(Some(object)),
            None => Ok(self.store.object(id).await?),
        }
    }

    /// Fetches the content that is too large for a record of the session, even if it is not stored yet.
    pub(crate) async fn fetch_large(&self, record: &mut dyn LargeRecord) -> Result<()> {
        let Some(reference) = record.large_object() else { return Ok(()) };
        let found = self.content(reference.object).await?;
        Ok(hydrate(record, found)?)
    }

    /// Returns the content of an object that records of the session refer to. Redacted content is not an
    /// error.
    pub(crate) async fn content(&self, id: ObjectId) -> Result<Option<ObjectContent>> {
        match self.object(id).await {
            Err(RuntimeError::Store(error)) => Ok(content_of(Err(error))?),
            found => Ok(found?.as_ref().map(ObjectContent::from)),
        }
    }

    /// Holds the first batch of a session, and all later ones, until its first mission.
    pub(super) async fn hold_until_asked(&self, first: Batch) {
        self.condition().hold_until_asked();
        self.state.lock().await.held.batch = Some((Position::START, first));
    }

    /// Adds the session to the queue of its store, together with its first mission.
    pub(crate) async fn enqueue_with_mission(&self, entry: QueueEntry) {
        if let Some((_, first)) = &mut self.state.lock().await.held.batch {
            first.enqueue(entry);
        }
    }

    /// Makes all held records durable.
    pub async fn flush(&self) -> Result<()> {
        self.record(Vec::new()).await
    }

    /// Builds a commit on the current state, appends it and applies it.
    pub(crate) fn commit<R>(
        &self,
        build: impl FnOnce(&mut Commit<'_>) -> Result<R>,
    ) -> impl Future<Output = Result<R>> {
        self.try_commit(build)
    }

    /// Like [`commit`](Self::commit), with an error type of the caller.
    pub(crate) async fn try_commit<R, E: From<RuntimeError>>(
        &self,
        build: impl FnOnce(&mut Commit<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let state = self.sound_state().await?;
        let mut commit = Commit::new(&state, self.clock.now());
        let result = build(&mut commit)?;
        let parts = commit.into_parts();
        self.append_boxed(state, parts).await?;
        Ok(result)
    }

    async fn sound_state(&self) -> Result<OwnedMutexGuard<LiveState>> {
        let state = self.state.clone().lock_owned().await;
        self.check_sound()?;
        Ok(state)
    }

    /// Compiled once, for all kinds of commits.
    fn append_boxed(
        &self,
        state: OwnedMutexGuard<LiveState>,
        (batch, prepared, when): (Batch, PreparedCommit, Durable),
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.append(state, batch, prepared, when))
    }

    async fn append(
        &self,
        mut state: OwnedMutexGuard<LiveState>,
        batch: Batch,
        prepared: PreparedCommit,
        when: Durable,
    ) -> Result<()> {
        let when = if self.condition().is_unasked() { Durable::WithNext } else { when };
        let head = state.view.head();
        // Records that join a batch are stored with its time.
        let at = state.held.batch.as_ref().map_or(batch.time(), |(_, held)| held.time());
        // Tried on a copy first: records that cannot be folded must not be written.
        let mut view = state.view.clone();
        view.expect(&state.session, &prepared)?;
        let records: Vec<_> = batch.records(head, at).collect();
        for record in &records {
            view.apply(record)?;
        }
        if self.channel.forwards() {
            state.held.forwarded.extend(records.into_iter().map(Arc::new));
        }
        let (start, mut whole) = match state.held.batch.take() {
            Some((start, mut held)) => {
                held.extend(batch);
                (start, held)
            }
            None if batch.is_empty() => return Ok(()),
            None => (head, batch),
        };
        if when == Durable::WithNext {
            state.held.batch = Some((start, whole));
            state.advance(view, prepared);
            return Ok(());
        }
        whole.summarize(view.summary());
        let live = self.this();
        // The caller may be dropped. Then this still completes, and the next commit waits for the state.
        DetachedTask::plain(async move {
            crash_point!("append.before");
            let ahead = start != head;
            live.condition().begin_append();
            let span = spans::append(live.id, whole.len());
            let appended = live.store.append(live.id, start, live.claim.fence, whole).instrument(span).await;
            appended.map_err(|error| live.failed_append(error, ahead))?;
            crash_point!("append.after");
            state.advance(view, prepared);
            live.condition().end_append();
            live.became_durable(state);
            Ok(())
        })
        .await
    }

    /// Appends records, the first of which is the rewind, and loads the state at its cut.
    pub(crate) async fn commit_rewind(
        &self,
        prefix: &JournalView,
        rewound: SessionRewound,
        more: Vec<RecordBody>,
        objects: Vec<backstitch_core::object::Object>,
    ) -> Result<Position> {
        self.flush().await?;
        let mut state = self.state.clone().lock_owned().await;
        self.check_sound()?;
        let head = state.view.head();
        let mut batch = Batch::at(self.clock.now()).with(rewound);
        for body in more {
            batch.push(body);
        }
        for object in objects {
            batch.add_object(object);
        }
        // Tried on a copy first: records that cannot be folded must not be written.
        let mut view = state.view.clone();
        for record in batch.records(head, batch.time()) {
            view.rewind(&record, prefix)?;
        }
        batch.summarize(view.summary());
        let (live, to) = (self.this(), prefix.head());
        DetachedTask::plain(async move {
            live.condition().begin_append();
            let appended = live.store.append(live.id, head, live.claim.fence, batch).await;
            appended.map_err(|error| live.failed_append(error, false))?;
            live.snapshots.note_rewind(to);
            live.condition().mark_for_restore();
            live.condition().end_append();
            view.load_into(&mut state.session);
            state.view = view;
            live.became_durable(state);
            Ok(head)
        })
        .await
    }

    /// Marks the session as poisoned, so that nothing more runs. That is recorded if it still can be.
    pub(crate) async fn poison(&self, reason: String) -> RuntimeError {
        let paused = SessionPaused::new(PauseReason::Poisoned).with_detail(reason.clone());
        // Also takes effect if the caller is dropped.
        let poisoned = PoisonGuard { live: self, reason: reason.clone() };
        if let Err(error) = self.record(vec![paused.into()]).await {
            tracing::error!(session = %self.id, %error, "the session is poisoned, and that could not be recorded");
        }
        drop(poisoned);
        RuntimeError::Poisoned { session: self.id, reason }
    }

    /// Handles files that could not be captured or restored. If only the store did not answer, they are as an interrupted call leaves
    /// them, and the process that opens the session next recovers them. Otherwise the session is poisoned.
    pub(crate) async fn fail_files(&self, error: RuntimeError, reason: String) -> RuntimeError {
        if !error.is_outage() {
            return self.poison(reason).await;
        }
        self.condition().cut_off();
        error
    }

    fn became_durable(&self, mut state: OwnedMutexGuard<LiveState>) {
        self.channel.set_durable(state.view.head());
        self.snapshots.start_if_due(&state.view);
        if let Some(unobserved) = state.held.unobserved.take() {
            state.session.notify_observers(&unobserved);
        }
        self.channel.publish_to_parent(std::mem::take(&mut state.held.forwarded));
    }

    fn failed_append(&self, error: StoreError, ahead: bool) -> RuntimeError {
        // A refused batch is not applied, unless parts of it were held before. One whose outcome is unknown may be stored.
        match ahead || matches!(error, StoreError::OutcomeUnknown { .. }) {
            true => self.condition().fail_append(),
            false => self.condition().end_append(),
        }
        match error {
            StoreError::Fenced { .. } | StoreError::Conflict { .. } => {
                RuntimeError::ClaimLost { session: self.id, source: error }
            }
            other => other.into(),
        }
    }
}

/// Poisons a session when it is dropped.
struct PoisonGuard<'a> {
    live: &'a LiveSession,
    reason: String,
}

impl Drop for PoisonGuard<'_> {
    fn drop(&mut self) {
        self.live.condition().poison(std::mem::take(&mut self.reason));
    }
}

impl LiveState {
    /// Loads the committed state.
    fn advance(&mut self, view: JournalView, prepared: PreparedCommit) {
        let unobserved = view.advance(&self.view, &mut self.session, prepared);
        self.view = view;
        self.held.unobserved = match (self.held.unobserved.take(), unobserved) {
            (Some(earlier), Some(later)) => Some(earlier.and(later)),
            (earlier, later) => earlier.or(later),
        };
    }
}
