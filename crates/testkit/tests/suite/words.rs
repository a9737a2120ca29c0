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

/// The files and directories that are read.
const READ: [&str; 8] =
    ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench", "crates", "docs", "examples", "fuzz"];

#[test]
fn technical_words_are_used_where_there_are_some() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    // This file has the list.
    let others = |path: &PathBuf| !path.ends_with(file!());
    for path in READ.iter().flat_map(|name| files_below(&root.join(name))).filter(others) {
        // Binary files, such as fixtures, have no sentences.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (line, phrase, instead) in phrases_in(&text) {
            let place = path.strip_prefix(&root).unwrap_or(&path).display();
            found.push(format!("{place}:{line}: {phrase:?}: write {instead}"));
        }
    }
    assert!(found.is_empty(), "{} phrases to reword:\n{}", found.len(), found.join("\n"));
}

/// The refused phrases of a text, as whole words in any case, also across the lines of a comment or paragraph. Each has the
/// number of the line in which it starts.
fn phrases_in(text: &str) -> Vec<(usize, String, &'static str)> {
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let all = line.split(|character: char| !character.is_alphanumeric() && character != '_');
        let place = (number + 1, is_prose(line));
        words.extend(all.filter(|word| !word.is_empty()).map(|word| (place, word.to_lowercase())));
    }
    let mut found = Vec::new();
    for (start, end, instead) in REFUSED {
        let phrase = format!("{start}{end}");
        let wanted: Vec<&str> = phrase.split(' ').collect();
        for window in words.windows(wanted.len()) {
            let first = window[0].0;
            // Code of two lines is not a sentence.
            let is_one_sentence = window.iter().all(|(place, _)| *place == first || place.1 && first.1);
            if is_one_sentence && window.iter().map(|(_, word)| word).eq(&wanted) {
                found.push((first.0, phrase.clone(), instead));
            }
        }
    }
    found
}

/// Words after which "is no" compares or counts, and does not name a kind of thing.
const AFTER_NO: [&str; 14] = [
    "longer", "more", "one", "such", "smaller", "larger", "slower", "faster", "deeper", "newer", "older",
    "less", "fewer", "need",
];

/// A message says that something is not a file, and not that it is "no file".
#[test]
fn messages_say_is_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let others = |path: &PathBuf| !path.ends_with(file!()) && !path.ends_with("CHANGELOG.md");
    for path in READ.iter().flat_map(|name| files_below(&root.join(name))).filter(others) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let lines = text.lines().enumerate().filter(|(_, line)| says_is_no(line));
        found.extend(lines.map(|(number, line)| format!("{}:{}: {line}", path.display(), number + 1)));
    }
    assert!(found.is_empty(), "{} lines to reword with \"is not\":\n{}", found.len(), found.join("\n"));
}

/// Whether a line says what something is by what it is not: "is no file". "There is no file" is fine.
fn says_is_no(line: &str) -> bool {
    let words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
    let words: Vec<&str> = words.collect();
    words.windows(3).enumerate().any(|(place, window)| {
        let before = place.checked_sub(1).map_or("", |place| words[place]);
        let is_verb = ["is", "are", "was", "were"].contains(&window[0]);
        let is_there = before.eq_ignore_ascii_case("there") || before.is_empty() || before == "nor";
        let names = window[2].chars().all(char::is_alphabetic) && !window[2].is_empty();
        is_verb && window[1] == "no" && !is_there && names && !AFTER_NO.contains(&window[2])
    })
}

#[test]
fn a_kind_is_denied_with_is_not() {
    assert!(says_is_no("the path is no file"));
    assert!(says_is_no("texts that are no JSON"));
    assert!(!says_is_no("There is no file, and it is no longer needed"));
    assert!(!says_is_no("it is not a file"));
}

/// Whether a line is part of a comment, or of a text that is not a program.
fn is_prose(line: &str) -> bool {
    line.trim_start().starts_with("//") || !line.contains(['(', ';', '{', '"'])
}

/// The text files at or below a path, except data of tests, which may quote anything.
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
    let lines = format!("// A session that {}\n// {} here.", "goes", "on");
    assert_eq!(phrases_in(&lines).first().map(|(line, ..)| *line), Some(1));
    assert!(phrases_in("It forgoes only this.").is_empty());
    assert!(phrases_in("put_back(); // a name").is_empty());
}
