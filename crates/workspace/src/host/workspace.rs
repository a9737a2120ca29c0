//! A host directory as a workspace.

use std::any::Any;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use backstitch_core::journal::{CallChanges, WorkspaceRoot};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{
    Access, Filesystem, GraftedCapture, GuardMode, MergedCapture, MovedBranch, ObjectOverlay, Objects,
    PathChange, RepositoryChange, RescueCapture, RestoreReport, Reversal, ReversedCapture, StoredMark,
    UncoveredPath, Workspace, WorkspaceCapture, WorkspaceError, WorkspaceMerge,
};
use backstitch_filesystem::format::{damaged, fetch, grafted};
use backstitch_filesystem::{FilePath, format};

use super::cache::{self, Owner};
use super::capture::RestoreTarget;
use super::filesystem::HostFilesystem;
use super::index::DirIndex;
use super::lock::{self, Lock};
use super::repositories::GuardedFiles;
use super::restore::Progress;
use super::rules::{Ignores, Rules};
use super::scan::ScanLimits;
use super::{private, root, sweep, sys};
use crate::coverage::Coverage;
use crate::git_head::GitHead;
use crate::options::OpenOptions;

/// A host directory as a workspace. The directory is claimed as long as this value lives.
pub struct HostWorkspace {
    pub(super) root: OwnedFd,
    pub(super) path: PathBuf,
    store: PathBuf,
    pub(super) objects: Arc<dyn Objects>,
    pub(super) rules: Rules,
    excludes: Vec<String>,
    is_exclusive: bool,
    /// A coverage whose repository is not the one of this directory.
    foreign: OnceLock<ObjectId>,
    pub(super) limits: ScanLimits,
    access: Access,
    filesystem: Arc<HostFilesystem>,
    state: Mutex<CaptureMemo>,
    cache: Option<(PathBuf, Owner)>,
    coverage_path: PathBuf,
    pub(super) guarded_path: PathBuf,
    _lock: Lock,
    _companion: Option<Arc<dyn Any + Send + Sync>>,
}

/// State that is kept between captures.
#[derive(Default)]
pub(super) struct CaptureMemo {
    pub(super) index: Option<DirIndex>,
    pub(super) ignores: Ignores,
    /// Coverage of the last capture.
    pub(super) coverage: Coverage,
    /// True once this process has captured.
    pub(super) captured: bool,
    /// Mark of the store, taken before it was queried for existing objects.
    pub(super) mark: Option<StoredMark>,
    /// Number of files read since the cache was written.
    pub(super) unsaved: usize,
    /// Number of files and directories since then that the store was asked about and has.
    pub(super) confirmed: usize,
    /// What git executes, before the last call.
    pub(super) guarded: Option<GuardedFiles>,
    /// Number of files read since the workspace was opened.
    pub(super) read: u64,
}

/// Number of files read that makes it worth writing the cache before the workspace is closed.
const WORTH_SAVING: usize = 64;

