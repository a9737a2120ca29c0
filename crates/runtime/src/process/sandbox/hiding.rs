//! What processes cannot read: the places of secrets, resolved once, and what is left when they are taken out.
//!
//! Landlock only allows. So everything but the hidden places is granted: each directory above a hidden place entry by
//! entry, and every other directory as a whole. Names stay visible, contents do not. An entry that appears directly in
//! such a directory while a process runs is not readable for this process.
//!
//! A hidden place inside of the workspace is not hidden: the agent works there, and its tools read all of it.

use std::path::{Path, PathBuf};

use backstitch_core::ports::{SECRET_PLACES, Sandbox, is_place};

/// Resolves what a sandbox hides, when a session starts, and adds the places of secrets below a home directory. Links are
/// followed: both the place and what it leads to are hidden. A place that does not exist is hidden too, because it may
/// be created later. A sandbox that is off hides nothing.
pub fn hide_secrets(sandbox: &mut Sandbox, home: Option<&Path>) {
    if sandbox.is_off() {
        return;
    }
    let given = std::mem::take(&mut sandbox.hide);
    let home = home.and_then(|home| home.canonicalize().ok());
    let mut found = Vec::new();
    for place in given {
        add_place(&place, home.as_deref(), &mut found);
    }
    if let Some(home) = &home {
        for place in SECRET_PLACES {
            for path in paths_of(home, place) {
                add_place(&path, Some(home), &mut found);
            }
        }
    }
    found.sort();
    found.dedup();
    sandbox.hide = found;
    for path in &mut sandbox.read {
        // One that does not exist cannot be read.
        *path = path.canonicalize().unwrap_or_else(|_| path.clone());
    }
}

/// Returns the paths of a place: one, or those that match its pattern.
fn paths_of(home: &Path, place: &str) -> Vec<PathBuf> {
    if !place.contains('*') {
        return vec![home.join(place)];
    }
    let (directory, pattern) = place.rsplit_once('/').unwrap_or(("", place));
    let Ok(entries) = home.join(directory).read_dir() else { return Vec::new() };
    let is_named = |entry: &std::fs::DirEntry| is_place(pattern, &entry.file_name().to_string_lossy());
    entries.flatten().filter(is_named).map(|entry| entry.path()).collect()
}

/// Adds a place without links, what it leads to, and the files below the home directory that links in it lead to.
fn add_place(place: &Path, home: Option<&Path>, found: &mut Vec<PathBuf>) {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else { return };
    // The parent may be missing too, and then holds no links.
    let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    let plain = parent.join(name);
    let is_usable = |path: &Path| {
        // What is above the home directory, or everything, is not a place. Devices hold nothing.
        path.parent().is_some()
            && !home.is_some_and(|home| home.starts_with(path))
            && path.metadata().map_or(true, |found| found.is_file() || found.is_dir())
    };
    if let Ok(target) = plain.canonicalize() {
        let linked = target.read_dir().into_iter().flatten().flatten();
        let linked = linked.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for target in linked.filter_map(|entry| entry.path().canonicalize().ok()) {
            if target.is_file() && home.is_some_and(|home| target.starts_with(home)) {
                found.push(target);
            }
        }
        if is_usable(&target) {
            found.push(target);
        }
    }
    // A link to a device, such as a history that is not kept, can be read.
    if is_usable(&plain) {
        found.push(plain);
    }
}

/// Returns paths that together cover everything below a directory, except for the hidden places. Links are left out:
/// what they lead to is covered by its own path, or hidden.
#[cfg(target_os = "linux")]
pub(super) fn around(start: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    // A start that is hidden itself, or lies in a hidden place, was allowed by its own path.
    let inside: Vec<&Path> =
        hidden.iter().map(PathBuf::as_path).filter(|path| is_below(path, start)).collect();
    let mut covered = Vec::new();
    cover(start.to_owned(), &inside, &mut covered);
    covered
}

#[cfg(target_os = "linux")]
fn is_below(path: &Path, directory: &Path) -> bool {
    path != directory && path.starts_with(directory)
}

