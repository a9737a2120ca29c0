//! Construction of commits.
//!
//! Events become changes of slices, and changes become records. Callers add them in the order in which they
//! are recorded.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Batch, InboxId, InnerMessage, ProviderSidecar, RecordBody, Role};
use backstitch_core::message::Message;
use backstitch_core::object::Object;
use backstitch_core::session::{Event, PreparedCommit, Session, SessionError};
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;

use super::LiveState;
use crate::error::{Result, RuntimeError};

/// When a commit has to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Before the commit returns.
    Now,
    /// Together with the next commit that has to be durable.
    WithNext,
}

/// A commit under construction, based on the current state.
pub(crate) struct Commit<'a> {
    state: &'a LiveState,
    batch: Batch,
    prepared: PreparedCommit,
    /// The number of messages that it adds to each evaluation.
    counts: HashMap<EvaluationId, u64>,
    when: Durable,
}

impl<'a> Commit<'a> {
    pub(super) fn new(state: &'a LiveState, at: Timestamp) -> Self {
        let prepared = state.session.prepare_nothing();
        Self { state, batch: Batch::at(at), prepared, counts: HashMap::new(), when: Durable::Now }
    }

    pub(super) fn into_parts(self) -> (Batch, PreparedCommit, Durable) {
        (self.batch, self.prepared, self.when)
    }

    /// Returns the state before the commit.
    pub(crate) fn state(&self) -> &'a LiveState {
        self.state
    }

    /// Returns the view before the commit.
    pub(crate) fn view(&self) -> &'a JournalView {
        &self.state.view
    }

    /// Returns the session before the commit.
    pub(crate) fn session(&self) -> &'a Session {
        &self.state.session
    }

    /// Returns the time of its records, unless they join an earlier batch.
    pub(crate) fn time(&self) -> Timestamp {
        self.batch.time()
    }

    /// Returns the records so far.
    pub(crate) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Sets when the commit has to be durable. The default is [`Durable::Now`].
    pub(crate) fn durable(&mut self, when: Durable) -> &mut Self {
        self.when = when;
        self
    }

    pub(crate) fn push(&mut self, body: impl Into<RecordBody>) -> &mut Self {
        self.batch.push(body);
        self
    }

    pub(crate) fn push_all(&mut self, bodies: impl IntoIterator<Item = impl Into<RecordBody>>) -> &mut Self {
        for body in bodies {
            self.batch.push(body);
        }
        self
    }

    /// Adds objects that records refer to.
    pub(crate) fn add_objects(&mut self, objects: impl IntoIterator<Item = Object>) -> &mut Self {
        for object in objects {
            self.batch.add_object(object);
        }
        self
    }

    /// Removes items from the session's inbox.
    pub(crate) fn take(&mut self, items: impl IntoIterator<Item = InboxId>) -> &mut Self {
        for item in items {
            self.batch.take(item);
        }
        self
    }

    /// Commits the changes of a draft. Events are dispatched on top of them, so this comes first.
    pub(crate) fn keep(
        &mut self,
        prepare: impl FnOnce(&Session) -> Result<PreparedCommit, SessionError>,
    ) -> Result<(), SessionError> {
        debug_assert!(self.prepared.changes().is_empty(), "events dispatched before would be lost");
        self.prepared = prepare(self.session())?;
        self.record_changes(0)
    }

    /// Dispatches an event, and records its changes.
    pub(crate) fn dispatch(&mut self, event: impl Event) -> Result<()> {
        let known = self.prepared.changes().len();
        self.session().prepare_more(&mut self.prepared, event)?;
        Ok(self.record_changes(known)?)
    }

    /// Appends a message to an evaluation.
    pub(crate) fn say(
        &mut self,
        evaluation: EvaluationId,
        turn: u64,
        message: Message,
    ) -> Result<Arc<InnerMessage>> {
        self.say_with(evaluation, turn, message, None)
    }

    /// Appends a message with the data that its provider needs to receive again.
    pub(crate) fn say_with(
        &mut self,
        evaluation: EvaluationId,
        turn: u64,
        message: Message,
        provider: Option<ProviderSidecar>,
    ) -> Result<Arc<InnerMessage>> {
        let known = self.view().evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let counts = self.counts.entry(evaluation).or_default();
        let sequence = known.messages + *counts;
        *counts += 1;
        let decider = known.decider.as_ref();
        let inner = InnerMessage {
            message_id: self.session().ids().next(),
            evaluation_id: evaluation,
            sequence,
            turn,
            prompt_ns: known.prompt_ns.clone(),
            prompt_key: known.prompt_key.clone(),
            created_at: self.batch.time(),
            role: decider.and_then(|decider| Role::of_parts(&message, decider, sequence)),
            message,
            provider: provider.map(Box::new),
            extra: Extra::default(),
        };
        self.dispatch(inner.clone())?;
        Ok(Arc::new(inner))
    }

    fn record_changes(&mut self, from: usize) -> Result<(), SessionError> {
        for change in &self.prepared.changes()[from..] {
            for body in RecordBody::of_change(change)? {
                self.batch.push(body);
            }
        }
        Ok(())
    }
}
