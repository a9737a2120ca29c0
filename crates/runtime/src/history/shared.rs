//! Changes that cannot be told apart, because calls of two sessions ran at the same time in one directory.
//!
//! What a call changed are the paths in which the files before and after it differ. While a call of another session runs in the
//! same directory, inside of it or around it, its changes are among them. A path that both have listed is *shared*: nobody knows
//! who changed it last, so history leaves it alone and names it. A program that reports nothing has boundaries instead of calls.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    CallChanges, CallVerdict, ObservationCause, Position, Record, RecordBody, WorkspaceRoot,
};
use backstitch_core::ports::{
    ConflictKind, FilePath, MergeConflict, ReversalPlan, SessionQuery, TimeRange, Workspace, WorkspaceError,
};
use backstitch_core::time::Timestamp;
use backstitch_core::view::Call;

use crate::error::Result;
use crate::live::{FilesRestored, LiveSession, blocking, read_records};
use crate::observed::{is_boundary, session_around};

/// The time in which a call ran, and what changed meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallWindow {
    /// The tool. Empty for what is not a call.
    tool: Arc<str>,
    start: Timestamp,
    /// `None` if it has not ended.
    end: Option<Timestamp>,
    before: WorkspaceRoot,
    after: Option<WorkspaceRoot>,
    changes: Option<CallChanges>,
}

impl CallWindow {
    /// Returns the window of a call that has started.
    pub(super) fn of(call: &Call) -> Option<Self> {
        let intent = call.intent.as_ref()?;
        let finished = call.finished.as_ref();
        Some(Self {
            tool: intent.record.name.as_str().into(),
            start: intent.at,
            end: finished.map(|finished| finished.at),
            before: intent.record.root?,
            after: finished.and_then(|finished| finished.record.root),
            changes: finished.and_then(|finished| finished.record.changes.clone()),
        })
    }

    /// Whether both ran at the same time, and are not one call that its client and its server have recorded.
    fn overlaps(&self, other: &Self) -> bool {
        let ends_after = |end: Option<Timestamp>, start: Timestamp| end.is_none_or(|end| end > start);
        let is_same_time = ends_after(self.end, other.start) && ends_after(other.end, self.start);
        is_same_time && !self.is_served_by(other) && !other.is_served_by(self)
    }

    /// Whether a call of a tool of an MCP server is this one of the server: `mcp__SERVER__TOOL` contains `TOOL`.
    fn is_served_by(&self, server: &Self) -> bool {
        let name = self.tool.strip_prefix("mcp__").and_then(|name| name.strip_suffix(&*server.tool));
        let is_inside = self.end.is_none_or(|end| server.end.is_some_and(|inner| inner <= end));
        name.is_some_and(|server| server.ends_with("__")) && self.start <= server.start && is_inside
    }

    /// Returns the changed paths; `None` if the call has not ended, so that any path may be among them.
    fn paths(&self, workspace: &dyn Workspace) -> Result<Option<BTreeSet<String>>, WorkspaceError> {
        let Some(after) = self.after else { return Ok(None) };
        if after == self.before {
            return Ok(Some(BTreeSet::new()));
        }
        if let Some(paths) = self.changes.as_ref().and_then(CallChanges::paths) {
            return Ok(Some(paths.iter().map(|changed| changed.path.clone()).collect()));
        }
        let changes = workspace.diff(self.before, after)?;
        Ok(Some(changes.into_iter().map(|change| change.path).collect()))
    }
}

