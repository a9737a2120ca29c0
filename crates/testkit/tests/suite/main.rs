//! Tests of the samples, and of rules for the whole workspace: declared files, dependencies, doors, modules, names, pages,
//! providers, sleeps, words.

mod cycles;
mod declared;
mod dependencies;
mod doors;
mod function_names;
mod identifiers;
mod modules;
mod pages;
mod participle;
mod providers;
mod sample;
mod sleeps;
mod source;
mod type_names;
mod words;
