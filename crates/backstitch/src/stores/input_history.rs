//! The file with the messages that were typed at the prompt of a conversation.
//!
//! It is one file for all sessions of a user, in the user's state directory, and only the user can read it. Its form is that of
//! the line editor: a line `#V2`, then a line for each message, in which newlines and backslashes are escaped.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{make_private, state_directory};
use crate::ports::ErasureMode;

/// First line of a file with escaped messages.
const VERSION: &str = "#V2";

/// Returns the file, whether it exists or not. Without a home directory there is none.
pub fn path() -> Option<PathBuf> {
    Some(state_directory().ok()?.join("history"))
}

/// Creates the file if it is missing, and returns its path.
pub fn create() -> io::Result<PathBuf> {
    let path = path().ok_or(io::ErrorKind::NotFound)?;
    if let Some(directory) = path.parent() {
        make_private(directory)?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    Ok(path)
}

/// Replaces each message by what `change` returns, or removes it, and returns the number of messages that differ. The file is
/// replaced as a whole.
pub(crate) fn rewrite(
    path: &Path,
    mode: ErasureMode,
    mut change: impl FnMut(&str) -> Option<String>,
) -> io::Result<usize> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        read => read?,
    };
    let (mut kept, mut changed) = (format!("{VERSION}\n"), 0);
    for message in messages(&String::from_utf8_lossy(&bytes)) {
        let next = change(&message);
        changed += usize::from(next.as_deref() != Some(message.as_str()));
        if let Some(next) = next {
            kept.push_str(&escape(&next));
            kept.push('\n');
        }
    }
    if changed > 0 && mode == ErasureMode::Now {
        let temporary = path.with_extension(format!("{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(kept.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
    }
    Ok(changed)
}

/// Returns the messages of a file.
fn messages(text: &str) -> Vec<String> {
    match text.strip_prefix(VERSION) {
        Some(rest) => rest.lines().filter(|line| !line.is_empty()).map(unescape).collect(),
        None => text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
    }
}

fn escape(message: &str) -> String {
    message.replace('\\', r"\\").replace('\n', r"\n")
}

fn unescape(line: &str) -> String {
    let (mut message, mut characters) = (String::with_capacity(line.len()), line.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => message.push('\n'),
                Some(escaped) => message.push(escaped),
                None => message.push('\\'),
            },
            character => message.push(character),
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_rewritten_in_the_form_of_the_line_editor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let before = "#V2\none\\ntwo \\\\n\nsecret\nlast\n";
        fs::write(&path, before).unwrap();
        let mut seen = Vec::new();
        let change = |message: &str| {
            seen.push(message.to_owned());
            (message != "secret").then(|| message.to_owned())
        };
        assert_eq!(rewrite(&path, ErasureMode::DryRun, change).unwrap(), 1);
        assert_eq!(seen, ["one\ntwo \\n", "secret", "last"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        let change = |message: &str| (message != "secret").then(|| message.to_owned());
        assert_eq!(rewrite(&path, ErasureMode::Now, change).unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "#V2\none\\ntwo \\\\n\nlast\n");
        assert_eq!(rewrite(&directory.path().join("none"), ErasureMode::Now, |_| None).unwrap(), 0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
