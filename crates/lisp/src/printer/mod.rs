//! Values as text.
//!
//! There are two printers. [`print`] writes a value in full, in one of Clojure's three styles ([`Style`]);
//! the output of `pr-str` reads back as an equal value, except for functions, atoms and exceptions, which
//! have no notation. [`to_clojure`] writes a sample: a few items of each collection and a few characters of
//! each string, with marks for omitted parts. It reads only what it shows, so a sample of a huge value costs
//! no more than one of a small value, and a lazy sequence is shown as far as it has been realised.
//!
//! Both bound their output: the first fails at a number of bytes that the caller sets, the second shows less
//! and less as its text grows.

mod fields;
mod full;
mod number;
mod sample;
mod scalar;
mod temporal;

pub use fields::label_with_fields;
pub(crate) use full::{Style, print};
pub(crate) use number::double_text;
pub use sample::{Truncation, to_clojure, to_clojure_without_hidden};
pub(crate) use temporal::{temporal_json, temporal_text};

use crate::error::Result;
use crate::value::Value;

/// Prints a value in full, as `pr-str` does. The text reads back as an equal value.
///
/// A few values that share their parts may print as more text than fits in memory. Use [`to_edn_within`] for
/// values of a program.
pub fn to_edn(value: &Value) -> String {
    let mut text = String::new();
    // Printing fails only at a bound, and here is none.
    let _ = print(value, Style::Readable, usize::MAX, &mut text);
    text
}

/// Prints a value in full, as [`to_edn`] does, or fails if that takes more than `most` bytes.
pub fn to_edn_within(value: &Value, most: usize) -> Result<String> {
    let mut text = String::new();
    print(value, Style::Readable, most, &mut text)?;
    Ok(text)
}
