//! Keeps the settings that the guard writes out of git: a line in `.git/info/exclude`, which nobody else sees.
//!
//! The hooks name the path of the guard, so a commit would carry a path of this machine, and `git status` would show a
//! directory that the person did not make.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::file;

/// Adds a file of a repository to its excludes. Returns whether it was added; it is not outside of a repository.
pub fn add_to_excludes(path: &Path) -> Result<bool, SettingsError> {
    let Some((excludes, line)) = place(path) else { return Ok(false) };
    let text = file::read(&excludes)?.unwrap_or_default();
    if text.lines().any(|known| known.trim() == line) {
        return Ok(false);
    }
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    file::write(&excludes, &format!("{text}{end}{line}\n"))?;
    Ok(true)
}

/// Removes a file of a repository from its excludes, if it was added.
pub fn remove_from_excludes(path: &Path) -> Result<(), SettingsError> {
    let Some((excludes, line)) = place(path) else { return Ok(()) };
    let Some(text) = file::read(&excludes)? else { return Ok(()) };
    let added = format!("{line}\n");
    if let Some(at) = text.find(&added).filter(|at| *at == 0 || text[..*at].ends_with('\n')) {
        file::write(&excludes, &format!("{}{}", &text[..at], &text[at + added.len()..]))?;
    }
    Ok(())
}

/// Returns the file with the excludes of the repository that a file is in, and the line for the file.
fn place(path: &Path) -> Option<(PathBuf, String)> {
    let root = path.ancestors().skip(1).find(|above| above.join(".git").exists())?;
    let inside = path.strip_prefix(root).ok()?.to_str()?;
    let is_plain = !inside.contains(['*', '?', '[', '\\', '\n', '!', '#']);
    let excludes = git_directory(root).filter(|_| is_plain)?.join("info/exclude");
    Some((excludes, format!("/{inside}")))
}

/// Returns the directory of a repository that its worktrees share.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = fs::read_to_string(&git).ok()?;
    let own = root.join(named.trim().strip_prefix("gitdir:")?.trim());
    match fs::read_to_string(own.join("commondir")) {
        Ok(common) => Some(own.join(common.trim())),
        Err(_) => Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_once_and_removed_without_a_trace() {
        let directory = tempfile::tempdir().unwrap();
        let settings = directory.path().join("inner/.claude/settings.local.json");
        assert!(!add_to_excludes(&settings).unwrap(), "there is no repository");
        fs::create_dir_all(directory.path().join(".git/info")).unwrap();
        let excludes = directory.path().join(".git/info/exclude");
        for before in ["", "# mine\n*.o\n"] {
            fs::write(&excludes, before).unwrap();
            assert!(add_to_excludes(&settings).unwrap());
            assert!(!add_to_excludes(&settings).unwrap(), "once");
            let line = "/inner/.claude/settings.local.json\n";
            assert_eq!(fs::read_to_string(&excludes).unwrap(), format!("{before}{line}"));
            remove_from_excludes(&settings).unwrap();
            assert_eq!(fs::read_to_string(&excludes).unwrap(), before);
        }
    }

    #[test]
    fn a_worktree_uses_the_excludes_of_its_repository() {
        let directory = tempfile::tempdir().unwrap();
        let (main, tree) = (directory.path().join("main"), directory.path().join("tree"));
        fs::create_dir_all(main.join(".git/worktrees/tree")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(main.join(".git/worktrees/tree/commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/tree").display()))
            .unwrap();
        assert!(add_to_excludes(&tree.join(".codex/hooks.json")).unwrap());
        assert_eq!(fs::read_to_string(main.join(".git/info/exclude")).unwrap(), "/.codex/hooks.json\n");
    }
}
