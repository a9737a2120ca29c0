//! Tests of the samples, and of rules for the whole workspace: declared files, dependencies, doors, modules, names, pages, sleeps, words.

mod declared;
mod dependencies;
mod doors;
mod function_names;
mod identifiers;
mod modules;
mod pages;
mod participle;
mod sample;
mod sleeps;
mod source;
mod type_names;
mod words;
