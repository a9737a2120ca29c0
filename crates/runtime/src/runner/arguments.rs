//! Arguments, checked before anything runs.
//!
//! A refusal says where (a path), what was expected and what was got, so that a model can mend its call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::message::Arguments;
use backstitch_core::tool::{ToolName, ToolSpec};
use jsonschema::Validator;
use serde_json::{Map, Value};

/// Why arguments are refused, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

/// The most problems that are told at once: a model mends a few at a time.
const MOST_PROBLEMS: usize = 8;

/// The longest excerpt of a value that is shown.
const LONGEST_EXCERPT: usize = 80;

/// Compiled schemas, by tool.
#[derive(Default)]
pub(super) struct Validators {
    compiled: Mutex<HashMap<ToolName, Arc<Validator>>>,
}

impl Validators {
    /// The arguments of a call as an object that fits the tool's schema.
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
        let problems: Vec<_> = match validator.is_valid(&value) {
            true => Vec::new(),
            false => {
                let problems = validator.iter_errors(&value).take(MOST_PROBLEMS + 1);
                problems.map(|error| describe(&error)).collect()
            }
        };
        if let (Value::Object(object), true) = (value, problems.is_empty()) {
            return Ok(object);
        }
        let mut text = format!("the arguments of {} do not fit:", tool.name);
        for problem in problems.iter().take(MOST_PROBLEMS) {
            text.push_str("\n- ");
            text.push_str(problem);
        }
        if problems.len() > MOST_PROBLEMS {
            text.push_str("\n- and more");
        }
        Err(Refusal(text))
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

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let path = if path.is_empty() { "the arguments".to_owned() } else { path };
    format!("{path}: {error}; got {}", excerpt(error.instance()))
}

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
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
    fn what_fits_passes() {
        let arguments = Arguments::from_text(r#"{"query": "seam", "limit": 3}"#);
        let object = Validators::default().check(&tool(), &arguments).unwrap();
        assert_eq!(object["limit"], 3);
    }

    #[test]
    fn a_refusal_says_where_what_and_what_instead() {
        let text = refusal(r#"{"query": 7, "limit": 0, "qeury": "x"}"#);
        assert!(text.contains("/query") && text.contains("string") && text.contains("got 7"), "{text}");
        assert!(text.contains("/limit"), "{text}");
        assert!(text.contains("qeury"), "{text}");
        let missing = refusal("{}");
        assert!(missing.contains("query"), "{missing}");
    }

    #[test]
    fn what_is_no_object_is_told_apart_from_what_is_no_json() {
        assert!(refusal("[1]").contains("expected a JSON object"));
        assert!(refusal("{\"query\": ").contains("not JSON"));
        let long = format!("\"{}\"", "x".repeat(1_000));
        assert!(refusal(&long).len() < 300);
    }
}
