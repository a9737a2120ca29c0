//! Names that git refuses to hold.
//!
//! A tree with a `.git` in it is hostile to git: checking it out could replace a repository's own files. So are the names by
//! which filesystems of other systems reach the same file. What is called so is kept beside the tree, in the
//! [manifest](super::Manifest), and a tree that is exported passes `git fsck --strict`.

use super::TreeMode;

/// Whether git refuses an entry with this name. Links are refused one name more than files and directories.
pub fn git_refuses(name: &[u8], mode: TreeMode) -> bool {
    let stripped = without_ignored(name);
    if stripped.eq_ignore_ascii_case(b".git") || any_windows_alias(name, is_dot_git) {
        return true;
    }
    mode == TreeMode::Link
        && (stripped.eq_ignore_ascii_case(b".gitmodules") || any_windows_alias(name, is_git_modules))
}

fn is_dot_git(stem: &[u8]) -> bool {
    stem.eq_ignore_ascii_case(b".git") || stem.eq_ignore_ascii_case(b"git~1")
}

fn is_git_modules(stem: &[u8]) -> bool {
    let short = |prefix: &[u8]| {
        let head = stem.get(..prefix.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(prefix)) && stem.len() <= 8
    };
    stem.eq_ignore_ascii_case(b".gitmodules") || short(b"gitmod~") || short(b"gi7eba~")
}

/// Windows takes `\` as a separator, what follows `:` as a stream of the same file, and drops dots and spaces at the end.
fn any_windows_alias(name: &[u8], matches: impl Fn(&[u8]) -> bool) -> bool {
    for part in name.split(|byte| *byte == b'\\') {
        let stem = part.split(|byte| *byte == b':').next().unwrap_or_default();
        let end = stem.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |last| last + 1);
        if matches(&stem[..end]) {
            return true;
        }
        // As git does: after a stream's name nothing is a path any more.
        if stem.len() < part.len() {
            return false;
        }
    }
    false
}

/// macOS ignores some characters that are not seen.
fn without_ignored(name: &[u8]) -> Vec<u8> {
    let Ok(text) = str::from_utf8(name) else { return name.to_vec() };
    let ignored = |character: char| {
        matches!(u32::from(character),
            0x200c..=0x200f | 0x202a..=0x202e | 0x206a..=0x206f | 0xfeff)
    };
    text.chars().filter(|character| !ignored(*character)).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_refuses_is_refused() {
        // Each was put into a tree, and `git fsck --strict` asked.
        for name in [
            ".git",
            ".GIT",
            "git~1",
            ".git ",
            ".git.",
            ".git...",
            ".git . ",
            ".git::$INDEX",
            ".git ::$x",
            ".git:x",
            "GIT~1.",
            "git~1:x",
            ".git\\x",
            "a\\.git",
            "a\\.git\\b",
            "x\\git~1",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git\u{200d}",
        ] {
            assert!(git_refuses(name.as_bytes(), TreeMode::File), "{name:?}");
            assert!(git_refuses(name.as_bytes(), TreeMode::Directory), "{name:?}");
        }
    }

    #[test]
    fn what_git_takes_is_taken() {
        for name in
            ["git", ".gitx", "git~2", ".git\u{200d} ", ".gitignore", "x.git", "\u{fe}.git", "a:b\\.git"]
        {
            assert!(!git_refuses(name.as_bytes(), TreeMode::Directory), "{name:?}");
        }
        assert!(!git_refuses(b"\xff.git", TreeMode::File));
    }

    #[test]
    fn a_list_of_submodules_must_not_be_a_link() {
        for name in [".gitmodules", ".GitModules ", "gitmod~1", "GI7EBA~9"] {
            assert!(git_refuses(name.as_bytes(), TreeMode::Link), "{name:?}");
            assert!(!git_refuses(name.as_bytes(), TreeMode::File), "{name:?}");
        }
    }
}
