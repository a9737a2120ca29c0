//! What a snapshot or a conversation carries beside its slices and messages.
//!
//! A transcript alone does not say which session its calls belong to, which of them were started, what prompt and which tools
//! an evaluation was started with, and how it ended. The journal knows. A [`Provenance`] is that knowledge as data: exports
//! carry it, and a session that adopts an export records it in its first record.

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

/// What the journal of a session knows about a conversation beside its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The session that the export was made from. The idempotency key of a pending call is made from its id, unless the call
    /// has an origin of its own.
    pub session: SessionId,
    /// The evaluations, in the order in which they started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<CarriedEvaluation>,
    /// The pending calls of which more is known than that they were made.
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
    /// How it was started: prompt, fingerprint, contracts of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Arc<EvaluationStarted>>,
    /// How it ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Arc<EvaluationFinished>>,
    /// The programs that were started, of an agent that answers with programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Arc<ProgramStarted>>,
    /// The tasks that its programs have finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Arc<TaskFinished>>,
    /// The turns of its programs that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Arc<TurnFinished>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call that had no result when it was exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedCall {
    /// The call.
    pub call_id: CallId,
    /// The session that first made the call. However often the call is adopted, its idempotency key is made from this id.
    pub origin: SessionId,
    /// The latest intent, if one was recorded before the export. Its files, budget and sub-agent session stayed behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Arc<CallStarted>>,
    /// The outside sub-steps that are done, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Provenance {
    /// The provenance of an export of which nothing but its session is known.
    pub fn of_session(session: SessionId) -> Self {
        Self { session, evaluations: Vec::new(), calls: Vec::new(), extra: Extra::default() }
    }

    /// The provenance without what concerns other evaluations than this one.
    #[must_use]
    pub fn of_evaluation(mut self, evaluation: EvaluationId, calls: impl Fn(CallId) -> bool) -> Self {
        self.evaluations.retain(|carried| carried.evaluation_id == evaluation);
        self.calls.retain(|carried| calls(carried.call_id));
        self
    }

    /// Moves what is too large for a record out into objects.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        self.large_records_mut().for_each(|record| record.spill(objects));
    }

    /// The objects that it refers to.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let mut shared = self.clone();
        let refs = shared.large_records_mut().filter_map(|record| record.large_object());
        refs.map(|reference| reference.object).collect()
    }

    /// The records that may refer to objects.
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
    /// A pending call of which nothing is known but where it was made.
    pub fn new(call_id: CallId, origin: SessionId) -> Self {
        Self { call_id, origin, started: None, steps: BTreeMap::new(), extra: Extra::default() }
    }
}

/// The bytes of media that an export refers to. As JSON they are written in base64.
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
        match object.id() == stored.object {
            true => Ok(Self(object)),
            false => {
                Err(de::Error::custom(format!("the content of object {} is another one", stored.object)))
            }
        }
    }
}
