//! A turn: one answer of the model, the program in it, and what came of it.
//!
//! A [`Turn`] is written once, when its program has ended, and never changed; the list of turns only grows. It is plain JSON
//! and is what the record `turn_finished` holds. It keeps the program in full, so that people can see what happened long
//! after a model is shown only a summary of it.
//!
//! A turn is as large as what it did, never as large as the history: of the memory it holds what it changed
//! ([`MemoryChange`]), and of a large value an [`Excerpt`] where the whole lies elsewhere in the journal. The memory after
//! turn n is a fold over the turns up to n.

use std::sync::Arc;

use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::object::ObjectRef;
use backstitch_lisp::{Memory, Truncation, Value, to_clojure_without_hidden, type_label};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What one answer of the model came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The number of the answer in its evaluation, from 1.
    pub number: u64,
    /// The answer, as the model wrote it.
    pub answer: String,
    /// The program that was found in it. Without one the turn has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the program ran to its end. What a program that failed has defined is gone; the calls it made are not.
    pub success: bool,
    /// The value of a program that ran to its end: of its last expression, or what `return` or `fail` were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Excerpt>,
    /// How the program ended the evaluation. A turn that has a signal is the last one of its evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<TurnSignal>,
    /// Why the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// What was printed, one entry for each call of `println`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
    /// The calls of tools, in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<TurnCall>,
    /// What the turn changed in the memory. Nothing, if it failed.
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
    /// `(return value)`, or the end of a program that had one turn only.
    Return,
    /// `(fail reason)`. The program itself did what it was meant to do, so its turn is a success.
    Fail,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// The kind of error: a name of the language's errors, or one of the agent's own, such as `no_program`.
    pub kind: String,
    /// The text, as the model is shown it, without `Error:` before it.
    pub message: String,
}

/// A call of a tool that a program made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnCall {
    /// The call, whose messages the journal holds.
    pub call_id: CallId,
    /// Where in its program it was made; see `backstitch_lisp::CallPath`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The tool.
    pub name: String,
    /// What it was called with: an object.
    pub arguments: Excerpt,
    /// What came of it.
    pub outcome: TurnCallOutcome,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnCallOutcome {
    /// It gave this.
    Result(Excerpt),
    /// It failed, with this message.
    Error(String),
    /// It has no result: its program was ended before.
    Open,
}

/// A value, or what there is to see of one that is too large to be kept twice.
///
/// The whole of a call's arguments and result lies in the messages of the call, and that of a definition in the stored
/// memory. So a turn repeats what is small and keeps a sample of what is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excerpt {
    /// The value itself.
    Whole(Json),
    /// The beginning of a value that JSON cannot say, or that is too large.
    Sample {
        /// The sample, in the notation of the language.
        text: String,
        /// The type of the value: `list[200]`.
        label: String,
    },
}

impl Excerpt {
    /// A value is repeated in a turn up to this many bytes of JSON.
    pub const WHOLE_BYTES: usize = 1024;

    /// The excerpt of a value that exists as JSON and as a value of the language.
    pub fn of(json: &Json, value: &Value, sample: Truncation) -> Self {
        if fits(json, Self::WHOLE_BYTES) { Self::Whole(json.clone()) } else { Self::sample(value, sample) }
    }

    /// The sample of a value.
    pub fn sample(value: &Value, sample: Truncation) -> Self {
        let text = to_clojure_without_hidden(value, sample);
        Self::Sample { text, label: type_label(value) }
    }
}

/// Whether the JSON of a value has at most so many bytes. It looks at no more of the value than that.
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

/// What a turn changed in the memory.
///
/// It says the same twice, for two readers. `defined` and `forgotten` are for whoever shows the memory: names, types, samples.
/// They can be read without the language and are never more than a few hundred bytes for each name. `stored` is for whoever
/// restores it, and may be filled in one of two ways:
///
/// - [`MemoryExtent::Delta`]: the definitions and atoms that this turn changed. To restore, start from the last turn whose extent
///   is `Whole` (or from nothing) and apply the deltas after it in order.
/// - [`MemoryExtent::Whole`]: everything, as `backstitch_lisp::store_memory` writes it. One every so often bounds how many deltas
///   have to be read.
///
/// Either may lie in the turn itself or, once it is large, in an object of the store. What the document of a delta looks like
/// is up to whoever writes it; nothing here reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryChange {
    /// What was defined or defined again, in the order of the first definition; the last value of each, with what it has
    /// returned if it is a function. A function that was merely called is in it too, if what it returned changed in type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<TurnDefinition>,
    /// The names that are no longer defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// Where to restore it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredMemory>,
}

/// A memory, or the change of one, that can be restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredMemory {
    /// How much of the memory it is.
    pub extent: MemoryExtent,
    /// The document.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub document: Json,
    /// The object that holds the document, once it is too large for the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
}

/// How much of a memory is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryExtent {
    /// What one turn changed.
    Delta,
    /// Everything.
    Whole,
}

/// A definition, as far as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDefinition {
    /// The name, without `user/`.
    pub name: String,
    /// The docstring of the latest definition, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// What the name stands for.
    #[serde(flatten)]
    pub defined_as: DefinedAs,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinedAs {
    /// A function written in the language.
    Function {
        /// The parameters of each arity, as they were written: `[x & more]`.
        parameters: Vec<String>,
        /// The type of what it returned last, if it has been called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        returned: Option<String>,
    },
    /// Any other value.
    Value {
        /// Its type: `list[3]`.
        label: String,
        /// Its beginning. None for what the type says all about, and for a name that begins with `_`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample: Option<String>,
    },
}

impl MemoryChange {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What has changed between two memories, without `stored`. What a program has `defined` is among it, also where the
    /// value is the one that the name had.
    pub fn between(before: &Memory, after: &Memory, defined: &[Arc<str>], sample: Truncation) -> Self {
        let changes = after.changes_since(before);
        let mut all = changes.defined;
        all.extend(defined.iter().filter_map(|name| after.get(name)));
        all.sort_unstable_by_key(|definition| definition.order);
        all.dedup_by_key(|definition| definition.order);
        Self {
            defined: all.into_iter().map(|definition| TurnDefinition::of(definition, sample)).collect(),
            forgotten: changes.forgotten.iter().map(|name| name.to_string()).collect(),
            stored: None,
        }
    }
}

impl TurnDefinition {
    /// A definition, as far as it is shown.
    pub fn of(definition: &backstitch_lisp::Definition, sample: Truncation) -> Self {
        let defined_as = match &definition.value {
            Value::Closure(closure) => DefinedAs::Function {
                parameters: closure.parameters().map(str::to_owned).collect(),
                returned: definition.returned.as_deref().map(str::to_owned),
            },
            value => {
                let label = type_label(value);
                // What an atom holds changes without a definition, and its number would be taken for what it holds.
                let told = matches!(label.as_str(), "nil" | "list[0]" | "map[0]" | "set[0]" | "atom");
                let hidden = definition.name.starts_with('_');
                DefinedAs::Value {
                    sample: (!told && !hidden).then(|| to_clojure_without_hidden(value, sample)),
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
