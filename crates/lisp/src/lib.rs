//! A sandboxed, suspendable subset of Clojure for agents. No IO.

mod compile;
mod edn;
mod engine;
mod error;
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
pub use engine::Engine;
pub use inputs::{Inputs, Tools};
pub use machine::{CallPath, Finished, Machine, Outcome, Request, Signal, TaskRecord, ToolCall};
pub use memory::{Definition, Memory};
pub use json::{from_json, to_json};
pub use error::{Error, ErrorKind, Location, Result};
pub use reader::{
    Completeness, Form, FormKind, Forms, Name, ReadLimits, Reader, Span, Tag, completeness, is_keyword_name,
    is_symbol_name, read_all, repair,
};
pub use limits::Limits;
pub use printer::{Truncation, to_clojure, to_edn};
pub use stored::{restore_memory, restore_value, store_memory, store_value};
pub use types::type_label;
pub use value::{Exception, Keyword, List, Map, Ratio, Set, Symbol, Temporal, Text, Value, Vector};
