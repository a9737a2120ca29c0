//! Live sessions: sessions that this process drives.
//!
//! A [`LiveSession`] holds the claim to a session, its view and its execution state, and is the only writer
//! of its journal. Every write goes through [`commit`](self::commit): records are appended first, and only
//! appended records are applied, so memory never gets ahead of the store unnoticed. Callers receive copies
//! for reading.
//!
//! Every future of a session may be dropped at any await point. An append in progress completes (`detached`).
//! A call is stopped, rolled back and recorded as ended in the background, and the next user of the session
//! waits for that first.

mod build;
mod call_times;
mod checkout;
mod checkpoints;
mod children;
mod commit;
mod condition;
mod detached;
mod export;
mod files;
mod interrupted;
mod lease;
mod load;
mod moved;
mod others;
mod repositories;
mod resources;
mod restored;
mod signals;
mod snapshots;
mod unprotected;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError, Weak};

use backstitch_core::crash_point;
use backstitch_core::execution::{CompositeSnapshot, ExecutionStateError, Resources, SnapshotMetadata};
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{
    Batch, EvaluationOutcome, PauseReason, Point, Position, SessionCreated, SessionPaused, SessionStopped,
    StopReason,
};
use backstitch_core::ports::{ClaimMode, Owner, SessionClaim, Store, Workspace};
use backstitch_core::rng::Seed;
use backstitch_core::session::Session;
use backstitch_core::time::{Clock, Timestamp};
use backstitch_core::view::{Call, DriverPresence, JournalView, SessionStatus};
use tokio::sync::{Mutex, OnceCell, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use build::{Commit, Durable};
pub(crate) use call_times::WatchedCall;
pub use children::latest_files;
pub(crate) use children::{charge_for, depth, files_to_continue, has_files, is_withdrawn, still_waits};
pub(crate) use detached::DetachedTask;
pub(crate) use files::{RESCUE_BYTES, blocking, changes_between, recorded};
pub(crate) use interrupted::{DoubtfulFiles, InterruptedFiles, left_to_others, reversal_since};
pub use load::{SnapshotState, check_snapshot, fold_view, load_view, read_records};
pub(crate) use load::{callers_of, creation_of, find_view};
pub(crate) use others::OtherCalls;
pub use repositories::RepositoriesChanged;
pub(crate) use resources::CapturedResource;
pub use restored::{FilesRestored, KeptFiles, RestoredChange, RestoredEvent, RestoredFile, RestoredFiles};
pub(crate) use signals::open_waits;
pub use snapshots::SNAPSHOT_INTERVAL;
pub(crate) use snapshots::Saver;
pub use unprotected::SandboxGap;

use self::condition::LiveCondition;
use self::load::LoadedView;
use self::snapshots::SnapshotWriter;
use crate::error::{Result, RuntimeError};
use crate::events::{Channel, EventStream};
use crate::process::RuntimeWatch;

/// The environment of a session.
pub struct SessionEnvironment {
    /// Holds the journal.
    pub store: Arc<dyn Store>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// The process that claims the session.
    pub owner: Owner,
    /// Resources of tools.
    pub resources: Resources,
    /// The workspace, if there is one.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Minimum number of records between two snapshots of the session, such as [`SNAPSHOT_INTERVAL`].
    pub snapshot_interval: u64,
}

/// A session that this process drives.
pub struct LiveSession {
    /// A reference to itself, for work that outlives its caller.
    this: Weak<Self>,
    id: SessionId,
    store: Arc<dyn Store>,
    claim: SessionClaim,
    /// Whether the caller holds the claim, and releases it after the session.
    is_lent: bool,
    /// How the session was claimed. Child sessions are claimed in the same way.
    pub(crate) mode: ClaimMode,
    clock: Arc<dyn Clock>,
    workspace: Option<Arc<dyn Workspace>>,
    pub(crate) resources: Resources,
    /// The lock of files and snapshotable resources. It is fair, so that of two calls of one turn the later
    /// sees the changes of the earlier.
    pub(crate) files: Arc<RwLock<()>>,
    /// Calls that have not ended, and whose callers were dropped.
    abandoned: TaskTracker,
    state: Arc<Mutex<LiveState>>,
    snapshots: SnapshotWriter,
    deadlines: std::sync::Mutex<HashMap<EvaluationId, Timestamp>>,
    /// Everything that is not in the journal and can change, see [`condition`](self::condition).
    condition: std::sync::Mutex<LiveCondition>,
    /// The starts of discarded calls, each with the call of this process that may reuse its effect. They matter until
    /// records say the same, so that two equal calls of one turn are not given one effect.
    pub(crate) claimed_effects: Mutex<Vec<(Point, CallId)>>,
    /// Held while signals are moved from the inbox into the session, or from there to a call.
    receiving: Mutex<()>,
    /// The outermost session that this one is a sub-agent of, and whether any of those went back.
    pub(crate) outer_root: OnceCell<(SessionId, bool)>,
    /// Files that rewinds leave as they are.
    pub(crate) kept_files: OnceLock<KeptFiles>,
    pub(crate) channel: Arc<Channel>,
    /// Cancelled once the lease of the claim may be over.
    lease_over: CancellationToken,
    /// Records when this process ends, once a call may have written files. `None` in it if that cannot be recorded.
    watch: OnceCell<Option<RuntimeWatch>>,
}

/// The state of a live session in memory.
#[derive(Debug)]
pub struct LiveState {
    /// State that follows from the journal.
    pub view: JournalView,
    /// The slices of the view, with their reducers, policies and observers.
    pub session: Session,
    /// Resources that tools use.
    pub resources: Resources,
    held: commit::WriteBuffer,
}

impl LiveState {
    /// Captures the session and all snapshotable resources. A runtime [adopts](crate::Runtime::adopt_state) the
    /// snapshot as a new session.
    pub fn snapshot(&self, metadata: SnapshotMetadata) -> Result<CompositeSnapshot, ExecutionStateError> {
        CompositeSnapshot::capture(&self.session, &self.resources, metadata)
    }

    /// Returns a copy for reading.
    fn copy(&self) -> Self {
        let (view, mut session) = (self.view.clone(), self.session.clone());
        // Snapshots of the copy include the provenance from the journal.
        view.attach_to(&mut session);
        Self { view, session, resources: self.resources.clone(), held: commit::WriteBuffer::default() }
    }
}

/// The state of a live session at one moment, for reading. It is a cheap copy, since all large parts are
/// shared. So it holds no lock, and a live session can only be changed through its journal.
#[derive(Debug)]
pub struct StateView(Box<LiveState>);

impl Deref for StateView {
    type Target = LiveState;

    fn deref(&self) -> &LiveState {
        &self.0
    }
}

impl LiveSession {
    /// Creates a session. `set_up` registers reducers, policies and observers.
    pub async fn create(
        environment: SessionEnvironment,
        created: SessionCreated,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let id = created.session_id;
        Self::begin(environment, id, None, |at| Batch::at(at).with(created), set_up).await
    }

    /// Creates a session that is stored together with its first mission.
    pub(crate) async fn create_with_mission(
        environment: SessionEnvironment,
        created: SessionCreated,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let (id, owner) = (created.session_id, environment.owner.clone());
        // A resource that cannot be captured could not be restored, so no session begins with it.
        let resources = CapturedResource::all(&environment.resources)?;
        let claim = environment.store.claim(id, owner, ClaimMode::IfFree).await?;
        let now = environment.clock.now();
        let mut batch = Batch::at(now).with(created);
        resources::push_first(&mut batch, now, &resources);
        let records: Vec<_> = batch.records(Position::START, batch.time()).collect();
        let store = environment.store.clone();
        match JournalView::fold(&records) {
            Ok(view) => {
                let loaded = LoadedView { view, snapshot: None };
                let live = Self::live(environment, (claim, false), ClaimMode::IfFree, loaded, set_up);
                live.channel.set_durable(Position::START);
                live.hold_until_asked(batch).await;
                Ok(live)
            }
            Err(error) => {
                release_claim(&*store, claim).await;
                Err(error.into())
            }
        }
    }

    /// Creates a session with this first batch. For a fork, `base` is the parent's view at the point of the fork;
    /// the parent has to be in the same store.
    pub(crate) async fn begin(
        environment: SessionEnvironment,
        id: SessionId,
        base: Option<&JournalView>,
        first: impl FnOnce(Timestamp) -> Batch,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let store = environment.store.clone();
        let owner = environment.owner.clone();
        // A resource that cannot be captured could not be restored, so no session begins with it.
        let resources = CapturedResource::all(&environment.resources)?;
        let claim = store.claim(id, owner, ClaimMode::IfFree).await?;
        let claimed = ClaimGuard::new(&store, &claim);
        crash_point!("session.claimed");
        let now = environment.clock.now();
        let mut batch = first(now);
        resources::push_first(&mut batch, now, &resources);
        let records: Vec<_> = batch.records(Position::START, now).collect();
        let appended = match JournalView::fold_each(base, &records, |_| {}) {
            Ok(view) => {
                batch.summarize(view.summary());
                store.append(id, Position::START, claim.fence, batch).await.map_err(RuntimeError::from)
            }
            // What cannot be folded must not be written.
            Err(error) => Err(error.into()),
        };
        crash_point!("session.created");
        let view = match appended {
            Ok(_) => load::load(&*store, id, None).await,
            Err(error) => Err(error),
        };
        Self::open_claimed(environment, (claim, ClaimMode::IfFree, claimed), view, set_up).await
    }

    /// Opens an existing session.
    pub async fn open(
        environment: SessionEnvironment,
        id: SessionId,
        mode: ClaimMode,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let store = environment.store.clone();
        // Checked first, so that a session that does not exist is not claimed.
        store.head(id).await.map_err(load::not_found)?;
        let claim = store.claim(id, environment.owner.clone(), mode).await?;
        let claimed = ClaimGuard::new(&store, &claim);
        let view = load::load(&*store, id, None).await;
        Self::open_claimed(environment, (claim, mode, claimed), view, set_up).await
    }

    /// Opens an existing session with a claim that the caller holds, and releases after the session.
    pub(crate) async fn open_taken(
        environment: SessionEnvironment,
        claim: SessionClaim,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let view = load::load(&*environment.store, claim.session, None).await?;
        Self::live(environment, (claim, true), ClaimMode::IfFree, view, set_up).with_resources().await
    }

    /// Opens a session that was claimed. If it could not be loaded, releases it.
    async fn open_claimed(
        environment: SessionEnvironment,
        (claim, mode, claimed): (SessionClaim, ClaimMode, ClaimGuard),
        view: Result<LoadedView>,
        set_up: impl FnOnce(&mut Session),
    ) -> Result<Arc<Self>> {
        let live = match view {
            Ok(view) => Self::live(environment, (claim, false), mode, view, set_up).with_resources().await,
            Err(error) => {
                claimed.disarm();
                release_claim(&*environment.store, claim).await;
                return Err(error);
            }
        };
        claimed.disarm();
        live
    }

    fn live(
        environment: SessionEnvironment,
        (claim, is_lent): (SessionClaim, bool),
        mode: ClaimMode,
        LoadedView { view, snapshot }: LoadedView,
        set_up: impl FnOnce(&mut Session),
    ) -> Arc<Self> {
        let snapshots =
            SnapshotWriter::new(&environment.store, &claim, environment.snapshot_interval, snapshot);
        let mut session = view.session(environment.clock.clone());
        set_up(&mut session);
        let mut condition = LiveCondition::default();
        if let Some(pause) = view.pause().filter(|pause| pause.reason == PauseReason::Poisoned) {
            condition.poison(pause.detail.clone().unwrap_or_default());
        }
        if view.owed_files().is_some() && environment.workspace.is_some() {
            condition.mark_for_restore();
        }
        let resources = environment.resources.with_workspace(environment.workspace.clone());
        let id = view.session_id();
        let channel = Arc::new(Channel::new(id, view.head()));
        let (held, shared) = (commit::WriteBuffer::default(), resources.clone());
        let state = LiveState { view, session, resources: shared, held };
        let abandoned = TaskTracker::new();
        abandoned.close();
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            id,
            store: environment.store,
            claim,
            is_lent,
            mode,
            clock: environment.clock,
            abandoned,
            workspace: environment.workspace,
            resources,
            files: Arc::default(),
            condition: std::sync::Mutex::new(condition),
            claimed_effects: Mutex::default(),
            receiving: Mutex::default(),
            outer_root: OnceCell::new(),
            kept_files: OnceLock::new(),
            channel,
            lease_over: CancellationToken::new(),
            watch: OnceCell::new(),
            state: Arc::new(Mutex::new(state)),
            snapshots,
            deadlines: std::sync::Mutex::default(),
        })
    }

    /// Returns the id of the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the source of time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the store of the journal.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the claim to the session.
    pub fn claim(&self) -> &SessionClaim {
        &self.claim
    }

    /// Returns the workspace, if there is one.
    pub fn workspace(&self) -> Option<&Arc<dyn Workspace>> {
        self.workspace.as_ref()
    }

    /// Locks the condition of the session, for one question or one transition.
    pub(crate) fn condition(&self) -> MutexGuard<'_, LiveCondition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the session can no longer be driven.
    pub(crate) fn check_sound(&self) -> Result<()> {
        self.condition().check_sound(self.id)
    }

    /// Returns a copy of the current state for reading. Later commits do not change it.
    pub async fn state(&self) -> StateView {
        StateView(Box::new(self.state.lock().await.copy()))
    }

    /// Returns the view of the journal, with the records that are not durable yet.
    pub(crate) async fn view(&self) -> Box<JournalView> {
        Box::new(self.state.lock().await.view.clone())
    }

    /// Returns the pause that is about a call.
    pub(crate) async fn pause_of(&self, call: CallId) -> Option<Arc<SessionPaused>> {
        self.view().await.pauses().find(|pause| pause.call_id == Some(call)).cloned()
    }

    /// Whether the latest evaluation is open, or was superseded and has to be started over.
    pub(crate) async fn has_open_evaluation(&self) -> bool {
        let latest = self.view().await.latest_evaluation().map(|latest| latest.outcome());
        matches!(latest, Some(None | Some(EvaluationOutcome::Superseded)))
    }

    /// Returns the calls without a result that `accepts` accepts.
    pub(crate) async fn pending_calls(&self, accepts: impl Fn(&Call) -> bool) -> Vec<Call> {
        self.view().await.pending_calls().filter(|call| accepts(call)).cloned().collect()
    }

    fn this(&self) -> Arc<Self> {
        self.this.upgrade().expect("invariant: a live session is made inside of an Arc")
    }

    /// Waits until dropped calls have ended. If a rewind was dropped, also restores files and resources to
    /// the state in the journal. Returns at once if there is neither.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.abandoned.wait().await;
        if self.condition().needs_restore() {
            self.settle_files().await?;
        }
        Ok(())
    }

    /// Returns the events of the session from now on, while this process drives it.
    pub fn events(&self) -> EventStream {
        EventStream::of_channel(self.store.clone(), self.id, &self.channel)
    }

    /// Returns the seed of the session.
    pub async fn seed(&self) -> Seed {
        self.view().await.created().seed
    }

    /// Returns the deadline of an evaluation. `None` means no limit.
    pub fn deadline(&self, evaluation: EvaluationId) -> Option<Timestamp> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).get(&evaluation).copied()
    }

    /// Sets the deadline of an evaluation, and replaces the previous one.
    pub fn set_deadline(&self, evaluation: EvaluationId, deadline: Timestamp) {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner).insert(evaluation, deadline);
    }

    /// Records why the session is not driven any more. The record is stored with the next one, or when the
    /// session is released.
    pub async fn record_stop(&self, reason: StopReason) -> Result<()> {
        let latest = self.view().await.latest_evaluation().map(|latest| latest.evaluation_id);
        self.record_when(vec![SessionStopped::new(reason, latest).into()], Durable::WithNext).await
    }

    /// Releases the session after all records are durable. Waits for calls that were dropped. Completes even if the
    /// caller is dropped.
    pub async fn release(&self) -> Result<()> {
        let live = self.this();
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => {
                let releasing = handle.spawn(async move { live.release_now().await });
                releasing.await.unwrap_or(Err(RuntimeError::ShuttingDown))
            }
            Err(_) => self.release_now().await,
        }
    }

    async fn release_now(&self) -> Result<()> {
        self.abandoned.wait().await;
        let was_driven = self.condition().stop_driving();
        if was_driven && self.is_interrupted().await {
            // If it cannot be recorded, the flush fails with the reason.
            let _ = self.record_stop(StopReason::Released).await;
        }
        let flushed = self.flush().await;
        self.resources.close();
        self.finish_release(flushed).await
    }

    /// Returns the session if an operation on it succeeded, and releases it otherwise.
    pub(crate) async fn or_release<T>(self: Arc<Self>, done: Result<T>) -> Result<Arc<Self>> {
        match done {
            Ok(_) => Ok(self),
            Err(error) => {
                if let Err(error) = self.release().await {
                    tracing::warn!(session = %self.id, %error, "a session could not be released");
                }
                Err(error)
            }
        }
    }

    /// True if an evaluation is open and not paused.
    async fn is_interrupted(&self) -> bool {
        let status = self.view().await.status(DriverPresence::Absent);
        matches!(status, SessionStatus::Interrupted | SessionStatus::New)
    }

    /// Releases the session, and leaves its resources to the parent session.
    pub(crate) async fn release_claim(&self) -> Result<()> {
        self.abandoned.wait().await;
        let flushed = self.flush().await;
        self.finish_release(flushed).await
    }

    async fn finish_release(&self, flushed: Result<()>) -> Result<()> {
        self.snapshots.wait().await;
        if flushed.is_ok() {
            self.end_watch().await;
            self.remove_call_times().await;
            // One may have become due while another was being written.
            self.snapshots.start_if_due(&self.state.lock().await.view);
            self.snapshots.wait().await;
        }
        if !self.is_lent {
            self.store.release(self.claim.clone()).await?;
        }
        match flushed {
            // This process may not write to the session any more, so there is nothing to make durable.
            Err(RuntimeError::ClaimLost { .. } | RuntimeError::Poisoned { .. }) => Ok(()),
            other => other,
        }
    }
}

/// A claim to a session that is being opened. It is released if the opening future is dropped.
struct ClaimGuard {
    claim: Option<(Arc<dyn Store>, SessionClaim)>,
}

impl ClaimGuard {
    fn new(store: &Arc<dyn Store>, claim: &SessionClaim) -> Self {
        Self { claim: Some((store.clone(), claim.clone())) }
    }

    fn disarm(mut self) {
        self.claim = None;
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let (Some((store, claim)), Ok(handle)) = (self.claim.take(), tokio::runtime::Handle::try_current())
        {
            handle.spawn(async move { release_claim(&*store, claim).await });
        }
    }
}

/// Releases a claim to a session that could not be opened.
async fn release_claim(store: &dyn Store, claim: SessionClaim) {
    let session = claim.session;
    if let Err(error) = store.release(claim).await {
        tracing::warn!(%session, %error, "a session that could not be opened could not be released");
    }
}
