//! Paths that cannot leave their root.
//!
//! A [`FilePath`] is relative and plain: segments of text, joined by `/`, with no `.`, no `..`, no empty
//! segment and no control character. Paths from tools are parsed into one before any file is accessed, so
//! confinement by name is decided here. Implementations add confinement against symbolic links.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::FilesystemLimits;

/// A relative, plain path. The empty path is the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(Arc<str>);

/// The text is not a path below a root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path below the workspace: {reason}")]
pub struct InvalidPath {
    /// The rejected text.
    pub path: String,
    /// The rule that the path breaks.
    pub reason: &'static str,
}

impl FilePath {
    /// Returns the root itself.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    /// Parses a path within the default limits. `.` segments and a trailing `/` are dropped.
    pub fn new(text: &str) -> Result<Self, InvalidPath> {
        Self::within(text, FilesystemLimits::default())
    }

    /// Parses a path within these limits.
    pub fn within(text: &str, limits: FilesystemLimits) -> Result<Self, InvalidPath> {
        let refuse = |reason| InvalidPath { path: text.chars().take(200).collect(), reason };
        if text.starts_with('/') {
            return Err(refuse("it is absolute; give it relative to the workspace"));
        }
        let mut segments = Vec::new();
        for segment in text.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
            if segment == ".." {
                return Err(refuse("it goes up with `..`"));
            }
            if segment.chars().any(char::is_control) {
                return Err(refuse("it holds a control character"));
            }
            if segment.len() > limits.segment_bytes {
                return Err(refuse("a name in it is too long"));
            }
            segments.push(segment);
        }
        if segments.len() > limits.path_depth {
            return Err(refuse("it is too deep"));
        }
        // Drives and backslashes have another meaning on Windows; neither is meant as a part of a name.
        if text.contains('\\') || segments.first().is_some_and(|first| is_drive(first)) {
            return Err(refuse("it is written as on Windows; use `/` between names"));
        }
        Ok(Self(segments.join("/").into()))
    }

    /// Returns whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names from the root down.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }

    /// The last name.
    pub fn name(&self) -> Option<&str> {
        self.segments().next_back()
    }

    /// Returns the parent directory; none for the root.
    pub fn parent(&self) -> Option<Self> {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Some(Self(parent.into())),
            None => (!self.is_root()).then(Self::root),
        }
    }

    /// Returns the path of a name in this directory.
    pub fn join(&self, name: &str) -> Result<Self, InvalidPath> {
        if self.is_root() { Self::new(name) } else { Self::new(&format!("{}/{name}", self.0)) }
    }

    /// Returns whether this path is `other` or below it.
    pub fn is_below(&self, other: &Self) -> bool {
        other.is_root()
            || self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn is_drive(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

impl fmt::Display for FilePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl FromStr for FilePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl TryFrom<String> for FilePath {
    type Error = InvalidPath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_are_made_plain() {
        for (given, plain) in
            [("a/b.txt", "a/b.txt"), ("./a//b/", "a/b"), ("", ""), (".", ""), ("..a/b..", "..a/b..")]
        {
            assert_eq!(FilePath::new(given).unwrap().as_str(), plain, "{given}");
        }
    }

    #[test]
    fn what_could_leave_the_root_is_refused() {
        let long = "x".repeat(256);
        let deep = "a/".repeat(65);
        for hostile in [
            "/etc/passwd",
            "..",
            "a/../..",
            "a/..",
            "a\0b",
            "a\nb",
            "C:/x",
            "c:x",
            "a\\b",
            "\\\\host\\x",
            &long,
            &deep,
        ] {
            assert!(FilePath::new(hostile).is_err(), "{hostile:?}");
        }
    }

    #[test]
    fn paths_know_their_place() {
        let path = FilePath::new("a/b/c").unwrap();
        assert_eq!(path.name(), Some("c"));
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(FilePath::new("a").unwrap().parent(), Some(FilePath::root()));
        assert_eq!(FilePath::root().parent(), None);
        assert!(path.is_below(&FilePath::new("a/b").unwrap()));
        assert!(path.is_below(&FilePath::root()));
        assert!(!FilePath::new("ab").unwrap().is_below(&FilePath::new("a").unwrap()));
        assert_eq!(FilePath::root().join("x").unwrap().join("y").unwrap().as_str(), "x/y");
        assert!(path.join("../../../..").is_err());
    }
}
