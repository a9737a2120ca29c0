//! A writer of valid journals.
//!
//! [`Writer`] tracks what may come next: sequences, turns, open calls, lengths of slices, and the parts of it
//! that a rewind undoes. Tests by example and random journals ([`super::journal_steps`]) both use it.

mod calls;
mod messages;

use std::fmt;
use std::sync::Arc;

use backstitch_core::budget::{Amounts, Reservation};
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, ReservationId, SessionId};
use backstitch_core::journal::{
    AfterFailure, BudgetCharged, CallFinished, CallStarted, CallVerdict, Effect, EvaluationFinished,
    EvaluationOutcome, EvaluationStarted, IdempotencyKey, InnerMessage, Note, Origin, PauseReason, Position,
    Record, RecordBody, RequestFailed, RequestStarted, SessionCreated, SessionPaused, SessionRewound,
    WorkspaceRoot,
};
use backstitch_core::message::{Content, Message, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::rng::Seed;
use backstitch_core::session::{Slice, SlicePolicy, StoredChange, StoredOp};
use backstitch_core::time::{FixedClock, Timestamp};
use backstitch_core::view::JournalView;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::messages::{call, failure, parts, result, sidecar};

/// A State slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally(pub(crate) u64);

impl Slice for Tally {
    const NAME: &'static str = "tally";
}

/// A Log slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trace(pub(crate) u64);

impl Slice for Trace {
    const NAME: &'static str = "trace";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

pub(crate) fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at(time(0)))
}

pub(crate) fn time(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(1_767_323_045_000_000 + seconds * 1_000_000).unwrap()
}

pub(crate) fn session_id(number: u64) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(u128::from(number) << 64))
}

pub(crate) fn root(name: &str) -> WorkspaceRoot {
    let id = |kind: &str| Object::blob(format!("{kind} {name}").into_bytes()).id();
    WorkspaceRoot { tree: id("tree"), manifest: id("manifest") }
}

pub(crate) fn tokens(count: u64) -> Amounts {
    Amounts { input_tokens: count, ..Amounts::ZERO }
}

/// The state that the next records depend on. A rewind restores it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing {
    pub(crate) evaluations: Vec<Running>,
    pub(crate) tally: usize,
    pub(crate) pauses: Vec<Option<CallId>>,
    pub(crate) said: Vec<InnerMessage>,
}

/// State of an evaluation.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) id: EvaluationId,
    pub(crate) sequence: u64,
    pub(crate) turns: u64,
    /// Calls without a result.
    pub(crate) pending: Vec<Pending>,
    pub(crate) finished: bool,
}

/// A call without a result.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) id: CallId,
    pub(crate) turn: u64,
    pub(crate) attempts: u32,
}

pub(crate) struct Writer {
    pub(crate) session: SessionId,
    pub(crate) records: Vec<Record>,
    pub(crate) now: Standing,
    /// Length of the log. No rewind undoes it.
    pub(crate) trace: usize,
    /// State before each record.
    before: Vec<(Standing, usize)>,
    ids: u64,
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.records.iter().map(|record| (record.position, record.encode().unwrap()));
        formatter.debug_map().entries(lines).finish()
    }
}

impl Writer {
    /// Starts the journal of a new session.
    pub(crate) fn new(number: u64) -> Self {
        Self::from(number, Origin::Root, Vec::new(), (Standing::default(), 0))
    }

    pub(crate) fn from(
        number: u64,
        origin: Origin,
        state: Vec<backstitch_core::session::StoredSlice>,
        (now, trace): (Standing, usize),
    ) -> Self {
        let session = session_id(number);
        let mut writer = Self { session, records: Vec::new(), now, trace, before: Vec::new(), ids: 0 };
        writer.push(SessionCreated {
            origin,
            state,
            ..SessionCreated::new(session, time(0), Seed::new(number))
        });
        writer
    }

    /// Starts the journal of a fork of this session at a position.
    pub(crate) fn fork(&self, number: u64, position: Position) -> Self {
        let standing = match self.before.get(position.number() as usize) {
            Some(standing) => standing.clone(),
            None => (self.now.clone(), self.trace),
        };
        Self::from(number, Origin::Fork { session: self.session, position }, Vec::new(), standing)
    }

