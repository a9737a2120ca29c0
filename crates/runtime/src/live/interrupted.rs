//! The files that an interrupted call has left: what it changed is restored, and what others changed later stays.
//!
//! Nothing records who changed a file while no process drove the session. The times of the files tell, together with those of the call
//! and of the runtime that ran it ([`CallTimes`]), and with what other sessions have recorded. A change of which neither tells it is
//! doubtful, and a person decides. Without such times, because there was no supervisor, everything that differs counts as a change
//! of the call, except for what other sessions have recorded as theirs.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use backstitch_core::crash_point;
use backstitch_core::journal::{ObservationCause, WorkspaceRevision, WorkspaceRoot};
use backstitch_core::ports::{
    ChangeKind, FilePath, PathChange, Reversal, ReversalConflicts, ReversedCapture, UncoveredPath,
    UncoveredReason,
};
use backstitch_core::view::Call;

use super::files::{RESCUE_BYTES, holds_nothing};
use super::others::OtherCalls;
use super::{LiveSession, blocking, recorded};
use crate::error::{Result, RuntimeError};
use crate::process::{CallTimes, FileTime};

/// How long after the end of a call a change may be its own: times of files are as exact as the ticks of the system.
const MARGIN: FileTime = 20_000_000;

const SECOND: FileTime = 1_000_000_000;

/// What to do about doubtful files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoubtfulFiles {
    /// They count as changes of the call.
    Restore,
    /// They stay as they are.
    Keep,
    /// Nothing is restored before a person has decided.
    Ask,
}

/// The files of an interrupted call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InterruptedFiles {
    /// What the call changed is restored. The root is that of the files as they were found, if they differed.
    Restored(Option<WorkspaceRoot>),
    /// Nothing is restored, because of these doubtful paths.
    Doubtful(Vec<String>),
}

/// Who changed a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeOwner {
    Call,
    Others,
    Unknown,
}

/// What the file system says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathTimes {
    /// It exists.
    Present {
        /// The last change of its content, its mode or its name.
        changed: FileTime,
        /// The last change of its content, or what a program says that it is.
        modified: FileTime,
        /// The last change of a directory on its way that did not add or remove an entry, as when the directory is renamed.
        moved: FileTime,
    },
    /// It does not exist. This is the last change of the nearest directory on its way that does.
    Missing { directory: FileTime },
    /// It cannot be examined.
    Unknown,
}

/// Returns who changed a path, by its times. `booted` is when the system was started, if that was after the call.
fn owner_by_times(times: CallTimes, booted: Option<FileTime>, found: PathTimes) -> ChangeOwner {
    let over = times.over.or(booted);
    let is_later = |time: FileTime| over.is_some_and(|over| time > over.saturating_add(MARGIN));
    // In a file system with times in whole seconds, the same time may be later.
    let is_before = |time: FileTime| time < times.until || time == times.until && time % SECOND != 0;
    match found {
        PathTimes::Missing { directory } if is_before(directory) => ChangeOwner::Call,
        PathTimes::Present { changed, moved, .. } if is_before(changed.max(moved)) => ChangeOwner::Call,
        PathTimes::Present { changed, modified, .. } if is_later(changed) && is_later(modified) => {
            ChangeOwner::Others
        }
        _ => ChangeOwner::Unknown,
    }
}

/// Paths that differ, by who changed them.
#[derive(Debug, Default, PartialEq, Eq)]
struct ChangedPaths {
    others: Vec<FilePath>,
    /// Those that nothing decides. Some of them may have names that are not [`FilePath`]s.
    doubtful: Vec<String>,
}

impl ChangedPaths {
    /// Sorts paths. A directory stays only if everything below it does.
    fn of(paths: impl IntoIterator<Item = (String, ChangeOwner)>) -> Self {
        let paths: Vec<(String, ChangeOwner)> = paths.into_iter().collect();
        let own = paths.iter().filter(|(_, owner)| *owner == ChangeOwner::Call);
        let own: BTreeSet<&str> = own.map(|(path, _)| path.as_str()).collect();
        let holds_own = |path: &str| {
            let below = format!("{path}/");
            own.range(below.as_str()..).next().is_some_and(|next| next.starts_with(&below))
        };
        let mut sorted = Self::default();
        for (path, owner) in paths.iter().filter(|(path, _)| !holds_own(path)) {
            match (owner, FilePath::new(path)) {
                (ChangeOwner::Call, _) => {}
                (ChangeOwner::Others, Ok(path)) => sorted.others.push(path),
                (ChangeOwner::Others, Err(_)) | (ChangeOwner::Unknown, _) => {
                    sorted.doubtful.push(path.clone());
                }
            }
        }
        sorted
    }
}