impl HostWorkspace {
    /// Opens a directory. Fails if another holder has claimed it, a directory inside it, or one around it.
    pub fn open(options: OpenOptions) -> Result<Self, WorkspaceError> {
        let path = root::check(&options.root, &root::homes(), &root::OwnPlaces::of_user())?;
        let failed = |path: &Path| {
            let path = path.as_os_str().as_bytes().to_vec();
            move |error: io::Error| sys::io_error(&path, error)
        };
        let store = &options.store_directory;
        private::create_directories(store).map_err(failed(store))?;
        let store = fs::canonicalize(store).map_err(failed(store))?;
        if path.starts_with(&store) {
            let reason = "it lies in the runtime's own directory".to_owned();
            return Err(WorkspaceError::RefusedRoot { path: path.display().to_string(), reason });
        }
        let place = options.locks.clone().unwrap_or_else(lock::default_place);
        let lock = Lock::take(&place, &path, &options.holder)?;

        let root = sys::open_directory(rustix::fs::CWD, &path).map_err(failed(&path))?;
        let found = sys::file_stat(&root).map_err(failed(&path))?;
        let identity =
            sys::file_stat(fs::File::open(&store).map_err(failed(&store))?).map_err(failed(&store))?.stamp;
        let store_path = store.strip_prefix(&path).ok().map(|path| path.as_os_str().as_bytes().to_vec());
        let rules = Rules::new(&options.excludes, Some((identity.device, identity.inode)), store_path)?;

        let states = store.join("workspaces");
        private::create_directories(&states).map_err(failed(&states))?;
        let name = blake3::hash(path.as_os_str().as_bytes()).to_hex()[..32].to_owned();
        let cache_path = options.cache.clone().unwrap_or_else(|| states.join(format!("{name}.stat")));
        let owner = |boot| Owner { boot, device: found.stamp.device, inode: found.stamp.inode };
        let cache = cache::boot_id().map(|boot| (cache_path, owner(boot)));
        let coverage_path = states.join(format!("{name}.coverage"));
        let guarded_path = states.join(format!("{name}.git"));
        let coverage = fs::read(&coverage_path).ok().and_then(|bytes| Coverage::from_json(&bytes).ok());
        let known = cache.as_ref().and_then(|(path, owner)| cache::load(path, owner));
        let (index, mark) = known.map_or((None, None), |(index, mark)| (Some(index), mark));
        let state =
            CaptureMemo { index, mark, coverage: coverage.unwrap_or_default(), ..CaptureMemo::default() };
        if options.access == Access::ReadWrite && options.sweeps {
            sweep::sweep(root.as_fd(), &rules, &state.coverage);
        }
        let filesystem = HostFilesystem::of(&path, Some(&store), options.access, options.limits)?;
        Ok(Self {
            root,
            path,
            store,
            objects: options.objects,
            rules,
            excludes: options.excludes,
            is_exclusive: options.exclusive,
            foreign: OnceLock::new(),
            limits: ScanLimits {
                file_bytes: options.file_bytes,
                ignored: options.ignored,
                new_bytes: options.new_bytes,
                spend: None,
            },
            access: options.access,
            filesystem: Arc::new(filesystem),
            state: Mutex::new(state),
            cache,
            coverage_path,
            guarded_path,
            _lock: lock,
            _companion: options.companion,
        })
    }

    /// Canonical path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Coverage of the last capture. Before the first one of this process, that of the previous process.
    pub fn coverage(&self) -> Coverage {
        self.state().coverage.clone()
    }

    /// Number of files and links read since the workspace was opened. Files that the stat cache vouches for
    /// are not read.
    pub fn files_read(&self) -> u64 {
        self.state().read
    }

    /// Current state of the workspace's own repository, which is not part of a root.
    pub fn git_head(&self) -> GitHead {
        GitHead::read(self.root.as_fd())
    }

    /// Notes that the files were captured in another directory, so that the repository here cannot have moved since. Only the first
    /// note has an effect.
    pub fn forget_repository(&self, coverage: Option<ObjectId>) {
        if let Some(coverage) = coverage {
            let _ = self.foreign.set(coverage);
        }
    }

    /// State of the workspace's own repository at a capture, if it was recorded here.
    fn recorded_head(&self, coverage: Option<ObjectId>) -> Result<Option<GitHead>, WorkspaceError> {
        let Some(id) = coverage.filter(|id| self.foreign.get() != Some(id)) else { return Ok(None) };
        let object = fetch(&*self.objects, id, ObjectKind::Blob)?;
        Coverage::git_head(object.bytes()).map(Some).map_err(|error| damaged(id, error.to_string()))
    }

    /// Loads the file or link at a path of a root, or returns `None` if there is neither.
    pub fn read_at(&self, root: WorkspaceRoot, path: &FilePath) -> Result<Option<Object>, WorkspaceError> {
        format::read_at(&*self.objects, root, path.as_str().as_bytes())
    }