/// Returns the windows of the calls in these records whose changes stand, or may stand. `open` are the calls that were open before
/// the first record, and `known` the files then.
pub(super) fn windows(
    records: &[Record],
    mut open: HashMap<CallId, CallWindow>,
    mut known: Option<(Timestamp, WorkspaceRoot)>,
) -> Vec<CallWindow> {
    let mut windows = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::CallStarted(call) => {
                if let Some(before) = call.root {
                    let (tool, start) = (call.name.as_str().into(), record.at);
                    let window = CallWindow { tool, start, end: None, before, after: None, changes: None };
                    open.insert(call.call_id, window);
                }
            }
            RecordBody::CallFinished(call) => {
                let window = open.remove(&call.call_id);
                if let Some(window) = window.filter(|_| call.outcome == CallVerdict::Succeeded) {
                    windows.push(CallWindow {
                        end: Some(record.at),
                        after: call.root,
                        changes: call.changes.clone(),
                        ..window
                    });
                }
            }
            // What the open calls have changed was undone.
            RecordBody::Rewound(rewound) => {
                open.clear();
                known = rewound.root.map(|root| (record.at, root)).or(known);
            }
            RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted => {}
            RecordBody::WorkspaceObserved(observed) => {
                if let Some((start, before)) = known.filter(|_| is_boundary(observed)) {
                    let (end, after) = (Some(record.at), Some(observed.root));
                    let tool = Arc::default();
                    windows.push(CallWindow { tool, start, end, before, after, changes: None });
                }
                known = Some((record.at, observed.root));
            }
            body if FilesRestored::of(body).is_some() => open.clear(),
            _ => {}
        }
    }
    windows.extend(open.into_values());
    windows
}

/// Calls of another session, whose directory may be another one.
struct OtherWindows {
    windows: Vec<CallWindow>,
    place: Nesting,
}

/// How the directory of another session lies to that of this one. The names are those of the directories between them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Nesting {
    Inside(String),
    Around(String),
}

impl Nesting {
    /// Returns `None` for directories that have no files in common.
    fn of(own: &Path, other: &Path) -> Option<Self> {
        let name = |path: &Path| path.to_str().map(|path| format!("{path}/"));
        match (other.strip_prefix(own), own.strip_prefix(other)) {
            (Ok(between), Ok(_)) if between == Path::new("") => Some(Self::Inside(String::new())),
            (Ok(between), _) => name(between).map(Self::Inside),
            (_, Ok(between)) => name(between).map(Self::Around),
            _ => None,
        }
    }

    /// Returns the path here of a path there; `None` if it lies outside.
    fn path_here(&self, there: &str) -> Option<String> {
        match self {
            Self::Inside(between) if there == "." && !between.is_empty() => {
                Some(between.trim_end_matches('/').to_owned())
            }
            Self::Inside(between) => Some(format!("{between}{there}")),
            Self::Around(between) => there.strip_prefix(between.as_str()).map(str::to_owned),
        }
    }
}

/// Returns the paths that two sessions have changed at the same time. Where it is not known what one of them has changed, all paths
/// of the other are among them.
fn shared(workspace: &dyn Workspace, own: &[CallWindow], others: &[OtherWindows]) -> BTreeSet<String> {
    // Retention may have removed the files of a call.
    let paths_of = |window: &CallWindow| {
        let paths = window.paths(workspace);
        paths.inspect_err(|error| tracing::warn!(%error, "a call could not be compared")).ok().flatten()
    };
    let mut theirs = Vec::new();
    for OtherWindows { windows, place } in others {
        // An open call of another session has no result that could be kept.
        let ended = windows.iter().filter(|other| other.after.is_some());
        for other in ended.filter(|other| own.iter().any(|one| one.overlaps(other))) {
            let here = |paths: BTreeSet<String>| -> BTreeSet<String> {
                paths.iter().filter_map(|path| place.path_here(path)).collect()
            };
            theirs.push((other, paths_of(other).map(here)));
        }
    }
    let mut shared = BTreeSet::new();
    for one in own.iter().filter(|one| theirs.iter().any(|(other, _)| one.overlaps(other))) {
        let own = paths_of(one);
        for (_, theirs) in theirs.iter().filter(|(other, _)| one.overlaps(other)) {
            match (&own, theirs) {
                (Some(own), Some(theirs)) => shared.extend(own.intersection(theirs).cloned()),
                (Some(known), None) | (None, Some(known)) => shared.extend(known.iter().cloned()),
                (None, None) => {}
            }
        }
    }
    shared
}

