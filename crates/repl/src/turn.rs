//! A turn: one answer of the model, its program, and the outcome.
//!
//! A [`Turn`] is written once, when its program has ended, and never changed; the list of turns only grows.
//! It is plain JSON and is the content of the record `turn_finished`. It contains the complete program, so
//! that users can inspect it long after requests only contain a summary.
//!
//! The size of a turn depends on what it did, and not on the history: it contains its changes of the memory
//! ([`MemoryChange`]), and of a large value an [`Excerpt`] if the journal holds the whole elsewhere. The
//! memory after turn n is a fold over the turns up to n.

use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::object::ObjectRef;
use backstitch_lisp::{Memory, Truncation, Value, label_with_fields, to_clojure_without_hidden, type_label};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The outcome of one answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The number of the answer in its evaluation, from 1.
    pub number: u64,
    /// The answer, as the model wrote it.
    pub answer: String,
    /// The program in it. Without one the turn has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the program ran to its end. The definitions of a failed program are dropped; its calls are
    /// not.
    pub success: bool,
    /// The value of a successful program: of its last expression, or the argument of `return` or `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Excerpt>,
    /// How the program ended the evaluation. A turn with a signal is the last one of its evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<TurnSignal>,
    /// Why the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// The printed texts, one for each call of `println`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
    /// The calls of tools, in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<TurnCall>,
    /// The changes of the memory. None, if the turn failed.
    #[serde(default, skip_serializing_if = "MemoryChange::is_empty")]
    pub memory: MemoryChange,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a program ended its evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSignal {
    /// `(return value)`, or the end of the program of an agent with only one turn.
    Return,
    /// `(fail reason)`. The program itself worked as intended, so its turn is a success.
    Fail,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// The kind: the name of an error of the language, or one of the agent's own, such as `no_program`.
    pub kind: String,
    /// The text that the model is shown, without `Error:` before it.
    pub message: String,
}

/// A call of a tool that a program made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCall {
    /// The call id. The journal holds the messages of the call.
    pub call_id: CallId,
    /// The place in the program; see `backstitch_lisp::CallPath`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments, an object.
    pub arguments: Excerpt,
    /// The result, if there is one.
    pub outcome: TurnCallOutcome,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnCallOutcome {
    /// The call succeeded with this result.
    Result(Excerpt),
    /// The call failed with this message.
    Error(String),
    /// The call has no result, because its program ended before.
    Open,
}

/// A value, or a sample of one that is too large to be stored twice.
///
/// The complete arguments and results of calls are in the messages of the calls, and complete definitions are
/// in the stored memory. So a turn contains small values, and samples of large ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excerpt {
    /// The value itself.
    Whole(Json),
    /// The beginning of a value that JSON cannot represent, or that is too large.
    Sample {
        /// The sample, in the notation of the language.
        text: String,
        /// The type of the value, with the fields of records: `list[200] of {:id :name}`.
        label: String,
    },
}

/// The type of a value, with the fields of records if the sample has them.
pub(crate) fn label(value: &Value, sample: Truncation) -> String {
    if sample.fields { label_with_fields(value, sample.items) } else { type_label(value) }
}

impl Excerpt {
    /// The maximum size of a value that a turn contains in full, in bytes of JSON.
    pub const WHOLE_BYTES: usize = 1024;

    /// The excerpt of a value, given both as JSON and as a value of the language.
    pub fn of(json: &Json, value: &Value, sample: Truncation) -> Self {
        if Self::fits_whole(json) { Self::Whole(json.clone()) } else { Self::sample(value, sample) }
    }

    /// Whether a value is small enough to be kept whole.
    pub(crate) fn fits_whole(json: &Json) -> bool {
        fits(json, Self::WHOLE_BYTES)
    }

    /// The sample of a value.
    pub fn sample(value: &Value, sample: Truncation) -> Self {
        let text = to_clojure_without_hidden(value, sample);
        Self::Sample { text, label: label(value, sample) }
    }
}

/// Whether the JSON of a value has at most this size in bytes. Stops reading the value there.
fn fits(json: &Json, most: usize) -> bool {
    struct Room(usize);
    impl std::io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Room(most), json).is_ok()
}

