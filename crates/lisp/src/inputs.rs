//! The inputs of a program: data, tools, memory, history, limits, the time and a seed.

use indexmap::IndexMap;

use crate::error::{Error, ErrorKind, did_you_mean};
use crate::limits::Limits;
use crate::memory::Memory;
use crate::value::{Map, Value};

/// The tools that a program may call, by name, each with the names of its parameters in order.
#[derive(Clone, Default, Debug)]
pub struct Tools(IndexMap<String, Vec<String>>);

impl Tools {
    /// Creates an empty set of tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. Its parameters are the properties of its schema, in the order of the schema.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.0.insert(name.into(), parameters.into_iter().map(Into::into).collect());
        self
    }

    /// Returns the names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the tool with this name, which may be written with `-` for `_`.
    pub(crate) fn find(&self, written: &str) -> Option<&str> {
        if let Some((name, _)) = self.0.get_key_value(written) {
            return Some(name);
        }
        let underscored = written.replace('-', "_");
        self.0.get_key_value(&underscored).map(|(name, _)| name.as_str())
    }

    pub(crate) fn parameters(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The error for a bare name that is both a tool and a data item.
    #[cold]
    pub(crate) fn ambiguous(written: &str, tool: &str) -> Error {
        Error::new(ErrorKind::AmbiguousReference, format!("`{written}` is both a tool and a data item"))
            .hint(format!("write `tool/{tool}` or `data/{written}`"))
    }

    /// The error for a tool that does not exist.
    #[cold]
    pub(crate) fn unknown(&self, name: &str) -> Error {
        let error = Error::new(ErrorKind::UnknownTool, format!("there is no tool `{name}`"));
        if self.0.is_empty() {
            return error.hint("no tools are available");
        }
        let all: Vec<&str> = self.names().collect();
        let known = format!("available tools: {}", all.join(", "));
        error.hint(match did_you_mean(name, self.names()) {
            Some(guess) => format!("{guess} {known}"),
            None => known,
        })
    }
}

/// Everything that a run depends on. The same inputs and the same tool results give the same outcome.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The items that `data/name` reads.
    pub data: Map,
    /// The tools that `(tool/name ...)` may call.
    pub tools: Tools,
    /// Definitions and atoms of earlier programs.
    pub memory: Memory,
    /// Results of earlier programs, oldest first: `*1` is the last of them.
    pub history: Vec<Value>,
    /// Recorded values of `(task "id" ...)`, by id.
    pub journal: Map,
    /// The limits of the run.
    pub limits: Limits,
    /// The time, in milliseconds since 1970. It does not change while the program runs.
    pub now: i64,
    /// The seed of random numbers.
    pub seed: u64,
}
