//! Text and forms as values, without evaluation.
//!
//! Memory and history enter this way, and `quote` and `read-string` return such values: a list is a list, a
//! symbol a symbol. A literal that is not a valid regular expression, date or number of its kind is an error
//! at its span.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::library::{compile_pattern, parse_tagged};
use crate::limits::Limits;
use crate::reader::{Form, FormKind, ReadLimits, read_all};
use crate::value::{Map, Pattern, Ratio, Set, Value};

/// Reads a text that holds exactly one EDN value. Its errors are located.
pub fn read_edn(text: &str, limits: &Limits) -> Result<Value> {
    let depth = usize::try_from(limits.deepest()).unwrap_or(usize::MAX);
    let reading = ReadLimits::default().with_bytes(limits.memory_bytes).with_depth(depth);
    let forms = read_all(text, &reading)?;
    let value = match &forms[..] {
        [form] => form_to_value(form).map_err(|error| error.locate(text))?,
        [] => return Err(Error::new(ErrorKind::InvalidText, "the text holds no value")),
        [_, second, ..] => {
            let error = Error::new(ErrorKind::InvalidText, "the text holds more than one value");
            return Err(error.at(second.span).locate(text));
        }
    };
    limits.check_depth(value.depth())?;
    Ok(value)
}

/// Converts a form to a value without evaluating it.
pub(crate) fn form_to_value(form: &Form) -> Result<Value> {
    let items = |forms: &[Form]| forms.iter().map(form_to_value).collect::<Result<Vec<Value>>>();
    Ok(match &form.kind {
        FormKind::Symbol(name) => Value::symbol(name.full()),
        FormKind::List(forms) => Value::list(items(forms)?),
        FormKind::Vector(forms) => Value::vector(items(forms)?),
        FormKind::Map(forms) => {
            let mut map = Map::new();
            for entry in forms.chunks_exact(2) {
                map.insert(form_to_value(&entry[0])?, form_to_value(&entry[1])?);
            }
            Value::Map(map)
        }
        FormKind::Set(forms) => Value::Set(items(forms)?.into_iter().collect::<Set>()),
        _ => literal(form)?.unwrap_or_default(),
    })
}

/// Returns the value of a self-evaluating form; `None` for symbols and collections.
pub(crate) fn literal(form: &Form) -> Result<Option<Value>> {
    Ok(Some(match &form.kind {
        FormKind::Nil => Value::Nil,
        FormKind::Boolean(value) => Value::Boolean(*value),
        FormKind::Integer(value) => Value::Integer(*value),
        FormKind::BigInteger(value) => Value::BigInteger(value.clone()),
        FormKind::Ratio(parts) => {
            Value::Ratio(Arc::new(Ratio { numerator: parts.0.clone(), denominator: parts.1.clone() }))
        }
        FormKind::Double(value) => Value::Float(*value),
        FormKind::Character(value) => Value::Character(*value),
        FormKind::String(text) => Value::string(&**text),
        FormKind::Keyword(name) => Value::keyword(name.full()),
        FormKind::Regex(source) => {
            let regex = compile_pattern(source).map_err(|error| error.at(form.span))?;
            Value::Regex(Arc::new(Pattern { source: (&**source).into(), regex }))
        }
        FormKind::Tagged(tag, text) => {
            Value::Temporal(Arc::new(parse_tagged(*tag, text).map_err(|error| error.at(form.span))?))
        }
        FormKind::Symbol(_)
        | FormKind::List(_)
        | FormKind::Vector(_)
        | FormKind::Map(_)
        | FormKind::Set(_) => return Ok(None),
    }))
}
