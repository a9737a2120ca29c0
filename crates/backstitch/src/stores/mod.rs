//! Stores by their addresses, and the locations of the stores of projects, for the command line and for
//! [`Runtime::open_default`](crate::Runtime::open_default).
//!
//! [`open`] opens the store of a [`StoreAddress`] by its ports, so that nothing else has to know what kind of store it is.
//!
//! The store of a project is outside of the directories that its agents work in, so that `git clean -fdx` cannot delete it.
//! Each project has one directory in the state directory of the user, `backstitch/stores/NAME-HASH`. The
//! project is the nearest directory above that holds `.git`, else the workspace itself. A file beside the
//! store records the directory of the project by path, device, inode and time of creation. A renamed
//! directory is therefore still found, and another directory that reuses its inode is not mistaken for it.

mod address;
pub mod input_history;
pub mod side_files;

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::filesystem::format::names;
use crate::ports::OpenError;
use serde::{Deserialize, Serialize};

pub use address::{OpenedStore, StoreAddress, open, open_for_rescue, open_read_only};
#[cfg(feature = "postgres")]
pub use address::{PASSWORD_VARIABLE, ServerAddress, check_server};
#[cfg(feature = "postgres")]
pub use backstitch_store::ServerCheck;

/// File name of every store.
pub const FILE: &str = "store.db";
/// Directory of a store inside a project.
pub const DIRECTORY: &str = ".backstitch";
/// File that names the project of a store.
const PROJECT: &str = "project.json";

/// A store cannot be opened, or its location cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoresError {
    /// Neither environment variable names a state directory.
    #[error("neither XDG_STATE_HOME nor HOME names a directory for stores")]
    NoStateDirectory,
    /// A directory cannot be read or created.
    #[error("{} cannot be used", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// SQLite's log does not work on network file systems.
    #[error("{} is on a network file system ({name})", path.display())]
    Network {
        /// The directory.
        path: PathBuf,
        /// The name of the file system.
        name: &'static str,
    },
    /// The store itself cannot be opened.
    #[error("the store {address} cannot be opened")]
    Open {
        /// The store.
        address: StoreAddress,
        /// The error of the store.
        #[source]
        source: OpenError,
    },
}

impl StoresError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoStateDirectory | Self::Unusable { .. } | Self::Network { .. } => ErrorCode::StoreLocation,
            Self::Open { source, .. } => source.code(),
        }
    }
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> StoresError {
    let path = path.to_owned();
    move |source| StoresError::Unusable { path, source }
}

/// The directory of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    v: u32,
    /// Percent-encoded path.
    path: String,
    device: u64,
    inode: u64,
    /// Time of creation in nanoseconds since 1970, if the file system records it.
    #[serde(default)]
    born: Option<u64>,
}

impl Project {
    /// Finds the project of a directory.
    fn of(directory: &Path) -> io::Result<Self> {
        let directory = directory.canonicalize()?;
        let root = git_root(&directory).unwrap_or(directory);
        Self::at(&root)
    }

    /// Describes a directory, without a search for the project that it is part of.
    pub fn at(root: &Path) -> io::Result<Self> {
        let found = fs::metadata(root)?;
        let path = names::encode(root.as_os_str().as_bytes());
        Ok(Self { v: 1, path, device: found.dev(), inode: found.ino(), born: born(&found) })
    }

    /// Returns the path that was recorded last.
    pub fn path(&self) -> PathBuf {
        let bytes = names::decode(self.path.as_bytes()).unwrap_or_else(|| self.path.clone().into_bytes());
        PathBuf::from(OsStr::from_bytes(&bytes))
    }

    /// Whether both are the same directory, even if it was moved.
    pub fn is_same(&self, other: &Self) -> bool {
        let born = self.born.is_none() || other.born.is_none() || self.born == other.born;
        (self.device, self.inode) == (other.device, other.inode) && born
    }

    /// Returns the name for the directory of a new store.
    fn name(&self) -> String {
        let path = self.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let plain = |one: char| if one.is_ascii_alphanumeric() || "-_.".contains(one) { one } else { '-' };
        let name: String = name.chars().map(plain).take(40).collect();
        let name = if name.trim_matches(['-', '.']).is_empty() { "root".to_owned() } else { name };
        let digest = Digest::of(self.path.as_bytes()).as_bytes()[..8].to_vec();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name}-{digest}")
    }
}

