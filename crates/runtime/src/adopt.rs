//! Creation of sessions from a snapshot or a conversation of any origin.
//!
//! Everything is checked before anything is stored: the export has to fold to a session, its slices have to
//! parse as the types that the agent registers, and the content that it refers to has to be included or in
//! the store. Any violation is a [`SnapshotRestoreError`], and leaves the store unchanged.
//!
//! An export holds no files, so the files are adopted as they are. Budget and time of an adopted evaluation
//! are those of the agent that resumes it.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::execution::CompositeSnapshot;
use backstitch_core::journal::{
    Batch, InnerMessage, Position, Provenance, Record, RecordBody, SessionCreated,
};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::StoreError;
use backstitch_core::session::{
    BoxError, Session, SessionError, Slice as _, Snapshot, SnapshotRestoreError, StoredSlice,
};
use backstitch_core::view::{ConversationState, FoldError, FoldProblem, JournalView};

use crate::agent::Agent;
use crate::driver::Driver;
use crate::entropy;
use crate::error::{Result, RuntimeError};
use crate::live::LiveSession;
use crate::runtime::{Runtime, SessionOptions};

/// The initial content of an adopted session.
pub(crate) struct Export {
    slices: Vec<StoredSlice>,
    messages: Vec<Arc<InnerMessage>>,
    provenance: Provenance,
    objects: Vec<Object>,
}

impl Export {
    pub(crate) fn of_snapshot(snapshot: &Snapshot) -> Result<Self> {
        let in_slice = |slice: &str, source: SessionError| SnapshotRestoreError::Slice {
            slice: slice.to_owned(),
            source: Box::new(source),
        };
        let messages = snapshot.all::<InnerMessage>().map_err(|error| in_slice(InnerMessage::NAME, error))?;
        let slices = snapshot.stored_slices().map_err(|error| in_slice("(snapshot)", error))?;
        let provenance = match snapshot.provenance() {
            Some(provenance) => Provenance::clone(&provenance),
            None => Provenance::of_session(snapshot.session().id),
        };
        Ok(Self {
            slices: slices.into_iter().filter(|slice| slice.name != InnerMessage::NAME).collect(),
            messages: messages.iter().cloned().collect(),
            provenance,
            objects: snapshot.objects().iter().map(|object| object.0.clone()).collect(),
        })
    }

    pub(crate) fn of_conversation(conversation: &ConversationState) -> Result<Self> {
        conversation.check()?;
        Ok(Self {
            slices: Vec::new(),
            messages: conversation.inner_messages(),
            provenance: conversation.provenance(),
            objects: conversation.objects.iter().map(|object| object.0.clone()).collect(),
        })
    }
}

impl Runtime {
    /// Creates a session that continues from a snapshot of any origin. Its latest evaluation can be resumed.
    /// Calls that were pending in it keep their ids and keys. One that may have had an effect outside is not
    /// repeated without a decision.
    pub async fn adopt_snapshot(
        &self,
        agent: Agent,
        snapshot: &Snapshot,
        options: SessionOptions,
    ) -> Result<Driver> {
        let live = self.adopt(&agent, Export::of_snapshot(snapshot)?, options).await?;
        Ok(Driver::new(live, agent))
    }

    /// Creates a session that continues from a conversation of any origin, as [`Runtime::adopt_snapshot`]
    /// does. If the conversation does not name its session, the id of its evaluation is used in its place.
    /// Ids of calls need not be UUIDs: others are mapped when the conversation is read.
    pub async fn adopt_conversation(
        &self,
        agent: Agent,
        conversation: &ConversationState,
        options: SessionOptions,
    ) -> Result<Driver> {
        let live = self.adopt(&agent, Export::of_conversation(conversation)?, options).await?;
        Ok(Driver::new(live, agent))
    }

    /// Creates a session that starts with an export.
    pub(crate) async fn adopt(
        &self,
        agent: &Agent,
        export: Export,
        options: SessionOptions,
    ) -> Result<Arc<LiveSession>> {
        let Export { slices: mut state, messages, mut provenance, mut objects } = export;
        let spilled: Vec<Arc<InnerMessage>> = messages
            .iter()
            .map(|message| {
                let mut message = InnerMessage::clone(message);
                message.spill(&mut objects);
                Arc::new(message)
            })
            .collect();
        provenance.spill(&mut objects);
        if !spilled.is_empty() {
            state.push(StoredSlice::of::<InnerMessage>(&spilled)?);
        }
        let created =
            SessionCreated { adopted: Some(Box::new(provenance)), ..self.created(agent, &options, state)? };
        let objects = self.check_export(agent, &created, &spilled, objects).await?;
        let (id, set_up) = (created.session_id, agent.clone());
        let environment = self.environment(options.workspace, options.resources);
        let first = move |at| {
            let mut batch = Batch::at(at).with(created);
            for object in objects {
                batch.add_object(object);
            }
            batch
        };
        let opening = async move {
            let set_up = |session: &mut Session| set_up.set_up_session(session);
            let live = LiveSession::begin(environment, id, None, first, set_up).await?;
            let done = live.reconcile_files().await;
            live.or_release(done).await
        };
        self.open_in_task(opening).await
    }

