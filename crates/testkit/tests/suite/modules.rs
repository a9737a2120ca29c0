//! The top modules of a crate do not use each other in a cycle.

use std::path::{Path, PathBuf};

use super::source::{folder_cycles, module_cycles};

fn source_of(member: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(member).join("src")
}

/// The module cycles of a crate of the workspace.
fn cycles_of(member: &str) -> Vec<Vec<String>> {
    module_cycles(source_of(member))
}

#[test]
fn there_are_no_cycles_of_modules() {
    let free = [
        "acp",
        "backstitch",
        "bridge",
        "cli",
        "core",
        "filesystem",
        "macros",
        "mcp",
        "providers",
        "repl",
        "runtime",
        "server",
        "store",
        "testkit",
        "workspace",
    ];
    for member in free {
        assert_eq!(cycles_of(member), Vec::<Vec<String>>::new(), "{member}");
    }
}

#[test]
fn there_are_no_cycles_in_folders_with_many_modules() {
    let folders = [
        ("bridge", "claude_code"),
        ("bridge", "codex"),
        ("bridge", "settings"),
        ("bridge", "transcript"),
        ("cli", "history"),
        ("cli", "look"),
        ("cli", "open"),
        ("cli", "open/guarded"),
        ("cli", "people"),
        ("cli", "programs"),
        ("cli", "programs/guard"),
        ("cli", "setup"),
        ("cli", "store"),
        ("cli", "work"),
        ("mcp", "client"),
        ("mcp", "server"),
        ("store", "sqlite"),
    ];
    for (member, folder) in folders {
        let cycles = folder_cycles(source_of(member), folder);
        assert_eq!(cycles, Vec::<Vec<String>>::new(), "{member}: {folder}");
    }
}

#[test]
fn the_only_cycle_of_the_language_is_documented() {
    let modules: Vec<_> = cycles_of("lisp").iter().map(|cycle| cycle.join(" ")).collect();
    assert_eq!(modules, ["compile edn engine inputs json library machine memory printer types value"]);
}
