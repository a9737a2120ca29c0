//! Phrases that the project does not use, because there is a technical word for each.

use std::fs;
use std::path::{Path, PathBuf};

/// A phrase, in pieces so that this file does not contain it, and the words to use.
const REFUSED: [(&str, &str, &str); 9] = [
    ("who", "ever", "caller, reader, process, client, user"),
    ("some", "body", "caller, reader, process, client, user"),
    ("go ", "on", "resume, continue"),
    ("goes ", "on", "resumes, continues"),
    ("is ", "told", "is notified, is given; or name who reports it"),
    ("put ", "back", "restored, rolled back"),
    ("taken ", "back", "undone, rolled back"),
    ("works ", "for", "sub-agent, child session"),
    ("by ", "chance", "at random"),
];

/// The files and directories that are read: those that are free of the phrases so far.
const READ: [&str; 11] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "crates/filesystem",
    "crates/lisp",
    "crates/macros",
    "crates/store",
    "crates/workspace",
    "docs/errors",
    "docs/guides",
    "fuzz",
];

#[test]
fn technical_words_are_used_where_there_are_some() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for path in READ.iter().flat_map(|name| files_below(&root.join(name))) {
        // Bytes that are no text, as in fixtures, hold no sentences.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            for (phrase, instead) in phrases_in(line) {
                let place = path.strip_prefix(&root).unwrap_or(&path).display();
                found.push(format!("{place}:{}: {phrase:?}: write {instead}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} phrases to reword:\n{}", found.len(), found.join("\n"));
}

/// The refused phrases of a line, as whole words in any case.
fn phrases_in(line: &str) -> Vec<(String, &'static str)> {
    let words: Vec<String> = line
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let line = format!(" {} ", words.join(" "));
    let refused = REFUSED.iter().map(|(start, end, instead)| (format!("{start}{end}"), *instead));
    refused.filter(|(phrase, _)| line.contains(&format!(" {phrase} "))).collect()
}

/// The text files at or below a path. Data of tests is left out: it may quote anything.
fn files_below(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !["fixtures", "target", "data", "golden", "snapshots"].contains(&&*name) {
                files.extend(files_below(&path));
            }
        } else if [".rs", ".md", ".toml"].iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    files
}

#[test]
fn phrases_are_found_as_whole_words() {
    let sentence = format!("The session {}{} here.", "Goes ", "ON");
    assert_eq!(phrases_in(&sentence).len(), 1);
    assert!(phrases_in("It forgoes only this.").is_empty());
    assert!(phrases_in("put_back(); // a name").is_empty());
}
