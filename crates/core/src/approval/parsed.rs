//! Commands of a shell whose parts are all known.
//!
//! A pipeline, a list, the commands inside of substitutions `$(...)` and the files of redirections are parts of what a
//! shell runs, and a rule has to judge each of them. So a command is split into all of them, or not at all: variables,
//! patterns, loops, functions, subshells, commands in the background, here-documents, assignments and everything else
//! whose parts are not certain cannot be parsed. Inside of quotes, too, only harmless characters and substitutions can
//! stand.

use std::iter::Peekable;
use std::str::Chars;

use super::command::{is_grammar, is_plain_mark};
use super::scope::{launches, name_of};

/// How deep substitutions may be nested.
const MOST_DEPTH: usize = 8;

/// Commands after which the paths of redirections lead elsewhere.
const MOVES: &[&str] = &["cd", "pushd", "popd"];

/// All parts of a command.
///
/// ```
/// use backstitch_core::approval::ParsedCommand;
///
/// let command = ParsedCommand::parse("git log $(git merge-base main HEAD).. | head -3 > log.txt").unwrap();
/// let programs: Vec<_> = command.parts().iter().map(|part| part.program()).collect();
/// assert_eq!(programs, ["git", "git", "head"]);
/// assert_eq!(command.redirections().len(), 1);
/// for unknown in ["git $BRANCH", "git log &", "(git log)", "git log *", "git `id`", "git log <<x", "A=b git"] {
///     assert_eq!(ParsedCommand::parse(unknown), None, "{unknown}");
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedCommand {
    parts: Vec<CommandPart>,
    redirections: Vec<Redirection>,
}

/// One command of a pipeline, a list or a substitution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPart {
    /// A word that holds a substitution is not known. It may become any number of words.
    words: Vec<Option<String>>,
}

/// A file that a shell opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The path, as it is written.
    pub path: String,
    /// Whether the file is written.
    pub writes: bool,
}

/// Whether a command starts with certain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefixMatch {
    No,
    /// A substitution decides.
    Perhaps,
    Yes,
}

impl ParsedCommand {
    /// Splits a command into its parts. Returns `None` unless they are certain.
    pub fn parse(command: &str) -> Option<Self> {
        let mut reader = Reader { characters: command.chars().peekable(), parsed: Self::default() };
        reader.list(0)?;
        Some(reader.parsed)
    }

    /// The commands, those of a substitution before the one that uses it.
    pub fn parts(&self) -> &[CommandPart] {
        &self.parts
    }

    /// The files that are opened. `/dev/null` and other streams of the same command are not among them.
    pub fn redirections(&self) -> &[Redirection] {
        &self.redirections
    }

    /// Whether a path that is written in the command may lead elsewhere, because another directory was entered before.
    pub(super) fn changes_directory(&self) -> bool {
        self.parts.iter().any(|part| MOVES.contains(&part.program()))
    }
}

impl CommandPart {
    /// The first word.
    pub fn program(&self) -> &str {
        self.words.first().and_then(Option::as_deref).unwrap_or_default()
    }

    /// The words; `None` for one that a substitution decides.
    pub fn words(&self) -> impl Iterator<Item = Option<&str>> {
        self.words.iter().map(Option::as_deref)
    }

    /// Compares the first words, as a rule does that allows.
    pub(super) fn matches(&self, prefix: &[String]) -> PrefixMatch {
        starts_with(&self.words, prefix)
    }

    /// Compares the first words, as a rule does that asks or denies: a path may name the same program, and a program that
    /// runs others may run this one.
    pub(super) fn may_run(&self, prefix: &[String]) -> PrefixMatch {
        let found = self.matches(prefix);
        let Some((expected, further)) = prefix.split_first().filter(|_| found == PrefixMatch::No) else {
            return found;
        };
        let (expected, arguments) = (name_of(expected), self.words.get(1..).unwrap_or_default());
        let is_same =
            name_of(self.program()) == expected && starts_with(arguments, further) != PrefixMatch::No;
        let names =
            |text: &String| text.replace(['\'', '"'], "").split(' ').any(|word| name_of(word) == expected);
        // Without arguments, a shell reads its commands from its input.
        let is_launched = launches(self.program())
            && (arguments.is_empty() || arguments.iter().any(|word| word.as_ref().is_none_or(names)));
        if is_same || is_launched { PrefixMatch::Perhaps } else { PrefixMatch::No }
    }
}

