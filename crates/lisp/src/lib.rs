//! A sandboxed, suspendable subset of Clojure for agents. No IO.

mod error;
mod reader;

pub use error::{Error, ErrorKind, Location, Result};
pub use reader::{Form, FormKind, Forms, Name, Span, Tag};
