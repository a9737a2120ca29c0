//! Names that git refuses.
//!
//! A `.git` inside a tree could replace a repository's own files on checkout, and so could every name by
//! which Windows or macOS reach the same file. A list of submodules must be a plain file, under all of its
//! names too. Entries with such names are stored in the manifest; the remaining tree passes `git fsck
//! --strict`.

use super::tree::TreeMode;

/// Returns whether git refuses an entry with this name. It refuses more names for links and directories than
/// for files.
pub fn git_refuses(name: &[u8], mode: TreeMode) -> bool {
    // Fast path for nearly every name: all refused ones contain a `g`, or are a short name without any
    // letter.
    if !name.iter().any(|byte| matches!(byte, b'g' | b'G' | b'~')) {
        return false;
    }
    if is_dot_git(name) {
        return true;
    }
    match mode {
        TreeMode::Link => names(name, &MODULES),
        TreeMode::Directory => names(name, &MODULES) || names(name, &ATTRIBUTES),
        TreeMode::File | TreeMode::Executable => false,
    }
}

/// Returns whether git reads a file of this name as a list of submodules.
pub fn is_modules(name: &[u8]) -> bool {
    names(name, &MODULES)
}

/// Returns whether git reads a file of this name as attributes.
pub fn is_attributes(name: &[u8]) -> bool {
    names(name, &ATTRIBUTES)
}

/// A file with a meaning for git, and the short name that Windows falls back to.
struct Special {
    name: &'static [u8],
    fallback: &'static [u8],
}

const MODULES: Special = Special { name: b"gitmodules", fallback: b"gi7eba" };
const ATTRIBUTES: Special = Special { name: b"gitattributes", fallback: b"gi7d29" };

fn is_dot_git(name: &[u8]) -> bool {
    if is_on_mac(name, b"git") {
        return true;
    }
    // Windows reads `\` as a separator, so each part is checked.
    name.split_inclusive(|byte| *byte == b'\\').any(|part| {
        let part = part.strip_suffix(b"\\").unwrap_or(part);
        let lower = part.to_ascii_lowercase();
        let rest = lower.strip_prefix(b".git").or_else(|| lower.strip_prefix(b"git~1"));
        rest.is_some_and(ends)
    })
}

fn names(name: &[u8], special: &Special) -> bool {
    is_on_mac(name, special.name)
        || (0..name.len())
            .filter(|at| *at == 0 || name[*at - 1] == b'\\')
            .any(|at| is_on_windows(&name[at..], special))
}

/// Suffixes that Windows ignores in a name: dots and spaces, or the name of a stream.
fn ends(rest: &[u8]) -> bool {
    let after = rest.iter().position(|byte| !matches!(byte, b'.' | b' ')).map_or(&[][..], |at| &rest[at..]);
    matches!(after.first(), None | Some(b':'))
}

fn is_on_windows(name: &[u8], special: &Special) -> bool {
    let lower = name.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix(b".").and_then(|rest| rest.strip_prefix(special.name)) {
        return ends(rest);
    }
    // A short name: six letters, a tilde and a digit.
    let short = lower.strip_prefix(&special.name[..6]).and_then(|rest| rest.strip_prefix(b"~"));
    if let Some([b'1'..=b'4', rest @ ..]) = short {
        return ends(rest);
    }
    // A short name once those are used up: fewer letters of a hash and a longer number, eight characters in
    // all.
    let Some(eight) = lower.get(..8) else { return false };
    let letters = eight.iter().position(|byte| *byte == b'~').unwrap_or(8);
    let number = eight.get(letters + 1..).unwrap_or_default();
    letters <= 6
        && eight[..letters] == special.fallback[..letters]
        && matches!(number.first(), Some(b'1'..=b'9'))
        && number.iter().all(u8::is_ascii_digit)
        && ends(&lower[8..])
}

/// Returns whether macOS treats a name as `.` followed by `after_dot`: it ignores case and some invisible
/// characters. As in git, invalid UTF-8 ends the name.
fn is_on_mac(name: &[u8], after_dot: &[u8]) -> bool {
    let text = match str::from_utf8(name) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&name[..error.valid_up_to()]).unwrap_or_default(),
    };
    let ignored = |character: &char| matches!(u32::from(*character), 0x200c..=0x200f | 0x202a..=0x202e | 0x206a..=0x206f | 0xfeff);
    let seen = text
        .chars()
        .take_while(|character| !matches!(u32::from(*character), 0xfffe | 0xffff))
        .filter(|character| !ignored(character));
    seen.map(|character| character.to_ascii_lowercase())
        .eq(std::iter::once('.').chain(after_dot.iter().map(|byte| char::from(*byte))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_refused_under_all_of_its_names() {
        for name in [
            &b".git"[..],
            b".GIT",
            b"git~1",
            b"GIT~1",
            b".git ",
            b".git. .",
            b".git:x",
            b".git::$INDEX",
            b"git~1.",
            b".git\\x",
            b"a\\.git",
            b"a\\git~1 ",
            b"a\\.git\\b",
            b"a:b\\.git",
            b".git ::$x",
            b"git~1:x",
            b".git\xff",
            b".git\xffmore",
            ".g\u{200c}it".as_bytes(),
            "\u{feff}.Git".as_bytes(),
        ] {
            assert!(git_refuses(name, TreeMode::File), "{:?}", String::from_utf8_lossy(name));
            assert!(git_refuses(name, TreeMode::Directory), "{:?}", String::from_utf8_lossy(name));
        }
        for name in [
            &b"git"[..],
            b".gitx",
            b"git~2",
            b".gitignore",
            b"x.git",
            b".gi",
            b"\xff.git",
            b".g",
            ".git\u{200d} ".as_bytes(),
        ] {
            assert!(!git_refuses(name, TreeMode::Directory), "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn lists_of_submodules_are_plain_files() {
        for name in [
            ".gitmodules",
            ".GITmodules ",
            "gitmod~1",
            "GITMOD~4",
            "gi7eba~1",
            "gi7eb~10",
            "~1000000",
            "x\\.gitmodules",
        ] {
            assert!(git_refuses(name.as_bytes(), TreeMode::Link), "{name}");
            assert!(git_refuses(name.as_bytes(), TreeMode::Directory), "{name}");
            assert!(!git_refuses(name.as_bytes(), TreeMode::File), "{name}");
        }
        for name in ["gitmod~5", "gi7eba~0", "gi7eba~", "gitmodules", ".gitmodulesx"] {
            assert!(!git_refuses(name.as_bytes(), TreeMode::Link), "{name}");
        }
        assert!(git_refuses(b".gitattributes", TreeMode::Directory));
        assert!(!git_refuses(b".gitattributes", TreeMode::Link));
    }
}
