//! Values, checked against JSON Schemas.
//!
//! What is said of a value that does not fit is for a model: where (a path), what was expected and what was got. What is
//! firewalled is not said.

use backstitch_repl::{is_firewalled, without_firewalled};
use jsonschema::Validator;
use serde_json::Value;

/// The most problems that are told at once: a model mends a few at a time.
const MOST_PROBLEMS: usize = 8;

/// The longest excerpt of a value that is shown.
const LONGEST_EXCERPT: usize = 80;

/// What is wrong with a value, a line for each problem; `None` when it fits. `whole` is what the value itself is called.
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
    // The words of the error may repeat the value, which is not for every eye.
    let problem = error.masked_with("it");
    if is_hidden {
        return format!("{path}: {problem}");
    }
    format!("{path}: {problem}; got {}", excerpt(&without_firewalled(error.instance())))
}

/// The beginning of a value.
pub(crate) fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
