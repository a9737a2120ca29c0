//! The tests of the language, in one binary.

mod allocations;
mod dates;
mod differential;
mod errors;
mod format;
mod forms;
mod fuzz;
mod generate;
mod json;
mod killers;
mod limits;
mod maps;
mod math;
mod namespaces;
mod printer;
mod reader;
mod reference;
mod regex;
mod repair;
mod sequences;
mod stored;
mod strings;
mod support;
mod suspend;
mod types;
