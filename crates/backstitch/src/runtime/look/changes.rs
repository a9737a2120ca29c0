//! The paths that the calls of a session changed.
//!
//! The end of a call lists them. Where it does not, because the call is older than that or changed too many, the files before
//! and after it are compared, as long as they are stored. Records are never changed.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_runtime::{RuntimeError, read_records};

use crate::filesystem::format;
use crate::id::{CallId, EvaluationId};
use crate::journal::{
    CallChanges, CallFinished, CallStarted, CallVerdict, ChangeCounts, ChangedPath, InnerMessage, Position,
    Record, RecordBody, Role, WorkspaceRoot,
};
use crate::message::Content;
use crate::ports::{FilePath, ListedChanges, Objects};
use crate::report::{ChangesReport, ChangingCall, Version};
use crate::runtime::Runtime;
use crate::time::Timestamp;
use crate::view::JournalView;

/// The most paths of a session that are listed in the index, besides those that its records list.
const MOST_INDEXED: usize = 50_000;

impl Runtime {
    /// Lists what the calls of a session changed: all paths, or one and what is below it. A call whose paths are not known any
    /// more may have changed any path, so it is always listed.
    pub async fn changes(
        &self,
        view: &JournalView,
        path: Option<&FilePath>,
    ) -> Result<ChangesReport, RuntimeError> {
        let calls = self.changing_calls(view, path).await?.into_iter().map(|found| found.call).collect();
        Ok(ChangesReport { v: Version, session: view.session_id(), calls })
    }

    /// Finds the calls of a session that changed something at a path or below it, in the order of their ends.
    pub(super) async fn changing_calls(
        &self,
        view: &JournalView,
        path: Option<&FilePath>,
    ) -> Result<Vec<FoundCall>, RuntimeError> {
        let session = view.session_id();
        let visible = view.lineage().visible(view.head());
        let mut calls = Vec::new();
        let mut started: HashMap<CallId, (Timestamp, Arc<CallStarted>)> = HashMap::new();
        let mut turns: HashMap<CallId, u64> = HashMap::new();
        let mut questions: HashMap<EvaluationId, Arc<InnerMessage>> = HashMap::new();
        for record in read_records(&*self.store.store, session, Position::START, Some(view.head())).await? {
            match &record.body {
                RecordBody::MessageAppended(message) => {
                    if let Content::OptionCall(call) = &message.message.content {
                        turns.insert(call.invocation_id, message.turn);
                    }
                    if message.role() == Role::User {
                        questions.entry(message.evaluation_id).or_insert_with(|| message.clone());
                    }
                }
                RecordBody::CallStarted(start) => {
                    started.insert(start.call_id, (record.at, start.clone()));
                }
                RecordBody::CallFinished(finished) => {
                    let Some((began, start)) = started.get(&finished.call_id) else { continue };
                    let Some((counts, files)) = changes_of(&*self.store.objects, start.root, finished, path)
                    else {
                        continue;
                    };
                    let call = ChangingCall {
                        call: start.call_id,
                        tool: start.name.clone(),
                        evaluation: start.evaluation_id,
                        turn: turns.get(&start.call_id).copied().unwrap_or_default(),
                        position: record.position,
                        at: record.at,
                        kept: finished.outcome == CallVerdict::Succeeded,
                        visible: visible.iter().any(|range| range.contains(&record.position)),
                        counts,
                        files,
                    };
                    let question = questions.get(&start.evaluation_id).cloned();
                    let roots = roots_around(start.root, finished);
                    calls.push(FoundCall { call, began: *began, roots, question });
                }
                _ => {}
            }
        }
        Ok(calls)
    }
}

/// A call that changed files.
pub(super) struct FoundCall {
    pub(super) call: ChangingCall,
    /// When it started.
    pub(super) began: Timestamp,
    /// The files before and after it.
    pub(super) roots: Option<(WorkspaceRoot, WorkspaceRoot)>,
    /// The message that its evaluation answers.
    pub(super) question: Option<Arc<InnerMessage>>,
}

/// The end of a call, with the files before it.
pub(in crate::runtime) struct CallEnd<'a> {
    pub(in crate::runtime) position: Position,
    pub(in crate::runtime) before: Option<WorkspaceRoot>,
    pub(in crate::runtime) finished: &'a CallFinished,
}