impl LiveSession {
    /// Returns the paths that these calls have changed while calls of other sessions in the directory changed them too.
    pub(super) async fn shared_paths(&self, own: Vec<CallWindow>) -> Result<Vec<FilePath>> {
        let Some(workspace) = self.workspace().cloned() else { return Ok(Vec::new()) };
        let Some(first) = own.iter().map(|window| window.start).min() else { return Ok(Vec::new()) };
        let others = self.windows_of_others(first).await?;
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let shared = blocking(move || Ok(shared(&*workspace, &own, &others))).await?;
        Ok(shared.iter().filter_map(|path| FilePath::new(path).ok()).collect())
    }

    /// Returns the calls of other sessions that have worked in the directory since a time, inside of it or around it.
    async fn windows_of_others(&self, since: Timestamp) -> Result<Vec<OtherWindows>> {
        let Some(directory) = self.host_directory() else { return Ok(Vec::new()) };
        // The call of a parent session contains those of this one.
        let own = self.outermost().await?;
        let view = self.view().await;
        let around: HashSet<SessionId> =
            view.evaluations().filter_map(|evaluation| session_around(evaluation.started_with()?)).collect();
        let mut query = SessionQuery::roots().with_updated(TimeRange::since(since));
        let mut others = Vec::new();
        loop {
            let page = self.store().query(query.clone()).await?;
            for other in page.sessions.iter().map(|session| &session.summary) {
                let known = other
                    .workspace
                    .as_deref()
                    .filter(|_| other.session != own && !around.contains(&other.session));
                let Some(place) = known.and_then(|known| Nesting::of(&directory, Path::new(known))) else {
                    continue;
                };
                match read_records(&**self.store(), other.session, Position::START, None).await {
                    Ok(records) if is_inside(&records, own) => {}
                    Ok(records) => {
                        others.push(OtherWindows { windows: windows(&records, HashMap::new(), None), place });
                    }
                    // A journal that cannot be read must not stop this session.
                    Err(error) => {
                        tracing::warn!(session = %other.session, %error, "its changes are not known");
                    }
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(others);
            }
        }
    }
}

/// Whether a program did this work inside of the guarded command of a session, which has recorded it too.
fn is_inside(records: &[Record], session: SessionId) -> bool {
    records.iter().any(|record| match &record.body {
        RecordBody::EvaluationStarted(started) => session_around(started) == Some(session),
        _ => false,
    })
}

/// Names paths that are left alone because they are shared.
pub(super) fn name_shared(plan: &mut ReversalPlan, paths: &[FilePath]) {
    let named = paths.iter().map(|path| path.as_str().to_owned());
    plan.conflicts.extend(named.map(|path| MergeConflict { path, kind: ConflictKind::Shared }));
    plan.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    plan.conflicts.dedup_by(|one, other| one.path == other.path);
}

#[cfg(test)]
mod tests {

    use backstitch_core::extra::Extra;
    use backstitch_core::journal::{CallFinished, ChangeKind, ChangedPath, WorkspaceObserved};
    use backstitch_core::object::ObjectId;
    use backstitch_filesystem::{MemoryFilesystem, MemoryWorkspace};
    use backstitch_testkit::filesystem::StoredObjects;

    use super::*;

    fn time(micros: i64) -> Timestamp {
        Timestamp::from_unix_micros(micros).unwrap()
    }

    fn window(start: i64, end: Option<i64>, paths: &[&str]) -> CallWindow {
        let root = |number| {
            let id = ObjectId::from_bytes([number; 20]);
            WorkspaceRoot { tree: id, manifest: id }
        };
        let changed = paths.iter().map(|path| ChangedPath::new(*path, ChangeKind::Modified)).collect();
        CallWindow {
            tool: "sew".into(),
            start: time(start),
            end: end.map(time),
            before: root(1),
            after: end.map(|_| root(2)),
            changes: Some(CallChanges::new(changed)),
        }
    }

    fn paths_beside(own: &[CallWindow], others: &[CallWindow], place: Nesting) -> Vec<String> {
        let objects = Arc::new(StoredObjects::default());
        let workspace = MemoryWorkspace::new(Arc::new(MemoryFilesystem::new()), objects);
        let others = [OtherWindows { windows: others.to_vec(), place }];
        shared(&workspace, own, &others).into_iter().collect()
    }

