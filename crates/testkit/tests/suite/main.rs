//! The samples are what they say they are, and no test of any crate is forgotten.

mod declared;
mod sample;
mod source;
