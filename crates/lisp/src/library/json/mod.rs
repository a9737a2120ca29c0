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

use super::{Arity, CallContext, Native, Realise, type_error};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Keys;
use crate::value::Value;

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("json/read-str", Arity::at_least(1), DEEP, |c, a| read(c, "json/read-str", a)),
    Native::leaf("json/parse-string", Arity::between(1, 2), DEEP, |c, a| read(c, "json/parse-string", a)),
    Native::leaf("json/write-str", Arity::at_least(1), DEEP, |c, a| write(c, "json/write-str", a)),
    Native::leaf("json/generate-string", Arity::between(1, 2), DEEP, |c, a| {
        write(c, "json/generate-string", a)
    }),
];

fn read(context: &mut CallContext<'_>, function: &str, arguments: &[Value]) -> Result<Value> {
    let text = match &arguments[0] {
        Value::String(text) => text,
        other => return Err(type_error(function, "a string", other)),
    };
    let keys = match &arguments[1..] {
        [] => Keys::Strings,
        [flag] if flag.is_truthy() => Keys::Keywords,
        [_] => Keys::Strings,
        options => key_option(function, options)?,
    };
    context.work(text.len() / 8)?;
    // A character of JSON may become an item of sixteen bytes; most become less.
    context.allocate(text.len().saturating_mul(16))?;
    JsonReader::new(text, keys, context.limits()).document()
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
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{function}: an option it does not know"),
                )
                .hint("the option is `:key-fn keyword`; change keys afterwards with `update-keys`"));
            }
        }
    }
    Ok(keys)
}

fn write(context: &mut CallContext<'_>, function: &str, arguments: &[Value]) -> Result<Value> {
    let pretty = match &arguments[1..] {
        [] => false,
        [Value::Map(options)] => options.get(&Value::keyword("pretty")).is_some_and(Value::is_truthy),
        [Value::Keyword(name), flag] if matches!(name.full(), "indent" | "pretty") => flag.is_truthy(),
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{function}: an option it does not know"),
            )
            .hint("the option is `:indent true` or `{:pretty true}`"));
        }
    };
    let mut writer = JsonWriter::new(pretty, context.limits().string_bytes);
    writer.value(&arguments[0], 0)?;
    let text = writer.finish();
    context.string(text)
}
