//! The samples are what they say they are, no test of any crate is forgotten, and modules are in layers.

mod declared;
mod dependencies;
mod modules;
mod sample;
mod source;
mod words;