#[cfg(target_os = "linux")]
fn cover(place: PathBuf, hidden: &[&Path], covered: &mut Vec<PathBuf>) {
    if hidden.contains(&place.as_path()) {
        return;
    }
    let inside: Vec<&Path> = hidden.iter().copied().filter(|path| is_below(path, &place)).collect();
    if inside.is_empty() || place.is_file() {
        covered.push(place);
        return;
    }
    match place.read_dir() {
        Ok(entries) => {
            for entry in entries.flatten() {
                if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                    cover(entry.path(), &inside, covered);
                }
            }
        }
        // A directory that this user cannot list, such as the one with all home directories: only the way to the
        // hidden places is known.
        Err(_) => {
            let depth = place.components().count();
            let mut next: Vec<PathBuf> =
                inside.iter().map(|path| path.components().take(depth + 1).collect()).collect();
            next.sort();
            next.dedup();
            for child in next.into_iter().filter(|child| !child.is_symlink()) {
                cover(child, &inside, covered);
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A home directory with these files.
    fn home(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap().join("home");
        for file in files {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        (place, home)
    }

    fn hidden_in(home: &Path) -> Vec<PathBuf> {
        let mut sandbox = Sandbox::workspace();
        hide_secrets(&mut sandbox, Some(home));
        sandbox.hide
    }

    #[test]
    fn the_places_of_secrets_are_hidden_whether_they_exist_or_not() {
        let (_place, home) = home(&[".ssh/id", ".cargo/credentials.toml", ".cargo/bin/x", ".psql_history"]);
        let hidden = hidden_in(&home);
        for name in [".ssh", ".netrc", ".config/gh", ".cargo/credentials.toml", ".psql_history"] {
            assert!(hidden.contains(&home.join(name)), "{name}: {hidden:?}");
        }
        assert!(!hidden.contains(&home.join(".cargo")) && !hidden.contains(&home));
    }

    #[test]
    fn links_are_followed_and_what_is_public_stays_open() {
        let (place, home) = home(&["dotfiles/ssh/config", "keys/deploy", "notes"]);
        let other = place.path().canonicalize().unwrap().join("elsewhere");
        fs::create_dir(&other).unwrap();
        symlink(home.join("dotfiles/ssh"), home.join(".ssh")).unwrap();
        symlink(home.join("keys/deploy"), home.join("dotfiles/ssh/id")).unwrap();
        symlink(&other, home.join(".gnupg")).unwrap();
        symlink("/dev/null", home.join(".bash_history")).unwrap();
        symlink("/", home.join(".aws")).unwrap();
        symlink(&home, home.join(".kube")).unwrap();
        let hidden = hidden_in(&home);
        for path in [home.join("dotfiles/ssh"), home.join("keys/deploy"), other] {
            assert!(hidden.contains(&path), "{}: {hidden:?}", path.display());
        }
        for path in ["/dev/null".into(), "/".into(), home.clone(), home.join("keys"), home.join("notes")] {
            assert!(!hidden.contains(&path), "{}: {hidden:?}", path.display());
        }
    }

    #[test]
    fn a_person_hides_more_and_resolving_again_changes_nothing() {
        let (_place, home) = home(&["vault/key", "notes"]);
        let mut sandbox = Sandbox::workspace().hide(home.join("vault"));
        hide_secrets(&mut sandbox, Some(&home));
        assert!(sandbox.hide.contains(&home.join("vault")) && sandbox.hide.contains(&home.join(".ssh")));
        let once = sandbox.clone();
        hide_secrets(&mut sandbox, Some(&home));
        assert_eq!(sandbox, once);
        let mut off = Sandbox::off();
        hide_secrets(&mut off, Some(&home));
        assert_eq!(off, Sandbox::off());
        let mut homeless = Sandbox::workspace().hide(home.join("vault"));
        hide_secrets(&mut homeless, None);
        assert_eq!(homeless.hide, [home.join("vault")]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn everything_but_the_hidden_places_is_covered() {
        let (place, home) =
            home(&[".ssh/id", ".config/gh/hosts", ".config/editor/rc", "project/main", "notes"]);
        symlink(home.join(".ssh"), home.join("link")).unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("beside")).unwrap();
        let hidden = [home.join(".ssh"), home.join(".config/gh"), home.join(".netrc")];
        let mut covered = around(&root, &hidden);
        covered.sort();
        let mut expected =
            vec![root.join("beside"), home.join(".config/editor"), home.join("notes"), home.join("project")];
        expected.sort();
        assert_eq!(covered, expected);
        // A path that was allowed by itself is covered as a whole, also inside of a hidden place.
        assert_eq!(around(&home.join("project"), &hidden), [home.join("project")]);
        assert_eq!(around(&home.join(".ssh"), &hidden), [home.join(".ssh")]);
        assert_eq!(around(&home.join(".ssh/id"), &hidden), [home.join(".ssh/id")]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_way_through_a_directory_that_cannot_be_listed_is_covered() {
        use std::os::unix::fs::PermissionsExt as _;

        if rustix::process::geteuid().is_root() {
            return;
        }
        let (place, home) = home(&[".ssh/id", "notes"]);
        let root = place.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o311)).unwrap();
        let covered = around(&root, &[home.join(".ssh")]);
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(covered, [home.join("notes")]);
    }
}
