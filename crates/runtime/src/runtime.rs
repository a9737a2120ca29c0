//! The runtime: sessions on a store.
//!
//! A [`Runtime`] creates, opens and forks sessions, reads them without a claim, and sends items to their
//! inboxes. Opening a session returns a [`Driver`]: a live session and the agent that drives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{EvaluationOutcome, InboxItem, InboxKind, Position, Record, SessionName};
use backstitch_core::message::{MediaPart, PolicyName};
use backstitch_core::object::ObjectContent;
use backstitch_core::ports::{
    BoxFuture, ClaimMode, Owner, Queue, SessionClaim, Store, StoreError, Workspace, content_of,
};
use backstitch_core::rng::Seed;
use backstitch_core::session::Session;
use backstitch_core::time::Clock;
use backstitch_core::view::{Checkpoint, DriverPresence as Presence, JournalView, SessionStatus};
use serde_json::Value;

use crate::adapters::{Adapters, NoAdapters};
use crate::agent::{Agent, AgentSource, prompt_path};
use crate::clock::SystemClock;
use crate::driver::{Driver, ForeignLoop};
use crate::engine::{EngineLoop, Engines};
use crate::engine_error::EngineError;
use crate::entropy;
use crate::error::{Result, RuntimeError};
use crate::history::Fork;
use crate::live::{LiveSession, SNAPSHOT_INTERVAL, SessionEnvironment, load_view, read_records};
use crate::observed::ObservedSession;
use crate::point::PointSpec;
use crate::registry::Registry;
use crate::report::{SentItem, Version};
use crate::waiting::{WaitingCall, waiting_calls};
use crate::workspace::Isolation;

/// Options for creating or opening a session.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use backstitch_runtime::SessionOptions;
///
/// let tags = BTreeMap::from([("customer".to_owned(), "ada".to_owned())]);
/// let options = SessionOptions { tags, ..SessionOptions::default() };
/// assert!(options.workspace.is_none() && !options.take_over);
/// ```
#[derive(Default)]
pub struct SessionOptions {
    /// The workspace, if there is one.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Resources of tools.
    pub resources: Resources,
    /// Labels of a new session.
    pub tags: BTreeMap<String, String>,
    /// The name of a new session, which is stored with it. Whether another session has it is not checked.
    pub name: Option<SessionName>,
    /// The id of a new session. By default it is generated.
    pub id: Option<SessionId>,
    /// The seed of a new session. By default it is generated.
    pub seed: Option<Seed>,
    /// The definition of the agent that drives a fork. By default it is that of its parent.
    pub definition: Option<Value>,
    /// The project that the workspace of a new session is a copy of.
    pub isolation: Option<Isolation>,
    /// Takes over the session from the process that holds it. That process stops its calls, and cannot write any more. A
    /// directory that the agent names is opened once it has released it; if it does not, this fails with
    /// [`RuntimeError::DirectoryNotReleased`]. A workspace of these options is used as it is.
    pub take_over: bool,
    /// A claim to an existing session that the caller holds, as a worker does. It is not released with the session.
    pub claim: Option<SessionClaim>,
    /// Stores a new session together with its first mission, in one batch. Until then nothing of it is in the
    /// store.
    pub stored_with_mission: bool,
}

impl SessionOptions {
    /// Creates options with this workspace.
    pub fn with_workspace(workspace: Arc<dyn Workspace>) -> Self {
        Self { workspace: Some(workspace), ..Self::default() }
    }
}

/// Sessions on a store.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_core::ports::SessionQuery;
/// use backstitch_runtime::{Agent, Runtime};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let run = runtime.start(&agent, "Mend the coat.").await?;
/// run.outcome().await?;
/// let all = runtime.sessions(SessionQuery::roots()).await?;
/// assert_eq!(all.sessions[0].id(), run.session());
/// let again = runtime.ask(run.session(), &agent, "And the sleeve?").await?;
/// assert_eq!(again.answer::<String>().await?, "Mended.");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Runtime {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    owner: Owner,
    pub(crate) adapters: Arc<dyn Adapters>,
    pub(crate) registry: Arc<Registry>,
    engines: Option<Arc<dyn Engines>>,
    queue: Option<Arc<dyn Queue>>,
    agents: Option<Arc<dyn AgentSource>>,
    snapshot_interval: u64,
}

