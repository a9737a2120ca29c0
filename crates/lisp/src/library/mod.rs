//! The library: every function a program can name without defining it.
//!
//! A module of leaves has a table `NATIVES: &[Native]`, and `CONSTANTS: &[(name, fn() -> Value)]` where it has names
//! that are plain values, such as `Math/PI`. All tables are listed in [`tables`] and [`constants`]. The rest of the
//! library is written in the language itself, in `prelude/*.clj`.

mod context;
mod native;

pub use context::{CallContext, type_error};
pub use native::{Arity, Effects, Native, Realise, Run};

use crate::value::Value;

/// A name of the library that is a plain value.
pub(crate) type Constant = (&'static str, fn() -> Value);

/// All tables of functions written in Rust.
pub(crate) fn tables() -> &'static [&'static [Native]] {
    &[]
}

/// All tables of plain values.
pub(crate) fn constants() -> &'static [&'static [Constant]] {
    &[]
}
