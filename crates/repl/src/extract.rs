//! Finding the program in what a model said.
//!
//! Blocks that are fenced as Clojure or Lisp are the program, all of them, one after the other. Where there is none, a fenced
//! block that reads as a form is; then what stands unfenced: from the first line that begins with a form, as many forms as
//! there are. Words around any of these are nobody's business. Whatever a model writes, this neither fails nor takes long.
//!
//! Fences are read as models write them: also quoted, closed at the end of the last line, or all in one line.

use std::borrow::Cow;

use backstitch_lisp::{FormKind, ReadLimits, Reader};

/// The longest answer that is looked into.
const LONGEST: usize = 4 * 1024 * 1024;

/// How many lines that may begin a program are tried.
const MOST_TRIED: usize = 16;

/// There is no program in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoProgram {
    /// There are words, and none of them is a program.
    #[error("there is no program in the answer")]
    None,
    /// There is nothing.
    #[error("the answer is empty")]
    Empty,
    /// It is too long to be looked into.
    #[error("the answer is longer than {LONGEST} bytes")]
    TooLong,
}

/// The program of an answer.
pub fn extract(answer: &str) -> Result<String, NoProgram> {
    if answer.trim().is_empty() {
        return Err(NoProgram::Empty);
    }
    if answer.len() > LONGEST {
        return Err(NoProgram::TooLong);
    }
    let blocks = fenced(answer);
    let named: Vec<Cow<'_, str>> =
        blocks.iter().filter(|block| is_language(block.tag)).map(Block::program).collect();
    if named.iter().any(|text| !text.trim().is_empty()) {
        return Ok(named.join("\n"));
    }
    let mut untold = blocks.iter().filter(|block| !is_other_language(block.tag)).map(Block::program);
    if let Some(program) = untold.find(|program| begins_with_form(program)) {
        return Ok(program.into_owned());
    }
    if blocks.is_empty() && begins_with_form(answer) && is_program(answer) {
        return Ok(answer.trim().to_owned());
    }
    unfenced(answer).ok_or(NoProgram::None)
}

/// A fenced block.
struct Block<'a> {
    /// What the fence says about it, its first word.
    tag: &'a str,
    text: &'a str,
    /// Whether it stands in a quotation, with a mark before each line.
    is_quoted: bool,
}

impl Block<'_> {
    /// What stands in it, without the marks of a quotation.
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

/// A fence that is open: what closes it, what it says, where its text begins, and whether it is quoted.
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

/// The fenced blocks of a text. A fence that is never closed goes on to the end.
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
            // A fence at the end of the last line, where no program could have it.
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

/// A block that is fenced in one line: ` ```clojure (return 1)``` `.
fn in_one_line(line: &str) -> Option<Block<'_>> {
    let inside = line.trim_start_matches([' ', '\t', '>']).strip_prefix("```")?;
    let (inside, _) = inside.split_once("```")?;
    let form = inside.find('(')?;
    let (tag, text) = inside.split_at(form);
    Some(Block { tag: tag.trim(), text, is_quoted: false })
}

/// The fence that a line begins with, and what follows it.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches([' ', '\t', '>']).trim_end();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|character| *character == mark).count();
    // A line of words in backticks is no fence.
    let (fence, after) = line.split_at(length);
    (length >= 3 && !after.contains('`')).then_some((fence, after))
}

fn is_language(tag: &str) -> bool {
    let tag = tag.trim_matches(|character: char| !character.is_alphanumeric() && character != '-');
    ["clojure", "clj", "lisp", "cljs", "clojurescript", "scheme", "ptc-lisp"]
        .iter()
        .any(|language| tag.eq_ignore_ascii_case(language))
}

/// Whether a tag names something that is certainly no program.
fn is_other_language(tag: &str) -> bool {
    ["json", "python", "py", "sh", "bash", "shell", "console", "xml", "html", "yaml", "toml", "sql", "diff"]
        .iter()
        .any(|language| tag.eq_ignore_ascii_case(language))
}

/// Whether a text begins with a form that can be run, comments before it left out.
fn begins_with_form(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(';'));
    first.is_some_and(|line| line.starts_with('(') || line.starts_with("#("))
}

/// Whether a text is forms and nothing else, or would be if it were not broken: what begins as a program and does not read
/// as one is told so by whoever compiles it.
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

/// From the first line that begins with a list on, as many lists as there are. One that is not closed is taken as it is.
fn unfenced(text: &str) -> Option<String> {
    let mut at = 0;
    let mut tried = 0;
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        if !text[start..].starts_with('(') {
            continue;
        }
        tried += 1;
        if tried > MOST_TRIED {
            return None;
        }
        if let Some(length) = lists(&text[start..]) {
            return Some(text[start..start + length].to_owned());
        }
    }
    None
}

/// How long the lists are that a text begins with. Words in brackets are none: a program calls something.
fn lists(text: &str) -> Option<usize> {
    let mut reader = Reader::new(text, &ReadLimits::default()).ok()?;
    let mut end = None;
    loop {
        match reader.next_form() {
            Ok(Some(form)) => match &form.kind {
                FormKind::List(items) if items.first().is_some_and(is_head) => end = Some(reader.offset()),
                _ => return end,
            },
            Ok(None) => return end,
            // Forms came before: the rest is words.
            Err(_) if end.is_some() => return end,
            Err(_) => return looks_like_call(text).then_some(text.trim_end().len()),
        }
    }
}

/// Whether a form may be what a list calls. English in brackets begins with a capital, as no name without a namespace does.
fn is_head(form: &backstitch_lisp::Form) -> bool {
    match &form.kind {
        FormKind::Symbol(name) => name.full().contains('/') || !name.full().starts_with(char::is_uppercase),
        FormKind::List(_) | FormKind::Keyword(_) => true,
        _ => false,
    }
}

/// Whether broken text is meant as a program: it begins with a call of a name that programs are made of.
fn looks_like_call(text: &str) -> bool {
    const HEADS: [&str; 12] = [
        "(def", "(let", "(return", "(fail", "(do", "(tool/", "(->", "(println", "(map", "(reduce", "(filter",
        "(for",
    ];
    HEADS.iter().any(|head| text.starts_with(head))
}
