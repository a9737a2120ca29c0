//! Files and directories below a directory, and those that match what was typed.
//!
//! Files that a `.gitignore` or an `.ignore` names are left out, and so are `.git`, links that lead out of the directory, and
//! names that would control a terminal. The walk is limited.

use std::path::Path;

use backstitch::host::is_steering;
use backstitch_lisp::did_you_mean;
use ignore::{DirEntry, WalkBuilder};

/// Paths below a directory.
#[derive(Debug, Default)]
pub(super) struct FoundPaths {
    /// Relative paths. Those of directories end with a slash.
    pub(super) paths: Vec<String>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

/// Finds at most so many paths below a directory.
pub(super) fn below(directory: &Path, most: usize) -> FoundPaths {
    let Ok(root) = directory.canonicalize() else { return FoundPaths::default() };
    let walk = WalkBuilder::new(&root)
        .hidden(false)
        .require_git(false)
        .sort_by_file_name(|one, other| one.cmp(other))
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut found = FoundPaths::default();
    // Directories that cannot be read are left out.
    for entry in walk.flatten().skip(1) {
        if found.paths.len() >= most {
            found.is_cut = true;
            break;
        }
        found.paths.extend(shown(&entry, &root));
    }
    found
}

/// Returns the path of an entry as it is listed; `None` if it is left out.
fn shown(entry: &DirEntry, root: &Path) -> Option<String> {
    if entry.path_is_symlink() && !entry.path().canonicalize().is_ok_and(|target| target.starts_with(root)) {
        return None;
    }
    let path = entry.path().strip_prefix(root).ok()?.to_str()?;
    let is_plain = !path.contains(|one: char| is_steering(one) || "\n\t\"".contains(one));
    let is_directory = entry.path().is_dir();
    is_plain.then(|| if is_directory { format!("{path}/") } else { path.to_owned() })
}

/// Returns the paths that match what was typed, best first.
///
/// What begins with the typed text comes first, each path up to its next directory. Then come the paths whose name begins with
/// the text, whose name has it, which have it, and those that have its letters in this order.
pub(super) fn ranked(typed: &str, paths: &[String], most: usize) -> Vec<String> {
    let wanted = typed.to_lowercase();
    let mut ranks: Vec<(usize, usize, String)> = Vec::new();
    for path in paths {
        let folded = path.to_lowercase();
        let name_of = |path: &str| path.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
        let name = name_of(&folded).unwrap_or_default();
        if folded.starts_with(&wanted) && path.is_char_boundary(typed.len()) {
            let end = path[typed.len()..].find('/').map_or(path.len(), |slash| typed.len() + slash + 1);
            let next = path[..end].to_owned();
            if next != typed && !ranks.iter().any(|(_, _, known)| *known == next) {
                ranks.push((0, next.len(), next));
            }
            continue;
        }
        let rank = if wanted.is_empty() || wanted.ends_with('/') {
            continue;
        } else if name.starts_with(&wanted) {
            1
        } else if name.contains(&wanted) {
            2
        } else if folded.contains(&wanted) {
            3
        } else if has_in_order(&folded, &wanted) {
            4
        } else {
            continue;
        };
        ranks.push((rank, path.len(), path.clone()));
    }
    ranks.sort();
    // A path that only has the letters is a guess, and of no use beside a better one.
    let best = ranks.first().map_or(0, |(rank, ..)| *rank);
    ranks.into_iter().filter(|(rank, ..)| *rank < 4 || best == 4).take(most).map(|(.., path)| path).collect()
}

/// Whether a text has these letters in this order.
fn has_in_order(text: &str, letters: &str) -> bool {
    let mut text = text.chars();
    letters.chars().all(|letter| text.any(|one| one == letter))
}

/// Returns the path of the name that was probably meant; `None` if no path is near.
pub(super) fn near(name: &str, paths: &[String]) -> Option<String> {
    let wanted = name.trim_end_matches('/').to_lowercase();
    let folded = |path: &str| path.trim_end_matches('/').to_lowercase();
    let base = |path: &str| folded(path).rsplit('/').next().unwrap_or_default().to_owned();
    let is_same = |path: &&String| folded(path) == wanted || base(path) == wanted;
    if let Some(path) = paths.iter().find(is_same) {
        return Some(path.clone());
    }
    // A short word is near to everything.
    if wanted.chars().count() < 4 {
        return None;
    }
    let names: Vec<String> = if wanted.contains('/') {
        paths.iter().map(|path| folded(path)).collect()
    } else {
        paths.iter().map(|path| base(path)).collect()
    };
    let is_like = |known: &str| known.contains('.') == wanted.contains('.') && !known.contains('`');
    let hint = did_you_mean(&wanted, names.iter().map(String::as_str).filter(|known| is_like(known)))?;
    // The first name of the hint is the nearest one.
    let nearest = hint.split('`').nth(1)?;
    paths.iter().zip(&names).find(|(_, known)| *known == nearest).map(|(path, _)| path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn paths_are_ranked_by_what_was_typed() {
        let all =
            paths(&["docs/", "docs/main.md", "src/", "src/bin/", "src/bin/main.rs", "src/main.rs", "x"]);
        assert_eq!(ranked("", &all, 9), ["x", "src/", "docs/"]);
        assert_eq!(ranked("src/", &all, 9), ["src/bin/", "src/main.rs"]);
        assert_eq!(ranked("src/m", &all, 9), ["src/main.rs"]);
        assert_eq!(ranked("MAIN", &all, 9), ["src/main.rs", "docs/main.md", "src/bin/main.rs"]);
        assert_eq!(ranked("ain.m", &all, 9), ["docs/main.md"]);
        assert_eq!(ranked("sbmr", &all, 9), ["src/bin/main.rs"]);
        assert!(ranked("zz", &all, 9).is_empty());
        assert_eq!(ranked("main", &all, 1).len(), 1);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let all = paths(&["src/", "src/main.rs", "Makefile", "types.rs"]);
        assert_eq!(near("main.rs", &all).as_deref(), Some("src/main.rs"));
        assert_eq!(near("src/maim.rs", &all).as_deref(), Some("src/main.rs"));
        assert_eq!(near("makefile", &all).as_deref(), Some("Makefile"));
        for text in ["property", "types/node", "alice", "x", "override"] {
            assert_eq!(near(text, &all), None, "{text}");
        }
    }

    #[test]
    fn ignored_files_links_out_and_odd_names_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        for name in [".git/HEAD", "target/out", "src/main.rs", "src/a\u{1b}[2J.rs", ".github/ci.yml"] {
            write(name);
        }
        std::fs::write(directory.path().join(".gitignore"), "target\n").unwrap();
        std::os::unix::fs::symlink("/etc", directory.path().join("out")).unwrap();
        std::os::unix::fs::symlink("src", directory.path().join("in")).unwrap();
        let found = below(directory.path(), 100);
        assert_eq!(
            found.paths,
            [".github/", ".github/ci.yml", ".gitignore", "in/", "src/", "src/main.rs"],
            "a link inside is listed and not followed"
        );
        assert!(!found.is_cut && below(directory.path(), 2).is_cut);
    }
}
