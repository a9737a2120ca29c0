//! A sandboxed, suspendable subset of Clojure for agents. No IO.

mod compile;
mod edn;
mod error;
mod json;
mod library;
mod limits;
mod machine;
mod printer;
mod reader;
mod types;
mod value;

pub use edn::read_edn;
pub use json::{from_json, to_json};
pub use error::{Error, ErrorKind, Location, Result};
pub use reader::{
    Completeness, Form, FormKind, Forms, Name, ReadLimits, Reader, Span, Tag, completeness, is_keyword_name,
    is_symbol_name, read_all, repair,
};
pub use limits::Limits;
pub use printer::{Truncation, to_clojure, to_edn};
pub use types::type_label;
pub use value::{Exception, Keyword, List, Map, Ratio, Set, Symbol, Temporal, Text, Value, Vector};
