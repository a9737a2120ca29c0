//! The checks of the core that the targets run. They belong to its tests.

#[path = "../../crates/core/tests/suite/fuzz/decoders.rs"]
pub mod decoders;