fn starts_with(words: &[Option<String>], prefix: &[String]) -> PrefixMatch {
    for (index, expected) in prefix.iter().enumerate() {
        match words.get(index) {
            Some(Some(word)) if word == expected => {}
            Some(None) => return PrefixMatch::Perhaps,
            Some(Some(_)) | None => return PrefixMatch::No,
        }
    }
    PrefixMatch::Yes
}

impl Redirection {
    /// Whether the path is one of a file below the directory of the command, and outside of a repository's own files.
    /// Links are not followed.
    pub(super) fn is_inside(&self) -> bool {
        is_inside(&self.path)
    }
}

/// Whether a path is below the directory that it starts in, and outside of a repository's own files.
pub(super) fn is_inside(path: &str) -> bool {
    let is_harmless = |name: &str| name != ".." && !name.eq_ignore_ascii_case(".git");
    !path.starts_with('/') && path.split('/').all(is_harmless)
}

struct Reader<'a> {
    characters: Peekable<Chars<'a>>,
    parsed: ParsedCommand,
}

/// A word as it is read.
struct Word {
    text: Option<String>,
    /// Whether it has no quotes, so that digits before a redirection are the number of a stream.
    is_bare: bool,
}

impl Reader<'_> {
    /// Reads a list up to the end of the text, or up to the parenthesis that ends a substitution.
    fn list(&mut self, depth: usize) -> Option<()> {
        loop {
            self.command(depth)?;
            match self.characters.next() {
                None => return (depth == 0).then_some(()),
                Some(')') => return (depth > 0).then_some(()),
                Some(';' | '\n') => {}
                Some('|') => {
                    self.characters.next_if_eq(&'|');
                }
                Some('&') => {
                    self.characters.next_if_eq(&'&')?;
                }
                Some(_) => return None,
            }
        }
    }

    /// Reads a command up to the operator after it.
    fn command(&mut self, depth: usize) -> Option<()> {
        let mut part = CommandPart::default();
        loop {
            self.skip_blanks();
            match self.characters.peek() {
                None | Some(';' | '\n' | '|' | '&' | ')') => break,
                Some('<' | '>') => self.redirection()?,
                Some(_) => {
                    let word = self.word(depth)?;
                    // A digit right before a redirection is the number of a stream, and not a word. Shells read more
                    // digits differently.
                    match self.stream_of(&word) {
                        None => part.words.push(word.text),
                        Some(1) => self.redirection()?,
                        Some(_) => return None,
                    }
                }
            }
        }
        let program = part.program();
        if program.is_empty() || program.contains('=') || is_grammar(program) {
            return None;
        }
        self.parsed.parts.push(part);
        Some(())
    }

    fn word(&mut self, depth: usize) -> Option<Word> {
        let (mut text, mut quote) = (String::new(), None);
        let (mut is_known, mut is_bare) = (true, true);
        while let Some(&next) = self.characters.peek() {
            match (quote, next) {
                (None, ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | ')') => break,
                (None, '\'' | '"') => (quote, is_bare) = (Some(next), false),
                (Some(open), close) if open == close => quote = None,
                (None | Some('"'), '$') => {
                    self.characters.next();
                    self.characters.next_if_eq(&'(')?;
                    if depth == MOST_DEPTH {
                        return None;
                    }
                    self.list(depth + 1)?;
                    is_known = false;
                    continue;
                }
                (None, plain) if plain.is_ascii_alphanumeric() || is_plain_mark(plain) => text.push(plain),
                // Inside of quotes, letters of all scripts and a few marks are harmless as well.
                (Some(_), quoted)
                    if quoted.is_alphanumeric()
                        || is_plain_mark(quoted)
                        || matches!(quoted, ' ' | '\'' | '"') =>
                {
                    text.push(quoted);
                }
                _ => return None,
            }
            self.characters.next();
        }
        quote.is_none().then(|| Word { text: is_known.then_some(text), is_bare })
    }

    /// Returns the count of digits of a number right before a redirection.
    fn stream_of(&mut self, word: &Word) -> Option<usize> {
        let text = word.text.as_ref().filter(|_| word.is_bare)?;
        let is_number = !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
        (is_number && matches!(self.characters.peek(), Some('<' | '>'))).then_some(text.len())
    }

    /// Reads `> path`, `>> path`, `< path`, or `>&1` and the like.
    fn redirection(&mut self) -> Option<()> {
        let writes = self.characters.next()? == '>';
        if writes && self.characters.next_if_eq(&'&').is_some() {
            // Another name of a stream that is open already.
            self.characters.next_if(char::is_ascii_digit)?;
            return match self.characters.peek() {
                None | Some(' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | ')') => Some(()),
                Some(_) => None,
            };
        }
        if writes {
            self.characters.next_if_eq(&'>');
        }
        self.skip_blanks();
        // The path has to be known, so it has no substitution.
        let word = self.word(MOST_DEPTH)?;
        if self.stream_of(&word).is_some() {
            return None;
        }
        let path = word.text.filter(|path| !path.is_empty())?;
        if path != "/dev/null" {
            self.parsed.redirections.push(Redirection { path, writes });
        }
        Some(())
    }

    fn skip_blanks(&mut self) {
        while self.characters.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts, with `?` for a word that is not known, and the redirections.
    fn parsed(command: &str) -> Option<String> {
        let command = ParsedCommand::parse(command)?;
        let parts = command.parts.iter().map(|part| {
            let words: Vec<_> = part.words().map(|word| word.unwrap_or("?")).collect();
            words.join("+")
        });
        let files = command.redirections.iter().map(|redirection| {
            let mark = if redirection.writes { '>' } else { '<' };
            format!("{mark}{}", redirection.path)
        });
        Some(parts.chain(files).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_part_is_found() {
        for (command, expected) in [
            ("git status", "git+status"),
            ("  a \t b  ", "a+b"),
            ("a 1 | b && c || d; e\nf", "a+1 b c d e f"),
            ("a|b;c", "a b c"),
            ("a 'b c' \"it's\" g'i't 'größer'", "a+b c+it's+git+größer"),
            ("a ''", "a+"),
            ("a $(b c)", "b+c a+?"),
            ("a x$(b)y z", "b a+?+z"),
            ("a \"x $(b | c) y\"", "b c a+?"),
            ("a $(b $(c $(d)))", "d c+? b+? a+?"),
            ("a $(b; c) | d $(e)", "b c a+? e d+?"),
            ("a > out.txt", "a >out.txt"),
            ("a >out.txt 2>>err.txt <in.txt b", "a+b >out.txt >err.txt <in.txt"),
            ("> out.txt a", "a >out.txt"),
            ("a > 'two words'", "a >two words"),
            ("a 2>&1 >&2 | b 2> /dev/null < /dev/null", "a b"),
            ("a 2 > x", "a+2 >x"),
            ("a 'b'2> x", "a+b2 >x"),
            ("a b2> x", "a+b2 >x"),
            ("a '2'> x", "a+2 >x"),
            ("a $(b > x)", "b a+? >x"),
        ] {
            assert_eq!(parsed(command).as_deref(), Some(expected), "{command}");
        }
    }

    #[test]
    fn what_is_not_certain_is_not_parsed() {
        #[rustfmt::skip]
        let uncertain = [
            // Lists and pipelines that a shell refuses, or that run something in the background.
            "", " ", "a &", "a & b", "a |& b", "a ||| b", "a &&& b", "a ;; b", "a |", "| a", "a; ", "a\n", "&& a",
            // The grammar of the shell.
            "(a; b)", "{ a; b; }", "if a; then b; fi", "while a; do b; done", "for a in b; do c; done", "a() b",
            "case a in b) c;; esac", "! a | b", "time a", "exec a", "eval a", "command a", ". a", "trap a b",
            "a; A=b c", "A=b", "alias a=b", "a # b; c", "#a", "function a",
            // What the shell replaces.
            "a $b", "a ${b}", "a \"$b\"", "a \"${b}\"", "a $'b'", "a $\"b\"", "a $((1+2))", "a $(((1)))", "a `b`",
            "a \"`b`\"", "a *", "a ?", "a [b]", "a {b,c}", "a ~", "a ~/b", "a \\; b", "a \\\nb", "a^b", "a !b",
            // A program that is not known.
            "$(a) b", "\"$(a)\"", "'' a", "a; $(b)",
            // Quotes and parentheses that do not close, or hold more than text.
            "a 'b", "a \"b", "a 'b; c", "a '|' b", "a \"b;c\"", "a '$(b)'", "a $(b", "a $(b))", "a )", "a $(b\"", "a $()",
            "a \"$(b\")",
            // Redirections whose file is not certain.
            "a >", "a > ''", "a > $(b)", "a > \"$(b)\"", "a <<b\nc\nb", "a <<<b", "a <(b)", "a >(b)", "a >| b", "a <> b",
            "a &> b", "a >& b", "a >&b", "a 2>&", "a 2>&1x", "a 2>&-", "a <&3", "a > *", "a > ~/b", "a >> >b", ">x",
            "a 12> b", "a > 2>&1",
            // Bytes that shells and people read differently.
            "a\rb", "a\u{b}b", "a\u{0}b", "a\u{a0}b", "a \u{2028}b", "a '\u{202e}b'", "a\u{200b}b", "größe x",
        ];
        for command in uncertain {
            assert_eq!(parsed(command), None, "{command:?}");
        }
        let nested = |depth: usize| format!("{}a{}", "a $(".repeat(depth), ")".repeat(depth));
        assert!(parsed(&nested(MOST_DEPTH)).is_some());
        assert_eq!(parsed(&nested(MOST_DEPTH + 1)), None);
        assert_eq!(parsed(&nested(100_000)), None, "without deep recursion");
    }

    #[test]
    fn a_word_that_is_not_known_may_match() {
        let matches = |command: &str, prefix: &[&str]| {
            let prefix: Vec<_> = prefix.iter().map(|word| (*word).to_owned()).collect();
            ParsedCommand::parse(command).unwrap().parts().last().unwrap().matches(&prefix)
        };
        assert_eq!(matches("git push x", &["git", "push"]), PrefixMatch::Yes);
        assert_eq!(matches("git push $(a)", &["git", "push"]), PrefixMatch::Yes);
        assert_eq!(matches("git $(a) push", &["git", "push"]), PrefixMatch::Perhaps);
        assert_eq!(matches("git \"$(a)\"", &["git", "push"]), PrefixMatch::Perhaps);
        assert_eq!(matches("git log $(a)", &["git", "push"]), PrefixMatch::No);
        assert_eq!(matches("git", &["git", "push"]), PrefixMatch::No);
    }

    #[test]
    fn a_rule_that_denies_looks_for_the_program_behind_paths_and_launchers() {
        let denied = ["git", "push"].map(str::to_owned);
        let matches = |command: &str| ParsedCommand::parse(command).unwrap().parts()[0].may_run(&denied);
        assert_eq!(matches("git push x"), PrefixMatch::Yes);
        for perhaps in [
            "/usr/bin/git push",
            "./git push",
            "/usr/bin/git $(a)",
            "env git push",
            "timeout 5 /usr/bin/git push",
            "sh -c 'git push'",
            "sh -c \"g''it push\"",
            "xargs git",
            "sh",
            "nice $(a)",
        ] {
            // The command of a substitution is the first part.
            let parsed = ParsedCommand::parse(perhaps).unwrap();
            assert_eq!(parsed.parts().last().unwrap().may_run(&denied), PrefixMatch::Perhaps, "{perhaps}");
        }
        for other in ["git log", "/usr/bin/git log", "timeout 5 cargo test", "echo git push", "digit push"] {
            assert_eq!(matches(other), PrefixMatch::No, "{other}");
        }
    }

    #[test]
    fn only_plain_paths_below_the_directory_are_inside() {
        let is_inside = |path: &str| Redirection { path: path.to_owned(), writes: true }.is_inside();
        for path in ["out.txt", "a/b/c", "./a", "..a", "a..", ".gitignore", "a//b"] {
            assert!(is_inside(path), "{path}");
        }
        for path in ["/etc/passwd", "/", "..", "../a", "a/../../b", "a/..", ".git/config", "a/.GIT/x", "//a"]
        {
            assert!(!is_inside(path), "{path}");
        }
    }
}
