//! The parser: one pass over the bytes with a stack of its own.
//!
//! Open brackets and prefixes such as `'` or `#_` are frames on that stack, so a number bounds the nesting
//! and never the stack of the thread. Finished forms wait in one vector until the enclosing bracket closes.

mod tokens;

use super::chars::is_space;
use super::duplicates;
use super::form::{Form, FormKind, Forms, Tag};
use super::limits::ReadLimits;
use super::names::Names;
use super::short_fn::ShortFn;
use crate::error::{Error, ErrorKind, Result, Span};

/// Reads forms from a text, one after the other.
#[derive(Default)]
pub(super) struct Parser<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    limits: ReadLimits,
    names: Names,
    /// Finished forms whose enclosing form is still open.
    items: Vec<Form>,
    open: Vec<Frame>,
    /// The arguments found so far, while inside of `#()`.
    short_fn: Option<ShortFn>,
}

/// An open bracket or prefix that waits for forms.
struct Frame {
    kind: FrameKind,
    /// The offset at which it began.
    start: usize,
    /// The number of finished forms at that point.
    base: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    List,
    Vector,
    Map,
    Set,
    ShortFn,
    Quote,
    Var,
    Deref,
    Discard,
    /// Waits for the form after `^`.
    Metadata,
    /// Waits for the form that the metadata applies to; `true` if it must be a symbol.
    Annotated(bool),
    Tagged(Tag),
}

