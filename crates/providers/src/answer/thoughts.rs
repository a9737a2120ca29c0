//! Thoughts at the beginning of a text.
//!
//! Compatible servers without a parser for reasoning send the thoughts of a model as a part of its text, in
//! `<think>` or `<thinking>` tags. Some send only the closing tag, on a line of its own, because the opening
//! one is a part of the prompt. Tags inside of the answer proper are a part of it.

use backstitch_core::ports::Delta;

const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A text without its thoughts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SplitText<'a> {
    /// The text after the thoughts.
    pub(crate) answer: &'a str,
    /// Whether the text consists of thoughts that were not closed.
    pub(crate) is_open: bool,
}

/// Removes the thoughts at the beginning of a text. Thoughts that are not closed stay.
pub(crate) fn without_thoughts(text: &str) -> SplitText<'_> {
    let mut answer = text;
    loop {
        let begun = answer.trim_start();
        let Some((opening, closing)) = TAGS.iter().find(|(opening, _)| begun.starts_with(opening)) else {
            break;
        };
        match begun[opening.len()..].split_once(closing) {
            Some((_, rest)) => answer = rest.trim_start(),
            None => return SplitText { answer, is_open: true },
        }
    }
    if answer.len() == text.len() {
        answer = after_closing_line(text).unwrap_or(text);
    }
    SplitText { answer, is_open: false }
}

/// The text after a line that is only a closing tag.
fn after_closing_line(text: &str) -> Option<&str> {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if TAGS.iter().any(|(_, closing)| line.trim() == *closing) {
            return Some(text[end..].trim_start());
        }
    }
    None
}

/// Separates thoughts from the answer while a text is streamed.
#[derive(Debug, Default)]
pub(crate) struct ThoughtSplitter {
    state: SplitterState,
    /// Text that may be a part of a tag.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SplitterState {
    /// No text of the answer was seen.
    #[default]
    Begins,
    /// Inside of thoughts, up to this tag.
    Thinks(&'static str),
    /// Thoughts have ended, and no text of the answer was seen since.
    Thought,
    Answers,
}

impl ThoughtSplitter {
    /// Appends the deltas of the next piece of text.
    pub(crate) fn push(&mut self, piece: &str, deltas: &mut Vec<Delta>) {
        use SplitterState::{Answers, Begins, Thinks, Thought};
        self.held.push_str(piece);
        loop {
            match self.state {
                Answers => {
                    emit(Delta::Text, std::mem::take(&mut self.held), deltas);
                    return;
                }
                Begins | Thought => {
                    let begun = self.held.trim_start();
                    if let Some((opening, closing)) = TAGS.iter().find(|(tag, _)| begun.starts_with(tag)) {
                        self.held = begun[opening.len()..].to_owned();
                        self.state = Thinks(closing);
                    } else if TAGS.iter().any(|(tag, _)| tag.starts_with(begun)) {
                        return;
                    } else {
                        if self.state == Thought {
                            self.held = begun.to_owned();
                        }
                        self.state = Answers;
                    }
                }
                Thinks(closing) => match self.held.split_once(closing) {
                    Some((thoughts, rest)) => {
                        emit(Delta::Reasoning, thoughts.to_owned(), deltas);
                        self.held = rest.to_owned();
                        self.state = Thought;
                    }
                    None => {
                        let held = self.held.char_indices().map(|(start, _)| start);
                        let start = held.into_iter().find(|start| closing.starts_with(&self.held[*start..]));
                        let rest = self.held.split_off(start.unwrap_or(self.held.len()));
                        emit(Delta::Reasoning, std::mem::replace(&mut self.held, rest), deltas);
                        return;
                    }
                },
            }
        }
    }

    /// Appends the text that turned out not to be a tag.
    pub(crate) fn finish(&mut self, deltas: &mut Vec<Delta>) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            SplitterState::Thinks(_) => emit(Delta::Reasoning, held, deltas),
            SplitterState::Thought => {}
            SplitterState::Begins | SplitterState::Answers => emit(Delta::Text, held, deltas),
        }
    }
}

fn emit(make: fn(String) -> Delta, text: String, deltas: &mut Vec<Delta>) {
    if !text.is_empty() {
        deltas.push(make(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [(&str, &str, &str); 8] = [
        ("Plain.", "", "Plain."),
        ("<think>Hm.</think>\n\nYes.", "Hm.", "Yes."),
        (" \n<thinking>Hm.</thinking>Yes.", "Hm.", "Yes."),
        ("<think>a</think> <think>b</think> Yes.", "ab", "Yes."),
        ("<think></think>", "", ""),
        ("The tag <think> opens, </think> closes.", "", "The tag <think> opens, </think> closes."),
        ("<thin ice", "", "<thin ice"),
        ("<think>1 < 2 </thin</think>Yes.", "1 < 2 </thin", "Yes."),
    ];

    #[test]
    fn thoughts_at_the_beginning_are_separated() {
        for (text, _, answer) in CASES {
            assert_eq!(without_thoughts(text), SplitText { answer, is_open: false }, "{text:?}");
        }
        let unopened = "Hm.\n</think>\n\nYes.";
        assert_eq!(without_thoughts(unopened).answer, "Yes.");
        let open = "<think>Hm.";
        assert_eq!(without_thoughts(open), SplitText { answer: open, is_open: true });
    }

    #[test]
    fn pieces_of_any_size_are_separated_alike() {
        for (text, thoughts, answer) in CASES {
            for size in 1..=text.len() {
                let (mut splitter, mut deltas) = (ThoughtSplitter::default(), Vec::new());
                for piece in text.as_bytes().chunks(size) {
                    splitter.push(std::str::from_utf8(piece).unwrap(), &mut deltas);
                }
                splitter.finish(&mut deltas);
                let (mut heard, mut thought) = (String::new(), String::new());
                for delta in deltas {
                    match delta {
                        Delta::Text(text) => heard.push_str(&text),
                        Delta::Reasoning(text) => thought.push_str(&text),
                        Delta::Call(_) => unreachable!("it splits texts"),
                    }
                }
                assert_eq!((heard.as_str(), thought.as_str()), (answer, thoughts), "{text:?} by {size}");
            }
        }
    }
}
