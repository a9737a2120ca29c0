//! Paths that try to leave the root, and names that only look like it.

use backstitch_core::ports::{Recursion, WriteMode};
use backstitch_filesystem::FilePath;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Factory, for_all, open_empty, path};
use crate::filesystem::tree::{Leaf, Tree, tree_of};

/// Texts that must not become paths.
pub const HOSTILE_PATHS: [&str; 22] = [
    "/",
    "/etc/passwd",
    "//etc/passwd",
    "..",
    "../x",
    "a/..",
    "a/../../x",
    "a/./../..",
    "./../x",
    "x/..//..//etc",
    "a\0b",
    "a\0/../b",
    "a\nb",
    "a\rb",
    "a\tb",
    "\u{7f}",
    "\u{85}",
    "C:/x",
    "c:x",
    "a\\b",
    "..\\..\\x",
    "\\\\host\\share",
];

/// Names that are unusual but valid.
pub const STRANGE_NAMES: [&str; 18] = [
    "...",
    "..a",
    "a..",
    " ",
    " a ",
    "-rf",
    "--",
    "~",
    "$HOME",
    "*",
    "?",
    "'\"`",
    "a;b|c&d",
    "%2e%2e",
    "CON",
    "é\u{301}",
    "\u{202e}txt.exe",
    "🧵",
];

/// A path, or a text that could be mistaken for one.
pub fn path_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        select(vec!["..", ".", "", "/", "\\", "~", "a", "b", "\0", "C:", "%2e", "...", "x\u{301}"])
            .prop_map(str::to_owned),
        any::<String>().prop_map(|text| text.chars().take(8).collect()),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.join("/"))
}

/// A text that would leave the root is not a path, so no operation ever receives it.
pub fn hostile_paths_are_no_paths(factory: Factory) {
    let limits = open_empty(factory).filesystem().limits();
    for text in HOSTILE_PATHS {
        assert!(FilePath::new(text).is_err(), "{text:?}");
        assert!(FilePath::within(text, limits).is_err(), "{text:?}");
    }
    let long = "x".repeat(limits.segment_bytes + 1);
    let deep = "x/".repeat(limits.path_depth + 1);
    assert!(FilePath::within(&long, limits).is_err() && FilePath::within(&deep, limits).is_err());
}

/// An unusual name is a valid name.
pub fn strange_names_are_names(factory: Factory) {
    let subject = open_empty(factory);
    let fs = subject.filesystem();
    let mut wanted = Tree::new();
    for name in STRANGE_NAMES {
        fs.write_bytes(&path(&format!("in/{name}")), name.as_bytes(), WriteMode::Create).unwrap();
        wanted.insert(format!("in/{name}"), Leaf::file(name));
    }
    assert_eq!(tree_of(&*fs), wanted);
    for name in STRANGE_NAMES {
        fs.delete(&path(&format!("in/{name}")), Recursion::None).unwrap();
    }
    assert_eq!(tree_of(&*fs), [("in".to_owned(), Leaf::EmptyDirectory)].into());
}

/// A file at any valid path is found there, and nowhere else.
pub fn random_paths_stay_inside(factory: Factory) {
    for_all(path_text(), |text| {
        let Ok(at) = FilePath::new(&text) else { return };
        let kept_by_others =
            |name: &str| name.to_lowercase().contains("git") || name.starts_with(".backstitch");
        if at.is_root() || at.segments().any(kept_by_others) {
            return;
        }
        let subject = open_empty(factory);
        let fs = subject.filesystem();
        fs.write_bytes(&at, b"here", WriteMode::Create).unwrap();
        assert_eq!(tree_of(&*fs), [(at.as_str().to_owned(), Leaf::file("here"))].into());
        let first = path(at.segments().next().expect("it is not the root"));
        fs.delete(&first, Recursion::All).unwrap();
        assert_eq!(tree_of(&*fs), Tree::new());
    });
}
