//! The integration tests of the crate, in one binary.

mod derive;
mod tool;

/// What is refused, and in which words. `TRYBUILD=overwrite` writes the words anew.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
