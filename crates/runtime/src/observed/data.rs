//! What a program reports.

use backstitch_core::budget::Amounts;
use backstitch_core::message::Arguments;
use serde_json::Value;

/// The most characters of a tool's name.
const LONGEST_NAME: usize = 200;

/// A prompt of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedPrompt {
    /// Its text.
    pub text: String,
    /// The id by which the program knows it.
    pub id: Option<String>,
}

/// A call of a tool of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCall {
    /// The id by which the program knows it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments; usually an object.
    pub input: Value,
    /// The sub-agent that makes the call; none for the main conversation.
    pub agent: Option<String>,
}

impl ObservedCall {
    /// Creates a call of the main conversation.
    pub fn new(id: impl Into<String>, name: &str, input: Value) -> Self {
        let name = name.chars().filter(|one| !one.is_control()).take(LONGEST_NAME).collect();
        Self { id: id.into(), name, input, agent: None }
    }

    pub(super) fn arguments(&self) -> Arguments {
        match &self.input {
            Value::Object(object) => Arguments::from_object(object.clone()),
            other => Arguments::from_text(other.to_string()),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedResult {
    /// The value, or the message of the failure.
    pub outcome: Result<Value, String>,
    /// Duration of the call in microseconds, if the program reports it.
    pub elapsed_micros: Option<u64>,
}

/// A request of the program to its model.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedRequest {
    /// The id by which the program knows the answer. A request is recorded once.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Tokens and money.
    pub usage: Amounts,
}
