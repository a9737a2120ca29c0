//! The text of a command, with its arguments in place.

use std::collections::BTreeMap;

use super::library::PromptFile;

/// A command that is about to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandText {
    pub(crate) text: String,
    /// What of the file is not followed, for people.
    pub(crate) notes: Vec<String>,
}

/// Renders a command with the arguments as they were typed.
pub(crate) fn expand(file: &PromptFile, arguments: &str) -> CommandText {
    let mut notes = Vec::new();
    if !file.front.unused.is_empty() {
        let keys = file.front.unused.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" and ");
        notes.push(format!(
            "{keys} of /{} is not followed: the mode and the rules of this conversation apply",
            file.name
        ));
    }
    if file.body.contains("!`") {
        notes
            .push(format!("the commands in /{} (!`…`) are not run: the agent reads them as text", file.name));
    }
    CommandText { text: replaced(&file.body, arguments.trim()), notes }
}

/// Replaces `$ARGUMENTS`, `$1` to `$9`, and `$NAME` for arguments `NAME=value`. `\$` is a plain `$` before them. Replaced text is
/// not searched again. Arguments of a text without a place for them follow it.
fn replaced(body: &str, arguments: &str) -> String {
    let words =
        shlex::split(arguments).unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect());
    let named: BTreeMap<&str, &str> = words.iter().filter_map(|word| word.split_once('=')).collect();
    let mut text = String::with_capacity(body.len() + arguments.len());
    let (mut rest, mut has_place) = (body, false);
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let length = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let name = &after[..length];
        let value = match name {
            "ARGUMENTS" => Some(arguments),
            _ if name.len() == 1 && ("1"..="9").contains(&name) => {
                let place = usize::from(name.as_bytes()[0] - b'1');
                Some(words.get(place).map_or("", String::as_str))
            }
            _ if is_capital(name) => named.get(name).copied(),
            _ => None,
        };
        match (value, before.strip_suffix('\\')) {
            (None, _) => text.push_str(&rest[..at + 1 + length]),
            (Some(_), Some(before)) => {
                text.push_str(before);
                text.push_str(&rest[at..at + 1 + length]);
            }
            (Some(value), None) => {
                has_place = true;
                text.push_str(before);
                text.push_str(value);
            }
        }
        rest = &after[length..];
    }
    text.push_str(rest);
    if !has_place && !arguments.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str(&format!("\n\nArguments: {arguments}\n"));
    }
    text
}

/// Whether a name has the form of those that arguments name.
fn is_capital(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_placed_once() {
        let cases = [
            ("Fix $ARGUMENTS now", "a  'b c'", "Fix a  'b c' now"),
            ("$2 before $1, $3.", "one 'two words'", "two words before one, ."),
            ("@$1", "src/main.rs", "@src/main.rs"),
            ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
            (r"\$1 and \$ARGUMENTS cost $5 or $12 $x", "a", "$1 and $ARGUMENTS cost  or $12 $x"),
            ("Plain.\n", "more", "Plain.\n\nArguments: more\n"),
            ("Plain.\n", "", "Plain.\n"),
            ("$FILE in $HOME", "FILE=a.rs", "a.rs in $HOME"),
            ("it's $1", "it's", "it's it's"),
            ("$", "", "$"),
        ];
        for (body, arguments, expected) in cases {
            assert_eq!(replaced(body, arguments), expected, "{body:?} {arguments:?}");
        }
    }
}
