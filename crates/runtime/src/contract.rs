//! Output contracts: the form of an answer, with its schema compiled.

use std::sync::Arc;

use backstitch_core::prompt::Output;
use jsonschema::Validator;
use serde_json::Value;

use crate::schema;

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
    wire: Arc<Value>,
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

    /// Returns the schema to send to providers.
    pub(crate) fn wire_schema(&self) -> &Arc<Value> {
        &self.wire
    }

    /// Returns the answer from structured data or text. The error says what is wrong with it, for the model.
    pub(crate) fn judge(&self, given: Option<Value>, text: &str) -> Result<Value, String> {
        let found = match given {
            Some(value) => self.output.take(value),
            None => self.output.read(text),
        };
        let mut value = found.map_err(|error| format!("The answer cannot be used: {error}"))?;
        let mut problems = self.problems(&value);
        if problems.is_some()
            && let Some(inner) = self.output.unwrapped(&value)
        {
            problems = self.problems(inner);
            value = inner.clone();
        }
        if let Some(problems) = problems {
            return Err(format!("The answer does not fit its schema:{problems}"));
        }
        self.output.check(&value).map_err(|error| format!("The answer does not fit: {error}"))?;
        Ok(value)
    }

    fn problems(&self, value: &Value) -> Option<String> {
        schema::problems(&self.validator, value, "the answer")
    }
}
