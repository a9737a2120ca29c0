//! Files that are written elsewhere with data of a store, and what killed processes have left of them.
//!
//! A backup or an export can be anywhere on the disk. As long as one is written under its temporary name, a note beside the store says
//! where. The note is locked by its process before the place is written into it, so a complete note whose lock is free is that of a process
//! that has ended. What such a note names is removed with the note, and a file that is being written is not.
//!
//! Bundles of older versions are copied to the temporary files of the system, and such copies are found by their names.
//!
//! Notes help afterwards, and a store may lie where none can be written, so a note that cannot be made is not an error.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstitch_core::ports::UnfinishedNote;

use super::private;
use super::store::SqliteStore;

/// The part of a note's name behind that of the store.
const NOTE: &str = ".unfinished-";

/// The part of a temporary name behind that of the file.
pub(super) const PARTIAL: &str = ".partial-";

/// How names of copies of bundles begin, among the temporary files of the system.
pub(super) const COPY: &str = "backstitch-bundle-";

/// Files that SQLite may create beside a database.
const COMPANIONS: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// The longest path that a system accepts, and more.
const LONGEST: u64 = 64 * 1024;

/// Age from which a file without a lock is not one that is being created.
pub(super) const YOUNGEST: Duration = Duration::from_secs(60);

/// A note about a file or directory that is being written. Dropping it removes the note only.
#[derive(Debug)]
pub(super) struct NoteFile {
    path: PathBuf,
    _locked: File,
}

impl NoteFile {
    /// Notes a temporary path in the directory of a store. The name of the path has to contain `.partial-` and a number.
    pub(super) fn new(store: &Path, place: &Path) -> Option<Self> {
        debug_assert!(is_partial(place), "{} would not be removed", place.display());
        let place = std::path::absolute(place).ok()?;
        let (path, mut file) = create_numbered(store, &hidden_prefix(store, NOTE)?).ok()?;
        let mut text = place.into_os_string().into_encoded_bytes();
        text.push(0);
        if file.try_lock().is_ok() && file.write_all(&text).is_ok() {
            return Some(Self { path, _locked: file });
        }
        let _ = fs::remove_file(path);
        None
    }
}

impl Drop for NoteFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl SqliteStore {
    /// Notes that a file or directory with data of this store is being written under a temporary name, which has to contain
    /// `.partial-` and a number. If the process is killed, [`SqliteStore::remove_unfinished`] removes it. Returns `None` if no note can be made.
    pub fn note_unfinished(&self, place: &Path) -> Option<UnfinishedNote> {
        NoteFile::new(&self.path, place).map(UnfinishedNote::new)
    }

    /// Returns the files and directories that killed processes have left: parts of backups and exports of this store.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let left = left_notes(&self.path).into_iter().flat_map(|note| note.remainders());
        left.chain(left_copies()).collect()
    }

    /// Removes the files and directories of [`SqliteStore::unfinished`], and returns those that are gone.
    pub fn remove_unfinished(&self) -> Vec<PathBuf> {
        let mut removed = remove_left_copies();
        for note in left_notes(&self.path) {
            let mut found = note.remainders();
            let count = found.len();
            remove_all(&mut found);
            // What could not be removed is tried again later.
            if found.len() == count {
                let _ = fs::remove_file(&note.path);
            }
            removed.append(&mut found);
        }
        removed
    }
}

/// A note of a process that has ended. Its lock is held, so that no other process removes it at the same time.
struct LeftNote {
    path: PathBuf,
    place: Option<PathBuf>,
    _locked: File,
}

impl LeftNote {
    fn remainders(&self) -> Vec<PathBuf> {
        let Some(place) = &self.place else { return Vec::new() };
        let all = COMPANIONS.iter().map(|suffix| private::beside(place, suffix));
        all.filter(|path| fs::symlink_metadata(path).is_ok()).collect()
    }
}

fn left_notes(store: &Path) -> Vec<LeftNote> {
    let Some((directory, prefix)) = store.parent().zip(hidden_prefix(store, NOTE)) else { return Vec::new() };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let notes = entries.filter(|entry| has_number(&entry.file_name(), prefix.as_encoded_bytes()));
    notes.filter_map(|entry| left_note(entry.path())).collect()
}

fn left_note(path: PathBuf) -> Option<LeftNote> {
    let file = File::open(&path).ok()?;
    file.try_lock().ok()?;
    let mut text = Vec::new();
    (&file).take(LONGEST).read_to_end(&mut text).ok()?;
    let place = match text.split_last() {
        Some((0, place)) => Some(path_of(place)),
        // It may have been created a moment ago, and not be locked yet.
        _ if file.metadata().ok()?.modified().ok()?.elapsed().ok()? < YOUNGEST => return None,
        _ => None,
    };
    // Only what has a temporary name is removed, whatever the note says.
    let place = place.filter(|place| place.is_absolute() && is_partial(place));
    Some(LeftNote { path, place, _locked: file })
}

