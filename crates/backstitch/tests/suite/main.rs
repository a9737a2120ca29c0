//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agent_files;
mod file_tools;
mod harness;
mod place;
mod plan_tools;
#[cfg(unix)]
mod shell;
mod tool_macro;

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