impl Runtime {
    /// Creates a runtime of this process on a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let owner = Owner::new(format!("process {}", std::process::id()));
        Self {
            store,
            clock: Arc::new(SystemClock::default()),
            owner,
            adapters: Arc::new(NoAdapters),
            registry: Arc::default(),
            engines: None,
            queue: None,
            agents: None,
            snapshot_interval: SNAPSHOT_INTERVAL,
        }
    }

    /// Replaces the system's clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the owner that claims sessions.
    pub fn with_owner(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// Sets the minimum number of records between two snapshots of a session, [`SNAPSHOT_INTERVAL`] by default. A
    /// snapshot is written when the journal has grown by half since the last one, and by this many records.
    /// Sessions are opened from their snapshot and the records after it.
    pub fn with_snapshot_interval(self, records: u64) -> Self {
        Self { snapshot_interval: records, ..self }
    }

    /// Sets the adapters that open models and directories of agents.
    pub fn with_adapters(self, adapters: Arc<dyn Adapters>) -> Self {
        Self { adapters, ..self }
    }

    /// Sets the engines that agents may name.
    pub fn with_engines(self, engines: Arc<dyn Engines>) -> Self {
        Self { engines: Some(engines), ..self }
    }

    /// Sets the queue of the store, for workers.
    pub fn with_queue(self, queue: Arc<dyn Queue>) -> Self {
        Self { queue: Some(queue), ..self }
    }

    /// Sets the agents that [`drive`](Self::drive) finds by the names that sessions have.
    pub fn with_agents(self, agents: Arc<dyn AgentSource>) -> Self {
        Self { agents: Some(agents), ..self }
    }

    /// Returns the queue of the store. Fails if the runtime has none.
    pub fn queue(&self) -> Result<&Arc<dyn Queue>> {
        let none = || StoreError::Unsupported {
            store: "a runtime without a queue",
            operation: "sessions that wait for workers",
            hint: "give it the queue of its store",
        };
        Ok(self.queue.as_ref().ok_or_else(none)?)
    }

    /// Returns the agents that sessions are driven with by their names.
    pub(crate) fn agents(&self) -> Option<&Arc<dyn AgentSource>> {
        self.agents.as_ref()
    }

    /// Opens the engine of an agent, if it names one.
    pub(crate) fn engine_of(&self, agent: &Agent) -> Result<Option<Arc<dyn ForeignLoop>>> {
        let Some(named) = &agent.engine else { return Ok(None) };
        let engines = self.engines.as_ref().ok_or_else(|| EngineError::Unavailable {
            agent: prompt_path(&agent.ns, &agent.key),
            engine: named.name.clone(),
        })?;
        Ok(Some(Arc::new(EngineLoop::new(engines.open(&named.name)?, named.clone()))))
    }

    /// Returns the store of the sessions.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the owner that claims sessions.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the clock of new records.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns a random id for a new session, which also is its time of creation. It may be chosen before the session is
    /// started, so that a request that is sent again starts it once.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use backstitch_runtime::{Runtime, SessionOptions};
    /// use backstitch_store::MemoryStore;
    ///
    /// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    /// let options = SessionOptions { id: Some(runtime.new_id()?), ..SessionOptions::default() };
    /// assert_ne!(options.id, Some(runtime.new_id()?));
    /// # Ok::<(), backstitch_runtime::RuntimeError>(())
    /// ```
    pub fn new_id(&self) -> Result<SessionId> {
        Ok(entropy::fresh_ids(self.clock.clone())?.next())
    }

    /// Creates a session. Fails with [`RuntimeError::SessionExists`] if the options name one that exists.
    pub fn create(&self, agent: Agent, options: SessionOptions) -> BoxFuture<'_, Result<Driver>> {
        Box::pin(async move {
            let live = self.create_live(&agent, options).await?;
            Ok(Driver::new(live, agent))
        })
    }

    pub(crate) async fn create_live(
        &self,
        agent: &Agent,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        if let Some(session) = options.id
            && self.store.head(session).await.is_ok()
        {
            return Err(RuntimeError::SessionExists { session });
        }
        let created = self.created(agent, &options, Vec::new())?;
        let environment = self.environment(options.workspace, options.resources);
        let set_up = agent.clone();
        let opening = async move {
            let set_up = |session: &mut Session| set_up.set_up_session(session);
            let live = if options.stored_with_mission {
                LiveSession::create_with_mission(environment, created, set_up).await?
            } else {
                LiveSession::create(environment, created, set_up).await?
            };
            let mut done = live.reconcile_files().await;
            if let (Ok(()), Some(isolation)) = (&done, options.isolation) {
                done = live.record_isolation(isolation).await;
            }
            if let (Ok(()), Some(name)) = (&done, options.name) {
                done = live.record(vec![name.note().into()]).await;
            }
            live.or_release(done).await
        };
        self.open_in_task(opening).await
    }

    /// Opens an existing session, to drive it with this agent.
    pub fn open(
        &self,
        session: SessionId,
        agent: Agent,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<Driver>> {
        Box::pin(async move {
            let live = self.open_live(session, &agent, options).await?;
            Ok(Driver::new(live, agent))
        })
    }

    pub(crate) async fn open_live(
        &self,
        session: SessionId,
        agent: &Agent,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        let set_up = agent.clone();
        self.open_with(session, options, move |session| set_up.set_up_session(session)).await
    }

    /// Opens an existing session without an agent. It can be rewound and decided about, but not driven.
    pub fn open_idle(
        &self,
        session: SessionId,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<Arc<LiveSession>>> {
        Box::pin(async move { self.open_with(session, options, |_| {}).await })
    }

    async fn open_with(
        &self,
        session: SessionId,
        options: SessionOptions,
        set_up: impl FnOnce(&mut Session) + Send + 'static,
    ) -> Result<Arc<LiveSession>> {
        let mode = if options.take_over { ClaimMode::TakeOver } else { ClaimMode::IfFree };
        let (taken, environment) = (options.claim, self.environment(options.workspace, options.resources));
        self.open_in_task(async move {
            match taken {
                Some(claim) => LiveSession::open_taken(environment, claim, set_up).await,
                None => LiveSession::open(environment, session, mode, set_up).await,
            }
        })
        .await
    }

    /// Creates a session whose work another program does. `definition` describes it, without secrets.
    pub fn create_observed(
        &self,
        definition: Value,
        program: PolicyName,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<ObservedSession>> {
        Box::pin(async move {
            let mut agent = Agent::new(program.as_str());
            agent.definition = definition;
            let created = self.created(&agent, &options, Vec::new())?;
            let environment = self.environment(options.workspace, options.resources);
            let opening = async move { LiveSession::create(environment, created, |_| {}).await };
            let live = self.open_in_task(opening).await?;
            Ok(ObservedSession::new(live, program))
        })
    }

    /// Forks a session at a point. The workspace of the options has to be the fork's own.
    pub fn fork_session(
        &self,
        parent: SessionId,
        at: PointSpec,
        options: SessionOptions,
    ) -> BoxFuture<'_, Result<Arc<LiveSession>>> {
        Box::pin(async move {
            let seed = options.seed.map_or_else(entropy::seed, Ok)?;
            let id = options.id.map_or_else(|| self.new_id(), Ok)?;
            let environment = self.environment(options.workspace, options.resources);
            let fork = Fork { parent, at, seed, definition: options.definition };
            self.open_in_task(async move { LiveSession::fork(environment, fork, id, |_| {}).await }).await
        })
    }

    /// Returns the view of a session without claiming it.
    pub fn view(&self, session: SessionId) -> BoxFuture<'_, Result<JournalView>> {
        Box::pin(async move {
            self.read_off_thread(move |store| async move { load_view(&*store, session, None).await }).await
        })
    }

    /// Returns the bytes of media of a message, a result or an answer. `None` if the store does not hold them:
    /// because the media is at another address, or because its content was redacted.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use backstitch_core::message::{MediaPart, Modality, PolicyName};
    /// use backstitch_core::ports::PolicyAnswer;
    /// use backstitch_runtime::{Agent, FunctionPolicy, Runtime, SessionOptions};
    /// use backstitch_store::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A model that draws.
    /// let policy = FunctionPolicy::new(PolicyName::new("painter")?, |_| async {
    ///     let (media, object) = MediaPart::held(Modality::Image, *b"GIF89a...");
    ///     Ok(PolicyAnswer::default().with_media((media.with_mime("image/gif"), object)))
    /// });
    /// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    /// let agent = Agent::new("painter").policy(Arc::new(policy));
    /// let driver = runtime.create(agent, SessionOptions::default()).await?;
    /// let answer = driver.start("Draw a seam.").await?.answer()?;
    /// let bytes = runtime.media(&answer.media[0]).await?.expect("it is stored with the answer");
    /// assert_eq!(&bytes[..], b"GIF89a...");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn media(&self, media: &MediaPart) -> Result<Option<Arc<[u8]>>> {
        let Some(object) = media.url.object_id() else { return Ok(None) };
        match content_of(self.store.object(object).await)? {
            Some(ObjectContent::Bytes(bytes)) => Ok(Some(bytes)),
            Some(ObjectContent::Redacted) | None => Ok(None),
        }
    }

    /// Returns a copy of the durable state of a session. `state.all::<T>()` returns the items of a slice.
    pub async fn state(&self, session: SessionId) -> Result<Session> {
        Ok(self.view(session).await?.session(self.clock.clone()))
    }

    /// Returns the calls of a session and of its sub-agents that wait for a decision. Each names the session
    /// that the decision has to be made in.
    pub async fn waiting_calls(&self, session: SessionId) -> Result<Vec<WaitingCall>> {
        self.read_off_thread(move |store| async move { waiting_calls(&*store, session).await }).await
    }

    /// Returns whether a run of this runtime drives a session.
    pub fn drives(&self, session: SessionId) -> bool {
        self.registry.get(session).is_some()
    }

    /// Returns the status of a session: running, paused, interrupted or idle.
    pub async fn status(&self, session: SessionId) -> Result<SessionStatus> {
        let holder = self.store.holder(session).await?;
        let driver = if holder.is_some() { Presence::Present } else { Presence::Absent };
        Ok(self.view(session).await?.status(driver))
    }

    /// Returns the boundaries of all calls of a session, which can be inspected, rewound to and forked from.
    pub async fn checkpoints(&self, session: SessionId) -> Result<Vec<Checkpoint>> {
        Ok(self.view(session).await?.checkpoints())
    }

    /// Returns the durable records of a session.
    pub async fn records(&self, session: SessionId) -> Result<Vec<Record>> {
        self.read_off_thread(move |store| async move {
            read_records(&*store, session, Position::START, None).await
        })
        .await
    }

    /// Sends a message to a session, regardless of the process that drives it. If no evaluation is open, the
    /// message starts one when the session is resumed.
    pub async fn send(&self, session: SessionId, text: &str) -> Result<SentItem> {
        let (kind, at, data) = (InboxKind::Message, self.clock.now(), Value::String(text.to_owned()));
        let open = self.evaluation_to_stop(session).await?.is_some();
        let item = self.store.send(session, InboxItem { kind, at, data }).await?;
        Ok(SentItem { v: Version, session, item, open })
    }

    /// Requests that the open evaluation of a session ends. Later evaluations are not affected. Fails with
    /// [`RuntimeError::NothingToCancel`] if none is open.
    pub async fn cancel(&self, session: SessionId) -> Result<SentItem> {
        let none = RuntimeError::NothingToCancel { session };
        self.send_request(session, InboxKind::Cancel, none).await
    }

    /// Requests that the open evaluation of a session pauses. Later evaluations are not affected. Fails with
    /// [`RuntimeError::NothingToPause`] if none is open.
    pub async fn pause(&self, session: SessionId) -> Result<SentItem> {
        let none = RuntimeError::NothingToPause { session };
        self.send_request(session, InboxKind::Pause, none).await
    }

    /// Sends a request about the open evaluation. Fails with `none` if there is none.
    async fn send_request(
        &self,
        session: SessionId,
        kind: InboxKind,
        none: RuntimeError,
    ) -> Result<SentItem> {
        let evaluation = self.evaluation_to_stop(session).await?.ok_or(none)?;
        let item = InboxItem::about(kind, evaluation, self.clock.now());
        let item = self.store.send(session, item).await?;
        Ok(SentItem { v: Version, session, item, open: true })
    }

    /// Returns the evaluation that a request to stop is about: the open one. A superseded one counts as open, since the
    /// one that replaces it may not have started yet.
    async fn evaluation_to_stop(&self, session: SessionId) -> Result<Option<EvaluationId>> {
        let view = self.view(session).await?;
        let latest = view.latest_evaluation();
        let open =
            latest.filter(|latest| matches!(latest.outcome(), None | Some(EvaluationOutcome::Superseded)));
        Ok(open.map(|latest| latest.evaluation_id))
    }

    pub(crate) fn environment(
        &self,
        workspace: Option<Arc<dyn Workspace>>,
        resources: Resources,
    ) -> SessionEnvironment {
        SessionEnvironment {
            store: self.store.clone(),
            clock: self.clock.clone(),
            owner: self.owner.clone(),
            resources,
            workspace,
            snapshot_interval: self.snapshot_interval,
        }
    }
}

debug_fields!(Runtime { owner });
