//! Colours of code, line by line.
//!
//! Comments, strings, numbers and the words of a language are told apart by a short description of the language. That is less than a grammar knows,
//! and enough to read by; it needs no tables, and nothing that a line holds can make it fail or slow.

use super::super::difference;
use super::super::style::{Role, Text};

/// How code of a language looks.
struct Language {
    names: &'static [&'static str],
    /// What starts a comment that ends with the line.
    comments: &'static [&'static str],
    /// What starts and ends a comment of several lines.
    block: Option<(&'static str, &'static str)>,
    /// What starts and ends a string. Those with more than one character, and backticks, may have several lines.
    strings: &'static [&'static str],
    /// Whether an apostrophe encloses one character.
    has_characters: bool,
    keywords: &'static str,
}

const C_KEYWORDS: &str = "auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern \
    false final float for friend func fun goto if implements import in inline instanceof int interface internal is let long namespace new nil null nullptr \
    object operator override package private protected public return short signed sizeof static struct super switch synchronized template this throw \
    throws true try typedef typename union unsigned using val var virtual void volatile when where while yield chan defer fallthrough go map range select type \
    extends abstract async await string byte";

const LANGUAGES: [Language; 10] = [
    Language {
        names: &["rust", "rs"],
        comments: &["//"],
        block: Some(("/*", "*/")),
        strings: &["\""],
        has_characters: true,
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self \
            Self static struct super trait true type unsafe use where while",
    },
    Language {
        names: &["python", "py"],
        comments: &["#"],
        block: None,
        strings: &["\"\"\"", "'''", "\"", "'"],
        has_characters: false,
        keywords: "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is \
            lambda match nonlocal not or pass raise return self try while with yield",
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx"],
        comments: &["//"],
        block: Some(("/*", "*/")),
        strings: &["\"", "'", "`"],
        has_characters: false,
        keywords: "abstract any as async await boolean break case catch class const continue declare default delete do else enum export extends false \
            finally for from function get if implements import in instanceof interface keyof let namespace new null number of private protected public \
            readonly return set static string super switch this throw true try type typeof undefined var void while yield",
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "go", "kotlin", "kt", "csharp", "cs", "swift",
            "scala", "dart", "php", "zig",
        ],
        comments: &["//"],
        block: Some(("/*", "*/")),
        strings: &["\"", "`"],
        has_characters: true,
        keywords: C_KEYWORDS,
    },
    Language {
        names: &["sh", "bash", "zsh", "fish", "shell", "console", "makefile", "make", "dockerfile", "nix"],
        comments: &["#"],
        block: None,
        strings: &["\"", "'"],
        has_characters: false,
        keywords: "if then else elif fi for in do done while until case esac function return export local set unset source exit FROM RUN COPY CMD ENV \
            WORKDIR ENTRYPOINT with let rec inherit",
    },
    Language {
        names: &["toml", "yaml", "yml", "ini", "conf", "properties"],
        comments: &["#"],
        block: None,
        strings: &["\"\"\"", "\"", "'"],
        has_characters: false,
        keywords: "true false null yes no on off",
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        comments: &["//"],
        block: Some(("/*", "*/")),
        strings: &["\""],
        has_characters: false,
        keywords: "true false null",
    },
    Language {
        names: &["sql", "sqlite", "postgresql", "lua", "haskell", "hs"],
        comments: &["--"],
        block: Some(("/*", "*/")),
        strings: &["'", "\""],
        has_characters: false,
        keywords: "select from where and or not insert into values update set delete create table index view drop alter join left right inner outer on \
            as group by order having limit offset union all distinct null primary key references default case when then else end if exists begin commit \
            rollback SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW DROP ALTER JOIN LEFT RIGHT INNER OUTER ON \
            AS GROUP BY ORDER HAVING LIMIT OFFSET UNION ALL DISTINCT NULL PRIMARY KEY REFERENCES DEFAULT CASE WHEN THEN ELSE END IF EXISTS BEGIN COMMIT \
            ROLLBACK local function return for in do while repeat until true false nil module import data type class instance let of",
    },
    Language {
        names: &["ruby", "rb", "perl", "pl", "elixir", "ex", "r", "julia", "jl"],
        comments: &["#"],
        block: None,
        strings: &["\"", "'"],
        has_characters: false,
        keywords: "alias and begin break case class def defined do else elsif end ensure false for function if in module my next nil not or redo require \
            rescue retry return self sub super then true undef unless until use when while yield",
    },
    Language {
        names: &["lisp", "clojure", "clj", "scheme", "edn", "elisp"],
        comments: &[";"],
        block: None,
        strings: &["\""],
        has_characters: false,
        keywords: "def defn defmacro fn let loop recur if when cond do ns require lambda define setq true false nil",
    },
];

/// Colours the lines of a code block, one after the other.
#[derive(Debug, Default)]
pub(super) struct Highlighter {
    /// The place of the language in the list.
    language: Option<usize>,
    is_diff: bool,
    /// What ends the comment or string that the lines so far have opened, and its role.
    open: Option<(&'static str, Role)>,
}

impl Highlighter {
    /// Starts a block of a language, as the line that opens the block names it.
    pub(super) fn new(name: &str) -> Self {
        let name = name.split([' ', ',', '{', ':']).next().unwrap_or_default().to_lowercase();
        let language = LANGUAGES.iter().position(|language| language.names.contains(&&*name));
        Self { language, is_diff: matches!(&*name, "diff" | "patch"), open: None }
    }

