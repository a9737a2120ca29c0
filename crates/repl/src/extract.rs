//! Finds the program in an answer of a model.
//!
//! The program consists of all blocks that are fenced as Clojure or Lisp, one after the other. Without one,
//! it is a fenced block that begins with a form; then the unfenced text from the first line that begins with
//! a form, with as many forms as follow. Prose around any of these is ignored. No input makes this fail or
//! run for long.
//!
//! Fences are accepted as models write them: also quoted, closed at the end of the last line, or all on one
//! line. Without a fence, a program may stand in inline code on a line of its own, after the prompt of a REPL,
//! or with its quotation marks escaped. Thoughts, which some servers send inside of the answer, are not part
//! of it.

use std::borrow::Cow;

use backstitch_lisp::{FormKind, ReadLimits, Reader};

use crate::thinking::without_thoughts;

/// The maximum size of an answer in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// The maximum number of lines that are tried as the beginning of a program.
const MOST_TRIED: usize = 16;

/// There is no program in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProgram {
    /// There is text, but no program in it.
    #[error("there is no program in the answer")]
    None,
    /// There is no text.
    #[error("the answer is empty")]
    Empty,
    /// The answer is too long to be searched.
    #[error("the answer is longer than {LONGEST} bytes")]
    TooLong,
}

/// Finds the program of an answer.
pub fn extract(answer: &str) -> Result<String, NoProgram> {
    if answer.trim().is_empty() {
        return Err(NoProgram::Empty);
    }
    if answer.len() > LONGEST {
        return Err(NoProgram::TooLong);
    }
    let answer = without_thoughts(answer);
    let answer = without_prompts(&answer);
    let answer = answer.as_ref();
    if answer.trim().is_empty() {
        return Err(NoProgram::None);
    }
    find(answer).map(unescaped)
}

fn find(answer: &str) -> Result<String, NoProgram> {
    let blocks = fenced(answer);
    let named: Vec<Cow<'_, str>> =
        blocks.iter().filter(|block| is_language(block.tag)).map(Block::program).collect();
    if named.iter().any(|text| !text.trim().is_empty()) {
        return Ok(named.join("\n"));
    }
    let mut untagged = blocks.iter().filter(|block| !is_other_language(block.tag)).map(Block::program);
    if let Some(program) = untagged.find(|program| begins_with_form(program)) {
        return Ok(program.into_owned());
    }
    if blocks.is_empty() && begins_with_form(answer) && is_program(answer) {
        return Ok(answer.trim().to_owned());
    }
    unfenced(answer).or_else(|| inline(answer)).ok_or(NoProgram::None)
}

/// The answer without prompts of a REPL before the forms.
fn without_prompts(answer: &str) -> Cow<'_, str> {
    if !answer.contains("=>") {
        return Cow::Borrowed(answer);
    }
    let prompt = |line: &str| {
        let after = ["user=>", "=>"].iter().find_map(|prompt| line.trim_start().strip_prefix(*prompt))?;
        let after = after.trim_start_matches(' ');
        after.starts_with('(').then(|| after.to_owned())
    };
    let lines: Vec<Cow<'_, str>> =
        answer.split('\n').map(|line| prompt(line).map_or(Cow::Borrowed(line), Cow::Owned)).collect();
    Cow::Owned(lines.join("\n"))
}

/// A program in inline code: at the end of a line, with nothing but a word and a colon before it, and the
/// only such line.
fn inline(answer: &str) -> Option<String> {
    let mut lines = answer.lines().filter_map(|line| {
        let inside = line.trim().trim_end_matches('.').strip_suffix('`')?;
        let (before, code) = inside.rsplit_once('`')?;
        let is_alone = before.trim().is_empty() || before.trim_end().ends_with(':');
        (is_alone && code.starts_with('(') && is_program(code)).then(|| code.to_owned())
    });
    let found = lines.next()?;
    lines.next().is_none().then_some(found)
}

/// A program whose text was escaped once too often, as for a string of JSON: it cannot be read, and without
/// the escapes it can.
fn unescaped(program: String) -> String {
    if !program.contains("\\\"") || reads(&program) {
        return program;
    }
    let mut repaired = String::with_capacity(program.len());
    let mut characters = program.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => repaired.push('\n'),
                Some('t') => repaired.push('\t'),
                Some(escaped @ ('"' | '\\')) => repaired.push(escaped),
                Some(other) => repaired.extend(['\\', other]),
                None => repaired.push('\\'),
            },
            (plain, false) => repaired.push(plain),
        }
    }
    if reads(&repaired) { repaired } else { program }
}

fn reads(program: &str) -> bool {
    backstitch_lisp::read_all(program, &ReadLimits::default()).is_ok()
}

/// A fenced block.
struct Block<'a> {
    /// The first word after the opening fence.
    tag: &'a str,
    text: &'a str,
    /// Whether the block is quoted, with a mark before each line.
    is_quoted: bool,
}

impl Block<'_> {
    /// The content, without the marks of a quotation.
    fn program(&self) -> Cow<'_, str> {
        let text = self.text.trim_end();
        if !self.is_quoted {
            return Cow::Borrowed(text);
        }
        let lines = text.lines().map(|line| {
            let line = line.trim_start();
            line.strip_prefix('>').unwrap_or(line)
        });
        Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// An open fence.
struct Open<'a> {
    fence: &'a str,
    tag: &'a str,
    start: usize,
    is_quoted: bool,
}

