//! `@PATH` in a message: attached files, images and directories.
//!
//! A word that begins with `@` and names something that exists attaches it; `@"a name"` is one with spaces. The words stay in
//! the message, and what they name follows it. Every other word with an `@` is plain text, such as `@property` of pasted code.
//! If it nearly names a file, a notice says so, and the message is sent all the same. A file that is too large, or neither text nor
//! media, is an error, and nothing is sent. `\@` is a plain `@`.

use std::path::{Path, PathBuf};

use super::file::{self, AttachError};
use super::found;
use super::parts::MessageParts;

/// Maximum number of attached files.
const MOST_FILES: usize = 20;

/// Number of paths that are compared with a name that is not a file.
const MOST_COMPARED: usize = 20_000;

/// Number of notices about names that are not files.
const MOST_NOTICES: usize = 3;

/// The files that a message may name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AttachScope<'a> {
    /// All that the person can read: the person has typed the name.
    Person,
    /// Those in a directory, also after links are resolved: the name is in a file of a project.
    Inside(&'a Path),
}

impl AttachScope<'_> {
    /// Returns the path that a name means, if there is one: `~` is the home directory.
    fn resolved(self, name: &str) -> Option<PathBuf> {
        let path = match (name.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => PathBuf::from(name),
        };
        let found = path.canonicalize().ok()?;
        match self {
            Self::Person => Some(path),
            Self::Inside(root) => {
                root.canonicalize().is_ok_and(|root| found.starts_with(root)).then_some(path)
            }
        }
    }
}

/// A message as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttachedMessage {
    text: String,
    /// The names of what is attached.
    names: Vec<String>,
    /// Names after an `@` that are plain text.
    unknown: Vec<String>,
}

impl AttachedMessage {
    /// Divides a message into its text and the names in it.
    pub(crate) fn parse(typed: &str, scope: AttachScope<'_>) -> Self {
        parse(typed, |name| scope.resolved(name).is_some())
    }

    /// The text of the message.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Attaches what the message names. `parts` begin with the text of the message.
    pub(crate) fn attach(&self, parts: &mut MessageParts, scope: AttachScope<'_>) -> Result<(), AttachError> {
        if self.names.len() > MOST_FILES {
            return Err(AttachError::TooMany { count: self.names.len(), most: MOST_FILES });
        }
        for name in &self.names {
            let shown = format!("@{name}");
            let path = scope.resolved(name);
            let path = path.ok_or_else(|| AttachError::refusal(&shown, "there is no such file"))?;
            parts.attach(name, file::read(&shown, &path)?);
        }
        Ok(())
    }

    /// Returns notices about names that are nearly those of files.
    pub(crate) fn notices(&self, directory: &Path) -> Vec<String> {
        if self.unknown.is_empty() {
            return Vec::new();
        }
        let paths = found::below(directory, MOST_COMPARED).paths;
        let notice = |name: &String| {
            let path = found::near(name, &paths)?;
            Some(format!("@{name} is not a file, so it is sent as text; did you mean `@{path}`?"))
        };
        self.unknown.iter().filter_map(notice).take(MOST_NOTICES).collect()
    }
}

fn parse(typed: &str, exists: impl Fn(&str) -> bool) -> AttachedMessage {
    let mut message =
        AttachedMessage { text: String::with_capacity(typed.len()), names: Vec::new(), unknown: Vec::new() };
    let mut rest = typed;
    let mut before = ' ';
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        let is_first = before.is_whitespace() || before == '(';
        if rest.starts_with("\\@") && is_first {
            message.text.push('@');
            (rest, before) = (&rest[2..], '@');
            continue;
        }
        if character == '@' && is_first {
            let (length, name) = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((name, _)) => (name.len() + 2, name),
                None => {
                    let word = after.split(char::is_whitespace).next().unwrap_or_default();
                    let name = without_punctuation(word, &exists);
                    (name.len(), name)
                }
            };
            if !name.is_empty() {
                let list = if exists(name) { &mut message.names } else { &mut message.unknown };
                if !list.iter().any(|known| known == name) {
                    list.push(name.to_owned());
                }
                message.text.push_str(&rest[..=length]);
                (rest, before) = (&rest[length + 1..], 'x');
                continue;
            }
        }
        message.text.push(character);
        (rest, before) = (after, character);
    }
    message
}

/// Removes punctuation of the sentence from a name, unless there is a file of that name.
fn without_punctuation(word: &str, exists: impl Fn(&str) -> bool) -> &str {
    let plain = word.trim_end_matches([',', '.', ';', ':', '!', '?', ')', '\'', '"']);
    if plain.is_empty() || (plain != word && exists(word)) { word } else { plain }
}

