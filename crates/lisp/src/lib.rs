//! A sandboxed, suspendable subset of Clojure for agents. No IO.

mod error;
mod reader;

pub use error::{Error, ErrorKind, Location, Result};
pub use reader::{
    Completeness, Form, FormKind, Forms, Name, ReadLimits, Reader, Span, Tag, completeness, is_keyword_name,
    is_symbol_name, read_all, repair,
};
