//! Translation from Java's notation of regular expressions to that of the engine.
//!
//! Most of the notation is the same. The translation rewrites elements that differ in meaning (`\d`, `\w`,
//! `\s` and `.` are about ASCII and line ends in Java, about Unicode and newlines in the engine) and elements
//! that are only written differently (`\Q..\E`, `\h`, `\R`, `\Z`, `\p{Alpha}`, octal and control escapes). It
//! refuses by name what no linear engine can do: lookaround, backreferences, atomic groups and possessive
//! quantifiers.

use crate::error::{Error, ErrorKind, Result};

/// Translates a pattern.
pub(super) fn translate(source: &str) -> Result<String> {
    let (rest, out) = (source.chars().collect(), String::with_capacity(source.len() + 16));
    let mut translator = Translator { rest, out, flags: vec![Flags::default()], ..Translator::default() };
    while let Some(character) = translator.next() {
        translator.step(character)?;
    }
    Ok(translator.out)
}

#[derive(Clone, Copy, Default)]
struct Flags {
    dot_all: bool,
    unix_lines: bool,
    unicode: bool,
}

#[derive(Default)]
struct Translator {
    rest: Vec<char>,
    at: usize,
    out: String,
    /// The number of open character classes.
    class_depth: usize,
    /// The flags of each open group, the innermost last.
    flags: Vec<Flags>,
    /// True right after a quantifier.
    quantified: bool,
}

const LINE_ENDS: &str = r"\n\r\x{85}\x{2028}\x{2029}";
const HORIZONTAL: &str = r" \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}";
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";

impl Translator {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.get(self.at).copied();
        self.at += usize::from(character.is_some());
        character
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn flags(&mut self) -> Flags {
        self.flags.last().copied().unwrap_or_default()
    }

    fn step(&mut self, character: char) -> Result<()> {
        let quantified = std::mem::replace(&mut self.quantified, false);
        if self.class_depth > 0 {
            return self.in_class(character);
        }
        match character {
            '\\' => self.escape()?,
            '[' => self.open_class(),
            '.' => {
                let flags = self.flags();
                match flags {
                    _ if flags.dot_all => self.out.push('.'),
                    _ if flags.unix_lines => self.out.push_str(r"[^\n]"),
                    _ => {
                        self.out.push_str("[^");
                        self.out.push_str(LINE_ENDS);
                        self.out.push(']');
                    }
                }
            }
            '(' => self.group()?,
            ')' => {
                if self.flags.len() > 1 {
                    self.flags.pop();
                }
                self.out.push(')');
            }
            '+' if quantified => return Err(unsupported("possessive quantifiers")),
            '*' | '+' | '?' => {
                self.out.push(character);
                // The `?` of a lazy quantifier ends it.
                self.quantified = !(quantified && character == '?');
            }
            '}' => {
                self.out.push('}');
                self.quantified = true;
            }
            other => self.out.push(other),
        }
        Ok(())
    }

    fn open_class(&mut self) {
        self.class_depth += 1;
        self.out.push('[');
        if self.peek(0) == Some('^') {
            self.at += 1;
            self.out.push('^');
        }
        // A bracket at the beginning is literal.
        if self.peek(0) == Some(']') {
            self.at += 1;
            self.out.push_str(r"\]");
        }
    }

    fn in_class(&mut self, character: char) -> Result<()> {
        match character {
            '\\' => self.escape()?,
            '[' => self.open_class(),
            ']' => {
                self.class_depth -= 1;
                self.out.push(']');
            }
            // The engine treats these as operators when doubled, Java does not.
            '-' | '~' if self.out.ends_with(character) => {
                self.out.push('\\');
                self.out.push(character);
            }
            other => self.out.push(other),
        }
        Ok(())
    }

