//! Names of types: nouns that say what they are where they are used.

use std::fs;
use std::path::{Path, PathBuf};

use super::participle;

/// Words that end like participles of the present and are nouns.
const NOUNS: [&str; 6] = ["binding", "finding", "opening", "reading", "setting", "timing"];

#[test]
fn no_type_that_others_see_is_a_bare_participle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for directory in fs::read_dir(crates).expect("the crates are here").flatten() {
        for path in sources(&directory.path().join("src")) {
            let text = fs::read_to_string(&path).expect("a source is text");
            let names = text.lines().filter_map(declared).filter(|name| is_participle(name));
            found.extend(names.map(|name| format!("{}: {name}", path.display())));
        }
    }
    assert!(found.is_empty(), "say of what, as in `PreparedBatch`:\n{}", found.join("\n"));
}

/// The name of a type that a line declares for others.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").or(rest.strip_prefix("(super)")).unwrap_or(rest);
    let (keyword, name) = rest.trim_start().split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    name.split(|character: char| !character.is_alphanumeric()).next().filter(|_| is_type)
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(|character| character.is_uppercase()).count() == 1;
    let word = name.to_lowercase();
    let is_of_present = word.ends_with("ing") && !NOUNS.contains(&word.as_str());
    is_one_word && (is_of_present || participle::is_participle(&word))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn participles_are_known() {
    assert!(is_participle("Prepared") && is_participle("Told") && is_participle("Running"));
    assert!(!is_participle("PreparedBatch") && !is_participle("Seed") && !is_participle("Note"));
    assert_eq!(declared("    pub(crate) struct Kept<T> {"), Some("Kept"));
    assert_eq!(declared("pub fn kept() {"), None);
}