    /// Returns the first record of a session without a parent.
    pub(crate) fn created(
        &self,
        agent: &Agent,
        options: &SessionOptions,
        state: Vec<StoredSlice>,
    ) -> Result<SessionCreated> {
        let seed = options.seed.map_or_else(entropy::seed, Ok)?;
        let session_id = options.id.map_or_else(|| self.new_id(), Ok)?;
        Ok(SessionCreated {
            agent: agent.recorded_definition(options.workspace.as_ref()),
            state,
            tags: options.tags.clone(),
            ..SessionCreated::new(session_id, self.clock().now(), seed)
        })
    }

    /// Fails if no session can start from this export. Returns the objects that have to be stored with it.
    async fn check_export(
        &self,
        agent: &Agent,
        created: &SessionCreated,
        messages: &[Arc<InnerMessage>],
        objects: Vec<Object>,
    ) -> Result<Vec<Object>> {
        let view = folded(created)?;
        let mut session = view.session(self.clock().clone());
        agent.set_up_session(&mut session);
        session.check_slices()?;

        let mut carried: HashMap<ObjectId, Object> =
            objects.into_iter().map(|object| (object.id(), object)).collect();
        let (mut known, mut missing) = (HashMap::new(), Vec::new());
        let mut wanted = RecordBody::from(created.clone()).object_refs();
        wanted.sort();
        wanted.dedup();
        let mut needed = Vec::new();
        for id in wanted {
            if let Some(object) = carried.remove(&id) {
                known.insert(id, object.bytes().clone());
                needed.push(object);
                continue;
            }
            match self.store().object(id).await {
                Ok(Some(object)) => drop(known.insert(id, object.bytes().clone())),
                Ok(None)
                | Err(
                    StoreError::Pruned { .. }
                    | StoreError::Redacted { .. }
                    | StoreError::MissingObject { .. },
                ) => missing.push(id),
                Err(error) => return Err(error.into()),
            }
        }
        if !missing.is_empty() {
            return Err(SnapshotRestoreError::MissingContent { objects: missing }.into());
        }
        for message in messages.iter().filter(|message| !message.object_refs().is_empty()) {
            let hydrated = InnerMessage::clone(message).hydrate(|large| known.get(&large.object).cloned());
            hydrated.map_err(|error| SnapshotRestoreError::NotRecordable(Box::new(error)))?;
        }
        Ok(needed)
    }

    /// Creates a session that continues from a composite snapshot: slices, snapshotable resources and files.
    /// Its latest evaluation can be resumed.
    ///
    /// The options name the resources and files, and these are restored from the snapshot. The previous state
    /// of the files is recorded first. If the snapshot does not fit them, or if a part of it is not stored
    /// here, this fails before anything is created or changed.
    pub async fn adopt_state(
        &self,
        agent: Agent,
        snapshot: &CompositeSnapshot,
        options: SessionOptions,
    ) -> Result<Driver> {
        let resources = options.resources.clone().with_workspace(options.workspace.clone());
        let states = snapshot.resources.clone();
        let checked = tokio::task::spawn_blocking(move || resources.check_restore(&states)).await;
        checked.map_err(|_| RuntimeError::ShuttingDown)??;
        let adopted = self.adopt(&agent, Export::of_snapshot(&snapshot.session)?, options).await?;
        let states = snapshot.resources.clone();
        let opening = async move {
            let done = adopted.adopt_parts(states).await;
            adopted.or_release(done).await
        };
        let live = self.open_in_task(opening).await?;
        Ok(Driver::new(live, agent))
    }
}

/// Folds the first record of a session after a round trip through its encoding, as another process would.
fn folded(created: &SessionCreated) -> Result<JournalView, SnapshotRestoreError> {
    let not_recordable = |error: BoxError| SnapshotRestoreError::NotRecordable(error);
    let record = Record::new(Position::START, created.created_at, created.clone());
    let text = record.encode().map_err(|error| not_recordable(error.into()))?;
    let record = Record::decode(Position::START, &text).map_err(|error| not_recordable(error.into()))?;
    JournalView::fold(&[record]).map_err(|FoldError { problem, .. }| match problem {
        FoldProblem::InitialState(error) => error,
        problem => SnapshotRestoreError::Inconsistent(Box::new(problem)),
    })
}
