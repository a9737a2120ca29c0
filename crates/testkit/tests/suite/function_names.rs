//! Names of functions: a verb if they act, a noun if they return what there is, a question if they return `bool`.

use std::path::Path;

use super::participle::is_participle;
use super::source::{Signature, signatures, workspace_files};

/// Beginnings of questions.
const QUESTIONS: [&str; 4] = ["is_", "has_", "can_", "needs_"];

/// Words that may follow a participle without naming a thing: `ended_early`, `rolled_back`.
const PARTICLES: [&str; 20] = [
    "again", "alone", "anew", "apart", "at", "away", "back", "by", "early", "for", "from", "in", "of", "off",
    "on", "open", "out", "over", "to", "with",
];

/// Subjects before a participle: `call_started`, `not_started`.
const SUBJECTS: [&str; 16] = [
    "all", "answer", "call", "calls", "event", "file", "files", "machine", "message", "never", "none", "not",
    "process", "request", "session", "turn",
];

/// Participles that stay, each for a reason.
const KEPT: [(&str, &str); 1] =
    [("cancelled", "completes like `CancellationToken::cancelled`, which users know")];

/// All functions, each with the path of its file.
fn functions() -> Vec<(String, Signature)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The suites of the testkit are tests, whose names are sentences.
    let files = workspace_files(&root).into_iter().filter(|file| !file.path.starts_with("crates/testkit/"));
    let all = files.flat_map(|file| {
        let signatures = signatures(&file.code);
        signatures.into_iter().map(move |signature| (file.path.clone(), signature))
    });
    all.collect()
}

fn check(is_wrong: impl Fn(&Signature) -> bool, advice: &str) {
    let functions = functions();
    assert!(functions.len() > 5_000, "only {} functions were found", functions.len());
    let wrong = functions.iter().filter(|(_, function)| is_wrong(function));
    let lines: Vec<String> =
        wrong.map(|(path, function)| format!("{path}:{}: {}", function.line, function.name)).collect();
    assert!(lines.is_empty(), "{} functions {advice}:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn questions_have_an_answer() {
    check(is_question_without_answer, "are named as questions and do not return `bool`");
}

#[test]
fn functions_that_act_are_verbs() {
    check(is_named_by_participle, "act, and are named by a participle: name them by a verb");
}

/// Whether a function asks by its name, and sets or does something instead.
fn is_question_without_answer(function: &Signature) -> bool {
    let is_question = QUESTIONS.iter().any(|start| function.name.starts_with(start));
    let changes = function.parameters.starts_with("&mut self") && !function.returns_bool();
    is_question && (changes || function.returns_nothing())
}

/// Whether a function that returns nothing, or that waits, has the name of what was done.
fn is_named_by_participle(function: &Signature) -> bool {
    let acts = function.is_async || function.returns_nothing();
    if !acts || function.returns == "bool" || KEPT.iter().any(|(name, _)| *name == function.name) {
        return false;
    }
    let words: Vec<&str> = function.name.split('_').filter(|word| !word.is_empty()).collect();
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    // `recorded_call` is a noun, but not the name of something that only acts.
    let is_noun = words[1..].iter().any(|word| !PARTICLES.contains(word));
    let begins = is_participle(first) && (!is_noun || function.returns_nothing());
    begins || words.len() > 1 && SUBJECTS.contains(first) && is_participle(last)
}

fn one(code: &str) -> Signature {
    signatures(code).remove(0)
}

#[test]
fn signatures_are_read() {
    let code = "impl A {\n    pub(crate) async fn a<'b, T: Fn(u8) -> [u8; 2]>(\n        &mut self, t: T,\n    ) -> Result<(), E>\n    where T: B {}\n fn c(_: fn(u8) -> u8);\n}";
    let found = signatures(code);
    let names: Vec<(&str, usize, bool)> =
        found.iter().map(|one| (one.name.as_str(), one.line, one.is_async)).collect();
    assert_eq!(names, [("a", 2, true), ("c", 6, false)]);
    assert_eq!(found[0].parameters, "&mut self, t: T");
    assert_eq!((found[0].returns.as_str(), found[1].returns.as_str()), ("Result<(), E>", ""));
    assert!(found[0].returns_nothing() && !one("fn a() -> io::Result<u8> {}").returns_nothing());
    assert_eq!(one("fn a(&self) -> [u8; 4] { b() }").returns, "[u8; 4]");
}

#[test]
fn questions_that_set_are_found() {
    for wrong in
        ["fn is_asked(&self) {}", "fn has_ended(&mut self) -> u8 {}", "fn can_run(&self) -> Result<(), E> {}"]
    {
        assert!(is_question_without_answer(&one(wrong)), "{wrong}");
    }
    for right in
        ["fn is_asked(&self) -> bool {}", "fn has_end(&mut self) -> Result<bool, E> {}", "fn issue() {}"]
    {
        assert!(!is_question_without_answer(&one(right)), "{right}");
    }
}

#[test]
fn participles_that_act_are_found() {
    let wrong = [
        "async fn released(&self) -> u8 {}",
        "fn rolled_back(self) -> Result<(), E> {}",
        "fn call_started(&mut self) {}",
        "fn typed_items(&mut self) {}",
        "async fn given_back(&self) {}",
        "async fn not_started(&self) -> u8 {}",
    ];
    for wrong in wrong {
        assert!(is_named_by_participle(&one(wrong)), "{wrong}");
    }
    let right = [
        "fn sorted(items: Vec<u8>) -> Vec<u8> {}",
        "fn release(&self) {}",
        "fn set_driven(&self) {}",
        "async fn recorded_call(&self) -> u8 {}",
        "async fn cancelled(&self) {}",
        "fn seed(&mut self) {}",
        "fn hold_until_asked(&self) {}",
    ];
    for right in right {
        assert!(!is_named_by_participle(&one(right)), "{right}");
    }
}
