//! Cells: the entries of a table of stored values.
//!
//! `null`, booleans, integers and strings stand for themselves; other scalars are small arrays that begin
//! with a letter; `["r", 7]` is the compound value number 7.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::damaged;
use crate::edn::read_edn;
use crate::error::Result;
use crate::library::{compile_pattern, parse_tagged};
use crate::limits::Limits;
use crate::printer::to_edn;
use crate::reader::Tag;
use crate::value::{Pattern, Symbol, Temporal, Value};

/// Returns the cell of a scalar, or `None` for a compound value.
pub(super) fn scalar_cell(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Nil => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::Integer(value) => json!(value),
        Value::String(text) => json!(text.as_str()),
        Value::Float(value) => json!(["f", format!("{value:?}")]),
        Value::BigInteger(value) => json!(["n", value.to_string()]),
        Value::Ratio(value) => json!(["q", value.numerator.to_string(), value.denominator.to_string()]),
        Value::Character(value) => json!(["c", value.to_string()]),
        Value::Keyword(name) => json!(["k", name.full()]),
        Value::Symbol(name) => json!(["y", name.full()]),
        Value::Regex(pattern) => json!(["re", &*pattern.source]),
        Value::Temporal(temporal) => temporal_cell(temporal),
        Value::Var(name) => json!(["var", name.full()]),
        Value::Tool(name) => json!(["tool", name.full()]),
        Value::Native(native) => json!(["native", native.name]),
        Value::Atom(atom) => json!(["atom", atom.number()]),
        _ => return None,
    })
}

fn temporal_cell(temporal: &Arc<Temporal>) -> Json {
    match &**temporal {
        // Milliseconds stay exact beyond the years that have a text.
        Temporal::Date(milliseconds) => json!(["date", milliseconds]),
        _ => json!(["t", to_edn(&Value::Temporal(temporal.clone()))]),
    }
}

/// Returns the scalar of an array cell with this letter; `None` for letters of compound values.
pub(super) fn scalar_of(letter: &str, parts: &[Json], limits: &Limits) -> Result<Option<Value>> {
    let text = |at: usize| parts.get(at).and_then(Json::as_str).ok_or_else(|| damaged("a text is missing"));
    Ok(Some(match letter {
        "f" => Value::Float(text(0)?.parse().map_err(|_| damaged("not a double"))?),
        "n" => integer(text(0)?, limits)?,
        "q" => match crate::value::Ratio::reduce(big(text(0)?, limits)?, nonzero(big(text(1)?, limits)?)?) {
            Ok(ratio) => Value::Ratio(Arc::new(ratio)),
            Err(_) => return Err(damaged("a ratio that is an integer")),
        },
        "c" => {
            let mut characters = text(0)?.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => Value::Character(character),
                _ => return Err(damaged("not a character")),
            }
        }
        "k" => Value::keyword(text(0)?),
        "y" => Value::symbol(text(0)?),
        "re" => {
            let source = text(0)?;
            Value::Regex(Arc::new(Pattern { source: source.into(), regex: compile_pattern(source)? }))
        }
        "t" => tagged(text(0)?, limits)?,
        "date" => {
            let milliseconds = parts.first().and_then(Json::as_i64).ok_or_else(|| damaged("not a date"))?;
            Value::Temporal(Arc::new(Temporal::Date(milliseconds)))
        }
        "var" => Value::Var(Symbol::new(text(0)?)),
        "tool" => Value::Tool(Symbol::new(text(0)?)),
        _ => return Ok(None),
    }))
}

fn big(text: &str, limits: &Limits) -> Result<num_bigint::BigInt> {
    // A decimal digit holds more than three bits.
    limits.check_number(text.len() as u64 * 3)?;
    text.parse().map_err(|_| damaged("not an integer"))
}

fn nonzero(value: num_bigint::BigInt) -> Result<num_bigint::BigInt> {
    if value == num_bigint::BigInt::ZERO { Err(damaged("a ratio over zero")) } else { Ok(value) }
}

fn integer(text: &str, limits: &Limits) -> Result<Value> {
    Ok(Value::BigInteger(Arc::new(big(text, limits)?)))
}

/// Reads a date, which is stored as its literal.
fn tagged(text: &str, limits: &Limits) -> Result<Value> {
    match read_edn(text, limits) {
        Ok(value @ Value::Temporal(_)) => Ok(value),
        _ => match text.strip_prefix("#uuid ").map(|text| text.trim_matches('"')) {
            Some(uuid) => Ok(Value::Temporal(Arc::new(parse_tagged(Tag::Uuid, uuid)?))),
            None => Err(damaged("not a date")),
        },
    }
}
