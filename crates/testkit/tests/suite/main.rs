//! The samples are what they say they are.

mod sample;