impl FrameKind {
    /// Returns the text that opens it and, for brackets, the byte that closes it.
    fn delimiters(self) -> (&'static str, Option<u8>) {
        match self {
            FrameKind::List => ("(", Some(b')')),
            FrameKind::Vector => ("[", Some(b']')),
            FrameKind::Map => ("{", Some(b'}')),
            FrameKind::Set => ("#{", Some(b'}')),
            FrameKind::ShortFn => ("#(", Some(b')')),
            FrameKind::Quote => ("'", None),
            FrameKind::Var => ("#'", None),
            FrameKind::Deref => ("@", None),
            FrameKind::Discard => ("#_", None),
            FrameKind::Metadata | FrameKind::Annotated(_) => ("^", None),
            FrameKind::Tagged(tag) => (tag.name(), None),
        }
    }
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a str, limits: ReadLimits) -> Result<Self> {
        if source.len() > limits.bytes || u32::try_from(source.len()).is_err() {
            let (length, most) = (source.len(), limits.bytes);
            let message = format!("a program of {length} bytes is longer than the {most} allowed");
            return Err(Error::new(ErrorKind::SizeExceeded, message));
        }
        let limits = limits.with_depth(limits.depth.min(ReadLimits::DEEPEST));
        Ok(Self { source, bytes: source.as_bytes(), limits, ..Self::default() })
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Returns the next form at the top level, or `None` at the end.
    pub(super) fn next_form(&mut self) -> Result<Option<Form>> {
        let result = self.read();
        // After an error, the next call starts afresh.
        self.items.clear();
        self.open.clear();
        self.short_fn = None;
        result.map_err(|error| error.locate(self.source))
    }

    fn read(&mut self) -> Result<Option<Form>> {
        loop {
            self.skip_blanks();
            let Some(&byte) = self.bytes.get(self.at) else {
                return if self.open.is_empty() { Ok(None) } else { Err(self.incomplete()) };
            };
            let finished = match byte {
                b'(' => self.begin(FrameKind::List, 1)?,
                b'[' => self.begin(FrameKind::Vector, 1)?,
                b'{' => self.begin(FrameKind::Map, 1)?,
                b')' | b']' | b'}' => Some(self.close(byte)?),
                b'\'' => self.begin(FrameKind::Quote, 1)?,
                b'@' => self.begin(FrameKind::Deref, 1)?,
                b'^' => self.begin(FrameKind::Metadata, 1)?,
                b'#' => self.dispatch()?,
                b'"' => Some(self.string()?),
                b'\\' => Some(self.character()?),
                b':' => Some(self.keyword()?),
                b'`' | b'~' => return Err(self.no_macros(byte)),
                _ => Some(self.atom()?),
            };
            if let Some(form) = finished
                && let Some(form) = self.deliver(form)?
            {
                return Ok(Some(form));
            }
        }
    }

    /// Passes a finished form to the frame that waits for it. Returns the form if no frame does: it is at the
    /// top level.
    fn deliver(&mut self, mut form: Form) -> Result<Option<Form>> {
        loop {
            let Some(frame) = self.open.last() else { return Ok(Some(form)) };
            if frame.kind.delimiters().1.is_some() {
                self.items.push(form);
                return Ok(None);
            }
            let (kind, start) = (frame.kind, frame.start);
            self.open.pop();
            let span = Span::new(start as u32, form.span.end);
            let opener = Span::new(start as u32, start as u32 + 1);
            form = match kind {
                FrameKind::Quote => self.call("quote", opener, form, span),
                FrameKind::Var => {
                    if form.as_symbol().is_none() {
                        return Err(Error::new(ErrorKind::Parse, "`#'` takes a name").at(form.span));
                    }
                    self.call("var", opener, form, span)
                }
                FrameKind::Deref => self.call("clojure.core/deref", opener, form, span),
                FrameKind::Discard => return Ok(None),
                FrameKind::Metadata => {
                    let only_symbols = metadata_rule(&form)?;
                    self.open.push(Frame {
                        kind: FrameKind::Annotated(only_symbols),
                        start,
                        base: self.items.len(),
                    });
                    return Ok(None);
                }
                FrameKind::Annotated(true) if form.as_symbol().is_none() => {
                    return Err(Error::new(ErrorKind::Unsupported, "values carry no metadata")
                        .at(span)
                        .hint("leave out the `^{...}`"));
                }
                FrameKind::Annotated(_) => form,
                FrameKind::Tagged(tag) => match form.kind {
                    FormKind::String(text) => Form::new(FormKind::Tagged(tag, text), span),
                    _ => {
                        let message = format!("`#{}` is followed by a string", tag.name());
                        return Err(Error::new(ErrorKind::Parse, message).at(form.span));
                    }
                },
                _ => form,
            };
        }
    }

    fn call(&mut self, function: &str, opener: Span, argument: Form, span: Span) -> Form {
        let function = Form::new(FormKind::Symbol(self.names.share(function)), opener);
        Form::list([function, argument], span)
    }

    fn skip_blanks(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            let comment = byte == b';' || (byte == b'#' && self.bytes.get(self.at + 1) == Some(&b'!'));
            if comment {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|&byte| byte == b'\n' || byte == b'\r').unwrap_or(rest.len());
            } else if is_space(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn begin(&mut self, kind: FrameKind, length: usize) -> Result<Option<Form>> {
        if self.open.len() >= self.limits.depth {
            let message = format!("forms are nested deeper than the {} levels allowed", self.limits.depth);
            return Err(
                Error::new(ErrorKind::NestingExceeded, message).at(self.span(self.at, self.at + length))
            );
        }
        self.open.push(Frame { kind, start: self.at, base: self.items.len() });
        self.at += length;
        Ok(None)
    }

    fn close(&mut self, closer: u8) -> Result<Form> {
        let place = self.span(self.at, self.at + 1);
        let closer_text = closer as char;
        let Some(frame) = self.open.last() else {
            return Err(Error::new(ErrorKind::Parse, format!("`{closer_text}` closes nothing"))
                .at(place)
                .hint("there is one closing bracket too many, or an opening one is missing before it"));
        };
        let (opener, wanted) = frame.kind.delimiters();
        let Some(wanted) = wanted else {
            return Err(Error::new(ErrorKind::Parse, format!("`{opener}` is followed by no form")).at(place));
        };
        if wanted != closer {
            let (line, column) = line_and_column(self.source, frame.start);
            let message = format!(
                "`{closer_text}` cannot close the `{opener}` of line {line}, column {column}: expected `{}`",
                wanted as char
            );
            return Err(Error::new(ErrorKind::Parse, message).at(place));
        }
        let (kind, start, base) = (frame.kind, frame.start, frame.base);
        self.open.pop();
        self.at += 1;
        let span = self.span(start, self.at);
        let inside = &self.items[base..];
        match kind {
            FrameKind::Map if !inside.len().is_multiple_of(2) => {
                let message =
                    format!("a map literal holds keys and values in pairs, this one {} forms", inside.len());
                return Err(Error::new(ErrorKind::Parse, message).at(span));
            }
            FrameKind::Map => {
                refuse_duplicate(duplicates::find(inside, 2), self.source, "a key of this map")?
            }
            FrameKind::Set => {
                refuse_duplicate(duplicates::find(inside, 1), self.source, "an item of this set")?
            }
            _ => {}
        }
        let items = Forms::split_off(&mut self.items, base);
        Ok(match kind {
            FrameKind::Vector => Form::new(FormKind::Vector(items), span),
            FrameKind::Map => Form::new(FormKind::Map(items), span),
            FrameKind::Set => Form::new(FormKind::Set(items), span),
            FrameKind::ShortFn => {
                let arguments = self.short_fn.take().unwrap_or_default();
                arguments.write_out(Form::new(FormKind::List(items), span), &mut self.names)
            }
            _ => Form::new(FormKind::List(items), span),
        })
    }

    fn span(&self, start: usize, end: usize) -> Span {
        // The length of the text was checked to fit.
        Span::new(start as u32, end as u32)
    }

    /// The error for text that ends inside an open form.
    fn incomplete(&self) -> Error {
        let missing: String =
            self.open.iter().rev().filter_map(|frame| frame.kind.delimiters().1).map(char::from).collect();
        let Some(frame) = self.open.last() else {
            return Error::new(ErrorKind::Internal, "nothing is open at the end of the text");
        };
        let (opener, closer) = frame.kind.delimiters();
        let (line, column) = line_and_column(self.source, frame.start);
        let message = match closer {
            Some(_) => {
                format!("the text ends before the `{opener}` of line {line}, column {column} is closed")
            }
            None => format!("the text ends after the `{opener}` of line {line}, column {column}"),
        };
        let error = Error::new(ErrorKind::IncompleteForm, message)
            .at(self.span(frame.start, (frame.start + opener.len()).min(self.source.len())));
        match missing.len() {
            0 => error,
            1..=20 => error.hint(format!("still missing: `{missing}`")),
            count => error.hint(format!("{count} closing brackets are missing")),
        }
    }
}

/// Returns whether metadata must precede a symbol. Type hints and flags have no meaning in this language and
/// are dropped anywhere; a map would have to be stored in a value, which no value supports.
fn metadata_rule(metadata: &Form) -> Result<bool> {
    match metadata.kind {
        FormKind::Symbol(_) | FormKind::String(_) | FormKind::Keyword(_) => Ok(false),
        FormKind::Map(_) => Ok(true),
        _ => Err(Error::new(
            ErrorKind::Parse,
            "`^` is followed by a type hint, a flag such as `:private` or a map",
        )
        .at(metadata.span)),
    }
}

fn refuse_duplicate(duplicate: Option<&Form>, source: &str, what: &str) -> Result<()> {
    let Some(form) = duplicate else { return Ok(()) };
    let shown: String = form.span.text(source).unwrap_or_default().chars().take(40).collect();
    Err(Error::new(ErrorKind::Parse, format!("`{shown}` is written twice as {what}")).at(form.span))
}

/// Returns line and column of an offset, both counted from 1.
fn line_and_column(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.bytes().filter(|&byte| byte == b'\n').count() + 1, before[line_start..].chars().count() + 1)
}
