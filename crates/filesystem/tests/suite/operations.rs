//! Operations on top of every filesystem, and trees in git's format.
#![allow(clippy::disallowed_methods, reason = "tests may run git; only the crate itself starts no processes")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{FileKind, Filesystem, FilesystemError, FilesystemLimits, WriteMode};
use backstitch_filesystem::format::{TreeEntry, TreeMode, decode_tree, encode_tree, tree_object};
use backstitch_filesystem::{
    BinaryFiles, EditTarget, FileOperations as _, FilePath, GrepOptions, LineWindow, MemoryFilesystem,
    SearchLimits,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

fn files(files: &[(&str, &str)]) -> MemoryFilesystem {
    let filesystem = MemoryFilesystem::new();
    for (at, text) in files {
        filesystem.write(&path(at), text, WriteMode::Create).unwrap();
    }
    filesystem
}

#[test]
fn text_is_read_in_windows() {
    let filesystem = files(&[("a", "1\n2\n3\n4\n")]);
    let dynamic: &dyn Filesystem = &filesystem;
    let window = dynamic.read(&path("a"), LineWindow { offset: 1, limit: 2 }).unwrap();
    assert_eq!((window.text.as_str(), window.first_line, window.lines), ("2\n3\n", 2, 2));
    assert_eq!((window.total_lines, window.truncated), (4, true));
    assert_eq!(dynamic.read_text(&path("a")).unwrap(), "1\n2\n3\n4\n");
    filesystem.write_bytes(&path("b"), b"\xff", WriteMode::Create).unwrap();
    let result = filesystem.read(&path("b"), LineWindow::default());
    assert!(matches!(result, Err(FilesystemError::NotText { .. })), "{result:?}");
}

#[test]
fn edits_replace_one_place_or_all() {
    let filesystem = files(&[("a", "one\ntwo\none\n")]);
    filesystem.set_executable(&path("a"), true).unwrap();
    let edited = filesystem.edit(&path("a"), "two", "2", EditTarget::Once).unwrap();
    assert_eq!((edited.replacements, edited.first_line), (1, 2));
    let edited = filesystem.edit(&path("a"), "one\n", "", EditTarget::All).unwrap();
    assert_eq!((edited.replacements, edited.first_line), (2, 1));
    assert_eq!(filesystem.read_text(&path("a")).unwrap(), "2\n");
    assert!(filesystem.stat(&path("a")).unwrap().executable);
}

#[test]
fn edits_that_do_not_fit_say_what_to_do() {
    let text = "fn main() {\n    let total = 1;\n    print(total);\n}\n";
    let twins = "x\nx\nx\nx\nx\nx\nx\n";
    let filesystem =
        files(&[("a", text), ("crlf", "a\r\nb\r\n"), ("empty", ""), ("twins", twins), ("aaa", "aaa")]);
    let refused = |at: &str, old: &str, new: &str| {
        let error = filesystem.edit(&path(at), old, new, EditTarget::Once).unwrap_err();
        assert!(matches!(error, FilesystemError::Edit { .. }), "{error:?}");
        error.to_string()
    };
    for (at, old, new, wanted) in [
        ("a", "", "x", "a: the text to replace is empty; to fill a file, write it"),
        ("a", "x", "x", "a: the text to replace and the new text are identical, so nothing would change"),
        (
            "a",
            "let totals = 1;",
            "x",
            "a: the text to replace was not found; the line most like it is 2: \"let total = 1;\"; read the file again and copy the text exactly",
        ),
        (
            "a",
            "\tprint(total);",
            "x",
            "a: the text to replace was not found: line 3 differs only in leading or trailing spaces; read the file again and copy the text exactly",
        ),
        (
            "a",
            "}\nelse",
            "x",
            "a: the text to replace was not found: line 4 matches its first line, but the lines around it differ; read the file again and copy the text exactly",
        ),
        (
            "a",
            "zzzzzz",
            "x",
            "a: the text to replace was not found, nor a similar line; read the file again and copy the text exactly",
        ),
        (
            "crlf",
            "a\nb",
            "x",
            "crlf: the text to replace was not found: the file's lines end in \\r\\n, but not all given lines do",
        ),
        ("empty", "a", "x", "empty: the text to replace was not found: the file is empty; write it instead"),
        (
            "twins",
            "x",
            "y",
            "twins: the text to replace occurs 7 times (line 1, 2, 3, 4, 5 and more); include more of the surrounding text to make it unique, or replace all",
        ),
        (
            "aaa",
            "aa",
            "b",
            "aaa: the text to replace occurs 2 times (line 1); include more of the surrounding text to make it unique, or replace all",
        ),
    ] {
        assert_eq!(refused(at, old, new), wanted);
    }
    let result = filesystem.edit(&path("nothing"), "a", "b", EditTarget::Once);
    assert!(matches!(result, Err(FilesystemError::NotFound { .. })), "{result:?}");
    assert_eq!(filesystem.read_text(&path("a")).unwrap(), text, "nothing changed");
}

#[test]
fn an_edit_that_would_grow_beyond_the_limit_is_refused_before_it_is_made() {
    let limits = FilesystemLimits { file_bytes: 1024 * 1024, ..FilesystemLimits::default() };
    let filesystem = MemoryFilesystem::new().with_limits(limits);
    filesystem.write(&path("a"), &"x".repeat(1024 * 1024), WriteMode::Create).unwrap();
    let result = filesystem.edit(&path("a"), "x", &"y".repeat(1024 * 1024), EditTarget::All);
    assert!(matches!(result, Err(FilesystemError::TooLarge { bytes: 0x100_0000_0000, .. })), "{result:?}");
}

#[test]
fn globs_find_paths_in_one_order() {
    let filesystem = files(&[
        ("src/main.rs", ""),
        ("src/a/mod.rs", ""),
        ("src/a/x.txt", ""),
        ("b.rs", ""),
        ("src-old/z.rs", ""),
    ]);
    let found = |pattern: &str, below: &str| {
        let glob = filesystem.glob(pattern, &path(below), SearchLimits::default()).unwrap();
        assert!(!glob.truncated);
        glob.matches.into_iter().map(|found| found.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("**/*.rs", ""), ["b.rs", "src/a/mod.rs", "src/main.rs", "src-old/z.rs"]);
    assert_eq!(found("*.rs", ""), ["b.rs"]);
    assert_eq!(found("*.rs", "src"), ["src/main.rs"]);
    assert_eq!(found("src/**/*.rs", ""), ["src/a/mod.rs", "src/main.rs"]);
    assert_eq!(found("a/*", "src"), ["src/a/mod.rs", "src/a/x.txt"]);
    assert_eq!(found("src/a", ""), ["src/a"]);
    assert_eq!(found("nothing/*", ""), [""; 0]);
    assert_eq!(found("b.rs/*", ""), [""; 0]);
    let glob = filesystem.glob("src/a", &path(""), SearchLimits::default()).unwrap();
    assert_eq!(glob.matches[0].kind, FileKind::Directory);
    for (pattern, below) in [("*", "nothing"), ("*", "b.rs"), ("../*", ""), ("/*", ""), ("[", "")] {
        assert!(
            filesystem.glob(pattern, &path(below), SearchLimits::default()).is_err(),
            "{pattern} {below}"
        );
    }
}

#[test]
fn searches_end_at_their_limits_and_say_so() {
    let filesystem = MemoryFilesystem::new();
    for number in 0..20 {
        filesystem.write(&path(&format!("d/{number:02}")), "line\nline\n", WriteMode::Create).unwrap();
    }
    let glob = |limits| {
        let glob = filesystem.glob("**/*", &FilePath::root(), limits).unwrap();
        (glob.matches.len(), glob.truncated)
    };
    let all = SearchLimits::default();
    assert_eq!(glob(all), (21, false));
    assert_eq!(glob(SearchLimits { matches: 21, ..all }), (21, false));
    assert_eq!(glob(SearchLimits { matches: 20, ..all }), (20, true));
    assert_eq!(glob(SearchLimits { entries: 21, ..all }), (21, false));
    assert_eq!(glob(SearchLimits { entries: 20, ..all }), (20, true));
    let grep = |limits| {
        let grep = filesystem.grep("line", &GrepOptions { limits, ..GrepOptions::default() }).unwrap();
        (grep.matches.len(), grep.searched, grep.truncated)
    };
    assert_eq!(grep(all), (40, 20, false));
    assert_eq!(grep(SearchLimits { matches: 40, ..all }), (40, 20, false));
    assert_eq!(grep(SearchLimits { matches: 3, ..all }), (3, 2, true));
    assert_eq!(grep(SearchLimits { bytes: 35, ..all }), (6, 3, true));
    assert_eq!(grep(SearchLimits { entries: 5, ..all }), (8, 4, true));
}

#[test]
fn lines_are_searched() {
    let filesystem =
        files(&[("a.txt", "zero\nOne\r\ntwo\n"), ("d/b.rs", "fn one() {}\n"), ("d/c.md", "none")]);
    filesystem.write_bytes(&path("binary"), b"one\0", WriteMode::Create).unwrap();
    filesystem.write_bytes(&path("latin"), b"one \xe4\n", WriteMode::Create).unwrap();
    let grep = |regex: &str, options: GrepOptions| {
        let grep = filesystem.grep(regex, &options).unwrap();
        assert!(!grep.truncated);
        let shown =
            |found: backstitch_filesystem::GrepMatch| format!("{}:{}:{}", found.path, found.line, found.text);
        grep.matches.into_iter().map(shown).collect::<Vec<_>>()
    };
    let plain = GrepOptions::default;
    assert_eq!(grep("one", plain()), ["d/b.rs:1:fn one() {}", "d/c.md:1:none", "latin:1:one \u{fffd}"]);
    assert_eq!(grep("^one$", GrepOptions { ignore_case: true, ..plain() }), ["a.txt:2:One"]);
    let glob = |glob: &str| GrepOptions { glob: Some(glob.to_owned()), ..plain() };
    assert_eq!(grep("one", glob("*.rs")), ["d/b.rs:1:fn one() {}"]);
    assert_eq!(grep("one", glob("d/*.{rs,md}")), ["d/b.rs:1:fn one() {}", "d/c.md:1:none"]);
    assert_eq!(grep("one", GrepOptions { below: path("d"), ..glob("c.*") }), ["d/c.md:1:none"]);
    assert_eq!(grep("one", GrepOptions { below: path("d/c.md"), ..plain() }), ["d/c.md:1:none"]);
    let binary = GrepOptions { binary: BinaryFiles::Search, below: path("binary"), ..plain() };
    assert_eq!(grep("one", binary), ["binary:1:one\0"]);
    let around = filesystem.grep("One", &GrepOptions { context_lines: 1, ..plain() }).unwrap();
    assert_eq!(
        (&around.matches[0].before[..], &around.matches[0].after[..]),
        (&["zero".to_owned()][..], &["two".to_owned()][..])
    );
    assert_eq!((around.searched, around.skipped), (4, 1));
    assert!(filesystem.grep("(", &plain()).is_err());
    assert!(filesystem.grep("x", &GrepOptions { below: path("nothing"), ..plain() }).is_err());
}

#[test]
fn long_lines_are_shown_around_the_match() {
    let line = format!("{}needle{}", "ä".repeat(50_000), "b".repeat(50_000));
    let filesystem = files(&[("min.js", &line)]);
    let found = filesystem.grep("needle", &GrepOptions::default()).unwrap();
    let text = &found.matches[0].text;
    assert!(text.len() < 1_100 && text.contains("äneedleb"), "{text}");
    assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
}

fn entries() -> impl Strategy<Value = Vec<TreeEntry>> {
    let names = prop_oneof![
        select(vec!["a", "a.", "a-", "a0", "a/b", "b", "\u{ff}", "a b", "-"])
            .prop_map(|name| name.replace('/', "\u{1}").into_bytes()),
        vec(any::<u8>().prop_filter("is in a name", |byte| !matches!(byte, 0 | b'/')), 1..9)
            .prop_filter("is a name", |name| name != b"." && name != b".."),
    ];
    let modes = select(vec![TreeMode::File, TreeMode::Executable, TreeMode::Link, TreeMode::Directory]);
    btree_map(names, (modes, any::<[u8; 20]>()), 0..12).prop_map(|entries| {
        let entry = |(name, (mode, id))| TreeEntry { name, mode, object: ObjectId::from_bytes(id) };
        entries.into_iter().map(entry).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_survive_their_bytes(entries in entries()) {
        let bytes = encode_tree(&entries).unwrap();
        let mut decoded = decode_tree(&bytes).unwrap();
        prop_assert_eq!(encode_tree(&decoded).unwrap(), bytes);
        decoded.sort_by(|left, right| left.name.cmp(&right.name));
        prop_assert_eq!(decoded, entries);
    }

    #[test]
    fn what_decodes_has_one_encoding(entries in entries(), at in any::<prop::sample::Index>(), byte in any::<u8>(), noise in vec(any::<u8>(), 0..64)) {
        let mut bytes = encode_tree(&entries).unwrap();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [bytes, noise] {
            if let Ok(decoded) = decode_tree(&bytes) {
                prop_assert_eq!(encode_tree(&decoded).unwrap(), bytes);
            }
        }
    }
}

/// Compares the ids of trees with those of git, where it is installed.
#[test]
fn git_gives_trees_the_same_ids() {
    let git = |arguments: &[&str], folder: &std::path::Path, input: &[u8]| -> Option<Vec<u8>> {
        let mut child = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(input).ok()?;
        let output = child.wait_with_output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    let folder = std::env::temp_dir().join(format!("backstitch-git-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    if git(&["init", "--quiet", "--bare"], &folder, b"").is_none() {
        std::fs::remove_dir_all(&folder).unwrap();
        return;
    }
    let empty = tree_object(&[]).unwrap().id();
    let blob = Object::blob(*b"hello\n").id();
    let names = ["a", "a-", "a.b", "a0", "ab", "ä", "z z", "A"];
    let modes = [TreeMode::Directory, TreeMode::File, TreeMode::Executable, TreeMode::Link];
    let mut entries = Vec::new();
    let mut input = Vec::new();
    for (index, name) in names.iter().enumerate().rev() {
        let mode = modes[index % modes.len()];
        let (kind, object) = if mode == TreeMode::Directory { ("tree", empty) } else { ("blob", blob) };
        entries.push(TreeEntry { name: name.as_bytes().to_vec(), mode, object });
        input.extend_from_slice(format!("{} {kind} {object}\t{name}\0", mode.as_str()).as_bytes());
    }
    let id = git(&["mktree", "-z", "--missing"], &folder, &input).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(tree_object(&entries).unwrap().id().to_string(), String::from_utf8(id).unwrap().trim());
}
