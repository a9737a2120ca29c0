//! The integration tests of the crate, in one binary.

mod derive;
mod tool;

/// The errors of the macros. `TRYBUILD=overwrite` updates the expected texts.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
