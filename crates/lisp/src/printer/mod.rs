//! Values as text.
//!
//! There are two printers. [`print`] writes a value in full, in one of the three manners of Clojure ([`Style`]); what
//! `pr-str` writes reads back as an equal value, but for functions, atoms and exceptions, which have no notation.
//! [`to_clojure`] writes a sample: a few items of each collection and a few characters of each string, marking what
//! it leaves out. It looks at nothing it does not show, so a sample of a huge value costs no more than one of a small
//! value, and a lazy sequence is shown as far as it has been realised.
//!
//! Both refuse to grow without bounds: the first fails at a number of bytes that the caller gives, the second shows
//! ever less once its text is long.

mod full;
mod number;
mod sample;
mod scalar;
mod temporal;

pub(crate) use full::{Style, print};
pub(crate) use number::double_text;
pub use sample::{Truncation, to_clojure, to_clojure_without_hidden};
pub(crate) use temporal::temporal_text;

use crate::error::Result;
use crate::value::Value;

/// The value in full, as `pr-str` writes it. It is the text that reads back as an equal value.
///
/// A few values that share their parts may be written as more text than there is room for. What a program has made is
/// better written with [`to_edn_within`].
pub fn to_edn(value: &Value) -> String {
    let mut text = String::new();
    // Without a bound there is nothing to fail at.
    let _ = print(value, Style::Readable, usize::MAX, &mut text);
    text
}

/// The value in full, as [`to_edn`] writes it, or an error if that takes more than so many bytes.
pub fn to_edn_within(value: &Value, most: usize) -> Result<String> {
    let mut text = String::new();
    print(value, Style::Readable, most, &mut text)?;
    Ok(text)
}