/// The changes of the memory by a turn.
///
/// It contains the changes twice. `defined` and `forgotten` are for display: names, types, samples. They can
/// be read without the interpreter, and have at most a few hundred bytes for each name. `stored` is for
/// restoring the memory, and has one of two extents:
///
/// - [`MemoryExtent::Delta`]: the definitions and atoms that this turn changed. To restore, start from the
///   last turn whose extent is `Whole` (or from an empty memory) and apply the deltas after it in order.
/// - [`MemoryExtent::Whole`]: everything, as `backstitch_lisp::store_memory` writes it. An occasional one
///   bounds the number of deltas to read.
///
/// Either is in the turn itself or, if it is large, in an object of the store. The writer defines the format
/// of a delta's document; nothing here reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// The new and changed definitions, in the order of the first definition; the last value of each, with
    /// the type of the last result if it is a function. Includes a function that was only called, if the type
    /// of its result changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<TurnDefinition>,
    /// Those of `defined` that the program only called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<String>,
    /// The names that are no longer defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// The data for restoring it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredMemory>,
}

/// A stored memory, or the change of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredMemory {
    /// The part of the memory.
    pub extent: MemoryExtent,
    /// The document.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub document: Json,
    /// The object that holds the document, if it is too large for the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
}

/// The stored part of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryExtent {
    /// The changes of one turn.
    Delta,
    /// The whole memory.
    Whole,
}

/// A definition, in a form for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDefinition {
    /// The name, without `user/`.
    pub name: String,
    /// The docstring of the latest definition, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// The value.
    #[serde(flatten)]
    pub defined_as: DefinedAs,
}

/// The kind of a defined value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinedAs {
    /// A function written in the language.
    Function {
        /// The parameters of each arity, as written: `[x & more]`.
        parameters: Vec<String>,
        /// The type of the last result, if it has been called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        returned: Option<String>,
    },
    /// Any other value.
    Value {
        /// The type, with the fields of records: `list[3] of {:id :name}`.
        label: String,
        /// The beginning of the value. `None` where the type is enough, and for a name that begins with `_`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample: Option<String>,
    },
}

impl MemoryChange {
    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the program defined nothing. Functions that it only called may be listed all the same.
    pub(crate) fn defines_nothing(&self) -> bool {
        self.defined.len() == self.called.len()
    }

    /// The changes between two memories, without `stored`. They include everything that a program has
    /// `defined`, even with the same value as before.
    pub fn between(before: &Memory, after: &Memory, defined: &[Arc<str>], sample: Truncation) -> Self {
        let changes = after.changes_since(before);
        let mut all = changes.defined;
        all.extend(defined.iter().filter_map(|name| after.get(name)));
        all.sort_unstable_by_key(|definition| definition.order);
        all.dedup_by_key(|definition| definition.order);
        let is_called = |definition: &&backstitch_lisp::Definition| {
            matches!(definition.value, Value::Closure(_)) && !defined.contains(&definition.name)
        };
        Self {
            called: all.iter().copied().filter(is_called).map(|called| called.name.to_string()).collect(),
            defined: all.into_iter().map(|definition| TurnDefinition::of(definition, sample)).collect(),
            forgotten: changes.forgotten.iter().map(|name| name.to_string()).collect(),
            stored: None,
        }
    }
}

impl TurnDefinition {
    /// Creates the form for display.
    pub fn of(definition: &backstitch_lisp::Definition, sample: Truncation) -> Self {
        let defined_as = match &definition.value {
            Value::Closure(closure) => DefinedAs::Function {
                parameters: closure.parameters().map(str::to_owned).collect(),
                returned: definition.returned.as_deref().map(str::to_owned),
            },
            value => {
                let label = label(value, sample);
                // The value of an atom changes without a definition, and its number would be taken for its
                // value.
                let is_obvious = matches!(label.as_str(), "nil" | "list[0]" | "map[0]" | "set[0]" | "atom");
                let hidden = definition.name.starts_with('_');
                DefinedAs::Value {
                    sample: (!is_obvious && !hidden).then(|| to_clojure_without_hidden(value, sample)),
                    label,
                }
            }
        };
        Self {
            name: definition.name.to_string(),
            doc: definition.doc.as_deref().map(str::to_owned),
            defined_as,
        }
    }
}
