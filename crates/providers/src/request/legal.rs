//! Forms that every provider accepts: ids and names of calls, arguments that are not a JSON object, results
//! as text.

use backstitch_core::id::CallId;
use backstitch_core::message::{Arguments, Large, OptionResult};
use serde_json::{Map, Value};

use super::RenderError;

/// The field that holds arguments that are not a JSON object.
const UNPARSED: &str = "unparsed_arguments";

/// The maximum length of an id that all providers accept. Minted ids are shorter, since some providers
/// accepted only 40 characters.
const LONGEST_ID: usize = 64;

/// The maximum length of a name that all providers accept.
const LONGEST_NAME: usize = 64;

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A deterministic id that every provider accepts.
pub(crate) fn minted_id(call: CallId) -> String {
    format!("call_{}", call.as_uuid().simple())
}

/// Whether the id of a call may be sent as it is.
pub(crate) fn is_legal_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= LONGEST_ID && is_word(id)
}

/// The name of an option, in characters that every provider accepts. A model may invoke an option that does
/// not exist, and its call has to be shown nevertheless.
pub(crate) fn legal_name(name: &str) -> String {
    let legal = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '_',
    };
    let mut made: String = name.chars().map(legal).take(LONGEST_NAME).collect();
    if !made.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        made.insert(0, '_');
        made.truncate(LONGEST_NAME);
    }
    made
}

/// The arguments as an object; invalid ones are wrapped in an object that holds their text.
pub(crate) fn arguments_object(arguments: &Arguments) -> Result<Map<String, Value>, RenderError> {
    if arguments.stored().is_some() {
        return Err(RenderError::NotHydrated { what: "arguments" });
    }
    Ok(match arguments.object() {
        Some(object) => object.clone(),
        None => wrapped(&arguments.text()),
    })
}

/// The arguments as the text of a JSON object, as received if they are one.
pub(crate) fn arguments_text(arguments: &Arguments) -> Result<String, RenderError> {
    if arguments.stored().is_some() {
        return Err(RenderError::NotHydrated { what: "arguments" });
    }
    Ok(match arguments.object() {
        Some(_) => arguments.text().into_owned(),
        None => Value::Object(wrapped(&arguments.text())).to_string(),
    })
}

/// An object that holds a text which is not an object.
pub(crate) fn wrapped(text: &str) -> Map<String, Value> {
    Map::from_iter([(UNPARSED.to_owned(), Value::String(text.to_owned()))])
}

/// The text of a result.
pub(crate) struct ResultText {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// Renders a result as text.
pub(crate) fn result_text(result: &OptionResult) -> Result<ResultText, RenderError> {
    let is_error = result.is_error;
    let value = match &result.result {
        Large::Inline(value) => value,
        Large::Object(_) => return Err(RenderError::NotHydrated { what: "a result" }),
    };
    let text = match (value, &result.error_message) {
        (_, Some(message)) if is_error => match &result.error_type {
            Some(kind) => format!("{kind}: {message}"),
            None => message.clone(),
        },
        (Value::String(text), _) => text.clone(),
        // A tool result with parts and no value is not described as null.
        (Value::Null, _) if !result.parts.is_empty() => String::new(),
        (value, _) => value.to_string(),
    };
    Ok(ResultText { text, is_error })
}

/// The result of a call that was interrupted.
pub(crate) fn interrupted() -> ResultText {
    let text =
        "interrupted: the call was cut off before it gave a result. It may or may not have had an effect.";
    ResultText { text: text.to_owned(), is_error: true }
}

/// The text of a result, for providers without an error flag.
pub(crate) fn marked(result: &ResultText) -> String {
    if result.is_error { format!("ERROR: {}", result.text) } else { result.text.clone() }
}
