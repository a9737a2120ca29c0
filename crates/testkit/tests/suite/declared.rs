//! Every file of every crate is declared as a module. Otherwise it would not be compiled, and its tests would
//! not run.

use std::path::{Path, PathBuf};

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the workspace can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    paths
}

/// Whether a path is a Rust file.
fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Whether the text of a file declares another file, by the name of its module or by its relative path.
fn declares(text: &str, module: &str, path: &str) -> bool {
    let (plain, by_path) = (format!("mod {module};"), format!("#[path = \"{path}\"]"));
    text.lines().map(str::trim).any(|line| {
        line == plain
            || line == by_path
            || line.strip_suffix(&plain).is_some_and(|before| before.ends_with(' '))
    })
}

/// Collects the files below a folder that `speaker`, the root of its modules, does not declare.
fn collect_undeclared(folder: &Path, speaker: &Path, found: &mut Vec<PathBuf>) {
    let text = std::fs::read_to_string(speaker).expect("a file of the workspace can be read");
    for path in entries(folder).into_iter().filter(|path| path != speaker) {
        let module = path.file_stem().and_then(|stem| stem.to_str()).expect("names are text");
        let (inside, beside) = (path.join("mod.rs"), path.with_extension("rs"));
        if is_code(&path) {
            if !declares(&text, module, &format!("{module}.rs")) {
                found.push(path);
            }
        } else if inside.is_file() {
            collect_undeclared(&path, &inside, found);
            if !declares(&text, module, &format!("{module}/mod.rs")) {
                found.push(inside);
            }
        } else if path.is_dir() && beside.is_file() {
            collect_undeclared(&path, &beside, found);
        } else if path.ends_with("src/bin") {
            // Each file is a program of its own, which cargo finds.
        } else if path.is_dir() {
            // A folder of data, which must not contain code.
            found.extend(entries(&path).into_iter().filter(|path| is_code(path)));
        }
    }
}

#[test]
fn every_file_of_every_crate_is_declared() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut roots = 0;
    for member in entries(&crates) {
        for root in ["src/lib.rs", "src/main.rs", "tests/suite/main.rs"] {
            let root = member.join(root);
            if root.is_file() {
                roots += 1;
                collect_undeclared(root.parent().expect("a file is in a folder"), &root, &mut found);
            }
        }
    }
    assert!(roots > 20, "there are more crates than that: {roots}");
    assert!(found.is_empty(), "these files are not declared: {found:?}");
}
