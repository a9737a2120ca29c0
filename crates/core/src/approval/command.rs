//! Commands of a shell that are certainly one plain command.
//!
//! A rule such as "allow `git status`" must not match `git status; rm -r .`, nor any other text that a shell
//! would run as more than one command, or whose words a shell would change before it runs them. So a command
//! with operators, substitutions, redirections, variables, patterns, comments, escapes or line ends has no
//! words here, wherever they stand, also inside quotes. Neither has a command that starts with an assignment
//! or with a word of the shell's own grammar.

/// The words of a plain command, without quotes.
///
/// ```
/// use backstitch_core::approval::CommandWords;
///
/// let words = CommandWords::parse("git commit -m 'mend the hem'").unwrap();
/// assert_eq!(words.as_slice(), ["git", "commit", "-m", "mend the hem"]);
/// for several in ["git status; id", "git $(id)", "git status\nid", "git `id`", "git log > file", "A=b git"] {
///     assert_eq!(CommandWords::parse(several), None);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWords(Vec<String>);

/// Words with a meaning of their own at the start of a command.
const GRAMMAR: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
    "select", "function", "coproc", "time", "eval", "exec", "command", "builtin", "source", ".", "trap",
    "alias",
];

impl CommandWords {
    /// Splits a command into words. Returns `None` unless it is certainly one plain command.
    pub fn parse(command: &str) -> Option<Self> {
        let mut quote = None;
        for character in command.chars() {
            let is_safe = match (quote, character) {
                (None, '\'' | '"') => {
                    quote = Some(character);
                    true
                }
                (Some(open), close) if open == close => {
                    quote = None;
                    true
                }
                (None, ' ' | '\t') => true,
                (None, other) => other.is_ascii_alphanumeric() || is_plain_mark(other),
                // Inside of quotes, letters of all scripts and a few marks are harmless as well.
                (Some(_), other) => {
                    other.is_alphanumeric() || is_plain_mark(other) || matches!(other, ' ' | '\'' | '"')
                }
            };
            if !is_safe {
                return None;
            }
        }
        let words = shlex::split(command)?;
        let first = words.first()?;
        if first.is_empty() || first.contains('=') || is_grammar(first) {
            return None;
        }
        Some(Self(words))
    }

    /// The words.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

/// Whether a word has a meaning of its own at the start of a command.
pub(super) fn is_grammar(word: &str) -> bool {
    GRAMMAR.contains(&word)
}

/// Whether a mark has no meaning for a shell.
pub(super) fn is_plain_mark(character: char) -> bool {
    matches!(character, '-' | '_' | '.' | '/' | '=' | ':' | ',' | '@' | '%' | '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Option<Vec<String>> {
        CommandWords::parse(command).map(|words| words.0)
    }

    #[test]
    fn plain_commands_have_words() {
        assert_eq!(
            words("  cargo   test --quiet\t-p core "),
            Some(vec_of(&["cargo", "test", "--quiet", "-p", "core"]))
        );
        assert_eq!(words("grep -rn \"fn main\" src"), Some(vec_of(&["grep", "-rn", "fn main", "src"])));
        assert_eq!(words("echo \"it's\" 'größer'"), Some(vec_of(&["echo", "it's", "größer"])));
        assert_eq!(words("g'i't status"), Some(vec_of(&["git", "status"])));
    }

    fn vec_of(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn every_mark_of_a_shell_is_refused_everywhere() {
        let marks = "|&;<>()$`\\*?[]{}~!#^\n\r\u{b}\u{c}\u{0}\u{1b}\u{7f}\u{85}\u{a0}\u{2028}\u{202e}\u{200b}\u{feff}";
        for mark in marks.chars() {
            for command in [
                format!("git status {mark} id"),
                format!("git status{mark}id"),
                format!("git '{mark}'"),
                format!("git \"a{mark}b\""),
                format!("{mark}git status"),
            ] {
                assert_eq!(words(&command), None, "{command:?}");
            }
        }
        for command in
            ["", "  ", "''", "git 'status", "git \"status", "A=b git", "time rm", ". file", "größe x"]
        {
            assert_eq!(words(command), None, "{command:?}");
        }
    }
}
