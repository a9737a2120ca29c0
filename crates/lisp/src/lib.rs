//! A sandboxed, suspendable subset of Clojure for agents. No IO.

mod compile;
mod error;
mod library;
mod limits;
mod machine;
mod reader;
mod value;

pub use error::{Error, ErrorKind, Location, Result};
pub use reader::{
    Completeness, Form, FormKind, Forms, Name, ReadLimits, Reader, Span, Tag, completeness, is_keyword_name,
    is_symbol_name, read_all, repair,
};
pub use limits::Limits;
pub use value::{Exception, Keyword, List, Map, Ratio, Set, Symbol, Temporal, Text, Value, Vector};
