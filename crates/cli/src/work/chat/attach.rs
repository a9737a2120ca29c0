//! `@PATH` in a message: attached files and images.
//!
//! A word that begins with `@` names a file, `@"a name"` one with spaces. The words stay in the message, and
//! the files follow it: text as text, images and PDF documents as media. A file that is missing, too large or
//! neither text nor media is an error, and nothing is sent. `\@` is a plain `@`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use backstitch::Mission;
use backstitch::message::{MediaPart, MediaType, Modality, Part};

/// Maximum size of an attached text in bytes.
const MOST_TEXT: u64 = 1024 * 1024;

/// Maximum size of an attached image or document in bytes. Every provider accepts images of this size.
const MOST_MEDIA: u64 = 5 * 1024 * 1024;

/// Maximum number of attached files.
const MOST_FILES: usize = 20;

/// Why a file cannot be attached.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachError {
    #[error("@{path} cannot be attached: {reason}")]
    Refused { path: String, reason: String },
    #[error("{count} files are attached; the maximum is {MOST_FILES}")]
    TooMany { count: usize },
}

/// A message with the names of its files.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    text: String,
    paths: Vec<String>,
}

/// Returns the message as it was meant, and the attached files.
fn parse(typed: &str, exists: impl Fn(&str) -> bool) -> Message {
    let mut message = Message { text: String::with_capacity(typed.len()), paths: Vec::new() };
    let mut rest = typed;
    let mut before = ' ';
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if rest.starts_with("\\@") && (before.is_whitespace() || before == '(') {
            message.text.push('@');
            (rest, before) = (&rest[2..], '@');
            continue;
        }
        if character == '@' && (before.is_whitespace() || before == '(') {
            let (written, path) = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((path, _)) => (path.len() + 2, path),
                None => {
                    let word = after.split(char::is_whitespace).next().unwrap_or_default();
                    let path = without_punctuation(word, &exists);
                    (path.len(), path)
                }
            };
            if !path.is_empty() {
                message.paths.push(path.to_owned());
                message.text.push_str(&rest[..=written]);
                (rest, before) = (&rest[written + 1..], 'x');
                continue;
            }
        }
        message.text.push(character);
        (rest, before) = (after, character);
    }
    message
}

/// Removes punctuation of the sentence from a path, unless there is a file of that name.
fn without_punctuation(word: &str, exists: impl Fn(&str) -> bool) -> &str {
    let plain = word.trim_end_matches([',', '.', ';', ':', '!', '?', ')']);
    if plain.is_empty() || (plain != word && exists(word)) { word } else { plain }
}

/// Builds the mission of a typed message. `text_of` prepares its text for the agent.
pub(super) fn mission<E: Into<anyhow::Error>>(
    typed: &str,
    text_of: impl Fn(&str) -> Result<String, E>,
) -> anyhow::Result<Mission> {
    let Message { text, paths } = parse(typed, |path| resolved(path).exists());
    if paths.len() > MOST_FILES {
        return Err(AttachError::TooMany { count: paths.len() }.into());
    }
    let mut parts = vec![Part::text(text_of(&text).map_err(Into::into)?)];
    let mut media = Vec::new();
    for path in paths {
        let bytes = read(&path)?;
        match kind_of(&bytes) {
            Some(MediaType { modality, mime }) => {
                let (part, object) = MediaPart::held(modality, bytes);
                media.push((part.with_mime(mime).with_hint(path), object));
            }
            None => {
                let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
                let Some(text) = text else {
                    let reason =
                        "it is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP) nor a PDF document";
                    return Err(AttachError::Refused { path, reason: reason.to_owned() }.into());
                };
                let end = if text.ends_with('\n') { "" } else { "\n" };
                parts.push(Part::text(format!("<file path=\"{path}\">\n{text}{end}</file>")));
            }
        }
    }
    Ok(media.into_iter().fold(Mission::new(parts), Mission::with_media))
}

/// Reads a file within the limits.
fn read(path: &str) -> Result<Vec<u8>, AttachError> {
    let refused = |reason: String| AttachError::Refused { path: path.to_owned(), reason };
    let unreadable = |error: std::io::Error| refused(error.to_string());
    let found = resolved(path);
    // A pipe would block when it is opened.
    let metadata = std::fs::metadata(&found).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(refused("it is a directory; attach single files".to_owned()));
    }
    if !metadata.is_file() {
        return Err(refused("it is not an ordinary file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(&found).map_err(unreadable)?;
    file.take(MOST_MEDIA + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let most = if kind_of(&bytes).is_some() { MOST_MEDIA } else { MOST_TEXT };
    if bytes.len() as u64 > most {
        return Err(refused(format!("it is larger than {} MiB", most / 1024 / 1024)));
    }
    Ok(bytes)
}

/// Returns the path that a person means: `~` is the home directory.
fn resolved(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Returns the type of an image or a document.
fn kind_of(bytes: &[u8]) -> Option<MediaType> {
    MediaType::of_bytes(bytes).filter(|kind| matches!(kind.modality, Modality::Image | Modality::Document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(typed: &str) -> (String, Vec<String>) {
        let Message { text, paths } = parse(typed, |path| path == "odd.");
        (text, paths)
    }

    #[test]
    fn words_with_an_at_sign_name_files() {
        let cases: [(&str, &str, &[&str]); 9] = [
            ("look at @a.rs", "look at @a.rs", &["a.rs"]),
            ("@a.rs, @b.rs.", "@a.rs, @b.rs.", &["a.rs", "b.rs"]),
            ("(@src/ä.rs)", "(@src/ä.rs)", &["src/ä.rs"]),
            ("@odd. file", "@odd. file", &["odd."]),
            ("@\"two words.txt\" there", "@\"two words.txt\" there", &["two words.txt"]),
            ("mail me@example.com @ noon", "mail me@example.com @ noon", &[]),
            ("\\@user and a\\@b", "@user and a\\@b", &[]),
            ("@", "@", &[]),
            ("line\n@x\n", "line\n@x\n", &["x"]),
        ];
        for (typed, text, paths) in cases {
            assert_eq!(
                parsed(typed),
                (text.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect())
            );
        }
    }

    #[test]
    fn files_are_attached_as_text_or_media() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("note.txt"), "seven").unwrap();
        std::fs::write(path("dot.png"), b"\x89PNG\r\n\x1a\n rest").unwrap();
        std::fs::write(path("noise"), [0, 159, 146, 150]).unwrap();
        std::fs::write(path("large"), vec![b'x'; MOST_TEXT as usize + 1]).unwrap();
        let same = |text: &str| Ok::<_, AttachError>(text.to_owned());
        let (note, dot) = (path("note.txt"), path("dot.png"));
        let mission = super::mission(&format!("see @{note} and @{dot}"), same).unwrap();
        assert_eq!(mission.parts().len(), 3);
        assert_eq!(mission.parts()[1], Part::text(format!("<file path=\"{note}\">\nseven\n</file>")));
        assert!(
            matches!(&mission.parts()[2], Part::Media(media) if media.mime.as_deref() == Some("image/png"))
        );
        for (name, reason) in [
            ("noise", "neither UTF-8 text"),
            ("large", "larger than 1 MiB"),
            ("missing", "No such file"),
            ("", "directory"),
        ] {
            let error = super::mission(&format!("@{}", path(name)), same).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        let many = "@x ".repeat(MOST_FILES + 1);
        assert!(super::mission(&many, same).is_err());
    }
}
