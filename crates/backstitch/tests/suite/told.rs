//! Results of calls, as the model receives them.

use backstitch::host::CallOutcome;
use backstitch::journal::InnerMessage;
use backstitch::message::{Content, OptionResult};
use serde_json::Value;

use crate::harness::Harness;

impl Harness {
    /// Makes a call that has to succeed, and returns its result.
    pub(crate) async fn succeeds(&self, name: &str, arguments: Value) -> Value {
        match self.run(name, arguments).await {
            CallOutcome::Succeeded(message) => {
                let returned = result(&message).result.inline().cloned().unwrap();
                check_declared(name, &returned);
                returned
            }
            other => panic!("{name} did not succeed: {other:?}"),
        }
    }

    /// Makes a call that has to fail, and returns the kind and the text of its error.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> (String, String) {
        match self.run(name, arguments).await {
            CallOutcome::Failed(message) => {
                let result = result(&message);
                (result.error_type.clone().unwrap(), result.error_message.clone().unwrap())
            }
            other => panic!("{name} did not fail: {other:?}"),
        }
    }
}

/// Checks that a result of a built-in tool has every field that its schema requires, at any depth: programs
/// rely on them.
fn check_declared(name: &str, returned: &Value) {
    let tools = backstitch::tools::builtin_tools();
    let Some(tool) = tools.iter().find(|tool| tool.name().to_string() == name) else { return };
    if let Some(schema) = &tool.spec.output {
        check_required(name, returned, schema, schema);
    }
}

fn check_required(name: &str, value: &Value, schema: &Value, root: &Value) {
    if let Some(target) = schema["$ref"].as_str().and_then(|path| root.pointer(path.trim_start_matches('#')))
    {
        return check_required(name, value, target, root);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let of_choice = |choice: &Value| {
            let required = choice["required"].as_array().into_iter().flatten();
            required.map(|field| field.as_str().unwrap()).all(|field| value.get(field).is_some())
        };
        let mut resolved = choices.iter().map(|choice| {
            let target = choice["$ref"].as_str().map(|path| path.trim_start_matches('#'));
            target.and_then(|path| root.pointer(path)).unwrap_or(choice)
        });
        let fits = resolved.find(|choice| of_choice(choice));
        let fits = fits.unwrap_or_else(|| panic!("{name} returns nothing that is declared: {value}"));
        return check_required(name, value, fits, root);
    }
    match value {
        Value::Object(fields) => {
            for required in schema["required"].as_array().into_iter().flatten() {
                let required = required.as_str().unwrap();
                assert!(fields.contains_key(required), "{name} does not return {required}: {value}");
            }
            for (field, value) in fields {
                check_required(name, value, &schema["properties"][field], root);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| check_required(name, item, &schema["items"], root))
        }
        _ => {}
    }
}

fn result(message: &InnerMessage) -> &OptionResult {
    match &message.message.content {
        Content::OptionResult(result) => result,
        other => panic!("no result: {other:?}"),
    }
}
