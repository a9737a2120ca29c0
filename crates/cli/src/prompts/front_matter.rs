//! The beginning of a Markdown file between two lines `---`: keys and texts.
//!
//! What is read is the part of YAML that such files use: `key: text` in a line, quoted, folded over indented lines, or as a block.
//! Lists and tables are kept as their text. Unknown keys are ignored.

use std::collections::BTreeMap;

use backstitch::host::is_steering;

/// Maximum size in bytes.
const LONGEST: usize = 8 * 1024;

/// Maximum number of characters of a description.
const LONGEST_TEXT: usize = 1024;

/// What a file says about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// What follows the name of a command, for people.
    pub(crate) argument_hint: Option<String>,
    /// Keys that are not followed, because a file grants nothing and chooses no model.
    pub(crate) unused: Vec<&'static str>,
    /// Whether only a person sends it, and no model loads it.
    pub(crate) is_manual: bool,
}

/// Keys that are not followed.
const UNUSED: [&str; 3] = ["allowed-tools", "model", "hooks"];

/// The front matter of a file is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrontMatterError {
    #[error("the line `---` that ends the front matter is missing")]
    Unclosed,
    #[error("the front matter is longer than 8 KiB")]
    TooLong,
    #[error("line {line} of the front matter is not `key: value`")]
    NotAKey { line: usize },
    #[error("line {line} of the front matter has the key `{key}` again")]
    Repeated { line: usize, key: String },
}

impl FrontMatter {
    /// Divides the text of a file into its front matter and the rest. A file may have none.
    pub(super) fn split(text: &str) -> Result<(Self, &str), FrontMatterError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
            return Ok((Self::default(), text));
        };
        let (mut inside, mut length) = (Vec::new(), first.len());
        for line in lines {
            length += line.len();
            if line.trim_end() == "---" {
                return Ok((Self::of_entries(&entries(&inside)?), &text[length..]));
            }
            if length > LONGEST {
                return Err(FrontMatterError::TooLong);
            }
            inside.push(line.trim_end());
        }
        Err(FrontMatterError::Unclosed)
    }

    fn of_entries(entries: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| entries.get(key).map(|text| plain(text)).filter(|text| !text.is_empty());
        Self {
            name: text("name"),
            description: text("description"),
            argument_hint: text("argument-hint"),
            unused: UNUSED.into_iter().filter(|key| entries.contains_key(*key)).collect(),
            is_manual: entries.get("disable-model-invocation").is_some_and(|value| value == "true"),
        }
    }
}

/// Reads the keys and their texts.
fn entries(lines: &[&str]) -> Result<BTreeMap<String, String>, FrontMatterError> {
    let mut entries = BTreeMap::new();
    let mut current: Option<(String, String)> = None;
    // The first line of the file is the mark.
    for (line, text) in lines.iter().enumerate().map(|(at, text)| (at + 2, *text)) {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        let is_continued = text.starts_with([' ', '\t']) || text.starts_with("- ");
        match &mut current {
            Some((_, value)) if is_continued => {
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(text.trim());
            }
            _ => {
                entries.extend(current.take());
                let (key, value) = key_and_value(text).ok_or(FrontMatterError::NotAKey { line })?;
                if entries.contains_key(key) {
                    return Err(FrontMatterError::Repeated { line, key: key.to_owned() });
                }
                current = Some((key.to_owned(), value));
            }
        }
    }
    entries.extend(current);
    Ok(entries)
}

/// Divides a line `key: value`.
fn key_and_value(line: &str) -> Option<(&str, String)> {
    let (key, value) = line.split_once(':')?;
    let is_part = |one: char| one.is_ascii_alphanumeric() || "-_".contains(one);
    let is_key = !key.is_empty() && key.len() <= 64 && key.chars().all(is_part);
    let is_separate = value.is_empty() || value.starts_with([' ', '\t']);
    (is_key && is_separate).then(|| (key, scalar(value.trim())))
}

/// Returns the text of a value in its line.
fn scalar(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some((inside, _)) = value.strip_prefix(quote).and_then(|rest| rest.rsplit_once(quote)) {
            return match quote {
                '"' => inside.replace("\\\"", "\"").replace("\\n", " ").replace("\\\\", "\\"),
                _ => inside.replace("''", "'"),
            };
        }
    }
    // The marks of a block, whose lines follow.
    if matches!(value, "|" | "|-" | "|+" | ">" | ">-" | ">+") {
        return String::new();
    }
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}

/// Returns a text in one line, without what could control a terminal, and not too long.
fn plain(text: &str) -> String {
    let words = text.split(|one: char| one.is_whitespace() || is_steering(one));
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> Result<FrontMatter, FrontMatterError> {
        FrontMatter::split(text).map(|(front, _)| front)
    }

    #[test]
    fn keys_and_texts_are_read() {
        let text = "---\r\n# a comment\r\nname: hem\r\ndescription: >-\r\n  Hem a\r\n  seam: twice # x\r\nargument-hint: [cloth] [thread]\r\n\
                    allowed-tools:\r\n  - Bash(git:*)\r\nmodel: 'other'\r\ndisable-model-invocation: true\r\n---\r\nBody\r\n";
        let (found, body) = FrontMatter::split(text).unwrap();
        assert_eq!(found.name.as_deref(), Some("hem"));
        assert_eq!(found.description.as_deref(), Some("Hem a seam: twice # x"));
        assert_eq!(found.argument_hint.as_deref(), Some("[cloth] [thread]"));
        assert_eq!(found.unused, ["allowed-tools", "model"]);
        assert!(found.is_manual);
        assert_eq!(body, "Body\r\n");
        let (none, body) = FrontMatter::split("\u{feff}Just text\n---\n").unwrap();
        assert_eq!((none, body), (FrontMatter::default(), "Just text\n---\n"));
        let quoted = front("---\ndescription: \"a \\\"b\\\" \u{1b}[2J\u{202e}c\" # no\n---").unwrap();
        assert_eq!(quoted.description.as_deref(), Some("a \"b\" [2J c"));
        let comment = front("---\ndescription: text # comment\n---\n").unwrap();
        assert_eq!(comment.description.as_deref(), Some("text"));
    }

    #[test]
    fn hostile_front_matter_is_refused() {
        assert_eq!(front("---\nname: x\n"), Err(FrontMatterError::Unclosed));
        assert_eq!(front("---\n"), Err(FrontMatterError::Unclosed));
        assert_eq!(front("---\nno key\n---\n"), Err(FrontMatterError::NotAKey { line: 2 }));
        assert_eq!(front("---\n  indented\n---\n"), Err(FrontMatterError::NotAKey { line: 2 }));
        assert_eq!(front("---\nname:x\n---\n"), Err(FrontMatterError::NotAKey { line: 2 }));
        let repeated = FrontMatterError::Repeated { line: 3, key: "name".to_owned() };
        assert_eq!(front("---\nname: x\nname: y\n---\n"), Err(repeated));
        assert_eq!(front(&format!("---\nname: {}\n", "x".repeat(LONGEST))), Err(FrontMatterError::TooLong));
        let long = front(&format!("---\ndescription: {}\n---\n", "x".repeat(4000))).unwrap();
        assert_eq!(long.description.map(|text| text.len()), Some(LONGEST_TEXT));
    }
}
