//! The top modules of a crate do not use each other in a cycle.

use std::path::Path;

use backstitch_testkit::source::module_cycles;

/// The module cycles of a crate of the workspace.
fn cycles_of(member: &str) -> Vec<Vec<String>> {
    module_cycles(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(member).join("src"))
}

#[test]
fn there_are_no_cycles_of_modules() {
    let free = [
        "backstitch",
        "cli",
        "core",
        "filesystem",
        "macros",
        "providers",
        "repl",
        "runtime",
        "store",
        "testkit",
        "workspace",
    ];
    for member in free {
        assert_eq!(cycles_of(member), Vec::<Vec<String>>::new(), "{member}");
    }
}

#[test]
fn the_only_cycle_of_the_language_is_documented() {
    let modules: Vec<_> = cycles_of("lisp").iter().map(|cycle| cycle.join(" ")).collect();
    assert_eq!(modules, ["compile edn engine inputs json library machine memory printer types value"]);
}