/// Returns the reversal that undoes everything that changed since, except for some paths.
pub(crate) fn reversal_since(before: WorkspaceRevision, kept: Vec<FilePath>) -> Reversal {
    Reversal {
        steps: Vec::new(),
        open: Some(before),
        target: before,
        kept,
        conflicts: ReversalConflicts::LeaveAlone,
    }
}

/// Names paths that a restore leaves to others.
pub(crate) fn left_to_others(paths: &[FilePath]) -> impl Iterator<Item = UncoveredPath> {
    let left = |path: &FilePath| UncoveredPath {
        path: path.to_string(),
        reason: UncoveredReason::ChangedByOthers,
        bytes: None,
    };
    paths.iter().map(left)
}

impl LiveSession {
    /// Restores what an interrupted call has changed since the files before it. The files as they are found are recorded first.
    pub(crate) async fn restore_interrupted(
        &self,
        call: &Call,
        before: WorkspaceRevision,
        doubtful: DoubtfulFiles,
    ) -> Result<InterruptedFiles> {
        let (found, mut objects) = self.rescue(before, RESCUE_BYTES).await?;
        let Some(root) = found else { return Ok(InterruptedFiles::Restored(None)) };
        let changed = match holds_nothing(root) {
            // The directory was deleted. Nothing in it is the work of others.
            true => ChangedPaths::default(),
            false => self.changed_paths(call, before).await?,
        };
        let ChangedPaths { others: mut kept, doubtful: paths } = changed;
        match doubtful {
            DoubtfulFiles::Ask if !paths.is_empty() => return Ok(InterruptedFiles::Doubtful(paths)),
            DoubtfulFiles::Keep => kept.extend(paths.iter().filter_map(|path| FilePath::new(path).ok())),
            DoubtfulFiles::Restore | DoubtfulFiles::Ask => {}
        }
        let left: Vec<UncoveredPath> = left_to_others(&kept).collect();
        let (mut found, mut target) = (WorkspaceRevision { root, ..before }, (before, Vec::new()));
        if !kept.is_empty() {
            let reversed = self.capture_since(before, kept).await?;
            target = recorded(reversed.captured);
            found = WorkspaceRevision { root: reversed.found, ..target.0 };
            objects.clone_from(&target.1);
        }
        let rescue = self.keep_interrupted(found, objects, before).await?;
        crash_point!("recover.rescued");
        let (files, brought) = target;
        self.restore_leaving(files, brought, Some(rescue), left).await?;
        // The session continues with these files, those of others among them, also if the call does not run again.
        if let Some(restored) = self.capture_files().await? {
            self.observe_files(restored, ObservationCause::Restored).await?;
        }
        Ok(InterruptedFiles::Restored(Some(found.root)))
    }

    /// Returns the time after which changes of files are not those of an interrupted call, if it is known.
    pub(super) async fn others_since(&self, call: &Call) -> Result<Option<FileTime>> {
        let times = self.times_of(call).await?;
        Ok(times.and_then(|(times, booted)| times.over.or(booted)).map(|over| over.saturating_add(MARGIN)))
    }

    /// Returns the paths that others changed after an interrupted call, and the files before it, if one may have left files.
    pub(crate) async fn paths_of_others(&self) -> Result<Option<(WorkspaceRevision, Vec<FilePath>)>> {
        let view = self.view().await;
        let open = view.calls().filter(|call| call.is_open() && !call.files_restored);
        let writing = open.filter_map(|call| {
            let intent = call.intent.as_ref().filter(|intent| intent.point.session == self.id())?;
            let before = WorkspaceRevision::of(intent.record.root, intent.record.coverage)?;
            Some((intent.point.position, call.clone(), before))
        });
        match writing.max_by_key(|(position, ..)| *position) {
            Some((_, call, before)) => Ok(Some((before, self.changed_paths(&call, before).await?.others))),
            None => Ok(None),
        }
    }

    /// Records that others changed these paths since the files before an interrupted call. The call is about to end without a record
    /// that says so, and they would count as its changes.
    pub(crate) async fn adopt_paths(&self, before: WorkspaceRevision, paths: Vec<FilePath>) -> Result<()> {
        let others = self.capture_since(before, paths).await?.captured;
        self.observe_files(others, ObservationCause::Drifted).await
    }

