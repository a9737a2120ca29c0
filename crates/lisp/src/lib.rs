//! A sandboxed, suspendable subset of Clojure for agents. No IO.
//!
//! An [`Engine`] holds the library, compiled once. It compiles the text of a program to a [`Program`], whose
//! names are resolved against the [`Inputs`]: data, tools, and the [`Memory`] of earlier programs. A
//! [`Machine`] runs it until it finishes or needs the host, for a tool call or to record a task:
//! [`MachineOutcome`].
//!
//! A form that exists in Clojure has the same meaning here, errors included; any other form is an error with
//! a hint what to write instead. The same program with the same inputs and answers gives the same value,
//! prints and fuel.
//!
//! A program is bounded by [`Limits`], each with an error of its own. The crate reads no clock, starts no
//! threads and touches no files: the time and the random seed are inputs.
//!
//! Most modules are in one import cycle, and a test keeps it from growing. It has two causes. Values hold
//! code: a [`Closure`] is compiled, and compiled code holds values as constants, so `value` and `compile`
//! need each other, with everything that creates or prints values beside them (`edn`, `inputs`, `json`,
//! `memory`, `printer`, `types`). And library functions call functions of the program by steps of the
//! machine, which calls library functions: `library` and `machine`, with the `engine` that compiles the
//! former for the latter.

mod compile;
mod edn;
mod effort;
mod engine;
mod error;
pub mod fuzzing;
mod inputs;
mod json;
mod library;
mod limits;
mod machine;
mod memory;
mod printer;
mod reader;
mod stored;
mod types;
mod value;

pub use compile::Program;
pub use edn::read_edn;
#[cfg(feature = "tally")]
pub use effort::take_tally;
pub use engine::{Engine, INTERPRETER};
pub use error::{Error, ErrorKind, Location, Result, Span, did_you_mean};
pub use inputs::{Inputs, Tools};
pub use json::{from_json, to_json};
pub use library::Native;
pub use limits::Limits;
pub use machine::{CallPath, Machine, MachineOutcome, ProgramResult, Request, Signal, TaskRecord, ToolCall};
pub use memory::{Changes, Definition, Memory};
pub use printer::{
    Truncation, label_with_fields, to_clojure, to_clojure_without_hidden, to_edn, to_edn_within,
};
pub use reader::{
    Completeness, Form, FormKind, Forms, Name, ReadLimits, Reader, Tag, completeness, is_keyword_name,
    read_all, repair,
};
pub use stored::{restore_changes, restore_memory, restore_value, store_changes, store_memory, store_value};
pub use types::type_label;
pub use value::{
    AtomRef, Closure, Cursor, CursorStep, Exception, Keyword, LazyCell, List, ListNode, Map, Pattern, Ratio,
    Sequence, Set, Stamp, Symbol, Temporal, Text, TimeUnit, Value, Vector, Zone, compare, equal,
};
