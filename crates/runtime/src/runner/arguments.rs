//! Validation of arguments before a call runs.
//!
//! A refusal names the path, the expected and the actual value, so that a model can correct its call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::message::Arguments;
use backstitch_core::tool::{ToolName, ToolSpec};
use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::contract::{excerpt, problems};

/// Why arguments are refused, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

/// Arguments that do not fit the schema of their tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidArguments {
    /// What does not fit, with one line for each problem.
    pub reason: String,
}

/// Checks arguments against the schema of a tool, as before a call: a person who edits a call learns at once
/// what the call would be refused for.
pub fn check_arguments(tool: &ToolSpec, arguments: &Map<String, Value>) -> Result<(), InvalidArguments> {
    let arguments = Arguments::from(arguments.clone());
    let checked = Validators::default().check(tool, &arguments);
    checked.map(|_| ()).map_err(|Refusal(reason)| InvalidArguments { reason })
}

/// Compiled schemas, by tool.
#[derive(Default)]
pub(super) struct Validators {
    compiled: Mutex<HashMap<ToolName, Arc<Validator>>>,
}

impl Validators {
    /// Returns the arguments of a call as an object that fits the tool's schema.
    pub(super) fn check(
        &self,
        tool: &ToolSpec,
        arguments: &Arguments,
    ) -> Result<Map<String, Value>, Refusal> {
        let Some(object) = arguments.object() else {
            return Err(Refusal(unparsable(tool, arguments)));
        };
        let validator = self.validator(tool)?;
        let value = Value::Object(object.clone());
        match (problems(&validator, &value, "the arguments"), value) {
            (None, Value::Object(object)) => Ok(object),
            (problems, _) => {
                let problems = problems.unwrap_or_default();
                Err(Refusal(format!("the arguments of {} do not fit:{problems}", tool.name)))
            }
        }
    }

    fn validator(&self, tool: &ToolSpec) -> Result<Arc<Validator>, Refusal> {
        let compiled = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = compiled().get(&tool.name) {
            return Ok(validator.clone());
        }
        let validator = jsonschema::validator_for(&tool.parameters).map_err(|error| {
            Refusal(format!("the tool {} has a schema that cannot be used: {error}", tool.name))
        })?;
        let validator = Arc::new(validator);
        compiled().insert(tool.name.clone(), validator.clone());
        Ok(validator)
    }
}

fn unparsable(tool: &ToolSpec, arguments: &Arguments) -> String {
    let text = arguments.text();
    let problem = match serde_json::from_str::<Value>(&text) {
        Ok(other) => format!("expected a JSON object, got {}", excerpt(&other)),
        Err(error) => format!("they are not JSON: {error}"),
    };
    format!("the arguments of {} cannot be read: {problem}", tool.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> ToolSpec {
        let mut spec = ToolSpec::new(ToolName::new("search").unwrap(), "Searches.");
        spec.parameters = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
            "required": ["query"],
            "additionalProperties": false
        });
        spec
    }

    fn refusal(text: &str) -> String {
        Validators::default().check(&tool(), &Arguments::from_text(text)).unwrap_err().0
    }

    #[test]
    fn valid_arguments_pass() {
        let arguments = Arguments::from_text(r#"{"query": "seam", "limit": 3}"#);
        let object = Validators::default().check(&tool(), &arguments).unwrap();
        assert_eq!(object["limit"], 3);
    }

    #[test]
    fn a_refusal_names_the_path_the_problem_and_the_value() {
        let text = refusal(r#"{"query": 7, "limit": 0, "qeury": "x"}"#);
        assert!(text.contains("/query") && text.contains("string") && text.contains("got 7"), "{text}");
        assert!(text.contains("/limit"), "{text}");
        assert!(text.contains("qeury"), "{text}");
        let missing = refusal("{}");
        assert!(missing.contains("query"), "{missing}");
    }

    #[test]
    fn a_refusal_does_not_show_firewalled_values() {
        let text = refusal(r#"{"query": {"_key": "secret", "seen": 1}, "_token": "secret"}"#);
        assert!(text.contains("_token") && text.contains(r#"got {"seen":1}"#), "{text}");
        assert!(!text.contains("secret"), "{text}");
        let mut tool = tool();
        tool.parameters["properties"]["_pin"] = json!({"type": "string"});
        let arguments = Arguments::from_text(r#"{"query": "x", "_pin": 1234}"#);
        let text = Validators::default().check(&tool, &arguments).unwrap_err().0;
        assert!(text.contains("/_pin: it is not of type \"string\"") && !text.contains("1234"), "{text}");
    }

    #[test]
    fn values_that_are_no_object_are_distinguished_from_texts_that_are_no_json() {
        assert!(refusal("[1]").contains("expected a JSON object"));
        assert!(refusal("{\"query\": ").contains("not JSON"));
        let long = format!("\"{}\"", "x".repeat(1_000));
        assert!(refusal(&long).len() < 300);
    }
}