    /// Returns a line with colours.
    pub(super) fn line(&mut self, line: &str) -> Text {
        if self.is_diff {
            return Text::new().add(difference::role(line), line);
        }
        let Some(language) = self.language.and_then(|place| LANGUAGES.get(place)) else {
            return Text::new().add(Role::Code, line);
        };
        let (mut text, mut rest) = (Text::new(), line);
        let mut previous = None;
        while !rest.is_empty() {
            let (role, length) = self.token(language, previous, rest);
            let (token, after) = rest.split_at(length);
            text.extend_last(role, token);
            previous = token.chars().next_back();
            rest = after;
        }
        text
    }

    /// Returns the role and the length of the token that a text begins with. It has at least one character.
    fn token(&mut self, language: &Language, previous: Option<char>, rest: &str) -> (Role, usize) {
        if let Some((end, role)) = self.open {
            return match end_of(rest, end) {
                Some(length) => {
                    self.open = None;
                    (role, length)
                }
                None => (role, rest.len()),
            };
        }
        let is_after_gap = previous.is_none_or(char::is_whitespace);
        let is_comment = |start: &&str| rest.starts_with(*start) && (start.len() > 1 || is_after_gap);
        if language.comments.iter().any(is_comment) {
            return (Role::Dim, rest.len());
        }
        if let Some((start, end)) = language.block.filter(|(start, _)| rest.starts_with(start)) {
            return self.enclosed(rest, start.len(), end, Role::Dim, true);
        }
        if let Some(&quote) = language.strings.iter().find(|quote| rest.starts_with(**quote)) {
            let may_continue = quote.len() > 1 || quote == "`";
            return self.enclosed(rest, quote.len(), quote, Role::Literal, may_continue);
        }
        let first = rest.chars().next().unwrap_or_default();
        if language.has_characters && first == '\'' {
            return character_length(rest).map_or((Role::Plain, 1), |length| (Role::Literal, length));
        }
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        if !is_word(first) {
            return (Role::Plain, first.len_utf8());
        }
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let word = &rest[..length];
        let role = match first {
            '0'..='9' => Role::Literal,
            _ if language.keywords.split_ascii_whitespace().any(|keyword| keyword == word) => Role::Keyword,
            _ => Role::Plain,
        };
        (role, length)
    }

    /// Returns the token that an opening mark starts. Without an end it is the mark alone, or continues on the next line.
    fn enclosed(
        &mut self,
        rest: &str,
        start: usize,
        end: &'static str,
        role: Role,
        may_continue: bool,
    ) -> (Role, usize) {
        match end_of(&rest[start..], end) {
            Some(length) => (role, start + length),
            None if may_continue => {
                self.open = Some((end, role));
                (role, rest.len())
            }
            None => (Role::Plain, start),
        }
    }
}

/// The length of a text up to a mark that is not escaped, and including it.
fn end_of(text: &str, end: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let place = from + text.get(from..)?.find(end)?;
        let before = &text[..place];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if backslashes.is_multiple_of(2) || end.len() > 1 {
            return Some(place + end.len());
        }
        from = place + end.len();
    }
}

/// The length of a character between apostrophes; `None` if the apostrophe is something else, such as that of a lifetime.
fn character_length(rest: &str) -> Option<usize> {
    let mut inner = rest.chars().skip(1);
    match inner.next()? {
        '\\' => {
            let escaped = rest.char_indices().skip(3).take(10);
            escaped.into_iter().find(|(_, one)| *one == '\'').map(|(at, _)| at + 1)
        }
        one => (inner.next() == Some('\'')).then_some(one.len_utf8() + 2),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::style::tests::foreign;
    use super::*;

    fn roles(language: &str, lines: &[&str]) -> Vec<(Role, String)> {
        let mut highlighter = Highlighter::new(language);
        let all = lines.iter().flat_map(|line| {
            let line = highlighter.line(line);
            line.spans().map(|(role, text)| (role, text.to_owned())).collect::<Vec<_>>()
        });
        all.filter(|(role, _)| *role != Role::Plain).collect()
    }

    #[test]
    fn words_strings_and_comments_have_colors() {
        let found = roles("rust", &["fn hem<'a>(x: &'a str) { let y = \"a \\\" b\"; 'x'; 12 } // end"]);
        let expected = [
            (Role::Keyword, "fn"),
            (Role::Keyword, "let"),
            (Role::Literal, "\"a \\\" b\""),
            (Role::Literal, "'x'"),
            (Role::Literal, "12"),
            (Role::Dim, "// end"),
        ];
        assert_eq!(found, expected.map(|(role, text)| (role, text.to_owned())));
        assert_eq!(roles("sh", &["echo a#b # c"]), [(Role::Dim, "# c".to_owned())]);
        assert_eq!(roles("diff", &["-a"]), [(Role::Removed, "-a".to_owned())]);
        assert_eq!(roles("", &["fn a"]), [(Role::Code, "fn a".to_owned())]);
    }

    #[test]
    fn comments_and_strings_have_several_lines() {
        let found = roles("c", &["/* one", "two */ int x;"]);
        let expected = [(Role::Dim, "/* one"), (Role::Dim, "two */"), (Role::Keyword, "int")];
        assert_eq!(found, expected.map(|(role, text)| (role, text.to_owned())));
        let found = roles("python", &["x = \"\"\"one", "two\"\"\" + 'open"]);
        let expected = [(Role::Literal, "\"\"\"one"), (Role::Literal, "two\"\"\"")];
        assert_eq!(found, expected.map(|(role, text)| (role, text.to_owned())));
    }

    proptest! {
        #[test]
        fn no_character_is_lost(
            lines in prop::collection::vec(foreign(), 0..4), code in "['\"`/*#a1\\\\ -]{0,30}", language in 0_usize..LANGUAGES.len(),
        ) {
            let mut highlighter = Highlighter::new(LANGUAGES[language].names[0]);
            for line in lines.iter().chain([&code]) {
                prop_assert_eq!(highlighter.line(line).text(), Text::from(line.as_str()).text());
            }
        }
    }
}
