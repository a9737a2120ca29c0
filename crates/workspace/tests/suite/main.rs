//! The integration tests of the crate, in one binary: linking is what takes the time. They work in real directories, and
//! were written to be run by the superuser as well as by anybody else.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod cache;
mod capture;
mod confinement;
mod conformance;
mod coverage;
mod diff;
mod export;
mod filesystem;
mod git_names;
mod interrupt;
mod model;
mod rescue;
mod restore;
mod roots;
mod stored_form;
mod support;
mod unprivileged;

/// A file that nobody declares would never be compiled, and its tests never run.
#[test]
fn every_file_is_declared() {
    let declared = include_str!("main.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(declared.contains(&format!("mod {module};\n")), "{name} is not declared in main.rs");
        }
    }
}
