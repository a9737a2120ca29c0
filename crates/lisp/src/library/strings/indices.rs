//! Conversion between the indices of a program, which count UTF-16 code units, and bytes of a string.

use crate::error::{Error, ErrorKind, Result};
use crate::library::type_error;
use crate::value::{Text, Value};

/// Returns the byte at which the code unit with this index begins. The length is a valid index.
pub(super) fn byte_of(function: &str, text: &Text, index: i64) -> Result<usize> {
    let place = usize::try_from(index).ok().filter(|index| *index <= text.units());
    let index = place.ok_or_else(|| out_of_bounds(function, text, index))?;
    if let Some((byte, unit)) = text.place_of_unit(index)
        && unit == index
    {
        return Ok(byte);
    }
    Err(Error::argument(format!("{function}: index {index} is inside of a character that takes two units")))
}

pub(super) fn out_of_bounds(function: &str, text: &Text, index: i64) -> Error {
    let length = text.units();
    let message = format!("{function}: index {index} is out of bounds for a string of length {length}");
    Error::new(ErrorKind::IndexOutOfBounds, message)
}

/// Returns the index of the code unit that begins at this byte.
pub(super) fn unit_of(text: &Text, byte: usize) -> i64 {
    i64::try_from(text.unit_at(byte)).unwrap_or(i64::MAX)
}

/// Reads an index argument.
pub(super) fn index(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(index) => Ok(*index),
        // Java casts: a double index is truncated.
        Value::Float(index) if index.is_finite() => Ok(*index as i64),
        Value::BigInteger(index) => Ok(i64::try_from(&**index).unwrap_or(i64::MAX)),
        Value::Ratio(index) => Ok(i64::try_from(index.truncate()).unwrap_or(i64::MAX)),
        other => Err(type_error(function, "an integer index", other)),
    }
}