#[cfg(test)]
mod tests {
    use backstitch::message::Part;

    use super::*;

    #[test]
    fn words_with_an_at_sign_name_files_or_are_text() {
        let cases: [(&str, &str, &[&str], &[&str]); 11] = [
            ("look at @a.rs", "look at @a.rs", &["a.rs"], &[]),
            ("@a.rs, @b.rs. @a.rs", "@a.rs, @b.rs. @a.rs", &["a.rs", "b.rs"], &[]),
            ("(@src/ä.rs)", "(@src/ä.rs)", &["src/ä.rs"], &[]),
            ("@odd. file", "@odd. file", &["odd."], &[]),
            ("@\"two words.txt\" there", "@\"two words.txt\" there", &["two words.txt"], &[]),
            ("mail me@example.com @ noon", "mail me@example.com @ noon", &[], &[]),
            ("\\@user and a\\@b", "@user and a\\@b", &[], &[]),
            ("@", "@", &[], &[]),
            ("line\n@a.rs\n", "line\n@a.rs\n", &["a.rs"], &[]),
            (
                "@property\ndef x(): # @types/node, @alice!",
                "@property\ndef x(): # @types/node, @alice!",
                &[],
                &["property", "types/node", "alice"],
            ),
            ("@\"no such\" x", "@\"no such\" x", &[], &["no such"]),
        ];
        let exists = |name: &str| ["a.rs", "b.rs", "src/ä.rs", "odd.", "two words.txt"].contains(&name);
        for (typed, text, names, unknown) in cases {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let expected =
                AttachedMessage { text: text.to_owned(), names: owned(names), unknown: owned(unknown) };
            assert_eq!(parse(typed, exists), expected);
        }
    }

    fn attached(typed: &str, scope: AttachScope<'_>) -> Result<backstitch::Mission, AttachError> {
        let message = AttachedMessage::parse(typed, scope);
        let mut parts = MessageParts::new(message.text());
        message.attach(&mut parts, scope)?;
        Ok(parts.mission())
    }

    #[test]
    fn files_are_attached_as_text_or_media() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("sub")).unwrap();
        std::fs::write(path("sub/note.txt"), "seven").unwrap();
        std::fs::write(path("dot.png"), b"\x89PNG\r\n\x1a\n rest").unwrap();
        std::fs::write(path("noise"), [0, 159, 146, 150]).unwrap();
        std::fs::write(path("large"), vec![b'x'; file::MOST_TEXT as usize + 1]).unwrap();
        let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
        picture.resize(file::MOST_MEDIA as usize + 1, 0);
        std::fs::write(path("large.png"), picture).unwrap();
        let (note, dot, sub) = (path("sub/note.txt"), path("dot.png"), path("sub"));
        let mission = attached(&format!("see @{note} and @{dot} in @{sub}"), AttachScope::Person).unwrap();
        assert_eq!(mission.parts().len(), 4);
        assert_eq!(mission.parts()[1], Part::text(format!("<file path=\"{note}\">\nseven\n</file>")));
        assert_eq!(
            mission.parts()[2],
            Part::text(format!("<directory path=\"{sub}\">\nnote.txt\n</directory>"))
        );
        assert!(
            matches!(&mission.parts()[3], Part::Media(media) if media.mime.as_deref() == Some("image/png"))
        );
        for (name, reason) in
            [("noise", "it is not UTF-8 text"), ("large", "larger than 1 MiB"), ("large.png", "3.75 MiB")]
        {
            let typed = format!("@{}", path(name));
            let error = attached(&typed, AttachScope::Person).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        let missing = attached(&format!("@{}", path("missing")), AttachScope::Person).unwrap();
        assert_eq!(missing.parts().len(), 1);
        let inside = AttachScope::Inside(Path::new(&sub));
        assert_eq!(attached(&format!("@{note} @{dot}"), inside).unwrap().parts().len(), 2);
        std::os::unix::fs::symlink(&dot, path("sub/link")).unwrap();
        let link = path("sub/link");
        assert_eq!(attached(&format!("@{link}"), inside).unwrap().parts().len(), 1, "it leads out");
    }

    #[test]
    fn only_so_many_files_are_attached() {
        let directory = tempfile::tempdir().unwrap();
        let mut typed = String::new();
        for number in 0..=MOST_FILES {
            let path = directory.path().join(number.to_string());
            std::fs::write(&path, "x").unwrap();
            typed.push_str(&format!("@{} ", path.display()));
        }
        assert!(matches!(attached(&typed, AttachScope::Person), Err(AttachError::TooMany { .. })));
    }
}
