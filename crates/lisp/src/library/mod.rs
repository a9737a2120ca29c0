//! The library: every function a program can name without defining it.
//!
//! A module of leaves has a table `NATIVES: &[Native]`, and `CONSTANTS: &[(name, fn() -> Value)]` where it has names
//! that are plain values, such as `Math/PI`. All tables are listed in [`tables`] and [`constants`]. The rest of the
//! library is written in the language itself, in `prelude/*.clj`.

mod bits;
mod context;
mod dates;
mod format;
mod math;
mod native;
mod regex;
mod strings;

pub use context::{CallContext, type_error};
pub use native::{Arity, Effects, Native, Realise, Run};

pub(crate) use dates::parse_tagged;
pub use regex::CompiledPattern;
pub(crate) use regex::compile_pattern;
pub(crate) use strings::print_all;

use crate::value::Value;

/// A name of the library that is a plain value.
pub(crate) type Constant = (&'static str, fn() -> Value);

/// All tables of functions written in Rust.
pub(crate) fn tables() -> &'static [&'static [Native]] {
    &[
        bits::NATIVES,
        dates::NATIVES,
        format::NATIVES,
        math::convert::NATIVES,
        math::functions::NATIVES,
        math::functions::OF_DOUBLES,
        math::parse::NATIVES,
        regex::NATIVES,
        strings::case::NATIVES,
        strings::characters::NATIVES,
        strings::core::NATIVES,
        strings::methods::NATIVES,
        strings::replace::NATIVES,
        strings::search::NATIVES,
        strings::split::NATIVES,
    ]
}

/// All tables of plain values.
pub(crate) fn constants() -> &'static [&'static [Constant]] {
    &[dates::CONSTANTS, math::CONSTANTS]
}
