//! A directory with a store beside it, and a picture of its contents.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    ObjectFacts, Objects, StoredMark, UncoveredReason, Workspace as _, WorkspaceCapture, WorkspaceError,
};
use backstitch_core::session::BoxError;
use backstitch_filesystem::FilePath;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use tempfile::TempDir;

/// Objects in memory.
#[derive(Default)]
pub(crate) struct MemoryObjects(pub(crate) Mutex<HashMap<ObjectId, Object>>);

impl Objects for MemoryObjects {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.0.lock().unwrap().get(&id).cloned())
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.0.lock().unwrap().contains_key(&id))
    }
}

/// Objects with marks, which count those that are asked about.
#[derive(Default)]
pub(crate) struct MarkedObjects {
    pub(crate) objects: MemoryObjects,
    /// Changes when objects are removed.
    pub(crate) generation: AtomicU64,
    pub(crate) asked: AtomicU64,
}

impl MarkedObjects {
    /// Stores what a capture found, and returns its root.
    pub(crate) fn keep(&self, captured: WorkspaceCapture) -> WorkspaceRoot {
        let mut stored = self.objects.0.lock().unwrap();
        let all = captured.objects.into_iter().chain(captured.coverage);
        stored.extend(all.map(|object| (object.id(), object)));
        captured.root
    }

    /// Returns how many objects were asked about since the last time.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl Objects for MarkedObjects {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        self.objects.get(id)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.objects.contains(id)
    }

    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        self.asked.fetch_add(ids.len() as u64, Ordering::SeqCst);
        self.objects.find_many(ids)
    }

    fn mark(&self) -> Result<Option<StoredMark>, BoxError> {
        Ok(Some(StoredMark::new(self.generation.load(Ordering::SeqCst).to_le_bytes())))
    }

    fn keeps(&self, mark: &StoredMark) -> Result<bool, BoxError> {
        Ok(self.mark()?.as_ref() == Some(mark))
    }
}

/// A directory with a store beside it.
pub(crate) struct Place {
    _keep: TempDir,
    pub(crate) above: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) objects: Arc<MemoryObjects>,
}

/// Kind, mode and content of each path.
pub(crate) type Picture = BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>;

impl Place {
    pub(crate) fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let above = keep.path().canonicalize().unwrap();
        let root = above.join("work");
        fs::create_dir(&root).unwrap();
        set_mode(&root, 0o755);
        Self { _keep: keep, above, root, objects: Arc::default() }
    }

    pub(crate) fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new(&self.root, self.above.join("store"), self.objects.clone());
        options.locks = Some(self.above.join("locks"));
        options.holder = "session one".to_owned();
        options
    }

    pub(crate) fn open(&self) -> HostWorkspace {
        HostWorkspace::open(self.options()).unwrap()
    }

    pub(crate) fn open_with(&self, change: impl FnOnce(&mut OpenOptions)) -> HostWorkspace {
        let mut options = self.options();
        change(&mut options);
        HostWorkspace::open(options).unwrap()
    }

    pub(crate) fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root.join(OsStr::from_bytes(path.as_ref()))
    }

    /// Writes a file with mode 0644, and creates the directories above it.
    pub(crate) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        make_directories(path.parent().unwrap());
        let is_new = !path.exists();
        fs::write(&path, content).unwrap();
        if is_new {
            set_mode(&path, 0o644);
        }
    }

    pub(crate) fn directory(&self, path: impl AsRef<[u8]>) {
        make_directories(&self.path(path));
    }

    pub(crate) fn link(&self, path: impl AsRef<[u8]>, target: &str) {
        let path = self.path(path);
        make_directories(path.parent().unwrap());
        symlink(target, path).unwrap();
    }

    pub(crate) fn mode(&self, path: impl AsRef<[u8]>, mode: u32) {
        set_mode(&self.path(path), mode);
    }

    pub(crate) fn fifo(&self, path: &str) {
        let name = self.path(path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &name, rustix::fs::Mode::RWXU).unwrap();
    }

    /// Captures, and stores the objects of the capture.
    pub(crate) fn capture(&self, workspace: &HostWorkspace) -> WorkspaceRoot {
        self.store(workspace.capture().unwrap())
    }

    pub(crate) fn store(&self, captured: WorkspaceCapture) -> WorkspaceRoot {
        let mut objects = self.objects.0.lock().unwrap();
        objects.extend(captured.objects.into_iter().map(|object| (object.id(), object)));
        captured.root
    }

    pub(crate) fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        look(&self.root, &self.root, &mut picture);
        picture
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        run_git(&self.root, arguments)
    }

    /// Runs a shell script in the directory.
    pub(crate) fn shell(&self, script: &str) {
        let status = Command::new("sh").args(["-euc", script]).current_dir(&self.root).status().unwrap();
        assert!(status.success(), "{script}");
    }
}

/// Runs git without automatic maintenance, which would continue after it, with a lock in the repository.
pub(crate) fn run_git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "core.autocrlf=false",
        ])
        .args(["-c", "safe.directory=*", "-c", "maintenance.auto=false"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn look(root: &Path, path: &Path, picture: &mut Picture) {
    let found = fs::symlink_metadata(path).unwrap();
    let kind = found.file_type();
    let mode = found.mode() & 0o7777;
    let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
    let entry = if kind.is_symlink() {
        ('l', 0, fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
    } else if kind.is_dir() {
        ('d', mode, Vec::new())
    } else if kind.is_file() {
        ('f', mode, fs::read(path).unwrap())
    } else {
        assert!(kind.is_fifo() || kind.is_socket());
        ('s', mode, Vec::new())
    };
    picture.insert(name, entry);
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            look(root, &entry.unwrap().path(), picture);
        }
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates directories with mode 0755, regardless of the umask.
fn make_directories(path: &Path) {
    if !path.is_dir() {
        make_directories(path.parent().unwrap());
        fs::create_dir(path).unwrap();
        set_mode(path, 0o755);
    }
}

pub(crate) fn file_path(text: &str) -> FilePath {
    FilePath::new(text).unwrap()
}

/// Uncovered paths with their reasons.
pub(crate) fn uncovered(captured: &WorkspaceCapture) -> Vec<(String, UncoveredReason)> {
    captured.uncovered.iter().map(|uncovered| (uncovered.path.clone(), uncovered.reason)).collect()
}

pub(crate) fn blocked(result: Result<impl std::fmt::Debug, WorkspaceError>) -> String {
    match result {
        Err(WorkspaceError::Blocked { path, .. }) => path,
        other => panic!("{other:?}"),
    }
}
