//! Data that a snapshot or a conversation carries in addition to slices and messages.
//!
//! A transcript alone does not record which session its calls belong to, which of them were started, what
//! prompt and which tools an evaluation was started with, and how it ended. The journal does. A
//! [`Provenance`] is that part of the journal as data: exports carry it, and a session that adopts an export
//! stores it in its first record.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::LargeRecord;
use super::call::CallStarted;
use super::evaluation::{EvaluationFinished, EvaluationStarted, TurnFinished};
use super::program::{ProgramStarted, TaskFinished};
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::object::{Object, ObjectId};

/// What the journal of a session records about a conversation in addition to its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The exported session. The idempotency key of a pending call is derived from its id, unless the call
    /// has an origin of its own.
    pub session: SessionId,
    /// The evaluations, in the order in which they started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<CarriedEvaluation>,
    /// The pending calls that have records of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CarriedCall>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An evaluation of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedEvaluation {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The start of the evaluation: prompt, fingerprint, contracts of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Arc<EvaluationStarted>>,
    /// The end of the evaluation, if it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Arc<EvaluationFinished>>,
    /// The programs that were started, of an agent that answers with programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Arc<ProgramStarted>>,
    /// The finished tasks of its programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Arc<TaskFinished>>,
    /// The finished turns of its programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Arc<TurnFinished>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call that had no result at the time of the export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedCall {
    /// The call.
    pub call_id: CallId,
    /// The session that first made the call. The idempotency key is derived from this id, however often the
    /// call is adopted.
    pub origin: SessionId,
    /// The latest intent, if one was recorded before the export. Its files, budget and child session are not
    /// exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Arc<CallStarted>>,
    /// The finished external steps, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Provenance {
    /// Creates the provenance of an export of which only the session is known.
    pub fn of_session(session: SessionId) -> Self {
        Self { session, evaluations: Vec::new(), calls: Vec::new(), extra: Extra::default() }
    }

    /// Removes everything about other evaluations.
    #[must_use]
    pub fn of_evaluation(mut self, evaluation: EvaluationId, calls: impl Fn(CallId) -> bool) -> Self {
        self.evaluations.retain(|carried| carried.evaluation_id == evaluation);
        self.calls.retain(|carried| calls(carried.call_id));
        self
    }

    /// Moves fields that are too large for a record into objects.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        self.large_records_mut().for_each(|record| record.spill(objects));
    }

    /// Returns the objects that it refers to.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let mut shared = self.clone();
        let refs = shared.large_records_mut().filter_map(|record| record.large_object());
        refs.map(|reference| reference.object).collect()
    }

    /// Iterates over the records that may refer to objects.
    pub fn large_records_mut(&mut self) -> impl Iterator<Item = &mut dyn LargeRecord> {
        let started = self.calls.iter_mut().filter_map(|call| call.started.as_mut());
        started.map(|record| record as &mut dyn LargeRecord).chain(self.evaluations.iter_mut().flat_map(
            |one| {
                let finished = one.finished.iter_mut().map(|record| record as &mut dyn LargeRecord);
                let programs = one.programs.iter_mut().map(|record| record as &mut dyn LargeRecord);
                let tasks = one.tasks.iter_mut().map(|record| record as &mut dyn LargeRecord);
                let turns = one.turns.iter_mut().map(|record| record as &mut dyn LargeRecord);
                finished.chain(programs).chain(tasks).chain(turns)
            },
        ))
    }
}

impl CarriedCall {
    /// Creates a pending call of which only the origin is known.
    pub fn new(call_id: CallId, origin: SessionId) -> Self {
        Self { call_id, origin, started: None, steps: BTreeMap::new(), extra: Extra::default() }
    }
}

/// The bytes of media that an export refers to. In JSON they are encoded as base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedObject(pub Object);

#[derive(Serialize, Deserialize)]
struct StoredObject {
    object: ObjectId,
    base64: String,
}

impl Serialize for CarriedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredObject { object: self.0.id(), base64: STANDARD.encode(self.0.bytes()) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CarriedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredObject::deserialize(deserializer)?;
        let bytes = STANDARD.decode(&stored.base64).map_err(de::Error::custom)?;
        let object = Object::blob(bytes);
        if object.id() == stored.object {
            Ok(Self(object))
        } else {
            Err(de::Error::custom(format!("the content of object {} does not match its id", stored.object)))
        }
    }
}
