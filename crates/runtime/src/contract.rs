//! Output contracts: the form of an answer, with its schema compiled.
//!
//! Values are validated against JSON Schemas. Problems are described for a model: the path, the expected and
//! the actual value. Firewalled values are not shown.

use std::sync::Arc;

use backstitch_core::prompt::Output;
use backstitch_repl::{is_firewalled, without_firewalled};
use jsonschema::Validator;
use serde_json::Value;

/// An error for a schema that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the schema of the output cannot be used: {reason}")]
pub struct InvalidSchema {
    /// What is wrong with it.
    pub reason: String,
}

/// The form that an answer has to have, with its schema compiled.
#[derive(Debug)]
pub struct OutputContract {
    output: Output,
    pub(crate) wire: Arc<Value>,
    validator: Validator,
}

impl OutputContract {
    /// Compiles the schema of an output.
    pub fn new(output: Output) -> Result<Self, InvalidSchema> {
        let validator = jsonschema::validator_for(output.schema())
            .map_err(|error| InvalidSchema { reason: error.to_string() })?;
        Ok(Self { wire: output.wire_schema(), validator, output })
    }

    /// Returns the output that it was compiled from.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Returns the answer from structured data or text. The error says what is wrong with it, for the model.
    pub(crate) fn judge(&self, given: Option<Value>, text: &str) -> Result<Value, String> {
        let found = match given {
            Some(value) => self.output.take(value),
            None => self.output.read(text),
        };
        let mut value = found.map_err(|error| format!("The answer cannot be used: {error}"))?;
        let mut found = problems(&self.validator, &value, "the answer");
        if found.is_some()
            && let Some(inner) = self.output.unwrapped(&value)
        {
            found = problems(&self.validator, inner, "the answer");
            value = inner.clone();
        }
        if let Some(problems) = found {
            return Err(format!("The answer does not fit its schema:{problems}"));
        }
        self.output.check(&value).map_err(|error| format!("The answer does not fit: {error}"))?;
        Ok(value)
    }
}

/// The most problems that are listed. A model corrects a few at a time.
const MOST_PROBLEMS: usize = 8;

/// The most characters of a value that are shown.
const LONGEST_EXCERPT: usize = 80;

/// Describes the problems of a value, one per line. `None` if it is valid. `whole` names the value itself.
pub(crate) fn problems(validator: &Validator, value: &Value, whole: &str) -> Option<String> {
    if validator.is_valid(value) {
        return None;
    }
    let mut problems = validator.iter_errors(value).map(|error| describe(&error, whole));
    let mut text = String::new();
    for problem in problems.by_ref().take(MOST_PROBLEMS) {
        text.push_str("\n- ");
        text.push_str(&problem);
    }
    if problems.next().is_some() {
        text.push_str("\n- and more");
    }
    Some(text)
}

fn describe(error: &jsonschema::ValidationError<'_>, whole: &str) -> String {
    let path = error.instance_path().to_string();
    let is_hidden = path.split('/').any(is_firewalled);
    let path = if path.is_empty() { whole } else { &path };
    // The text of the error may contain the value, which may be firewalled.
    let problem = error.masked_with("it");
    if is_hidden {
        return format!("{path}: {problem}");
    }
    format!("{path}: {problem}; got {}", excerpt(&without_firewalled(error.instance())))
}

/// Returns the beginning of a value.
pub(crate) fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
