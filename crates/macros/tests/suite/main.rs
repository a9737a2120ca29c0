//! The integration tests of the crate, in one binary.

mod derive;
mod tool;

/// What is refused, and in which words. `TRYBUILD=overwrite` writes the words anew.
#[test]
fn what_is_wrong_is_said_at_its_place() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// A file that nobody declares would never be compiled, and its tests never run.
#[test]
fn every_file_is_declared() {
    let declared = include_str!("main.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(declared.contains(&format!("mod {module};\n")), "{name} is not declared in main.rs");
        }
    }
}
