//! What the macros generate, and their errors, in one binary.

mod derive;
mod names;
mod tool;

/// The errors of the macros. `TRYBUILD=overwrite` updates the expected texts.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    trybuild::TestCases::new().compile_fail("ui/*.rs");
}

#[test]
fn the_core_has_the_rule_of_names_that_the_macro_checks() {
    for (text, is_valid) in names::names() {
        assert_eq!(backstitch::tool::ToolName::new(&text).is_ok(), is_valid, "{text}");
    }
}
