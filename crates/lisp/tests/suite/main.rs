//! The tests of the language, in one binary.

mod dates;
mod errors;
mod format;
mod generate;
mod json;
mod math;
mod printer;
mod reader;
mod reader_mutation;
mod regex;
mod repair;
mod stored;
mod strings;
mod support;
mod types;
