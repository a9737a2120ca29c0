//! Names that a crate leaves to others: it goes through their door.

use std::path::Path;

use super::source::source_files;

/// Checks that no production code of a crate has one of these names.
fn check(member: &str, names: &[&str]) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(member).join("src");
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let mut found = Vec::new();
    for file in source_files(&src) {
        let words: Vec<&str> = file.code.split(|character| !is_part(character)).collect();
        found.extend(
            names.iter().filter(|name| words.contains(name)).map(|name| format!("{}: {name}", file.path)),
        );
    }
    assert!(found.is_empty(), "{member} uses\n{}", found.join("\n"));
}

/// The command opens stores by their addresses (`backstitch::stores`), and uses them by their ports.
#[test]
fn the_command_knows_no_kind_of_store() {
    check("cli", &["SqliteStore", "MemoryStore", "SqliteOptions", "backstitch_store"]);
}

/// A handler of the server calls operations, and knows neither stores nor what drives sessions.
#[test]
fn the_server_leaves_stores_and_sessions_to_operations() {
    let stores = ["SqliteStore", "MemoryStore", "SqliteOptions", "backstitch_store", "StoreAdmin"];
    check(
        "server",
        &[&stores[..], &["LiveSession", "Driver", "HostWorkspace", "open_idle", "Workspace"]].concat(),
    );
}

/// The command claims no session and opens no directory by itself: the operations of `backstitch::Runtime` do, and release them.
#[test]
fn the_command_leaves_sessions_and_directories_to_operations() {
    check("cli", &["LiveSession", "Driver", "HostWorkspace", "open_idle"]);
}