    fn paths(own: &[CallWindow], others: &[CallWindow]) -> Vec<String> {
        paths_beside(own, others, Nesting::Inside(String::new()))
    }

    #[test]
    fn paths_that_two_windows_cover_are_shared() {
        let own = [window(10, Some(20), &["a", "b"]), window(30, Some(40), &["c"])];
        assert_eq!(paths(&own, &[window(15, Some(35), &["b", "c", "d"])]), ["b", "c"]);
        assert_eq!(paths(&own, &[window(20, Some(30), &["a", "b", "c"])]), [""; 0], "between the two");
        assert_eq!(paths(&own, &[window(15, None, &["a"])]), [""; 0], "it has not ended");
        let open = [window(10, None, &[])];
        assert_eq!(paths(&open, &[window(5, Some(9), &["a"]), window(11, Some(12), &["b"])]), ["b"]);
    }

    #[test]
    fn paths_are_shared_where_directories_nest() {
        let place = |own: &str, other: &str| Nesting::of(Path::new(own), Path::new(other));
        assert_eq!(place("/shop", "/shop"), Some(Nesting::Inside(String::new())));
        assert_eq!(place("/shop", "/shopping"), None);
        let own = [window(10, Some(20), &["a", "in/a", "in/b"])];
        let inside = place("/shop", "/shop/in").unwrap();
        assert_eq!(paths_beside(&own, &[window(15, Some(35), &["a", "c"])], inside), ["in/a"]);
        let around = place("/shop/in", "/shop").unwrap();
        let own = [window(10, Some(20), &["a", "b"])];
        assert_eq!(paths_beside(&own, &[window(15, Some(35), &["in/a", "b"])], around), ["a"]);
    }

    #[test]
    fn a_program_that_reports_nothing_has_the_time_between_its_boundaries() {
        let root = |number| {
            let id = ObjectId::from_bytes([number; 20]);
            WorkspaceRoot { tree: id, manifest: id }
        };
        let mark = serde_json::Map::from_iter([("outside".to_owned(), "added a".into())]);
        let boundary = WorkspaceObserved {
            extra: Extra::try_from(mark).unwrap(),
            ..WorkspaceObserved::new(root(2), ObservationCause::Drifted)
        };
        let started = WorkspaceObserved::new(root(1), ObservationCause::Started);
        let first = Record::new(Position::START, time(10), started);
        let records = [first, Record::new(Position::new(1), time(20), boundary)];
        let found = windows(&records, HashMap::new(), None);
        let expected = CallWindow {
            tool: Arc::default(),
            start: time(10),
            end: Some(time(20)),
            before: root(1),
            after: Some(root(2)),
            changes: None,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_call_and_that_of_its_server_are_one() {
        let place = || Nesting::Inside(String::new());
        let served = [window(12, Some(18), &["a"])];
        for (tool, start, expected) in [
            ("mcp__shop__sew", 10, 0),
            ("mcp__shop__mend", 10, 1),
            ("mcp__sew", 10, 1),
            ("mcp__shop__sew", 13, 1),
        ] {
            let client = [CallWindow { tool: tool.into(), ..window(start, Some(20), &["a"]) }];
            assert_eq!(paths_beside(&client, &served, place()).len(), expected, "{tool} {start}");
            assert_eq!(paths_beside(&served, &client, place()).len(), expected, "{tool} {start}");
        }
    }

    #[test]
    fn failed_calls_change_nothing() {
        let call = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let open = HashMap::from([(call, window(10, None, &[]))]);
        let finished = |outcome| {
            let body = CallFinished::new(call, outcome);
            windows(&[Record::new(Position::START, time(20), body)], open.clone(), None)
        };
        assert_eq!(finished(CallVerdict::Failed), []);
        assert_eq!(finished(CallVerdict::Succeeded).len(), 1);
        assert_eq!(windows(&[], open.clone(), None).len(), 1);
    }
}