    /// Returns the paths that others changed since a call was started, and the doubtful ones.
    async fn changed_paths(&self, call: &Call, before: WorkspaceRevision) -> Result<ChangedPaths> {
        let Some(intent) = &call.intent else { return Ok(ChangedPaths::default()) };
        let root = self.host_directory().unwrap_or_default();
        let times = self.times_of(call).await?;
        let others = self.changed_by_others(intent.at, OtherCalls::All).await?;
        let left = self.left_since_move(call, before).await?;
        if times.is_none() && others.is_empty() && left.is_none() {
            return Ok(ChangedPaths::default());
        }
        let changes = self.capture_since(before, Vec::new()).await?.plan.changes;
        let decided = self.removed_before(before).await?;
        blocking(move || {
            let owners = changes.into_iter().map(|PathChange { path, .. }| {
                let owner = match times.filter(|_| path != ".") {
                    _ if others.contains(&path) => ChangeOwner::Others,
                    _ if left.as_ref().is_some_and(|left| !left.contains(&path)) => ChangeOwner::Others,
                    Some((times, booted)) => owner_by_times(times, booted, path_times(&root, &path)),
                    None => ChangeOwner::Call,
                };
                let is_decided = owner == ChangeOwner::Unknown && decided.contains(&path);
                (path, if is_decided { ChangeOwner::Call } else { owner })
            });
            Ok(ChangedPaths::of(owners))
        })
        .await
    }

    /// Returns the paths that were missing already when a restore began that was interrupted itself. It was decided then that the call
    /// had removed them, and since then the restore has changed their directories.
    async fn removed_before(&self, before: WorkspaceRevision) -> Result<HashSet<String>> {
        let found = self.view().await.files().filter(|found| found.root != before.root);
        let (Some(found), Some(workspace)) = (found, self.workspace().cloned()) else {
            return Ok(HashSet::new());
        };
        let changes = blocking(move || workspace.diff(before.root, found.root)).await?;
        let removed = changes.into_iter().filter(|change| change.change == ChangeKind::Deleted);
        Ok(removed.map(|change| change.path).collect())
    }

    /// Captures the files as if everything that changed since were undone, except for some paths.
    pub(super) async fn capture_since(
        &self,
        before: WorkspaceRevision,
        kept: Vec<FilePath>,
    ) -> Result<ReversedCapture> {
        let Some(workspace) = self.workspace().cloned() else {
            return Err(RuntimeError::NoWorkspace { session: self.id() });
        };
        let alone = self.files.clone().write_owned().await;
        blocking(move || {
            let _alone = alone;
            workspace.capture_reversed(&reversal_since(before, kept))
        })
        .await
    }
}

/// Examines a path below a directory. Links are not followed.
#[cfg(unix)]
fn path_times(root: &Path, path: &str) -> PathTimes {
    use std::fs::{Metadata, symlink_metadata};
    use std::io::ErrorKind;
    use std::os::unix::fs::MetadataExt as _;

    use crate::process::file_time;

    let changed = |found: &Metadata| file_time(found.ctime(), found.ctime_nsec());
    let modified = |found: &Metadata| file_time(found.mtime(), found.mtime_nsec());
    let (mut place, mut moved) = (root.to_path_buf(), FileTime::MIN);
    let Ok(mut found) = symlink_metadata(&place) else { return PathTimes::Unknown };
    for segment in path.split('/') {
        let directory = changed(&found);
        if !found.is_dir() {
            return PathTimes::Missing { directory };
        }
        // A new or removed entry sets both times. The name of the root does not matter.
        if place != root && modified(&found) < directory {
            moved = moved.max(directory);
        }
        place.push(segment);
        found = match symlink_metadata(&place) {
            Ok(next) => next,
            Err(error) if error.kind() == ErrorKind::NotFound => return PathTimes::Missing { directory },
            Err(_) => return PathTimes::Unknown,
        };
    }
    PathTimes::Present { changed: changed(&found), modified: modified(&found), moved }
}

