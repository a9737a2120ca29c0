//! Forms that every provider accepts: ids and names of calls, arguments that are no JSON object, results as text.

use backstitch_core::id::CallId;
use backstitch_core::message::{Arguments, Large, OptionResult};
use serde_json::{Map, Value};

use super::RenderError;

/// The field under which arguments travel that are no JSON object.
const UNPARSED: &str = "unparsed_arguments";

/// The most characters of an id that all providers take. Those that are made here are shorter, since some took only 40.
const LONGEST_ID: usize = 64;

/// The most characters of a name that all providers take.
const LONGEST_NAME: usize = 64;

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// An id that every provider takes, the same each time.
pub(crate) fn minted_id(call: CallId) -> String {
    format!("call_{}", call.as_uuid().simple())
}

/// Whether the id of a call may be sent as it is.
pub(crate) fn is_legal_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= LONGEST_ID && is_word(id)
}

/// The name of an option, in characters that every provider takes. A model may invoke what does not exist, and still has to
/// be shown that it did.
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

/// The arguments as an object: themselves, or an object that holds their text.
pub(crate) fn arguments_object(arguments: &Arguments) -> Result<Map<String, Value>, RenderError> {
    if arguments.stored().is_some() {
        return Err(RenderError::NotHydrated { what: "arguments" });
    }
    Ok(match arguments.object() {
        Some(object) => object.clone(),
        None => wrapped(&arguments.text()),
    })
}

/// The arguments as a text that is a JSON object: as received where that is one.
pub(crate) fn arguments_text(arguments: &Arguments) -> Result<String, RenderError> {
    if arguments.stored().is_some() {
        return Err(RenderError::NotHydrated { what: "arguments" });
    }
    Ok(match arguments.object() {
        Some(_) => arguments.text().into_owned(),
        None => Value::Object(wrapped(&arguments.text())).to_string(),
    })
}

/// An object that holds a text which is none.
pub(crate) fn wrapped(text: &str) -> Map<String, Value> {
    Map::from_iter([(UNPARSED.to_owned(), Value::String(text.to_owned()))])
}

/// What came of a call, in words.
pub(crate) struct ResultText {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// What came of a call, in words.
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
        // Words and media that a tool gave back say more than that it gave back nothing else.
        (Value::Null, _) if !result.parts.is_empty() => String::new(),
        (value, _) => value.to_string(),
    };
    Ok(ResultText { text, is_error })
}

/// What is said of a call that has no result.
pub(crate) fn interrupted() -> ResultText {
    let text =
        "interrupted: the call was cut off before it gave a result. It may or may not have had an effect.";
    ResultText { text: text.to_owned(), is_error: true }
}

/// An error for providers that have no mark for errors.
pub(crate) fn marked(result: &ResultText) -> String {
    match result.is_error {
        true => format!("ERROR: {}", result.text),
        false => result.text.clone(),
    }
}
