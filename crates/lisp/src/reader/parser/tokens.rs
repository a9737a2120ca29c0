//! Tokens: the text between blanks and brackets, and dispatch after a `#`.

use super::super::Name;
use super::super::chars::{NameFault, check_name, ends_token};
use super::super::form::{Form, FormKind, Tag};
use super::super::number::read_number;
use super::super::short_fn::ShortFn;
use super::super::text;
use super::{FrameKind, Parser, line_and_column};
use crate::error::{Error, ErrorKind, Result};

impl Parser<'_> {
    /// Reads the notation after a `#`.
    pub(super) fn dispatch(&mut self) -> Result<Option<Form>> {
        let refuse = |parser: &Self, message: &str, hint: &str| {
            let end = parser.source.ceil_char_boundary(parser.at + 2);
            Err(Error::new(ErrorKind::Unsupported, message).at(parser.span(parser.at, end)).hint(hint))
        };
        match self.bytes.get(self.at + 1) {
            Some(b'{') => self.begin(FrameKind::Set, 2),
            Some(b'(') => {
                if self.short_fn.is_some() {
                    return Err(Error::new(ErrorKind::Parse, "`#()` inside of `#()`")
                        .at(self.span(self.at, self.at + 2))
                        .hint("write the inner one as `(fn [x] ...)`"));
                }
                let begun = self.begin(FrameKind::ShortFn, 2)?;
                self.short_fn = Some(ShortFn::default());
                Ok(begun)
            }
            Some(b'\'') => self.begin(FrameKind::Var, 2),
            Some(b'_') => self.begin(FrameKind::Discard, 2),
            Some(b'"') => self.regex().map(Some),
            Some(b'#') => self.symbolic_number().map(Some),
            Some(b'?') => refuse(self, "there are no reader conditionals", "write the form itself"),
            Some(b'=') => refuse(self, "nothing is evaluated while reading", "write the form without `#=`"),
            Some(b':') => {
                refuse(self, "there are no namespaced maps", "write each key in full, such as `:a/b`")
            }
            Some(b'^') => refuse(self, "there is no metadata with `#^`", "leave it out"),
            Some(b'<') => refuse(self, "`#<` begins what cannot be read", "use the value itself"),
            Some(&byte) if byte.is_ascii_alphabetic() => self.tagged(),
            _ => {
                let end = self.source.ceil_char_boundary(self.at + 2);
                Err(Error::new(ErrorKind::Parse, "a `#` that begins nothing").at(self.span(self.at, end)))
            }
        }
    }

    pub(super) fn tagged(&mut self) -> Result<Option<Form>> {
        let end = self.token_end(self.at + 1);
        let name = &self.source[self.at + 1..end];
        let Some(tag) = Tag::from_name(name) else {
            let known: Vec<String> = Tag::NAMES.iter().map(|(_, name)| format!("#{name}")).collect();
            return Err(Error::new(ErrorKind::Unsupported, format!("unknown tag `#{name}`"))
                .at(self.span(self.at, end))
                .hint(format!("the tags are {}", known.join(", "))));
        };
        self.begin(FrameKind::Tagged(tag), end - self.at)
    }

    pub(super) fn symbolic_number(&mut self) -> Result<Form> {
        let end = self.token_end(self.at + 2);
        let span = self.span(self.at, end);
        let value = match &self.source[self.at + 2..end] {
            "Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            other => {
                return Err(Error::new(ErrorKind::Parse, format!("unknown number `##{other}`"))
                    .at(span)
                    .hint("there are ##Inf, ##-Inf and ##NaN"));
            }
        };
        self.at = end;
        Ok(Form::new(FormKind::Double(value), span))
    }

    /// Finds the end of the quoted text whose first quote is at `quote`. Also returns whether it contains a
    /// backslash.
    pub(super) fn quoted_end(&self, quote: usize) -> Result<(usize, bool)> {
        let mut at = quote + 1;
        let mut escaped = false;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => return Ok((at, escaped)),
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(_) => at += 1,
                None => {
                    let (line, column) = line_and_column(self.source, quote);
                    let place = format!("line {line}, column {column}");
                    let message = format!("the text ends inside the string that begins in {place}");
                    return Err(Error::new(ErrorKind::IncompleteForm, message)
                        .at(self.span(quote, quote + 1))
                        .hint("close it with `\"`; a quote inside of a string is written `\\\"`"));
                }
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<Form> {
        let start = self.at;
        let (end, escaped) = self.quoted_end(start)?;
        let inside = &self.source[start + 1..end];
        let text = if escaped { text::unescape(inside, start + 1)? } else { inside.into() };
        self.at = end + 1;
        Ok(Form::new(FormKind::String(text), self.span(start, end + 1)))
    }

    pub(super) fn regex(&mut self) -> Result<Form> {
        let start = self.at;
        let (end, _) = self.quoted_end(start + 1)?;
        self.at = end + 1;
        Ok(Form::new(FormKind::Regex(self.source[start + 2..end].into()), self.span(start, end + 1)))
    }

    pub(super) fn character(&mut self) -> Result<Form> {
        let start = self.at;
        let Some(first) = self.source[start + 1..].chars().next() else {
            return Err(Error::new(ErrorKind::IncompleteForm, "the text ends after a backslash")
                .at(self.span(start, start + 1)));
        };
        let end = self.token_end(start + 1 + first.len_utf8());
        let span = self.span(start, end);
        let character = text::read_character(&self.source[start + 1..end]).map_err(|error| error.at(span))?;
        self.at = end;
        Ok(Form::new(FormKind::Character(character), span))
    }

    pub(super) fn keyword(&mut self) -> Result<Form> {
        let start = self.at;
        let end = self.token_end(start + 1);
        let span = self.span(start, end);
        let name = &self.source[start + 1..end];
        if let Some(rest) = name.strip_prefix(':') {
            return Err(Error::new(ErrorKind::Unsupported, "a keyword has one colon")
                .at(span)
                .hint(format!("there are no namespaces to resolve `::` in: write `:{rest}`")));
        }
        // A colon behind a string belongs to JSON, and `"x":5` would read as the string and the keyword `:5`.
        let follows_string = start > 0 && self.bytes[start - 1] == b'"';
        if follows_string || name.is_empty() {
            let written = if follows_string { "\"x\":" } else { ":" };
            let message = format!("`{written}` is not Clojure: a map has no colons after its keys");
            return Err(Error::new(ErrorKind::Parse, message).at(span).hint("write `{\"x\" 5}` or `{:x 5}`"));
        }
        check_name(name).map_err(|fault| name_error("keyword", &self.source[start..end], fault).at(span))?;
        self.at = end;
        Ok(Form::new(FormKind::Keyword(self.names.share(name)), span))
    }

    /// Reads a number, a symbol, or one of `nil`, `true` and `false`.
    pub(super) fn atom(&mut self) -> Result<Form> {
        let start = self.at;
        let end = self.token_end(start);
        let token = &self.source[start..end];
        let span = self.span(start, end);
        let kind = match token.as_bytes() {
            [b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9', ..] => {
                read_number(token, self.limits.number_digits).map_err(|error| error.at(span))?
            }
            b"nil" => FormKind::Nil,
            b"true" => FormKind::Boolean(true),
            b"false" => FormKind::Boolean(false),
            _ => FormKind::Symbol(self.symbol(token).map_err(|error| error.at(span))?),
        };
        self.at = end;
        Ok(Form::new(kind, span))
    }

    pub(super) fn symbol(&mut self, token: &str) -> Result<Name> {
        if let Some(arguments) = &mut self.short_fn
            && let Some(place) = token.strip_prefix('%')
        {
            let name = arguments.note(place)?;
            return Ok(self.names.share(name.as_deref().unwrap_or(token)));
        }
        let digits = token.trim_start_matches(['-', '+']).strip_prefix('.');
        if digits.is_some_and(|digits| digits.starts_with(|first: char| first.is_ascii_digit())) {
            return Err(Error::new(ErrorKind::Parse, format!("`{token}` is not a number"))
                .hint("a double has a digit before the point: `0.5`"));
        }
        check_name(token).map_err(|fault| name_error("name", token, fault))?;
        Ok(self.names.share(token))
    }

    pub(super) fn token_end(&self, from: usize) -> usize {
        let rest = &self.bytes[from.min(self.bytes.len())..];
        from + rest.iter().position(|&byte| ends_token(byte)).unwrap_or(rest.len())
    }

    pub(super) fn no_macros(&self, byte: u8) -> Error {
        let message = format!("`{}` is for writing macros, and there are none", byte as char);
        Error::new(ErrorKind::Unsupported, message)
            .at(self.span(self.at, self.at + 1))
            .hint("build data with `list`, `vector` or `'(...)`, and code with `fn`")
    }
}

fn name_error(what: &str, token: &str, fault: NameFault) -> Error {
    let shown: String = token.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let error = Error::new(ErrorKind::Parse, format!("`{shown}` is not a {what}"));
    match fault {
        NameFault::Empty => error.hint("a colon is followed by a name"),
        NameFault::Colon if shown.ends_with(':') => {
            let name = shown.trim_end_matches(':');
            error.hint(format!(
                "a colon stands at the beginning of a keyword: write `:{name}`, as in `{{:{name} 5}}`"
            ))
        }
        NameFault::Colon => error.hint("a colon stands at the beginning of a keyword, or inside of a name"),
        NameFault::Slash => error.hint("a slash stands once, between a namespace and a name"),
        NameFault::Character(character) => {
            error.hint(format!("the character U+{:04X} cannot stand in a name", character as u32))
        }
    }
}
