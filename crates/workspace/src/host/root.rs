//! Checks that a directory can be a workspace.
//!
//! A restore deletes files that a root does not contain, so a workspace must be a directory of one project.
//! The root of the filesystem, home directories, their parents and system directories are refused. So are
//! directories that hold the user's settings of Backstitch, the list of trusted projects or the stores: an agent
//! that changed them would decide about later sessions.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::ports::WorkspaceError;

use super::sys::io_error;

/// System directories. Directories below most of them can be workspaces.
const SYSTEM: [&str; 24] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/tmp",
    "/Users",
    "/System",
    "/private/tmp",
];

/// No directory below these can be a workspace.
const SYSTEM_TREES: [&str; 4] = ["/proc", "/sys", "/dev", "/boot"];

/// Name of the directory of copies of projects in the user's state directory. Each copy is a workspace.
const COPIES: &str = "copies";

/// The user's own files of Backstitch, with links resolved.
#[derive(Debug, Default)]
pub(crate) struct OwnPlaces {
    /// The directories of the settings and of the state.
    directories: Vec<PathBuf>,
    /// Files and directories in them that are links to other places, and links that lead to them.
    linked: Vec<PathBuf>,
}

impl OwnPlaces {
    /// Finds the places of the user.
    pub(crate) fn of_user() -> Self {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below_home = |path: &str| absolute("HOME").map(|home| home.join(path));
        let bases = [
            absolute("XDG_CONFIG_HOME").or_else(|| below_home(".config")),
            absolute("XDG_STATE_HOME").or_else(|| below_home(".local/state")),
        ];
        Self::new(bases.into_iter().flatten().map(|base| base.join("backstitch")))
    }

    pub(crate) fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut places = Self::default();
        for directory in directories {
            let entries = fs::read_dir(&directory).into_iter().flatten().filter_map(Result::ok);
            let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
            places.linked.extend(links.filter_map(|entry| fs::canonicalize(entry.path()).ok()));
            // A link on the way could be replaced by one to other settings.
            let on_the_way = directory.ancestors().filter(|path| path.is_symlink());
            places
                .linked
                .extend(on_the_way.filter_map(|link| Some(resolve(link.parent()?).join(link.file_name()?))));
            places.directories.push(resolve(&directory));
        }
        places
    }

    /// Returns why a directory cannot be a workspace, if these places are in it or around it.
    fn refusal(&self, directory: &Path) -> Option<String> {
        let held = self.directories.iter().chain(&self.linked).find(|place| place.starts_with(directory));
        if let Some(held) = held {
            return Some(format!(
                "it holds {}, the user's own files of Backstitch; use the directory of one project",
                held.display()
            ));
        }
        let is_own = |place: &&PathBuf| {
            let below = directory.strip_prefix(place);
            below.is_ok_and(|below| !below.starts_with(COPIES) || below == Path::new(COPIES))
        };
        let own = self.directories.iter().find(is_own)?;
        Some(format!("it lies in {}, the user's own files of Backstitch", own.display()))
    }
}

/// Resolves the links of a path, as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (fs::canonicalize(existing), path.strip_prefix(existing)) {
            return found.join(rest);
        }
    }
    path.to_owned()
}

/// Returns the canonical path of a directory that can be a workspace.
pub(crate) fn check(path: &Path, homes: &[PathBuf], own: &OwnPlaces) -> Result<PathBuf, WorkspaceError> {
    let shown = path.display().to_string();
    let canonical = fs::canonicalize(path).map_err(|error| io_error(shown.as_bytes(), error))?;
    let refuse = |reason: &str| {
        Err(WorkspaceError::RefusedRoot { path: canonical.display().to_string(), reason: reason.to_owned() })
    };
    if !canonical.is_dir() {
        return refuse("it is not a directory");
    }
    if canonical.parent().is_none() {
        return refuse("it is the root of the system");
    }
    for home in homes {
        if *home == canonical {
            return refuse("it is a home directory; use a directory inside it");
        }
        if home.starts_with(&canonical) {
            return refuse("it contains a home directory; use the directory of one project");
        }
    }
    let in_system_tree = SYSTEM_TREES.iter().any(|system| canonical.starts_with(system));
    if in_system_tree || SYSTEM.iter().any(|system| Path::new(system) == canonical) {
        return refuse("it belongs to the system; use the directory of one project");
    }
    match own.refusal(&canonical) {
        Some(reason) => refuse(&reason),
        None => Ok(canonical),
    }
}

/// Known home directories: the user's, and those of all users that the system lists.
pub(crate) fn homes() -> Vec<PathBuf> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let listed = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let others = listed.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    own.into_iter()
        .chain(others)
        .filter_map(|home| fs::canonicalize(home).ok())
        .filter(|home| home.parent().is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(own: &OwnPlaces, path: &Path) -> Option<String> {
        match check(path, &[], own) {
            Err(WorkspaceError::RefusedRoot { reason, .. }) => Some(reason),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn directories_with_the_users_own_files_are_refused_through_links_and_both_ways() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for path in
            ["config/backstitch/agents", "state/backstitch/copies/a/b", "dotfiles/bs", "dotfiles2", "project"]
        {
            fs::create_dir_all(place.join(path)).unwrap();
        }
        fs::write(place.join("dotfiles2/settings.toml"), "").unwrap();
        std::os::unix::fs::symlink(
            "../../dotfiles2/settings.toml",
            place.join("config/backstitch/config.toml"),
        )
        .unwrap();
        std::os::unix::fs::symlink("dotfiles/bs", place.join("linked")).unwrap();
        let own = OwnPlaces::new(
            ["config/backstitch", "state/backstitch", "linked", "project/no/state"]
                .map(|path| place.join(path)),
        );
        for path in [
            "config",
            "config/backstitch",
            "config/backstitch/agents",
            "state",
            "state/backstitch",
            "state/backstitch/copies",
            "dotfiles",
            "dotfiles/bs",
            "dotfiles2",
            "linked",
            "project",
        ] {
            let reason = refusal(&own, &place.join(path));
            assert!(reason.is_some_and(|reason| reason.contains("own files of Backstitch")), "{path}");
        }
        assert_eq!(refusal(&own, &place.join("state/backstitch/copies/a/b")), None);
        fs::create_dir(place.join("other")).unwrap();
        assert_eq!(refusal(&own, &place.join("other")), None);
    }
}