    /// Restores the files to a root with a known coverage, and reports each step before it is executed.
    pub fn restore_with(
        &self,
        root: WorkspaceRoot,
        coverage: &Coverage,
        progress: Option<Progress<'_>>,
    ) -> Result<RestoreReport, WorkspaceError> {
        self.check_writable()?;
        let target = RestoreTarget { root, since: None, coverage, brought: &[] };
        self.restore_with_retries(target, progress)
    }

    fn check_writable(&self) -> Result<(), WorkspaceError> {
        if self.access == Access::ReadOnly {
            let reason = "the workspace is read-only".to_owned();
            return Err(WorkspaceError::Blocked { path: ".".to_owned(), reason });
        }
        Ok(())
    }

    /// Forgets which objects are stored. Call this after objects were collected.
    pub fn forget_stored(&self) {
        if let Some(index) = &mut self.state().index {
            index.forget_stored();
        }
    }

    /// Writes the stat cache, so that the next process need not read all files. Dropping the workspace writes
    /// it too.
    pub fn save_cache(&self) -> io::Result<()> {
        self.save(&mut self.state())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CaptureMemo> {
        // The index is taken out during a scan, so a panic leaves none, and the next scan reads all files.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the cache if enough files were read. It is only a cache: a failure costs time, not content.
    pub(super) fn save_if_worth(&self, state: &mut CaptureMemo) {
        if state.unsaved >= WORTH_SAVING {
            let _ = self.save(state);
        }
    }

    fn save(&self, state: &mut CaptureMemo) -> io::Result<()> {
        if let (Some((path, owner)), Some(index)) = (&self.cache, &state.index) {
            cache::save(path, owner, state.mark.as_ref(), index)?;
            (state.unsaved, state.confirmed) = (0, 0);
        }
        Ok(())
    }

    /// Stores the coverage of a capture for the process that has to undo a call if this one is killed.
    pub(super) fn keep_coverage(
        &self,
        state: &mut CaptureMemo,
        coverage: Coverage,
    ) -> Result<(), WorkspaceError> {
        if state.coverage != coverage || !state.captured {
            let failed = |error| sys::io_error(self.coverage_path.as_os_str().as_bytes(), error);
            let known = fs::read(&self.coverage_path).ok();
            let text = coverage.to_json();
            if known.as_deref() != Some(text.as_bytes()) {
                write_durably(&self.coverage_path, text.as_bytes()).map_err(failed)?;
            }
            state.coverage = coverage;
        }
        state.captured = true;
        Ok(())
    }
}

/// Loads the coverage that was recorded with a root.
pub(super) fn stored_coverage(
    objects: &dyn Objects,
    coverage: Option<ObjectId>,
) -> Result<Coverage, WorkspaceError> {
    let Some(id) = coverage else { return Ok(Coverage::default()) };
    let object = fetch(objects, id, ObjectKind::Blob)?;
    Coverage::from_json(object.bytes()).map_err(|error| damaged(id, error.to_string()))
}

pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = private::create_file(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    match path.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Drop for HostWorkspace {
    fn drop(&mut self) {
        let mut state = self.state();
        // To ask the store about a few objects again is cheaper than to write the cache.
        if state.unsaved > 0 || state.confirmed >= WORTH_SAVING {
            let _ = self.save(&mut state);
        }
    }
}

impl std::fmt::Debug for HostWorkspace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HostWorkspace").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Workspace for HostWorkspace {
    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.filesystem.clone()
    }

    fn host_directory(&self) -> Option<PathBuf> {
        Some(self.path.clone())
    }

    fn excludes(&self) -> Vec<String> {
        self.excludes.clone()
    }

    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    fn uncovered(&self) -> Vec<UncoveredPath> {
        self.coverage().uncovered().collect()
    }

    fn own_directory(&self) -> Option<PathBuf> {
        Some(self.store.clone())
    }

    /// Decides the coverage anew. It stays fixed until the next capture.
    fn capture(&self) -> Result<WorkspaceCapture, WorkspaceError> {
        self.capture_anew()
    }

    /// Uses the coverage of the last capture.
    fn restore(&self, root: WorkspaceRoot) -> Result<RestoreReport, WorkspaceError> {
        let coverage = self.coverage();
        self.restore_with(root, &coverage, None)
    }

    fn capture_covering(&self, coverage: Option<ObjectId>) -> Result<WorkspaceCapture, WorkspaceError> {
        self.capture_with(&stored_coverage(&*self.objects, coverage)?)
    }

    fn capture_grafted(
        &self,
        from: WorkspaceRoot,
        paths: &[FilePath],
    ) -> Result<GraftedCapture, WorkspaceError> {
        grafted(self.capture_anew()?, &*self.objects, from, paths)
    }

    fn capture_merged(&self, merge: &WorkspaceMerge) -> Result<MergedCapture, WorkspaceError> {
        self.merge_files(merge)
    }

    fn capture_reversed(&self, reversal: &Reversal) -> Result<ReversedCapture, WorkspaceError> {
        self.reverse_files(reversal)
    }

    fn rescue(&self, coverage: Option<ObjectId>, byte_budget: u64) -> Result<RescueCapture, WorkspaceError> {
        self.rescue_covering(&stored_coverage(&*self.objects, coverage)?, byte_budget)
    }

    fn restore_covering(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
    ) -> Result<RestoreReport, WorkspaceError> {
        self.restore_bringing(root, coverage, &[])
    }

    fn restore_bringing(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        self.check_writable()?;
        let objects = ObjectOverlay::new(brought.iter().cloned(), &*self.objects);
        let coverage = stored_coverage(&objects, coverage)?;
        let target = RestoreTarget { root, since: None, coverage: &coverage, brought };
        self.restore_with_retries(target, None)
    }

    fn restore_changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<RestoreReport, WorkspaceError> {
        self.check_writable()?;
        let objects = ObjectOverlay::new(brought.iter().cloned(), &*self.objects);
        let coverage = stored_coverage(&objects, coverage)?;
        let target = RestoreTarget { root: to, since: Some(from), coverage: &coverage, brought };
        self.restore_with_retries(target, None)
    }

    fn check_restorable(
        &self,
        root: WorkspaceRoot,
        coverage: Option<ObjectId>,
        brought: &[Object],
    ) -> Result<(), WorkspaceError> {
        let objects = ObjectOverlay::new(brought.iter().cloned(), &*self.objects);
        format::check_complete(&objects, root, coverage)
    }

    fn guard_repositories(&self) -> Result<(), WorkspaceError> {
        self.keep_guarded()
    }

    fn check_repositories(&self, mode: GuardMode) -> Result<Vec<RepositoryChange>, WorkspaceError> {
        Ok(if self.access == Access::ReadWrite { self.check_guarded(mode) } else { Vec::new() })
    }

    fn repository_moves(&self, coverage: Option<ObjectId>) -> Result<Vec<String>, WorkspaceError> {
        let Some(then) = self.recorded_head(coverage)? else { return Ok(Vec::new()) };
        Ok(then.moves(&self.git_head()))
    }

    fn moved_branches(&self, coverage: Option<ObjectId>) -> Result<Vec<MovedBranch>, WorkspaceError> {
        let Some(then) = self.recorded_head(coverage)? else { return Ok(Vec::new()) };
        Ok(then.moved_branches(&self.git_head()))
    }

    fn diff(&self, from: WorkspaceRoot, to: WorkspaceRoot) -> Result<Vec<PathChange>, WorkspaceError> {
        format::diff(&*self.objects, from, to)
    }

    fn changes(
        &self,
        from: WorkspaceRoot,
        to: WorkspaceRoot,
        brought: &[Object],
    ) -> Result<CallChanges, WorkspaceError> {
        format::changes(&ObjectOverlay::new(brought.iter().cloned(), &*self.objects), from, to)
    }
}