/// Removes copies of bundles that killed processes have left, and returns those that are gone.
pub(super) fn remove_left_copies() -> Vec<PathBuf> {
    let mut found = left_copies();
    remove_all(&mut found);
    found
}

/// Removes files and directories, and keeps those that are gone in the list.
fn remove_all(paths: &mut Vec<PathBuf>) {
    paths.retain(|path| {
        let _ = match fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
        fs::symlink_metadata(path).is_err()
    });
}

fn left_copies() -> Vec<PathBuf> {
    left_files(&std::env::temp_dir(), COPY.as_bytes())
}

/// Files in a directory with such a prefix and a number that nothing writes any more.
pub(super) fn left_files(directory: &Path, prefix: &[u8]) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_left = |entry: &fs::DirEntry| {
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let is_old = found.modified().ok()?.elapsed().ok()? >= YOUNGEST;
        (is_old && File::open(entry.path()).ok()?.try_lock().is_ok()).then_some(())
    };
    let files = entries.filter(|entry| has_number(&entry.file_name(), prefix));
    files.filter(|entry| is_left(entry).is_some()).map(|entry| entry.path()).collect()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// How the names of hidden files beside a path begin.
pub(super) fn hidden_prefix(path: &Path, kind: &str) -> Option<OsString> {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name()?);
    prefix.push(kind);
    Some(prefix)
}

/// Creates a file beside a path, whose name is a prefix with numbers that no other file has.
pub(super) fn create_numbered(beside: &Path, prefix: &OsStr) -> io::Result<(PathBuf, File)> {
    private::create_numbered_file(|number| {
        let mut name = prefix.to_owned();
        name.push(format!("{}-{number}", std::process::id()));
        beside.with_file_name(name)
    })
}

/// Whether a name consists of a prefix and of digits with dashes.
fn has_number(name: &OsStr, prefix: &[u8]) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix);
    rest.is_some_and(|rest| {
        !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
    })
}

fn is_partial(place: &Path) -> bool {
    let Some(name) = place.file_name() else { return false };
    let bytes = name.as_encoded_bytes();
    let mut marks = bytes.windows(PARTIAL.len()).enumerate().filter(|(_, part)| *part == PARTIAL.as_bytes());
    marks.next_back().is_some_and(|(at, _)| at > 0 && has_number(name, &bytes[..at + PARTIAL.len()]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_temporary_names_are_removed() {
        for (name, is) in [
            (".copy.db.partial-7-1", true),
            ("repository.partial-17", true),
            ("a.partial-b.partial-17", true),
            ("copy.db", false),
            (".partial-7", false),
            ("copy.partial-", false),
            ("copy.partial-7x", false),
            ("copy.partial-7.db", false),
        ] {
            assert_eq!(is_partial(&Path::new("/somewhere").join(name)), is, "{name}");
        }
        assert!(!is_partial(Path::new("/")));
    }

    #[test]
    fn what_an_ended_process_noted_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let store = SqliteStore::open(at("store.db")).unwrap();
        let partial = |name: &str| {
            fs::write(at(name), "data").unwrap();
            at(name)
        };
        let written = partial(".a.partial-1-1");
        let note = store.note_unfinished(&written).unwrap();
        // As processes leave it that were killed.
        let left = [partial(".b.partial-2-1"), partial(".b.partial-2-1-wal")];
        fs::create_dir_all(at("git.partial-3/objects")).unwrap();
        let kept = partial("precious");
        for (number, place) in
            [&left[0], &at("git.partial-3"), &kept, &at(".gone.partial-4-1")].iter().enumerate()
        {
            let text = [place.as_os_str().as_encoded_bytes(), &[0]].concat();
            fs::write(at(&format!(".store.db.unfinished-9-{number}")), text).unwrap();
        }
        // One that a process creates right now, and one whose place is not complete.
        fs::write(at(".store.db.unfinished-9-8"), "").unwrap();
        fs::write(at(".store.db.unfinished-9-9"), "/").unwrap();
        let expected: BTreeSet<_> = left.iter().cloned().chain([at("git.partial-3")]).collect();
        let here = |found: Vec<PathBuf>| -> BTreeSet<_> {
            found.into_iter().filter(|path| path.starts_with(directory.path())).collect()
        };
        assert_eq!(here(store.unfinished()), expected);
        assert!(left[0].exists());
        assert_eq!(here(store.remove_unfinished()), expected);
        assert!(expected.iter().all(|path| !path.exists()));
        assert!(written.exists() && kept.exists());
        let notes = || {
            let entries = fs::read_dir(directory.path()).unwrap().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().contains(NOTE)).count()
        };
        assert_eq!(notes(), 3, "that of this process, and the two without a place");
        assert!(here(store.remove_unfinished()).is_empty());
        drop(note);
        assert_eq!(notes(), 2);
        assert!(written.exists(), "its process removes it");
    }
}
