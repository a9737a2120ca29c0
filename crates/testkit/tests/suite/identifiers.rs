//! Words and phrases that no name of the production code has, because there is a technical word for each.
//!
//! The same list holds for sentences as far as [`words`](super::words) refuses them; names have more of them.

use std::collections::HashMap;
use std::path::Path;

use super::source::{identifiers, signatures, workspace_files};

/// A word or phrase as it stands in a name in lower case, and the words to use.
const REFUSED: [(&str, &str); 36] = [
    ("tell", "notify, emit, report, print, return"),
    ("tells", "notifies, emits, reports, distinguishes"),
    ("told", "name the value: the text, the report, the facts"),
    ("hear", "receive, note"),
    ("hears", "receives, notes"),
    ("heard", "received; or name the value"),
    ("unheard", "unseen"),
    ("said", "name the value: the message, the text, the answer"),
    ("wish", "request"),
    ("wishes", "requests"),
    ("wished", "requested"),
    ("surroundings", "environment, context"),
    ("whoami", "name what it returns"),
    ("chance", "random, seed"),
    ("owes", "is pending"),
    ("take_in", "handle, fold, feed, consume, decode"),
    ("takes_in", "handles, folds, feeds, consumes, decodes"),
    ("taken_in", "handle, fold, feed, consume, decode"),
    ("take_up", "open, reconcile, resume"),
    ("takes_up", "opens, reconciles, resumes"),
    ("taken_up", "open, reconcile, resume"),
    ("give_back", "release, return"),
    ("gives_back", "releases, returns"),
    ("given_back", "release, return"),
    ("put_back", "restore, roll back"),
    ("puts_back", "restores, rolls back"),
    ("files_back", "restore"),
    ("bring_back", "restore"),
    ("brought_back", "restore"),
    ("go_on", "resume, continue"),
    ("goes_on", "resumes, continues"),
    ("went_on", "resumed, continued"),
    ("go_back", "rewind, restore"),
    ("goes_back", "rewinds, restores"),
    ("went_back", "was rewound, was restored"),
    ("set_free", "release, ensure"),
];

/// Names of functions that say nothing.
const VAGUE: [&str; 2] = ["look", "look_at"];

/// Names that stored files have. They stay.
const STORED: [(&str, &str); 1] = [
    // A field of scripts.
    ("crates/providers/src/scripted/", "said"),
];

#[test]
fn names_use_technical_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    // Most names stand in many places.
    let mut known: HashMap<String, Option<&str>> = HashMap::new();
    // The suites of the testkit are tests, whose names are sentences.
    for file in workspace_files(&root).iter().filter(|file| !file.path.starts_with("crates/testkit/")) {
        let is_stored =
            |name: &str| STORED.iter().any(|(path, of)| file.path.starts_with(path) && *of == name);
        for one in identifiers(&file.code).into_iter().filter(|one| !is_stored(one.name)) {
            let verdict = known.get(one.name).copied().unwrap_or_else(|| refused(one.name));
            known.entry(one.name.to_owned()).or_insert(verdict);
            if let Some(instead) = verdict {
                found.push(format!("{}:{}: `{}`: write {instead}", file.path, one.line, one.name));
            }
        }
        for one in signatures(&file.code).into_iter().filter(|one| VAGUE.contains(&one.name.as_str())) {
            found.push(format!(
                "{}:{}: `{}`: write inspect, scan, read, visit",
                file.path, one.line, one.name
            ));
        }
    }
    assert!(found.is_empty(), "{} names to change:\n{}", found.len(), found.join("\n"));
}

/// The words to use instead of a name.
fn refused(name: &str) -> Option<&'static str> {
    let words = words_of(name);
    let has = |phrase: &str| {
        let phrase: Vec<&str> = phrase.split('_').collect();
        words.windows(phrase.len()).any(|window| window.iter().eq(&phrase))
    };
    REFUSED.iter().find(|(phrase, _)| has(phrase)).map(|(_, instead)| *instead)
}

/// The words of a name, in lower case: `StopWish` and `stop_wish` have the same.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if character == '_' || was_lower && character.is_uppercase() {
            words.push(String::new());
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
        let word = words.last_mut().expect("invariant: there is a word");
        word.extend(character.to_lowercase().filter(|character| *character != '_'));
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn names_are_divided_into_words() {
    assert_eq!(words_of("StopWish"), ["stop", "wish"]);
    assert_eq!(words_of("_put_files_back"), ["put", "files", "back"]);
    assert_eq!(words_of("LATE_WISH"), ["late", "wish"]);
    assert_eq!(words_of("Utf8Error"), ["utf8", "error"]);
}

#[test]
fn words_and_phrases_are_refused_as_a_whole() {
    for name in ["tell_engine", "StopWish", "LATE_WISH", "put_files_back", "GoOn", "said_by_user"] {
        assert!(refused(name).is_some(), "{name}");
    }
    for name in
        ["retell", "teller", "take_inner", "put_backend", "go_online", "intake", "lookup", "take_over"]
    {
        assert_eq!(refused(name), None, "{name}");
    }
}