    pub(crate) fn head(&self) -> Position {
        Position::START.after(self.records.len())
    }

    pub(crate) fn id<Id: From<Uuid>>(&mut self) -> Id {
        self.ids += 1;
        Id::from(Uuid::from_u128(self.session.as_uuid().as_u128() + u128::from(self.ids)))
    }

    pub(crate) fn push(&mut self, body: impl Into<RecordBody>) -> Position {
        let position = self.head();
        self.before.push((self.now.clone(), self.trace));
        self.records.push(Record {
            position,
            at: time(position.number() as i64),
            body: body.into(),
            extra: Extra::default(),
        });
        position
    }

    pub(crate) fn start(&mut self) -> EvaluationId {
        self.start_after(None)
    }

    pub(crate) fn start_after(&mut self, follows: Option<EvaluationId>) -> EvaluationId {
        let id = self.id();
        self.push(EvaluationStarted { follows, ..EvaluationStarted::new(id, "demo", "plan") });
        let running = Running { id, sequence: 0, turns: 0, pending: Vec::new(), finished: false };
        self.now.evaluations.push(running);
        id
    }

    pub(crate) fn finish(&mut self, evaluation: EvaluationId, outcome: EvaluationOutcome) -> Position {
        let position = self.push(EvaluationFinished::new(evaluation, outcome));
        let running = self.running(evaluation);
        running.finished = true;
        position
    }

    pub(crate) fn running(&mut self, evaluation: EvaluationId) -> &mut Running {
        self.now.evaluations.iter_mut().find(|running| running.id == evaluation).unwrap()
    }

    /// Creates the next message of its evaluation without recording it.
    pub(crate) fn next_message(
        &mut self,
        evaluation: EvaluationId,
        turn: u64,
        message: Message,
    ) -> InnerMessage {
        InnerMessage {
            message_id: self.id(),
            evaluation_id: evaluation,
            sequence: self.running(evaluation).sequence,
            turn,
            prompt_ns: "demo".into(),
            prompt_key: "plan".into(),
            created_at: time(self.records.len() as i64),
            message,
            role: None,
            provider: None,
            extra: Extra::default(),
        }
    }

    pub(crate) fn record(&mut self, message: InnerMessage) -> Position {
        let position = self.push(message.clone());
        let running = self.running(message.evaluation_id);
        running.sequence += 1;
        running.turns = running.turns.max(message.turn);
        match &message.message.content {
            Content::OptionCall(call) => {
                let (id, turn) = (call.invocation_id, message.turn);
                running.pending.push(Pending { id, turn, attempts: 0 });
            }
            Content::OptionResult(result) => running.pending.retain(|call| call.id != result.invocation_id),
            Content::Parts(_) => {}
        }
        self.now.said.push(message);
        position
    }

    /// Records a message before the next response, or a result of a call.
    pub(crate) fn say(&mut self, evaluation: EvaluationId, message: Message) -> InnerMessage {
        let answered = message.option_result().map(|result| result.invocation_id);
        let running = self.running(evaluation);
        let call = running.pending.iter().find(|call| Some(call.id) == answered);
        let turn = call.map_or(running.turns, |call| call.turn);
        let message = self.next_message(evaluation, turn, message);
        self.record(message.clone());
        message
    }

    /// Records a response: a text, unless it is empty, and calls with these arguments.
    pub(crate) fn answer(&mut self, evaluation: EvaluationId, text: &str, arguments: &[&str]) -> Vec<CallId> {
        let turn = self.running(evaluation).turns + 1;
        let mut payload = Some(Box::new(sidecar(text)));
        if !text.is_empty() {
            let mut message = self.next_message(evaluation, turn, parts(RoleHint::Assistant, text));
            message.provider = payload.take();
            self.record(message);
        }
        let mut calls = Vec::new();
        for arguments in arguments {
            let id = self.id();
            let mut message = self.next_message(evaluation, turn, call(id, arguments));
            message.provider = payload.take();
            self.record(message);
            calls.push(id);
        }
        calls
    }
}