fn born(found: &Metadata) -> Option<u64> {
    let since = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

fn git_root(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

/// A store in the state directory, and its project.
pub struct KnownStore {
    /// The project.
    pub project: Project,
    directory: PathBuf,
}

impl KnownStore {
    /// Returns the path of the store.
    pub fn store(&self) -> PathBuf {
        self.directory.join(FILE)
    }
}

/// Lists all stores in the state directory, ordered by the paths of their projects.
pub fn all() -> Result<Vec<KnownStore>, StoresError> {
    let place = place()?;
    let entries = match fs::read_dir(&place) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(&place)(error)),
    };
    let mut all: Vec<_> = entries.flatten().filter_map(|entry| read(&entry.path())).collect();
    all.sort_by(|one, other| one.project.path.cmp(&other.project.path));
    Ok(all)
}

fn read(directory: &Path) -> Option<KnownStore> {
    let text = fs::read(directory.join(PROJECT)).ok()?;
    Some(KnownStore { project: serde_json::from_slice(&text).ok()?, directory: directory.to_owned() })
}

/// Finds the existing store for a directory: that of its project, else of the nearest directory above that
/// has one.
pub fn existing(directory: &Path) -> Result<Option<PathBuf>, StoresError> {
    beside(directory).map_or_else(|| of_project(directory), |beside| Ok(Some(beside)))
}

/// Finds the existing store for a directory in the state directory.
pub fn of_project(directory: &Path) -> Result<Option<PathBuf>, StoresError> {
    let all = all()?;
    let project = Project::of(directory).map_err(unusable(directory))?;
    let is_repository = project.path().join(".git").exists();
    let above = project.path();
    let above = above.ancestors().take(if is_repository { 1 } else { usize::MAX });
    let stores = above.filter_map(|directory| {
        let known = of(&all, &Project::at(directory).ok()?)?;
        Some(known.store()).filter(|store| store.exists())
    });
    Ok(stores.into_iter().next())
}

/// Returns the path of the store for a new session in a directory, and creates the directory of the store.
pub fn existing_or_new(directory: &Path) -> Result<PathBuf, StoresError> {
    beside(directory).map_or_else(|| of_project_or_new(directory), Ok)
}

/// Returns the path of the store for a new session in a directory, in the state directory, and creates the
/// directory of the store.
pub fn of_project_or_new(directory: &Path) -> Result<PathBuf, StoresError> {
    let project = Project::of(directory).map_err(unusable(directory))?;
    let place = place()?;
    make_private(&place).map_err(unusable(&place))?;
    // SQLite's log needs shared memory, which network file systems do not support.
    if let Some(name) = network_file_system(&place) {
        return Err(StoresError::Network { path: place, name });
    }
    let known = match of(&all()?, &project) {
        Some(known) => known.directory.clone(),
        None => free(&place, &project.name()),
    };
    make_private(&known).map_err(unusable(&known))?;
    if read(&known).is_none_or(|known| known.project != project) {
        write(&known, &project).map_err(unusable(&known))?;
    }
    Ok(known.join(FILE))
}

/// Finds the store of a project: by the identity of the directory, else by its path.
fn of<'a>(all: &'a [KnownStore], project: &Project) -> Option<&'a KnownStore> {
    let same = || all.iter().filter(|known| known.project.is_same(project));
    same()
        .find(|known| known.project.path == project.path)
        .or_else(|| same().next())
        .or_else(|| all.iter().find(|known| known.project.path == project.path))
}

/// Returns a directory that no other project uses. The store of a renamed project keeps its old name.
fn free(place: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered).map(|name| place.join(name));
    names.find(|path| read(path).is_none()).unwrap_or_else(|| place.join(name))
}

/// Writes the file of the project atomically: to a temporary file that is then renamed.
fn write(directory: &Path, project: &Project) -> io::Result<()> {
    let temporary = directory.join(format!("{PROJECT}.{}", std::process::id()));
    fs::write(&temporary, serde_json::to_string(project)?)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
    fs::rename(&temporary, directory.join(PROJECT))?;
    Ok(())
}

