//! Fields that are too large for a record.
//!
//! Texts and results of more than [`INLINE_LIMIT`](crate::object::INLINE_LIMIT) bytes are stored once, as
//! objects, and the record holds name and length. The references of a record are checked before it is stored,
//! and again before garbage is collected.

use std::sync::Arc;

use super::lifecycle::{Decision, SessionCreated};
use super::record::RecordBody;
use crate::object::{Object, ObjectId};
use crate::payload::{InnerMessage, LargeRecord};
use crate::session::{Items, Slice};

/// Returns the record of a body, if one of its fields may be too large.
macro_rules! large_record {
    ($body:expr) => {
        Some(match $body {
            RecordBody::CallStarted(record) => record,
            RecordBody::EvaluationFinished(record) => record,
            RecordBody::ProgramStarted(record) => record,
            RecordBody::TaskFinished(record) => record,
            RecordBody::TurnFinished(record) => record,
            RecordBody::ResourceChanged(record) => record,
            RecordBody::Note(record) => record,
            _ => return None,
        })
    };
}

impl RecordBody {
    fn as_large(&self) -> Option<&dyn LargeRecord> {
        large_record!(self)
    }

    fn as_large_mut(&mut self) -> Option<&mut dyn LargeRecord> {
        large_record!(self)
    }

    /// Moves fields that are too large for a record into objects.
    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        match self {
            Self::MessageAppended(message) => Arc::make_mut(message).spill(objects),
            Self::Resolved(resolved) => {
                if let Decision::Happened { result } = &mut Arc::make_mut(resolved).decision {
                    result.spill(objects);
                }
            }
            _ => {
                if let Some(record) = self.as_large_mut() {
                    record.spill(objects);
                }
            }
        }
    }

    /// Returns the objects that the record refers to. They must be stored no later than the record.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let (roots, coverage) = match self {
            Self::MessageAppended(message) => return message.object_refs(),
            Self::SessionCreated(created) => return loaded_refs(created),
            Self::Resolved(resolved) => return decided_refs(&resolved.decision),
            Self::Redacted(redacted) => return redacted.replacements().collect(),
            Self::ApplyStarted(apply) => {
                let roots = [apply.base, apply.result, apply.before, apply.after, apply.next_base];
                let objects = roots.into_iter().flat_map(|root| [root.tree, root.manifest]);
                return objects.chain(apply.coverage).collect();
            }
            Self::WorkspaceIsolated(isolated) => ([Some(isolated.root), None], isolated.coverage),
            Self::CallStarted(call) => ([call.root, None], call.coverage),
            Self::CallFinished(call) => ([call.root, call.rescue], call.coverage),
            Self::Rewound(rewound) => ([rewound.root, rewound.rescue], rewound.coverage),
            Self::WorkspaceObserved(observed) => {
                ([Some(observed.root), observed.restored], observed.coverage)
            }
            _ => ([None, None], None),
        };
        let roots = roots.into_iter().flatten().flat_map(|root| [root.tree, root.manifest]);
        let large = self.as_large().and_then(|record| record.large_object());
        roots.chain(coverage).chain(large.map(|reference| reference.object)).collect()
    }
}

fn decided_refs(decision: &Decision) -> Vec<ObjectId> {
    match decision {
        Decision::Happened { result } => result.objects().collect(),
        _ => Vec::new(),
    }
}

/// Returns the objects of the conversation that a session starts from.
fn loaded_refs(created: &SessionCreated) -> Vec<ObjectId> {
    let transcripts = created.state.iter().filter(|slice| slice.name == InnerMessage::NAME);
    let messages = transcripts.filter_map(|slice| slice.clone().into_cell().ok()?.items().ok());
    let carried = created.adopted.iter().flat_map(|adopted| adopted.object_refs());
    messages
        .flat_map(|messages: Items<InnerMessage>| {
            messages.iter().flat_map(|m| m.object_refs()).collect::<Vec<_>>()
        })
        .chain(carried)
        .collect()
}