#[cfg(not(unix))]
fn path_times(_: &Path, _: &str) -> PathTimes {
    PathTimes::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL: FileTime = 1_000_000_001;
    const LATER: FileTime = UNTIL + MARGIN + 1;

    fn owner(over: Option<FileTime>, booted: Option<FileTime>, found: PathTimes) -> ChangeOwner {
        let times = CallTimes { until: UNTIL, over, is_rebooted: booted.is_some() };
        owner_by_times(times, booted, found)
    }

    fn present(changed: FileTime, modified: FileTime) -> PathTimes {
        PathTimes::Present { changed, modified, moved: 0 }
    }

    #[test]
    fn what_changed_before_the_end_of_a_call_is_its_own() {
        for over in [None, Some(UNTIL)] {
            assert_eq!(owner(over, None, present(UNTIL, 0)), ChangeOwner::Call);
            // A program may give a file any time of modification.
            assert_eq!(owner(over, None, present(1, LATER)), ChangeOwner::Call);
            assert_eq!(owner(over, None, PathTimes::Missing { directory: UNTIL }), ChangeOwner::Call);
        }
    }

    #[test]
    fn what_changed_after_the_end_is_of_others_or_doubtful() {
        let over = Some(UNTIL);
        assert_eq!(owner(over, None, present(LATER, LATER)), ChangeOwner::Others);
        for doubtful in [
            present(LATER, UNTIL),
            present(UNTIL + 1, UNTIL + 1),
            present(UNTIL + MARGIN, UNTIL + MARGIN),
            PathTimes::Missing { directory: LATER },
            // It may have been in another place then.
            PathTimes::Present { changed: 1, modified: 1, moved: LATER },
            PathTimes::Unknown,
        ] {
            assert_eq!(owner(over, None, doubtful), ChangeOwner::Unknown, "{doubtful:?}");
        }
    }

    #[test]
    fn in_a_file_system_with_whole_seconds_the_last_one_is_doubtful() {
        let times = CallTimes { until: 5 * SECOND, over: Some(5 * SECOND), is_rebooted: false };
        let owner = |second: FileTime| owner_by_times(times, None, present(second * SECOND, second * SECOND));
        assert_eq!([4, 5, 6].map(owner), [ChangeOwner::Call, ChangeOwner::Unknown, ChangeOwner::Others]);
    }

    #[test]
    fn without_an_end_only_a_reboot_divides() {
        assert_eq!(owner(None, None, present(LATER, LATER)), ChangeOwner::Unknown);
        let booted = Some(10 * UNTIL);
        assert_eq!(owner(None, booted, present(9 * UNTIL, 9 * UNTIL)), ChangeOwner::Unknown);
        assert_eq!(owner(None, booted, present(11 * UNTIL, 11 * UNTIL)), ChangeOwner::Others);
        assert_eq!(owner(Some(UNTIL), booted, present(9 * UNTIL, 9 * UNTIL)), ChangeOwner::Others);
    }

    #[test]
    fn a_directory_with_changes_of_the_call_is_not_left_as_a_whole() {
        use ChangeOwner::{Call, Others, Unknown};

        let owned = [("d", Others), ("d/a", Call), ("d-e", Others), ("e", Unknown), ("e/b", Others)];
        let sorted = ChangedPaths::of(owned.map(|(path, owner)| (path.to_owned(), owner)));
        let others: Vec<&str> = sorted.others.iter().map(FilePath::as_str).collect();
        assert_eq!((&others[..], &sorted.doubtful[..]), (&["d-e", "e/b"][..], &["e".to_owned()][..]));
        // A path that cannot be named cannot be left alone either.
        let sorted = ChangedPaths::of([("a\nb".to_owned(), Others)]);
        assert_eq!(sorted, ChangedPaths { others: Vec::new(), doubtful: vec!["a\nb".to_owned()] });
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_path_has_the_time_of_the_nearest_directory() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("d/e")).unwrap();
        std::fs::write(root.join("d/file"), "1").unwrap();
        std::os::unix::fs::symlink("d", root.join("link")).unwrap();
        let PathTimes::Present { changed, .. } = path_times(root, "d") else { panic!("it exists") };
        for missing in ["d/gone", "d/gone/deep"] {
            assert_eq!(path_times(root, missing), PathTimes::Missing { directory: changed });
        }
        for inside in ["d/file/a", "link/file"] {
            assert!(matches!(path_times(root, inside), PathTimes::Missing { .. }), "{inside}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_is_renamed_shows_in_the_times_of_its_files() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("d/e")).unwrap();
        std::fs::write(root.join("d/e/file"), "1").unwrap();
        let PathTimes::Present { changed, .. } = path_times(root, "d/e/file") else { panic!("it exists") };
        // More than a tick of the system later.
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::rename(root.join("d"), root.join("new")).unwrap();
        let renamed = path_times(root, "new/e/file");
        assert!(matches!(renamed, PathTimes::Present { moved, .. } if moved > changed), "{renamed:?}");
    }
}