impl CallEnd<'_> {
    /// Whether the call changed nothing, as far as that is known.
    pub(in crate::runtime) fn is_empty(&self, objects: &dyn Objects) -> bool {
        self.listed(objects, &mut 0).is_none()
    }

    /// Returns what the index lists of the call; `None` if it changed nothing. Paths that are too many for a record are listed
    /// without their contents, as long as there is room for them.
    fn listed(&self, objects: &dyn Objects, room: &mut usize) -> Option<ListedChanges> {
        let changes = match listed_changes(objects, self.before, self.finished)? {
            Some(CallChanges::Paths(paths)) if paths.is_empty() => return None,
            Some(CallChanges::Counts(counts)) => {
                let counted = CallChanges::Counts(counts);
                let left = usize::try_from(counts.total()).ok().and_then(|number| room.checked_sub(number));
                let roots = roots_around(self.before, self.finished);
                match left.zip(left.and_then(|_| files_of(objects, Some(&counted), roots))) {
                    Some((left, files)) => {
                        *room = left;
                        Some(CallChanges::Paths(files))
                    }
                    None => Some(counted),
                }
            }
            changes => changes,
        };
        Some(ListedChanges { position: self.position, changes })
    }
}

/// Returns what the index lists of the calls of a session that changed something.
pub(in crate::runtime) fn listed_ends<'a>(
    objects: &dyn Objects,
    ends: &'a [CallEnd<'a>],
) -> Vec<(&'a CallEnd<'a>, ListedChanges)> {
    let mut room = MOST_INDEXED;
    ends.iter().filter_map(|end| Some((end, end.listed(objects, &mut room)?))).collect()
}

/// Finds the ends of calls in the records of a session.
pub(in crate::runtime) fn ends_of_calls(records: &[Record]) -> Vec<CallEnd<'_>> {
    let mut before: HashMap<CallId, Option<WorkspaceRoot>> = HashMap::new();
    let mut ends = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::CallStarted(started) => {
                before.insert(started.call_id, started.root);
            }
            RecordBody::CallFinished(finished) => ends.push(CallEnd {
                position: record.position,
                before: before.get(&finished.call_id).copied().flatten(),
                finished,
            }),
            _ => {}
        }
    }
    ends
}

/// The files before and after a call, if they differ.
pub(in crate::runtime) fn roots_around(
    before: Option<WorkspaceRoot>,
    finished: &CallFinished,
) -> Option<(WorkspaceRoot, WorkspaceRoot)> {
    before.zip(finished.root.or(finished.rescue)).filter(|(before, after)| before != after)
}

/// Returns what a call recorded, or else what a comparison of the files around it says, if that is known. `None` for a call that
/// changed nothing.
fn listed_changes(
    objects: &dyn Objects,
    before: Option<WorkspaceRoot>,
    finished: &CallFinished,
) -> Option<Option<CallChanges>> {
    match &finished.changes {
        Some(changes) => Some(Some(changes.clone())),
        // Without roots, or with equal ones, the call changed nothing.
        None => {
            let (before, after) = roots_around(before, finished)?;
            Some(format::changes(objects, before, after).ok())
        }
    }
}

/// What a call changed, as far as it is known.
type Changed = (Option<ChangeCounts>, Option<Vec<ChangedPath>>);

/// Returns what a call changed, all of it or what is at a path or below it; `None` if that is nothing.
fn changes_of(
    objects: &dyn Objects,
    before: Option<WorkspaceRoot>,
    finished: &CallFinished,
    path: Option<&FilePath>,
) -> Option<Changed> {
    let changes = listed_changes(objects, before, finished)?;
    let Some(mut files) = files_of(objects, changes.as_ref(), roots_around(before, finished)) else {
        let counts = changes.filter(|_| path.is_none()).map(|changes| changes.counts());
        return Some((counts, None));
    };
    if let Some(path) = path {
        files.retain(|file| is_at_or_below(&file.path, path));
    }
    let counts = ChangeCounts::of(files.iter().map(|file| file.change));
    (!files.is_empty()).then_some((Some(counts), Some(files)))
}