/// Finds the store in the nearest `.backstitch` above. Stores of other users are ignored.
pub fn beside(directory: &Path) -> Option<PathBuf> {
    let directory = std::path::absolute(directory).ok()?;
    let user = rustix::process::geteuid().as_raw();
    let is_own = |path: &PathBuf| {
        let owner = |path: &Path| fs::symlink_metadata(path).map(|found| found.uid()).ok();
        path.is_file() && owner(path) == Some(user) && path.parent().and_then(owner) == Some(user)
    };
    directory.ancestors().map(|above| above.join(DIRECTORY).join(FILE)).find(is_own)
}

/// Creates the directory of a store with an explicit path, readable only by this user. A `.backstitch` gets a
/// `.gitignore` too.
pub fn prepare(store: &Path) -> Result<(), StoresError> {
    let Some(parent) = store.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    if !parent.exists() {
        make_private(parent).map_err(unusable(parent))?;
    }
    if parent.file_name() == Some(OsStr::new(DIRECTORY)) {
        // A directory whose permissions cannot be changed is used as it is.
        let _ = fs::set_permissions(parent, fs::Permissions::from_mode(0o700));
        let ignore = parent.join(".gitignore");
        if !ignore.exists() {
            let _ = fs::write(ignore, "*\n");
        }
    }
    Ok(())
}

/// Returns the directory of all stores of this user.
fn place() -> Result<PathBuf, StoresError> {
    Ok(state_directory()?.join("stores"))
}

/// Returns the directory of everything that the command remembers about this user.
pub fn state_directory() -> Result<PathBuf, StoresError> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")));
    Ok(state.ok_or(StoresError::NoStateDirectory)?.join("backstitch"))
}

/// Creates a directory that only this user can use, and the missing directories above it likewise.
pub fn make_private(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|above| !above.exists()).count();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    for made in path.ancestors().take(missing.max(1)) {
        fs::set_permissions(made, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Returns the name of the network file system that a path is on, if it is on one.
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    {
        network(i128::from(rustix::fs::statfs(path).ok()?.f_type))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}

/// Returns the name of a network file system by its number in `statfs(2)`.
#[cfg(target_os = "linux")]
fn network(kind: i128) -> Option<&'static str> {
    Some(match kind & 0xffff_ffff {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(path: &str, inode: u64, born: Option<u64>) -> Project {
        Project { v: 1, path: path.to_owned(), device: 1, inode, born }
    }

    fn known(path: &str, inode: u64, born: Option<u64>) -> KnownStore {
        KnownStore {
            project: project(path, inode, born),
            directory: PathBuf::from(format!("{path}-{inode}")),
        }
    }

    #[test]
    fn a_store_is_found_by_the_directory_itself_and_then_by_its_path() {
        let all = [known("/p", 1, Some(10)), known("/q", 2, Some(20)), known("/r", 3, None)];
        let found =
            |path, inode, born| of(&all, &project(path, inode, born)).map(|known| known.project.inode);
        assert_eq!(found("/p", 1, Some(10)), Some(1), "as it was");
        assert_eq!(found("/new", 1, Some(10)), Some(1), "renamed");
        assert_eq!(found("/new", 1, Some(99)), None, "another directory got its inode");
        assert_eq!(found("/p", 9, Some(99)), Some(1), "made again at its path");
        assert_eq!(found("/p", 2, Some(20)), Some(2), "another project was moved to its path");
        assert_eq!(found("/moved", 3, Some(30)), Some(3), "where no birth was known");
        assert_eq!(found("/other", 9, None), None);
    }

    #[test]
    fn names_of_directories_are_plain_and_differ() {
        let name = |path: &str| project(&names::encode(path.as_bytes()), 1, None).name();
        assert!(name("/home/me/my project").starts_with("my-project-"), "{}", name("/home/me/my project"));
        assert!(name("/").starts_with("root-"));
        assert!(name("/a/..\u{1b}[2J").bytes().all(|byte| byte.is_ascii_graphic()));
        assert_ne!(name("/a/p"), name("/b/p"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn network_file_systems_are_refused_and_local_ones_are_not() {
        for kind in [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997] {
            assert!(network(kind).is_some(), "{kind:x}");
        }
        // Some systems return the number signed.
        assert!(network(i128::from(0xff53_4d42_u32.cast_signed())).is_some());
        for kind in [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
            assert!(network(kind).is_none(), "{kind:x}");
        }
        assert_eq!(network_file_system(&std::env::temp_dir()), None);
    }
}
