//! Records of programs: that one is about to run, and what it remembers while it does.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::EvaluationId;
use crate::message::{Large, large};
use crate::time::Timestamp;

/// A program of an agent that answers with programs is about to run. All that it depends on is said here or before, so that a
/// program which was interrupted can run again and come to the same place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramStarted {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The turn whose answer it was found in.
    pub turn: u64,
    /// The text of the program.
    #[serde(flatten, with = "large::source")]
    pub source: Option<Large<Arc<str>>>,
    /// The time that it is while the program runs.
    pub now: Timestamp,
    /// What its chance is made of.
    pub seed: u64,
    /// The turn that left the memory which it starts from; none when nothing is remembered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The interpreter. Another one may run the same program in other steps.
    pub interpreter: String,
    /// A digest of what it is given: data, tools, limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A task of a program is done, and is not done again: not by the same program, and not by those that come after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFinished {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The turn of the program.
    pub turn: u64,
    /// Where in the program it was done.
    pub path: String,
    /// The id of the task, as the language writes it.
    pub task: String,
    /// Its value, as the language stores it.
    #[serde(flatten, with = "large::value", skip_serializing_if = "Large::is_null")]
    pub value: Large<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