impl<'a> Open<'a> {
    fn closed(&self, text: &'a str, end: usize) -> Block<'a> {
        Block { tag: self.tag, text: &text[self.start..end.max(self.start)], is_quoted: self.is_quoted }
    }
}

/// The fenced blocks of a text. A fence without an end extends to the end of the text.
fn fenced(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Open<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (begin, end) = (at, at + line.len());
        at = end;
        let Some(opened) = &open else {
            match fence_of(line) {
                Some((fence, after)) => {
                    let tag = after.split_whitespace().next().unwrap_or_default();
                    let is_quoted = line.trim_start().starts_with('>');
                    open = Some(Open { fence, tag, start: end, is_quoted });
                }
                None => blocks.extend(in_one_line(line)),
            }
            continue;
        };
        let closing = match fence_of(line) {
            Some((fence, after)) => {
                (after.trim().is_empty() && fence.starts_with(opened.fence)).then_some(begin)
            }
            // A fence at the end of the last line, which cannot be part of a program.
            None => {
                let code = line.trim_end().strip_suffix(opened.fence);
                let ends_form = |code: &&str| code.trim_end().ends_with([')', ']', '}']);
                code.filter(ends_form).map(|code| begin + code.len())
            }
        };
        if let Some(end) = closing {
            blocks.push(opened.closed(text, end));
            open = None;
        }
    }
    if let Some(opened) = open {
        blocks.push(opened.closed(text, text.len()));
    }
    blocks
}

/// A block that is fenced on one line: ` ```clojure (return 1)``` `.
fn in_one_line(line: &str) -> Option<Block<'_>> {
    let inside = line.trim_start_matches([' ', '\t', '>']).strip_prefix("```")?;
    let (inside, _) = inside.split_once("```")?;
    let form = inside.find('(')?;
    let (tag, text) = inside.split_at(form);
    Some(Block { tag: tag.trim(), text, is_quoted: false })
}

/// The fence at the beginning of a line, and the text after it.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches([' ', '\t', '>']).trim_end();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|character| *character == mark).count();
    // A line with inline code is not a fence.
    let (fence, after) = line.split_at(length);
    (length >= 3 && !after.contains('`')).then_some((fence, after))
}

fn is_language(tag: &str) -> bool {
    let tag = tag.trim_matches(|character: char| !character.is_alphanumeric() && character != '-');
    ["clojure", "clj", "lisp", "cljs", "clojurescript", "scheme", "ptc-lisp"]
        .iter()
        .any(|language| tag.eq_ignore_ascii_case(language))
}

/// Whether a tag names another language.
fn is_other_language(tag: &str) -> bool {
    ["json", "python", "py", "sh", "bash", "shell", "console", "xml", "html", "yaml", "toml", "sql", "diff"]
        .iter()
        .any(|language| tag.eq_ignore_ascii_case(language))
}

/// Whether a text begins with a form that can be run, ignoring comments before it.
fn begins_with_form(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(';'));
    first.is_some_and(|line| line.starts_with('(') || line.starts_with("#("))
}

/// Whether a text consists of forms only, or was meant to: for a text that begins like a program and cannot
/// be read, the compiler reports the error.
fn is_program(text: &str) -> bool {
    let Ok(mut reader) = Reader::new(text, &ReadLimits::default()) else { return false };
    let mut is_first = true;
    loop {
        match reader.next_form() {
            Ok(Some(form)) => match &form.kind {
                FormKind::Symbol(_) => return false,
                FormKind::List(items) if is_first && !items.first().is_some_and(is_head) => return false,
                _ => is_first = false,
            },
            Ok(None) => return true,
            Err(_) => return !is_first || looks_like_call(text.trim_start()),
        }
    }
}

/// The lists from the first line that begins with one. An unclosed list is included.
fn unfenced(text: &str) -> Option<String> {
    let mut at = 0;
    let begins = text.split_inclusive('\n').map(|line| {
        at += line.len();
        at - line.trim_start().len()
    });
    let mut tried = begins.map(|begin| &text[begin..]).filter(|rest| rest.starts_with('(')).take(MOST_TRIED);
    tried.find_map(|rest| lists(rest).map(|length| rest[..length].to_owned()))
}

/// The length of the lists at the beginning of a text. A parenthesis with prose is not a list: a program
/// calls a function.
fn lists(text: &str) -> Option<usize> {
    let mut reader = Reader::new(text, &ReadLimits::default()).ok()?;
    let mut end = None;
    loop {
        match reader.next_form() {
            Ok(Some(form)) if form.as_list().is_some_and(|items| items.first().is_some_and(is_head)) => {
                end = Some(reader.offset());
            }
            Err(_) if end.is_none() => return looks_like_call(text).then_some(text.trim_end().len()),
            // The text after the forms is prose.
            _ => return end,
        }
    }
}

/// Whether a form can be the head of a list. Prose in parentheses begins with a capital letter, and no name
/// without a namespace does.
fn is_head(form: &backstitch_lisp::Form) -> bool {
    match &form.kind {
        FormKind::Symbol(name) => name.full().contains('/') || !name.full().starts_with(char::is_uppercase),
        FormKind::List(_) | FormKind::Keyword(_) => true,
        _ => false,
    }
}

/// Whether broken text was meant as a program: it begins with a call of a common name.
fn looks_like_call(text: &str) -> bool {
    const HEADS: [&str; 12] = [
        "(def", "(let", "(return", "(fail", "(do", "(tool/", "(->", "(println", "(map", "(reduce", "(filter",
        "(for",
    ];
    HEADS.iter().any(|head| text.starts_with(head))
}
