//! Names in source code: all identifiers, and the signatures of functions.
//!
//! Both read text that has no comments and no literals, as [`production_code`](super::production_code) returns it. They know
//! no types: a signature is the text that stands there.

use super::code::{group_end, is_word};

/// A name, and the line in which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identifier<'a> {
    /// Counted from 1.
    pub(crate) line: usize,
    /// Without the `'` of a lifetime.
    pub(crate) name: &'a str,
}

/// Returns all words of a code that are not numbers, keywords included.
pub(crate) fn identifiers(code: &str) -> Vec<Identifier<'_>> {
    let all = code.lines().enumerate().flat_map(|(index, line)| {
        let words = line.split(|character: char| !is_word(character));
        words.map(move |name| Identifier { line: index + 1, name })
    });
    all.filter(|one| one.name.starts_with(|first: char| !first.is_ascii_digit())).collect()
}

/// The signature of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The line of its name, counted from 1.
    pub(crate) line: usize,
    /// The name.
    pub(crate) name: String,
    /// Whether it is an `async fn`.
    pub(crate) is_async: bool,
    /// The parameters, in one line.
    pub(crate) parameters: String,
    /// The type that it returns, in one line. Empty if none is written.
    pub(crate) returns: String,
}

impl Signature {
    /// Whether a call returns no value: nothing, or a result without a value.
    pub(crate) fn returns_nothing(&self) -> bool {
        let is_result = self.returns.split_once('<').is_some_and(|(name, value)| {
            name.trim_end().ends_with("Result") && (value.starts_with("()>") || value.starts_with("(),"))
        });
        is_result || matches!(self.returns.as_str(), "" | "()")
    }

    /// Whether a call returns `bool`, perhaps in a result.
    pub(crate) fn returns_bool(&self) -> bool {
        self.returns.split(|character: char| !is_word(character)).any(|word| word == "bool")
    }
}

/// Returns the signatures of all functions with a name.
pub(crate) fn signatures(code: &str) -> Vec<Signature> {
    let characters: Vec<char> = code.chars().collect();
    let words = words(&characters);
    let mut signatures = Vec::new();
    for (index, pair) in words.windows(2).enumerate() {
        let (keyword, name) = (pair[0], pair[1]);
        // The type of a function pointer has no name behind its `fn`.
        let is_function = text(&characters, keyword) == "fn"
            && characters[keyword.1..name.0].iter().all(|between| between.is_whitespace());
        if is_function && let Some(mut signature) = signature(&characters, name) {
            let before = words[..index].iter().rev().map(|word| text(&characters, *word));
            let mut qualifiers = before.take_while(|word| QUALIFIERS.contains(&word.as_str()));
            signature.is_async = qualifiers.any(|word| word == "async");
            signatures.push(signature);
        }
    }
    signatures
}

/// Words between a visibility and `fn`.
const QUALIFIERS: [&str; 4] = ["async", "const", "extern", "unsafe"];

/// The places of all words.
fn words(code: &[char]) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let end = (at..code.len()).find(|place| !is_word(code[*place])).unwrap_or(code.len());
        if end > at {
            words.push((at, end));
        }
        at = end + 1;
    }
    words
}

fn text(code: &[char], (start, end): (usize, usize)) -> String {
    code[start..end].iter().collect()
}

/// The text between two places, in one line.
fn line(code: &[char], start: usize, end: usize) -> String {
    let text = text(code, (start, end));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The signature of the function with this name, without its qualifiers.
fn signature(code: &[char], name: (usize, usize)) -> Option<Signature> {
    let open = parameters_start(code, name.1)?;
    let close = group_end(code, open);
    let end = signature_end(code, close);
    let rest = line(code, close, end);
    Some(Signature {
        line: 1 + code[..name.0].iter().filter(|character| **character == '\n').count(),
        name: text(code, name),
        is_async: false,
        parameters: line(code, open + 1, close - 1).trim_end_matches(',').to_owned(),
        returns: rest.strip_prefix("->").unwrap_or_default().trim().to_owned(),
    })
}

/// The parenthesis that opens the parameters, behind the generics.
fn parameters_start(code: &[char], name_end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = name_end;
    while at < code.len() {
        match code[at] {
            '(' if depth == 0 => return Some(at),
            '(' | '[' | '{' => at = group_end(code, at) - 1,
            // The arrow of a bound such as `Fn() -> T`.
            '-' if code.get(at + 1) == Some(&'>') => at += 1,
            '<' => depth += 1,
            '>' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The place of the body, the semicolon or the `where` behind a signature.
fn signature_end(code: &[char], start: usize) -> usize {
    let mut at = start;
    while at < code.len() {
        match code[at] {
            '{' | ';' => return at,
            '(' | '[' => at = group_end(code, at),
            character if is_word(character) => {
                let end = (at..code.len()).find(|place| !is_word(code[*place])).unwrap_or(code.len());
                if text(code, (at, end)) == "where" {
                    return at;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    at
}
