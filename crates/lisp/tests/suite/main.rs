//! The tests of the language, in one binary.

mod errors;
mod reader;
mod reader_mutation;
mod repair;
