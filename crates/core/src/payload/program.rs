//! Records of programs (their start, and the tasks that they have finished) and of snapshotable resources.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::EvaluationId;
use crate::message::{Large, large};
use crate::time::Timestamp;

/// A program of an agent that answers with programs is about to run. All of its inputs are in this record or
/// in earlier ones, so that an interrupted program can run again and reach the same state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The turn whose answer holds the program.
    pub turn: u64,
    /// The text of the program.
    #[serde(flatten, with = "large::source")]
    pub source: Option<Large<Arc<str>>>,
    /// The current time for the program.
    pub now: Timestamp,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The turn that left the memory from which the program starts; none if there is no memory yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Version of the interpreter. Another one may run the same program in other steps.
    pub interpreter: String,
    /// Digest of its inputs: data, tools, limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A task of a program is done. Neither the same program nor later ones repeat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The turn of the program.
    pub turn: u64,
    /// Place of the task in the program.
    pub path: String,
    /// Id of the task, as written in the language.
    pub task: String,
    /// Value of the task, in the stored form of the language.
    #[serde(flatten, with = "large::value", skip_serializing_if = "Large::is_null")]
    pub value: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The state of a snapshotable resource at the start of the session, or after a call that changed it.
///
/// It is in the batch of the first record, or of the end of the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceChanged {
    /// The stored name of the resource.
    pub name: String,
    /// State of the resource after the change.
    #[serde(flatten, with = "large::state", skip_serializing_if = "Large::is_null")]
    pub state: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceChanged {
    /// Creates the record of a state.
    pub fn new(name: impl Into<String>, state: Value) -> Self {
        Self { name: name.into(), state: state.into(), extra: Extra::default() }
    }
}
