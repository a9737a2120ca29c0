//! JSON in programs: `json/read-str` and `json/write-str`, also under the names of Cheshire.
//!
//! As in Clojure's own library, the keys of objects are strings unless the program requests keywords, with
//! `:key-fn keyword` or Cheshire's `true`; lookups accept the keyword or the string either way. Integers of
//! any size stay exact. In output, keys are the names of keywords; a ratio is the nearest double, a sequence
//! or set an array. Infinities, NaN and functions have no JSON and are errors.

mod read;
mod write;

use read::JsonReader;
use write::JsonWriter;

use super::{Arity, CallContext, Native, Realise};
use crate::error::{Error, Result};
use crate::json::Keys;
use crate::value::Value;

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("json/read-str", Arity::at_least(1), DEEP, read),
    Native::leaf("json/parse-string", Arity::between(1, 2), DEEP, read),
    Native::leaf("json/write-str", Arity::at_least(1), DEEP, write),
    Native::leaf("json/generate-string", Arity::between(1, 2), DEEP, write),
];

fn read(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let Value::String(text) = &arguments[0] else {
        return Err(context.type_error("a string", &arguments[0]));
    };
    let keys = match &arguments[1..] {
        [] => Keys::Strings,
        [flag] if flag.is_truthy() => Keys::Keywords,
        [_] => Keys::Strings,
        options => key_option(context.name, options)?,
    };
    context.work(text.len() / 8)?;
    // A character of JSON may become an item of sixteen bytes; most become less.
    context.allocate(text.len().saturating_mul(16))?;
    JsonReader::new(text, keys, context.limits).document()
}

/// Reads `:key-fn keyword` and `:key-fn str`. A function of the program cannot be called from here.
fn key_option(function: &str, options: &[Value]) -> Result<Keys> {
    let mut keys = Keys::Strings;
    for option in options.chunks(2) {
        match option {
            [Value::Keyword(name), Value::Native(native)]
                if name.full() == "key-fn" && native.name == "keyword" =>
            {
                keys = Keys::Keywords;
            }
            [Value::Keyword(name), Value::Native(native)]
                if name.full() == "key-fn" && matches!(native.name, "str" | "identity" | "name") =>
            {
                keys = Keys::Strings;
            }
            _ => {
                return Err(unknown_option(function)
                    .hint("the option is `:key-fn keyword`; change keys afterwards with `update-keys`"));
            }
        }
    }
    Ok(keys)
}

fn unknown_option(function: &str) -> Error {
    Error::argument(format!("{function}: an option it does not know"))
}

fn write(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let pretty = match &arguments[1..] {
        [] => false,
        [Value::Map(options)] => options.get(&Value::keyword("pretty")).is_some_and(Value::is_truthy),
        [Value::Keyword(name), flag] if matches!(name.full(), "indent" | "pretty") => flag.is_truthy(),
        _ => {
            let error = unknown_option(context.name);
            return Err(error.hint("the option is `:indent true` or `{:pretty true}`"));
        }
    };
    let mut writer = JsonWriter::new(pretty, context.limits);
    writer.value(&arguments[0], 0)?;
    let text = writer.finish();
    context.string(text)
}