    fn group(&mut self) -> Result<()> {
        let mut flags = self.flags();
        self.out.push('(');
        if self.peek(0) != Some('?') {
            self.flags.push(flags);
            return Ok(());
        }
        match (self.peek(1), self.peek(2)) {
            (Some('='), _) | (Some('!'), _) => return Err(unsupported("lookahead")),
            (Some('<'), Some('=' | '!')) => return Err(unsupported("lookbehind")),
            (Some('>'), _) => return Err(unsupported("atomic groups")),
            (Some('<' | ':'), _) => {
                self.flags.push(flags);
                return Ok(());
            }
            _ => {}
        }
        // Flags: `(?i)` for the rest of the enclosing group, `(?i:...)` for a group of its own.
        self.at += 1;
        let mut written = String::new();
        let mut on = true;
        loop {
            match self.next() {
                Some('-') => {
                    on = false;
                    written.push('-');
                }
                Some('s') => {
                    flags.dot_all = on;
                    written.push('s');
                }
                Some('d') => flags.unix_lines = on,
                Some('U') => flags.unicode = on,
                // The engine always folds case by Unicode rules.
                Some('u') => {}
                Some(flag @ ('i' | 'm' | 'x')) => written.push(flag),
                Some(end @ (')' | ':')) => {
                    let written = written.trim_end_matches('-');
                    if end == ')' {
                        if let Some(current) = self.flags.last_mut() {
                            *current = flags;
                        }
                        if written.is_empty() {
                            self.out.push_str("?:)");
                        } else {
                            self.out.push('?');
                            self.out.push_str(written);
                            self.out.push(')');
                        }
                    } else {
                        self.flags.push(flags);
                        self.out.push('?');
                        self.out.push_str(written);
                        self.out.push(':');
                    }
                    return Ok(());
                }
                _ => return Err(invalid("an unknown flag or kind of group after `(?`")),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        let Some(character) = self.next() else { return Err(invalid("it ends in a backslash")) };
        let inside = self.class_depth > 0;
        let unicode = self.flags().unicode;
        match character {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' if unicode => self.verbatim(character),
            'd' => self.set("0-9", false),
            'D' => self.set("0-9", true),
            'w' => self.set("a-zA-Z0-9_", false),
            'W' => self.set("a-zA-Z0-9_", true),
            's' => self.set(r" \t\n\x0B\f\r", false),
            'S' => self.set(r" \t\n\x0B\f\r", true),
            'h' => self.set(HORIZONTAL, false),
            'H' => self.set(HORIZONTAL, true),
            'v' => self.set(VERTICAL, false),
            'V' => self.set(VERTICAL, true),
            'b' | 'B' | 'A' | 'z' if !inside => self.verbatim(character),
            'Z' if !inside => self.out.push_str(r"(?:\n?\z)"),
            'R' if !inside => self.out.push_str(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            't' | 'n' | 'r' | 'f' | 'a' => self.verbatim(character),
            'e' => self.out.push_str(r"\x1B"),
            'c' => match self.next() {
                Some(control) if control.is_ascii() => self.code(u32::from(control) ^ 64),
                _ => return Err(invalid("`\\c` is followed by a letter")),
            },
            '0' => self.octal()?,
            'u' => self.hexadecimal(4)?,
            'x' if self.peek(0) == Some('{') => self.verbatim('x'),
            'x' => self.hexadecimal(2)?,
            'p' | 'P' => self.property(character == 'P')?,
            'Q' => self.translate_quoted(),
            'E' => {}
            '1'..='9' | 'k' => return Err(unsupported("backreferences")),
            'G' => return Err(unsupported("`\\G`")),
            other if other.is_ascii_alphabetic() => {
                return Err(invalid(&format!("there is no escape `\\{other}`")));
            }
            other => self.literal(other),
        }
        Ok(())
    }

    fn verbatim(&mut self, character: char) {
        self.out.push('\\');
        self.out.push(character);
    }

    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation() && character != '<' && character != '>' {
            self.out.push('\\');
        }
        self.out.push(character);
    }

    fn set(&mut self, content: &str, negated: bool) {
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(content);
        self.out.push(']');
    }

    fn code(&mut self, code: u32) {
        self.out.push_str(&format!("\\x{{{code:x}}}"));
    }

    fn octal(&mut self) -> Result<()> {
        let mut code = 0;
        let mut digits = 0;
        while digits < 3
            && let Some(digit) = self.peek(0).and_then(|character| character.to_digit(8))
            && code * 8 + digit <= 0o377
        {
            code = code * 8 + digit;
            digits += 1;
            self.at += 1;
        }
        if digits == 0 {
            return Err(invalid("`\\0` is followed by an octal number"));
        }
        self.code(code);
        Ok(())
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<()> {
        let mut code = 0;
        for _ in 0..digits {
            let Some(digit) = self.next().and_then(|character| character.to_digit(16)) else {
                return Err(invalid(&format!("an escape needs {digits} hexadecimal digits")));
            };
            code = code * 16 + digit;
        }
        self.code(code);
        Ok(())
    }

    fn translate_quoted(&mut self) {
        while let Some(character) = self.next() {
            if character == '\\' && self.peek(0) == Some('E') {
                self.at += 1;
                return;
            }
            self.literal(character);
        }
    }

    fn property(&mut self, negated: bool) -> Result<()> {
        let name: String = match self.next() {
            Some('{') => {
                let mut name = String::new();
                loop {
                    match self.next() {
                        Some('}') => break name,
                        Some(character) if name.len() < 64 => name.push(character),
                        _ => return Err(invalid("`\\p{` is not closed")),
                    }
                }
            }
            Some(letter) => letter.to_string(),
            None => return Err(invalid("`\\p` is followed by a property")),
        };
        let ascii = match name.as_str() {
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => r"\x00-\x7F",
            "Alpha" => "a-zA-Z",
            "Digit" => "0-9",
            "Alnum" => "a-zA-Z0-9",
            "Punct" => r"!-/:-@\[-`{-\~",
            "Graph" => r"!-\~",
            "Print" => r" -\~",
            "Blank" => r" \t",
            "Cntrl" => r"\x00-\x1F\x7F",
            "XDigit" => "0-9a-fA-F",
            "Space" => r" \t\n\x0B\f\r",
            _ => {
                let name = name.strip_prefix("Is").unwrap_or(&name);
                let name = match name {
                    "Digit" => "Nd",
                    "Punctuation" => "P",
                    "Control" => "Cc",
                    other => other,
                };
                self.out.push_str(if negated { r"\P{" } else { r"\p{" });
                self.out.push_str(name);
                self.out.push('}');
                return Ok(());
            }
        };
        self.set(ascii, negated);
        Ok(())
    }
}

fn invalid(reason: &str) -> Error {
    Error::new(ErrorKind::InvalidRegex, format!("not a regular expression: {reason}"))
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::InvalidRegex, format!("regular expressions have no {what} here"))
        .hint("matching takes linear time; match more and take the part in question from a group `(...)`")
}
