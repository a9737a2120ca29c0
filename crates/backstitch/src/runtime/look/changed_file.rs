//! Sessions by the files that their calls changed.
//!
//! The index of the store names the sessions, so that only their journals are read. A session with calls whose paths the index
//! does not list may have changed any file, and its journal is read. What calls of earlier versions changed, and paths that were
//! too many for a record, are found by a comparison of files. They are put into the index, where that can be written, so that
//! files are compared once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use backstitch_runtime::{RuntimeError, read_records};

use super::changes::{ends_of_calls, files_of, is_at_or_below, listed_ends, roots_around};
use crate::id::SessionId;
use crate::journal::Position;
use crate::ports::{ChangingSessions, FilePath, ListedChanges, StoreError};
use crate::report::ChangesReport;
use crate::runtime::Runtime;

/// A file in the directory of a session.
pub(super) struct FileOfSession {
    pub(super) session: SessionId,
    pub(super) path: FilePath,
}

impl Runtime {
    /// Finds the sessions with calls that changed a file, or something in a directory. A relative path is one in the directory
    /// of any session. An absolute one lies in the directory of the session, or in the one that it is a copy of. Sessions that
    /// cannot be read are left out. Those with a call whose changed paths are not known any more are listed.
    pub async fn sessions_that_changed(&self, file: &Path) -> Result<Vec<SessionId>, RuntimeError> {
        let mut known = HashSet::new();
        let mut sessions: Vec<SessionId> =
            self.files_of_sessions(file).await?.into_iter().map(|one| one.session).collect();
        sessions.retain(|session| known.insert(*session));
        Ok(sessions)
    }

    /// Lists the calls of all sessions that changed a file, or something in a directory, by session. The path is that of
    /// [`sessions_that_changed`](Self::sessions_that_changed), and sessions that cannot be read are left out too.
    pub async fn changes_of_file(&self, file: &Path) -> Result<Vec<ChangesReport>, RuntimeError> {
        let mut reports = Vec::new();
        for one in self.files_of_sessions(file).await? {
            reports.extend(self.changes_of(&one).await);
        }
        Ok(reports)
    }

    /// Lists what a session changed at a path; `None` if that is nothing, or cannot be read.
    async fn changes_of(&self, file: &FileOfSession) -> Option<ChangesReport> {
        let view = self.view(file.session).await.ok()?;
        let report = self.changes(&view, Some(&file.path)).await.ok()?;
        (!report.calls.is_empty()).then_some(report)
    }

    /// Finds the sessions that changed a file, with its path in their directories.
    pub(super) async fn files_of_sessions(&self, file: &Path) -> Result<Vec<FileOfSession>, RuntimeError> {
        let mut found = Vec::new();
        let mut known: HashMap<SessionId, Vec<PathBuf>> = HashMap::new();
        for (directory, path) in places_of(file) {
            let ChangingSessions { certain, possible } =
                self.store.store.changing_sessions(path.as_str()).await?;
            let certain = certain.into_iter().map(|session| (session, true));
            for (session, is_listed) in certain.chain(possible.into_iter().map(|session| (session, false))) {
                if let Some(directory) = &directory {
                    let is_there = match known.get(&session) {
                        Some(directories) => directories.contains(directory),
                        None => {
                            let directories = self.directories_of(session).await?;
                            let is_there = directories.contains(directory);
                            known.insert(session, directories);
                            is_there
                        }
                    };
                    if !is_there {
                        continue;
                    }
                }
                if is_listed || self.search_session(session, &path).await {
                    found.push(FileOfSession { session, path: path.clone() });
                }
            }
        }
        Ok(found)
    }

    /// Compares the records and files of a session, lists in the index what it does not have of them, and returns whether calls
    /// changed a path. A session that cannot be read changed nothing.
    async fn search_session(&self, session: SessionId, path: &FilePath) -> bool {
        let (store, objects) = (&*self.store.store, &*self.store.objects);
        let Ok(head) = store.head(session).await else { return false };
        let Ok(records) = read_records(store, session, Position::START, Some(head)).await else {
            return false;
        };
        let ends = ends_of_calls(&records);
        let listed = listed_ends(objects, &ends);
        let is_found = listed.iter().any(|(end, one)| {
            let files = files_of(objects, one.changes.as_ref(), roots_around(end.before, end.finished));
            // What is not known may be this path.
            files.is_none_or(|files| files.iter().any(|file| is_at_or_below(&file.path, path)))
        });
        let listed: Vec<ListedChanges> = listed.into_iter().map(|(_, one)| one).collect();
        if !matches!(store.changes(session).await, Ok(Some(known)) if known == listed) {
            // In a store that cannot be written they are compared each time.
            let _ = self.list_again(session, head, listed).await;
        }
        is_found
    }

    /// Puts what the calls of a session changed into the index. Returns whether it was written: not if the session was written
    /// meanwhile.
    pub(in crate::runtime) async fn list_again(
        &self,
        session: SessionId,
        head: Position,
        listed: Vec<ListedChanges>,
    ) -> Result<bool, RuntimeError> {
        match self.store.store.put_changes(session, head, listed).await {
            Err(StoreError::NotFound { .. }) => Ok(false),
            written => Ok(written?),
        }
    }

    /// The directory of the files of a session, and the one that they are a copy of. A session that cannot be read has none.
    async fn directories_of(&self, session: SessionId) -> Result<Vec<PathBuf>, RuntimeError> {
        let summary = match self.store.store.summary(session).await {
            Ok(Some(summary)) => summary,
            Ok(None) | Err(StoreError::DamagedSummary { .. }) => match self.view(session).await {
                Ok(view) => view.summary(),
                Err(_) => return Ok(Vec::new()),
            },
            // Removed since then.
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let named = [summary.workspace, summary.project].into_iter().flatten();
        Ok(named.map(|directory| PathBuf::from(&*directory)).collect())
    }
}

/// Each directory that may be that of a session, and the path of a file in it. A path that no workspace can hold has none.
fn places_of(file: &Path) -> Vec<(Option<PathBuf>, FilePath)> {
    let in_workspace = |path: &Path| FilePath::new(path.to_str()?).ok();
    if file.is_relative() {
        return in_workspace(file).map(|path| (None, path)).into_iter().collect();
    }
    // A file is not the directory of a session.
    let directories = file.ancestors().skip(usize::from(!file.is_dir()));
    let places = directories.filter_map(|directory| {
        let path = in_workspace(file.strip_prefix(directory).ok()?)?;
        Some((Some(directory.to_owned()), path))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_path_in_each_directory_above_it() {
        let places = |file: &str| {
            let named = |(directory, path): (Option<PathBuf>, FilePath)| {
                (directory.map(|directory| directory.display().to_string()), path.as_str().to_owned())
            };
            places_of(Path::new(file)).into_iter().map(named).collect::<Vec<_>>()
        };
        let place = |directory: &str, path: &str| (Some(directory.to_owned()), path.to_owned());
        assert_eq!(places("/gone/b.txt"), [place("/gone", "b.txt"), place("/", "gone/b.txt")]);
        assert_eq!(places("/"), [place("/", "")], "a directory may be that of a session");
        assert_eq!(places("a/b.txt"), [(None, "a/b.txt".to_owned())]);
        assert_eq!(places("../b.txt"), []);
    }
}