/// Returns the paths of changes. Those that are too many for a record are compared again, without their contents. `None` if they
/// are not known.
pub(super) fn files_of(
    objects: &dyn Objects,
    changes: Option<&CallChanges>,
    roots: Option<(WorkspaceRoot, WorkspaceRoot)>,
) -> Option<Vec<ChangedPath>> {
    if let CallChanges::Paths(paths) = changes? {
        return Some(paths.clone());
    }
    let (before, after) = roots?;
    let changes = format::diff(objects, before, after).ok()?;
    Some(changes.into_iter().map(|change| ChangedPath::new(change.path, change.change)).collect())
}

pub(super) fn is_at_or_below(file: &str, path: &FilePath) -> bool {
    let path = path.as_str();
    let below = file.strip_prefix(path);
    path.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use backstitch_store::MemoryStore;

    use super::*;
    use crate::filesystem::{MemoryFilesystem, MemoryWorkspace};
    use crate::ports::{ChangeKind, Filesystem as _, ObjectOverlay, Workspace as _, WriteMode};

    fn end(before: WorkspaceRoot, finished: &CallFinished) -> CallEnd<'_> {
        CallEnd { position: Position::new(7), before: Some(before), finished }
    }

    /// The end of a call of an older version, with the files before and after it.
    #[test]
    fn calls_without_recorded_paths_are_compared_as_long_as_their_files_are_stored() {
        let store = Arc::new(MemoryStore::new());
        let files = Arc::new(MemoryFilesystem::new());
        let workspace = MemoryWorkspace::new(files.clone(), store.clone());
        let before = workspace.capture().unwrap();
        let coat: FilePath = "coat.txt".parse().unwrap();
        files.write_bytes(&coat, b"cloth", WriteMode::Create).unwrap();
        let after = workspace.capture().unwrap();
        let objects = ObjectOverlay::new(before.objects.into_iter().chain(after.objects), &*store);
        let call = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let old = CallFinished { root: Some(after.root), ..CallFinished::new(call, CallVerdict::Succeeded) };

        let (counts, listed) = changes_of(&objects, Some(before.root), &old, None).unwrap();
        assert_eq!(counts.map(|counts| counts.total()), Some(1));
        let [added] = &listed.unwrap()[..] else { panic!("there is one path") };
        assert_eq!((&*added.path, added.change), ("coat.txt", ChangeKind::Added));
        assert_eq!(added.after.and_then(|content| content.bytes), Some(5));

        // Counted paths are listed from the files.
        let counts = ChangeCounts { added: 1, ..ChangeCounts::default() };
        let counted = CallFinished { changes: Some(CallChanges::Counts(counts)), ..old.clone() };
        let (_, listed) = changes_of(&objects, Some(before.root), &counted, Some(&coat)).unwrap();
        assert_eq!(listed.unwrap().len(), 1);
        let mut room = 1;
        let mut indexed = || end(before.root, &counted).listed(&objects, &mut room).unwrap().changes;
        let all = CallChanges::Paths(vec![ChangedPath::new("coat.txt", ChangeKind::Added)]);
        assert_eq!((indexed(), indexed()), (Some(all), counted.changes.clone()), "there is room for one");

        // Files that are not stored any more say nothing, and equal ones that nothing changed.
        assert_eq!(changes_of(&*store, Some(before.root), &old, Some(&coat)), Some((None, None)));
        assert_eq!(changes_of(&*store, Some(before.root), &counted, None), Some((Some(counts), None)));
        assert_eq!(changes_of(&objects, Some(after.root), &old, None), None);
        // Files may differ in no path, such as in what they cover.
        let covered = CallFinished { changes: Some(CallChanges::new(Vec::new())), ..old.clone() };
        assert_eq!(changes_of(&objects, Some(before.root), &covered, None), None);
        assert!(end(before.root, &covered).is_empty(&objects));
        assert_eq!(changes_of(&objects, None, &old, None), None);
    }

    #[test]
    fn a_path_covers_itself_and_what_is_below_it() {
        let path: FilePath = "src/cloth".parse().unwrap();
        for (file, expected) in
            [("src/cloth", true), ("src/cloth/hem.rs", true), ("src/clothing", false), ("src", false)]
        {
            assert_eq!(is_at_or_below(file, &path), expected, "{file}");
        }
        assert!(is_at_or_below("src", &FilePath::root()));
    }
}
