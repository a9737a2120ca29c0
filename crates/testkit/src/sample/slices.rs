//! The slices of sample journals: one of each policy that is journaled, and one of an unknown type.

use backstitch_core::extra::Extra;
use backstitch_core::rng::Rng;
use backstitch_core::session::{Slice, SlicePolicy, StoredChange, StoredOp, StoredSlice};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::content;

/// An item of a `State` slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Identifies the task.
    pub key: String,
    /// A short description.
    pub title: String,
    /// Whether the task is finished.
    pub done: bool,
}

impl Slice for Task {
    const NAME: &'static str = "sample/task";
}

/// An item of a `Log` slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The text of the log entry.
    pub text: String,
}

impl Slice for Remark {
    const NAME: &'static str = "sample/remark";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// An item of a `Journal` slice: only a rewind removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    /// The name of the milestone.
    pub name: String,
}

impl Slice for Milestone {
    const NAME: &'static str = "sample/milestone";
    const POLICY: SlicePolicy = SlicePolicy::Journal;
}

/// The name of a `State` slice of an unknown type; its items have version 3.
pub const UNKNOWN_SLICE: &str = "sample/unknown";

/// A change of a slice as it is journaled.
pub(super) fn stored<S: Slice>(op: StoredOp) -> StoredChange {
    StoredChange {
        slice: S::NAME.into(),
        version: S::VERSION,
        policy: S::POLICY,
        op,
        extra: Extra::default(),
    }
}

/// The slice of tasks with these items.
pub(super) fn stored_tasks(items: Vec<Value>) -> StoredSlice {
    StoredSlice { items, ..StoredSlice::of::<Task>(&[]).expect("there is nothing to encode") }
}

/// A random task, as plain data.
pub(super) fn task(rng: &mut Rng) -> Value {
    let key = format!("task-{}", rng.below(1_000));
    json!({ "key": key, "title": content::sentence(rng, 5), "done": rng.below(2) == 0 })
}

/// A change of `length` tasks, and the number of tasks after it.
pub(super) fn change_tasks(rng: &mut Rng, length: usize) -> (StoredOp, usize) {
    let mut some = |count: usize| (0..count).map(|_| task(rng)).collect::<Vec<_>>();
    let added = 1 + length % 3;
    match length % 7 {
        0 | 1 => (StoredOp::Extend(some(added)), length + added),
        2 | 3 => (StoredOp::Append(some(1).remove(0)), length + 1),
        4 | 5 => {
            let append = some(added);
            let remove = vec![rng.below(length as u64) as usize];
            (StoredOp::Patch { remove, append }, length - 1 + added)
        }
        _ if rng.below(3) == 0 => (StoredOp::Clear, 0),
        _ => {
            let kept = 1 + rng.below(4) as usize;
            (StoredOp::Replace((0..kept).map(|_| task(rng)).collect()), kept)
        }
    }
}

/// A change of the logs: they mostly grow, but their owner may clear them.
pub(super) fn change_remarks(rng: &mut Rng) -> StoredOp {
    let mut remark = || json!({ "text": content::sentence(rng, 8) });
    let (one, other) = (remark(), remark());
    match rng.below(12) {
        0 => StoredOp::Clear,
        1..4 => StoredOp::Extend(vec![one, other]),
        _ => StoredOp::Append(one),
    }
}

/// A change of the slice of an unknown type.
pub(super) fn change_unknown(rng: &mut Rng) -> StoredChange {
    let item = json!({ "shape": content::word(rng), "size": rng.below(u64::MAX), "inner": [null, 0.5] });
    StoredChange {
        slice: UNKNOWN_SLICE.into(),
        version: 3,
        policy: SlicePolicy::State,
        op: if rng.below(8) == 0 { StoredOp::Clear } else { StoredOp::Append(item) },
        extra: Extra::default(),
    }
}
