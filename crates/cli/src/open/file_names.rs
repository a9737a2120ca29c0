//! Names of files of a session, as the command line writes them.
//!
//! A path is relative to the directory of the session. One that starts with `./` or `../` is relative to the
//! current directory, and an absolute one has to lie in the directory of the session.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use backstitch::PointSpec;
use backstitch::ports::FilePath;
use backstitch::view::JournalView;

use crate::usage::Usage;

/// Words before the number or name of a point.
const PREFIXES: [&str; 4] = ["turn", "before", "after", "rescue"];

/// A file at a point: `turn:2:src/main.rs`. Without a point it is the file at the head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileAtPoint {
    pub(crate) point: PointSpec,
    pub(crate) path: String,
}

impl FromStr for FileAtPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let whole = || Self { point: PointSpec::Head, path: text.to_owned() };
        let wrong = || format!("{text:?} names no file: write POINT:PATH, such as turn:2:src/main.rs");
        let Some((first, rest)) = text.split_once(':') else { return Ok(whole()) };
        let (point, path) = if PREFIXES.contains(&first) {
            let Some((second, path)) = rest.split_once(':') else { return Err(wrong()) };
            (format!("{first}:{second}"), path)
        } else {
            (first.to_owned(), rest)
        };
        let point = point.parse().map_err(|error| format!("{error}"))?;
        if path.is_empty() {
            return Err(wrong());
        }
        Ok(Self { point, path: path.to_owned() })
    }
}

/// Returns the path of a file in the directory of a session.
pub(crate) fn in_session(view: &JournalView, path: &str) -> anyhow::Result<FilePath> {
    let found = in_session_or_whole(view, path)?;
    if found.is_root() {
        return Err(wrong(path, "it is the whole directory").into());
    }
    Ok(found)
}

fn wrong(path: &str, reason: &str) -> Usage {
    Usage(format!("{path:?} is not a file of the session: {reason}"))
}

/// Returns the path of a file in the directory of a session, or of the whole directory. `.` is the current directory.
pub(crate) fn in_session_or_whole(view: &JournalView, path: &str) -> anyhow::Result<FilePath> {
    let wrong = |reason: &str| wrong(path, reason);
    let inside = if is_elsewhere(path) {
        let directory = view.directory().ok_or_else(|| wrong("the session has no directory"))?;
        let whole = normalized(&std::path::absolute(path)?);
        let inside = whole.strip_prefix(directory);
        let inside = inside.map_err(|_| wrong(&format!("it lies outside of {directory}")))?;
        inside.to_str().ok_or_else(|| wrong("it is not UTF-8"))?.to_owned()
    } else {
        path.to_owned()
    };
    Ok(FilePath::new(&inside).map_err(|error| wrong(error.reason))?)
}

/// Returns the name of a file of any session: relative to the directories of all sessions, or a place of this machine.
pub(crate) fn in_any_session(path: &str) -> anyhow::Result<PathBuf> {
    if !is_elsewhere(path) {
        let inside = FilePath::new(path).map_err(|error| wrong(path, error.reason))?;
        return Ok(PathBuf::from(inside.as_str()));
    }
    let whole = normalized(&std::path::absolute(path)?);
    // Sessions name their directories without links. The file itself may be gone.
    let resolved = whole.canonicalize().ok().or_else(|| {
        let directory = whole.parent()?.canonicalize().ok()?;
        Some(directory.join(whole.file_name()?))
    });
    Ok(resolved.unwrap_or(whole))
}

/// Whether a path is not relative to the directory of a session.
fn is_elsewhere(path: &str) -> bool {
    matches!(path, "." | "..") || ["/", "./", "../"].iter().any(|start| path.starts_with(start))
}

/// Resolves `.` and `..` without looking at the disk: the file may be gone.
fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_and_a_path_are_told_apart() {
        let read = |text: &str| text.parse::<FileAtPoint>().map(|at| (at.point.to_string(), at.path));
        let at = |point: &str, path: &str| Ok((point.to_owned(), path.to_owned()));
        assert_eq!(read("turn:2:src/main.rs"), at("turn:2", "src/main.rs"));
        assert_eq!(read("before:9c41:a:b"), at("before:9c41", "a:b"));
        assert_eq!(read("9c41:a.txt"), at("after:9c41", "a.txt"));
        assert_eq!(read("12:a.txt"), at("12", "a.txt"));
        assert_eq!(read("head:a:b"), at("head", "a:b"));
        assert_eq!(read("a.txt"), at("head", "a.txt"));
        for wrong in ["turn:2", "turn:2:", "start:", "nothing:a.txt", ":a.txt"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn paths_are_normalized_without_the_disk() {
        assert_eq!(normalized(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalized(Path::new("/../a")), Path::new("/a"));
    }
}
