//! Tests of the samples, and of rules for the whole workspace: declared files, dependencies, modules, words.

mod declared;
mod dependencies;
mod modules;
mod sample;
mod source;
mod type_names;
mod words;
