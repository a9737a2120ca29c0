//! The library: every function that a program can use without defining it.
//!
//! A module of leaf functions has a table `NATIVES: &[Native]`, and `CONSTANTS: &[(name, fn() -> Value)]` for
//! names of plain values, such as `Math/PI`. All tables are listed in [`tables`] and [`constants`]. The rest
//! of the library is written in the language itself, in `prelude/*.clj`.

mod bits;
mod context;
mod core;
mod dates;
mod format;
mod json;
mod math;
mod native;
mod regex;
mod strings;

pub(crate) use context::{CallContext, not_a_sequence, type_error};
pub use native::Native;
pub(crate) use native::{Arity, Effects, Realise, Run};

pub(crate) use core::comparison::compare_values;
pub(crate) use core::exceptions::THROWABLE;
pub(crate) use core::predicates::CLASSES;
pub(crate) use core::sequences::{count_of, integer, items, out_of_bounds};
pub(crate) use core::sorted::comparator_of;
pub(crate) use dates::{DAYS, MONTHS, enumerated, parse_tagged, random_uuid};
pub(crate) use regex::{CompiledPattern, compile_pattern};
pub(crate) use strings::print_all;

use crate::value::Value;

/// A library name of a plain value.
pub(crate) type Constant = (&'static str, fn() -> Value);

/// Returns all functions written in Rust.
pub(crate) fn tables() -> impl Iterator<Item = &'static Native> {
    LEAVES.iter().chain(crate::machine::frames::TABLES).flat_map(|table| table.iter())
}

const LEAVES: &[&[Native]] = &[
    core::arithmetic::NATIVES,
    core::changes::NATIVES,
    core::collections::NATIVES,
    core::comparison::NATIVES,
    core::exceptions::CONSTRUCTORS,
    core::exceptions::NATIVES,
    core::lookups::NATIVES,
    core::predicates::NATIVES,
    core::predicates::MORE,
    core::sequences::NATIVES,
    core::sorted::NATIVES,
    core::unchecked::NATIVES,
    bits::NATIVES,
    dates::NATIVES,
    dates::amounts::NATIVES,
    dates::civil::NATIVES,
    dates::months::NATIVES,
    dates::zones::NATIVES,
    format::NATIVES,
    json::NATIVES,
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
];

/// The part of the library that is written in the language. Each file uses only those before it.
pub(crate) const PRELUDE: &[&str] = &[
    include_str!("prelude/basics.clj"),
    include_str!("prelude/sequences.clj"),
    include_str!("prelude/transducers.clj"),
    include_str!("prelude/maps.clj"),
];

/// Aliases: names under which the prelude finds native functions that it redefines, and second names that
/// Clojure has for the same function.
pub(crate) const SYNONYMS: &[(&str, &str)] = &[
    ("clojure.string/replace-plain*", "clojure.string/replace"),
    ("clojure.string/replace-first-plain*", "clojure.string/replace-first"),
    // A collection with one owner is changed in place anyway, so a transient is a plain collection.
    ("conj!", "conj"),
    ("assoc!", "assoc"),
    ("dissoc!", "dissoc"),
    ("disj!", "disj"),
    ("pop!", "pop"),
];

/// Returns all tables of plain values.
pub(crate) fn constants() -> &'static [&'static [Constant]] {
    &[
        core::sequences::CONSTANTS,
        dates::CONSTANTS,
        dates::amounts::CONSTANTS,
        dates::civil::CONSTANTS,
        dates::zones::CONSTANTS,
        math::CONSTANTS,
    ]
}
