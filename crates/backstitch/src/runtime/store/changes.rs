//! Comparison of the index of changed paths with the journals, and its repair.
//!
//! What the end of a call records has to be in the index as it is. A call of an earlier version records no paths: it is in the
//! index once its files were compared, by a repair or a search for a file. Records are never changed.

use std::collections::BTreeMap;

use backstitch_runtime::{IndexRepair, RuntimeError, read_records};

use crate::journal::{CallChanges, Position};
use crate::ports::{ListedChanges, StoreError};
use crate::report::ChangesCheck;
use crate::runtime::Runtime;
use crate::runtime::look::{CallEnd, ends_of_calls, listed_ends, roots_around};

impl Runtime {
    /// Compares what the index lists of changed paths with the journals. A journal that cannot be read is passed over: it is a
    /// finding of the store already.
    pub(super) async fn check_changes(&self, repair: IndexRepair) -> Result<ChangesCheck, RuntimeError> {
        let store = &*self.store.store;
        let mut check = ChangesCheck::default();
        for session in store.sessions().await? {
            let Ok(head) = store.head(session).await else { continue };
            let Ok(records) = read_records(store, session, Position::START, Some(head)).await else {
                continue;
            };
            let listed = match store.changes(session).await {
                Ok(listed) => listed,
                // Removed since then.
                Err(StoreError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let ends = ends_of_calls(&records);
            // Calls that ended since the journal was read are not compared.
            let listed = listed.map(|listed| listed.into_iter().filter(|one| one.position < head).collect());
            match compare(&ends, listed, |end| end.is_empty(&*self.store.objects)) {
                ListState::Complete => {
                    check.compared += 1;
                    continue;
                }
                ListState::Different => {
                    check.compared += 1;
                    check.differing.push(session);
                }
                ListState::Missing => check.unlisted.push(session),
            }
            if repair == IndexRepair::Rebuild {
                let listed = listed_ends(&*self.store.objects, &ends);
                let listed = listed.into_iter().map(|(_, one)| one).collect();
                check.rebuilt += u64::from(self.list_again(session, head, listed).await?);
            }
        }
        Ok(check)
    }
}

/// What the index has of a session.
#[derive(Debug, PartialEq, Eq)]
enum ListState {
    /// Everything that its calls changed.
    Complete,
    /// Not all of its calls.
    Missing,
    /// Something that its records do not say.
    Different,
}

/// Compares what the index lists with the ends of the calls. A call that recorded no paths may be missing only if none differs
/// around it.
fn compare(
    ends: &[CallEnd<'_>],
    listed: Option<Vec<ListedChanges>>,
    has_same_paths: impl Fn(&CallEnd<'_>) -> bool,
) -> ListState {
    let Some(listed) = listed else { return ListState::Missing };
    let mut entries: BTreeMap<Position, Option<CallChanges>> =
        listed.into_iter().map(|one| (one.position, one.changes)).collect();
    let mut state = ListState::Complete;
    for end in ends {
        let entry = entries.remove(&end.position);
        let has_other_files = || roots_around(end.before, end.finished).is_some();
        match (&end.finished.changes, entry) {
            (Some(recorded), None) if recorded.counts().total() == 0 => {}
            (Some(recorded), Some(Some(entry))) if entry == *recorded => {}
            // What the record only counts was compared later.
            (Some(CallChanges::Counts(counts)), Some(Some(entry))) if entry.counts() == *counts => {}
            (Some(_), _) => return ListState::Different,
            // What was compared later is not recorded.
            (None, Some(_)) if has_other_files() => {}
            (None, Some(_)) => return ListState::Different,
            (None, None) if has_other_files() && !has_same_paths(end) => state = ListState::Missing,
            (None, None) => {}
        }
    }
    if entries.is_empty() { state } else { ListState::Different }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{CallFinished, CallVerdict, ChangeKind, ChangedPath, WorkspaceRoot};
    use crate::object::Object;

    #[test]
    fn the_index_is_compared_with_what_calls_record() {
        let [before, after] = ["cut", "sewn"].map(|text| {
            let id = Object::blob(text.as_bytes().to_vec()).id();
            WorkspaceRoot { tree: id, manifest: id }
        });
        let paths = |name: &str| CallChanges::new(vec![ChangedPath::new(name, ChangeKind::Added)]);
        let call = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let finished = |root, changes| CallFinished {
            root: Some(root),
            changes,
            ..CallFinished::new(call, CallVerdict::Succeeded)
        };
        let recorded = finished(after, Some(paths("coat.txt")));
        let (old, unchanged) = (finished(after, None), finished(before, None));
        let state = |finished: &CallFinished, listed: Option<Option<CallChanges>>| {
            let position = Position::new(7);
            let end = CallEnd { position, before: Some(before), finished };
            let listed = listed.into_iter().map(|changes| ListedChanges { position, changes });
            compare(&[end], Some(listed.collect()), |_| false)
        };
        assert_eq!(state(&recorded, Some(Some(paths("coat.txt")))), ListState::Complete);
        assert_eq!(state(&recorded, Some(Some(paths("hat.txt")))), ListState::Different);
        assert_eq!(state(&recorded, Some(None)), ListState::Different);
        assert_eq!(state(&recorded, None), ListState::Different);
        let counted = finished(after, Some(CallChanges::Counts(paths("coat.txt").counts())));
        assert_eq!(state(&counted, Some(Some(paths("coat.txt")))), ListState::Complete);
        assert_eq!(state(&counted, Some(Some(CallChanges::new(Vec::new())))), ListState::Different);
        assert_eq!(state(&old, None), ListState::Missing);
        assert_eq!(state(&old, Some(None)), ListState::Complete);
        assert_eq!(state(&old, Some(Some(paths("coat.txt")))), ListState::Complete);
        assert_eq!(state(&unchanged, None), ListState::Complete);
        assert_eq!(state(&unchanged, Some(None)), ListState::Different);
        let stray = ListedChanges { position: Position::new(9), changes: None };
        assert_eq!(compare(&[], Some(vec![stray]), |_| false), ListState::Different);
        assert_eq!(compare(&[], None, |_| false), ListState::Missing);
        // Files that differ in no path, such as in their covered places, are not listed.
        let end = CallEnd { position: Position::new(7), before: Some(before), finished: &old };
        assert_eq!(compare(&[end], Some(Vec::new()), |_| true), ListState::Complete);
    }
}
