//! Validation of values against JSON Schemas.
//!
//! Problems are described for a model: the path, the expected and the actual value. Firewalled values are not
//! shown.

use backstitch_repl::{is_firewalled, without_firewalled};
use jsonschema::Validator;
use serde_json::Value;

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
