//! From text to forms.
//!
//! [`read_all`] reads a program, [`Reader`] one form after the other, and [`repair`] first corrects text as
//! models write it. Every form has a span. Reading evaluates nothing, resolves nothing and never panics on
//! any input; text beyond the [`ReadLimits`] is refused with a typed error.
//!
//! Some notations of Clojure's reader are refused, each with a hint: syntax quote, reader conditionals, `#=`,
//! namespaced maps, `::` keywords, decimals, unknown tags. Metadata without a meaning in this language (type
//! hints, flags, and a map before the name that is being defined) is read and dropped.
//!
//! For a prompt that takes several lines, [`completeness`] distinguishes incomplete text from invalid text.

mod chars;
mod duplicates;
mod form;
mod limits;
mod names;
mod number;
mod parser;
mod repair;
mod short_fn;
mod text;

pub use chars::is_keyword_name;
pub use form::{Form, FormKind, Forms, Name, Tag};
pub use limits::ReadLimits;
pub use repair::repair;
pub(crate) use text::{NAMED_CHARACTERS, simple_escape, unicode_escape};

pub(crate) use crate::error::Span;
use crate::error::{Error, ErrorKind, Result};
use parser::Parser;

/// Reads every form of a text. Its errors are located.
pub fn read_all(source: &str, limits: &ReadLimits) -> Result<Vec<Form>> {
    let mut reader = Reader::new(source, limits)?;
    let mut forms = Vec::new();
    while let Some(form) = reader.next_form()? {
        forms.push(form);
    }
    Ok(forms)
}

/// Reads the forms of a text one by one.
pub struct Reader<'a> {
    parser: Parser<'a>,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the beginning of a text.
    pub fn new(source: &'a str, limits: &ReadLimits) -> Result<Self> {
        Ok(Self { parser: Parser::new(source, *limits)? })
    }

    /// Returns the next form, or `None` at the end of the text. Do not continue after an error.
    pub fn next_form(&mut self) -> Result<Option<Form>> {
        self.parser.next_form()
    }

    /// Returns the number of bytes read: after a form, its end.
    pub fn offset(&self) -> usize {
        self.parser.offset()
    }
}

/// The completeness of a text at a prompt.
#[derive(Clone, PartialEq, Debug)]
pub enum Completeness {
    /// Every form is closed.
    Complete,
    /// The last form is open: another line may close it. Carries the error that reading would return now.
    Incomplete(Error),
    /// No further text could correct it.
    Invalid(Error),
}

/// Distinguishes incomplete text from invalid text, for a prompt that asks for another line.
pub fn completeness(source: &str, limits: &ReadLimits) -> Completeness {
    match read_all(source, limits) {
        Ok(_) => Completeness::Complete,
        Err(error) if error.kind() == ErrorKind::IncompleteForm => Completeness::Incomplete(error),
        Err(error) => Completeness::Invalid(error),
    }
}
