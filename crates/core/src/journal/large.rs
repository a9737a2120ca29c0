//! What of a record is too large for it.
//!
//! Texts and results of more than [`INLINE_LIMIT`] bytes are stored once, as objects, and the record holds name and length.
//! Which objects a record cannot do without is asked before it is stored, and again before anything is thrown away.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::lifecycle::{Decision, SessionCreated};
use super::record::RecordBody;
use crate::message::{Content, Message, OptionResult, PolicyName};
use crate::object::{INLINE_LIMIT, Object, ObjectId, ObjectRef};
use crate::payload::InnerMessage;
use crate::payload::Provenance;
use crate::session::{Items, Slice};

impl RecordBody {
    /// Moves what is too large for a record out into objects.
    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        match self {
            Self::MessageAppended(message) => Arc::make_mut(message).spill(objects),
            Self::CallStarted(call) => {
                if let Some(large) = large(&call.arguments, objects) {
                    let call = Arc::make_mut(call);
                    (call.arguments, call.arguments_object) = (None, Some(large));
                }
            }
            Self::EvaluationFinished(finished) => {
                if let Some(large) = large(&finished.output, objects) {
                    let finished = Arc::make_mut(finished);
                    (finished.output, finished.output_object) = (None, Some(large));
                }
            }
            Self::ProgramStarted(program) => {
                if let Some(large) = large_text(program.source.as_deref(), objects) {
                    let program = Arc::make_mut(program);
                    (program.source, program.source_object) = (None, Some(large));
                }
            }
            Self::TaskFinished(task) => {
                if let Some(large) = large(&task.value, objects) {
                    let task = Arc::make_mut(task);
                    (task.value, task.value_object) = (Value::Null, Some(large));
                }
            }
            Self::TurnFinished(turn) => {
                if let Some(large) = large(&turn.data, objects) {
                    let turn = Arc::make_mut(turn);
                    (turn.data, turn.data_object) = (Value::Null, Some(large));
                }
            }
            Self::ResourceChanged(changed) => {
                if let Some(large) = large(&changed.state, objects) {
                    let changed = Arc::make_mut(changed);
                    (changed.state, changed.state_object) = (Value::Null, Some(large));
                }
            }
            Self::Note(note) => {
                if let Some(large) = large(&note.data, objects) {
                    let note = Arc::make_mut(note);
                    (note.data, note.data_object) = (Value::Null, Some(large));
                }
            }
            Self::Resolved(resolved) => {
                if let Decision::Happened { result } = &mut Arc::make_mut(resolved).decision {
                    spill_result(result, objects);
                }
            }
            _ => {}
        }
    }

    /// The objects that the record refers to: they must be stored no later than it.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let large = |reference: Option<ObjectRef>| reference.map(|reference| reference.object);
        let (roots, more) = match self {
            Self::MessageAppended(message) => return message.object_refs(),
            Self::SessionCreated(created) => return loaded_refs(created),
            Self::Resolved(resolved) => return decided_refs(&resolved.decision),
            Self::CallStarted(call) => ([call.root, None], [call.coverage, large(call.arguments_object)]),
            Self::CallFinished(call) => ([call.root, call.rescue], [call.coverage, None]),
            Self::Rewound(rewound) => ([rewound.root, rewound.rescue], [rewound.coverage, None]),
            Self::WorkspaceObserved(observed) => ([Some(observed.root), None], [observed.coverage, None]),
            Self::EvaluationFinished(finished) => ([None, None], [large(finished.output_object), None]),
            Self::ProgramStarted(program) => ([None, None], [large(program.source_object), None]),
            Self::TaskFinished(task) => ([None, None], [large(task.value_object), None]),
            Self::TurnFinished(turn) => ([None, None], [large(turn.data_object), None]),
            Self::ResourceChanged(changed) => ([None, None], [large(changed.state_object), None]),
            Self::Note(note) => ([None, None], [large(note.data_object), None]),
            _ => ([None, None], [None, None]),
        };
        let roots = roots.into_iter().flatten().flat_map(|root| [root.tree, root.manifest]);
        roots.chain(more.into_iter().flatten()).collect()
    }
}

/// Moves what is too large for a record out of what a record of this kind says.
macro_rules! spill_as {
    ($kind:ident, $said:expr, $objects:expr) => {{
        let mut body = RecordBody::$kind($said.clone());
        body.spill($objects);
        if let RecordBody::$kind(spilled) = body {
            *$said = spilled;
        }
    }};
}

impl Provenance {
    /// Moves what is too large for a record out into objects.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        for started in self.calls.iter_mut().filter_map(|call| call.started.as_mut()) {
            spill_as!(CallStarted, started, objects);
        }
        for evaluation in &mut self.evaluations {
            if let Some(finished) = &mut evaluation.finished {
                spill_as!(EvaluationFinished, finished, objects);
            }
            for program in &mut evaluation.programs {
                spill_as!(ProgramStarted, program, objects);
            }
            for task in &mut evaluation.tasks {
                spill_as!(TaskFinished, task, objects);
            }
            for turn in &mut evaluation.turns {
                spill_as!(TurnFinished, turn, objects);
            }
        }
    }
}

/// The object that holds a value, when the value is too large for a record.
fn large<T: Serialize>(value: &T, objects: &mut Vec<Object>) -> Option<ObjectRef> {
    let text = serde_json::to_string(value).ok().filter(|text| text.len() > INLINE_LIMIT)?;
    let object = Object::blob(text.into_bytes());
    let reference = object.to_ref();
    objects.push(object);
    Some(reference)
}

/// The object that holds a text as it is, when the text is too large for a record.
fn large_text(text: Option<&str>, objects: &mut Vec<Object>) -> Option<ObjectRef> {
    let text = text.filter(|text| text.len() > INLINE_LIMIT)?;
    let object = Object::blob(text.as_bytes().to_vec());
    let reference = object.to_ref();
    objects.push(object);
    Some(reference)
}

fn as_message(result: OptionResult) -> Message {
    Message::new(PolicyName::runtime(), Content::OptionResult(result))
}

fn spill_result(result: &mut OptionResult, objects: &mut Vec<Object>) {
    let mut message = as_message(result.clone());
    message.spill(objects);
    if let Content::OptionResult(spilled) = message.content {
        *result = spilled;
    }
}

fn decided_refs(decision: &Decision) -> Vec<ObjectId> {
    match decision {
        Decision::Happened { result } => as_message(OptionResult::clone(result)).object_refs(),
        _ => Vec::new(),
    }
}

/// The objects of the conversation that a session starts from.
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
