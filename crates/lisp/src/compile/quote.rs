//! Forms as values: what `quote` gives, and what literals stand for.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Form, FormKind, Tag};
use crate::value::{Keyword, Map, Pattern, Ratio, Set, Symbol, Temporal, Text, Value};

/// The value of a form that is not evaluated.
pub(crate) fn quote(form: &Form) -> Result<Value> {
    Ok(match &form.kind {
        FormKind::Symbol(name) => Value::Symbol(Symbol::new(name.full())),
        FormKind::List(items) => Value::list(items.iter().map(quote).collect::<Result<_>>()?),
        FormKind::Vector(items) => Value::vector(items.iter().map(quote).collect::<Result<_>>()?),
        FormKind::Set(items) => Value::Set(items.iter().map(quote).collect::<Result<Set>>()?),
        FormKind::Map(items) => {
            let mut map = Map::new();
            for entry in items.chunks_exact(2) {
                map.insert(quote(&entry[0])?, quote(&entry[1])?);
            }
            Value::Map(map)
        }
        _ => literal(form)?.unwrap_or_default(),
    })
}

/// The value of a form that means itself, or nothing for symbols and collections.
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
        FormKind::String(text) => Value::String(Text::new(&**text)),
        FormKind::Keyword(name) => Value::Keyword(Keyword::new(name.full())),
        FormKind::Regex(source) => {
            let regex = crate::library::compile_pattern(source).map_err(|error| error.at(form.span))?;
            Value::Regex(Arc::new(Pattern { source: (&**source).into(), regex }))
        }
        FormKind::Tagged(tag, text) => tagged(*tag, text).map_err(|error| error.at(form.span))?,
        FormKind::Symbol(_)
        | FormKind::List(_)
        | FormKind::Vector(_)
        | FormKind::Map(_)
        | FormKind::Set(_) => {
            return Ok(None);
        }
    }))
}

fn tagged(tag: Tag, text: &str) -> Result<Value> {
    let invalid =
        || Error::new(ErrorKind::InvalidText, format!("not a valid #{} text: {text:?}", tag.name()));
    let temporal = match tag {
        Tag::Inst => {
            let text = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
            let stamp: jiff::Timestamp = text.parse().map_err(|_| invalid())?;
            Temporal::Date(stamp.as_millisecond())
        }
        Tag::Uuid => Temporal::Uuid(text.to_ascii_lowercase().into()),
        Tag::LocalDate => Temporal::LocalDate(text.parse().map_err(|_| invalid())?),
        Tag::Instant => Temporal::Instant(text.parse().map_err(|_| invalid())?),
        Tag::Duration => Temporal::Duration(text.parse().map_err(|_| invalid())?),
    };
    Ok(Value::Temporal(Arc::new(temporal)))
}
