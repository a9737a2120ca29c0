//! Missions: the tasks of agents, as templates.
//!
//! `{{name}}` is replaced with a value, `{{name.field.0}}` with a part of one; `\{{` is two braces. A text is
//! inserted unchanged, any other value as JSON. An unknown name is an error that lists the known ones, and so
//! is a firewalled value, because a mission is shown to a model.

use serde_json::{Map, Value as Json};

use crate::compression::push_foreign;
use crate::signature::is_firewalled;

/// The maximum number of fields in an error.
const MOST_NAMES: usize = 20;

/// A mission could not be filled from its template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissionError {
    /// There is no value of this name.
    #[error("the mission needs {{{{{name}}}}}, and there is no such data; there is {}", list(known))]
    Missing {
        /// The placeholder.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The value has no such part.
    #[error("the mission needs {{{{{name}}}}}, and {{{{{whole}}}}} is {what}")]
    MissingPart {
        /// The placeholder.
        name: String,
        /// The longest beginning of it that exists.
        whole: String,
        /// A description of the value there.
        what: String,
    },
    /// The value must not be shown to a model.
    #[error(
        "the mission shows {{{{{name}}}}}, which is firewalled: a name that begins with `_` is never part of a prompt"
    )]
    Firewalled {
        /// The placeholder.
        name: String,
    },
    /// A placeholder does not contain a name.
    #[error("the mission has a placeholder {{{{{text}}}}} that is not a name; write \\{{{{ for two braces")]
    NotAName {
        /// The text between the braces.
        text: String,
    },
    /// A placeholder has no end.
    #[error("the mission has {{{{ without }}}} after it, at byte {at}; write \\{{{{ for two braces")]
    Unclosed {
        /// The offset in bytes.
        at: usize,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}

/// Fills a template with values. A value with lines that could be taken for sections of a request is fenced.
pub fn fill_mission(template: &str, values: &Map<String, Json>) -> Result<String, MissionError> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        if rest[..at].ends_with('\\') {
            text.push_str(&rest[..at - 1]);
            text.push_str("{{");
            rest = &rest[at + 2..];
            continue;
        }
        text.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find("}}") else {
            return Err(MissionError::Unclosed { at: template.len() - rest.len() + at });
        };
        push_foreign(&mut text, &value_of(inside[..end].trim(), values)?);
        rest = &inside[end + 2..];
    }
    text.push_str(rest);
    Ok(text)
}

fn value_of(placeholder: &str, values: &Map<String, Json>) -> Result<String, MissionError> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let parts: Vec<&str> = placeholder.split('.').collect();
    if parts.iter().any(|part| part.is_empty() || !part.chars().all(is_part)) {
        return Err(MissionError::NotAName { text: placeholder.to_owned() });
    }
    if parts.iter().any(|part| is_firewalled(part)) {
        return Err(MissionError::Firewalled { name: placeholder.to_owned() });
    }
    let known = || values.keys().filter(|name| !is_firewalled(name)).cloned().collect();
    let missing = || MissionError::Missing { name: placeholder.to_owned(), known: known() };
    let mut value = values.get(parts[0]).ok_or_else(missing)?;
    for (index, part) in parts.iter().enumerate().skip(1) {
        let inner = match value {
            Json::Object(fields) => fields.get(*part),
            Json::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        };
        value = inner.ok_or_else(|| MissionError::MissingPart {
            name: placeholder.to_owned(),
            whole: parts[..index].join("."),
            what: what_is(value),
        })?;
    }
    Ok(match value {
        Json::String(text) => text.clone(),
        other => without_firewalled(other).to_string(),
    })
}

/// A short description of a value: what may follow its name in a placeholder.
fn what_is(value: &Json) -> String {
    match value {
        Json::Object(fields) => {
            let names: Vec<&str> = fields
                .keys()
                .filter(|name| !is_firewalled(name))
                .map(String::as_str)
                .take(MOST_NAMES)
                .collect();
            match names.len() {
                0 => "an object without fields that may be shown".to_owned(),
                _ => format!("an object with the fields {}", names.join(", ")),
            }
        }
        Json::Array(items) => format!("a list of {}, counted from 0", items.len()),
        _ => "a single value, without parts".to_owned(),
    }
}

/// A value without the firewalled fields inside of it.
pub fn without_firewalled(value: &Json) -> Json {
    match value {
        Json::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !is_firewalled(name))
            .map(|(name, value)| (name.clone(), without_firewalled(value)))
            .collect::<Map<_, _>>()
            .into(),
        Json::Array(items) => items.iter().map(without_firewalled).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}
