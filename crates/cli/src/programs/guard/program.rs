//! Names of programs on the command line.

use backstitch_bridge::Program;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses the name of a program.
pub(super) fn program_parser() -> impl TypedValueParser<Value = Program> {
    let names = Program::ALL.map(|program| PossibleValue::new(program.name()).help(program.title()));
    PossibleValuesParser::new(names)
        .try_map(|name| Program::of_name(&name).ok_or_else(|| format!("unknown program {name:?}")))
}
