//! The tests of the Lisp agent, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod coalesced;
mod configuration;
mod extraction;
mod golden;
mod machine;
mod mission;
mod pairs;
mod properties;
mod recall;
mod signature;
mod support;
mod transcripts;
mod turns;

/// A file that nobody declares would never be compiled, and its tests never run.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test may list its own folder")]
fn every_file_is_declared() {
    let declared = include_str!("main.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        if module != "main" {
            assert!(declared.contains(&format!("mod {module};\n")), "{name} is not declared in main.rs");
        }
    }
}
