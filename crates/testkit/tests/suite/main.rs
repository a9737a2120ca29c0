//! Tests of the samples, and of rules for the whole workspace: declared files, dependencies, doors, modules, pages, words.

mod declared;
mod dependencies;
mod doors;
mod modules;
mod pages;
mod sample;
mod source;
mod type_names;
mod words;
