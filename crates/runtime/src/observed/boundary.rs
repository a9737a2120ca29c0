//! Boundaries of programs that report nothing: what has changed in the files since the last one.

use std::fmt::Write as _;

use backstitch_core::extra::Extra;
use backstitch_core::journal::{ObservationCause, Position, WorkspaceObserved};
use backstitch_core::ports::{ChangeKind, ObjectOverlay, Objects, PathChange};
use backstitch_filesystem::format;
use serde_json::{Map, Value, json};

use super::record::FIELD;
use super::{ObservedSession, SeenFiles};
use crate::error::Result;

/// The most paths that a record names.
const MOST_RECORDED: usize = 1_000;

/// The most paths that its line names.
const MOST_NAMED: usize = 6;

/// A point at which files were captured because they had changed.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedBoundary {
    /// Position of the record.
    pub position: Position,
    /// What has changed since the point before.
    pub changes: Vec<PathChange>,
}

impl ObservedSession {
    /// Records the files if they have changed since the last record, with the paths that have changed. Returns `None` if
    /// none has. `remark` is added to the line of the record; `objects` are those of the session's store.
    pub async fn boundary(
        &self,
        remark: Option<&str>,
        objects: &dyn Objects,
    ) -> Result<Option<ObservedBoundary>> {
        let Some(SeenFiles { files, objects: new, .. }) = self.capture().await? else { return Ok(None) };
        let view = self.live.view().await;
        let known = view.files();
        if known.is_some_and(|known| known.root == files.root) && view.owed_files().is_none() {
            return Ok(None);
        }
        let changes = match known {
            Some(known) => {
                format::diff(&ObjectOverlay::new(new.iter().cloned(), objects), known.root, files.root)?
            }
            None => Vec::new(),
        };
        let cause = if known.is_none() { ObservationCause::Started } else { ObservationCause::Drifted };
        let extra = extra(&changes, remark);
        let position = self
            .live
            .commit(|commit| {
                let observed = WorkspaceObserved {
                    coverage: files.coverage,
                    extra,
                    ..WorkspaceObserved::new(files.root, cause)
                };
                commit.push(observed).add_objects(new);
                Ok(commit.view().head())
            })
            .await?;
        Ok(Some(ObservedBoundary { position, changes }))
    }
}

/// Whether a record is a boundary of a program that reports nothing, so that the program may have made the changes before it.
pub(crate) fn is_boundary(observed: &WorkspaceObserved) -> bool {
    observed.extra.get(FIELD).is_some()
}

fn extra(changes: &[PathChange], remark: Option<&str>) -> Extra {
    let files: Vec<Value> = changes
        .iter()
        .take(MOST_RECORDED)
        .map(|change| json!({"path": change.path, "change": word(change.change)}))
        .collect();
    let mut text = changes_line(changes);
    if let Some(remark) = remark {
        let _ = write!(text, " ({remark})");
    }
    let value = json!({"text": text, "files": files, "more": changes.len().saturating_sub(MOST_RECORDED)});
    Extra::try_from(Map::from_iter([(FIELD.to_owned(), value)])).unwrap_or_default()
}

/// Names changes of files in one line, a few of them by their paths.
pub fn changes_line(changes: &[PathChange]) -> String {
    let mut text = String::new();
    let mut verb = "";
    let mut sorted: Vec<&PathChange> = changes.iter().collect();
    sorted.sort_by_key(|change| word(change.change));
    for change in sorted.iter().take(MOST_NAMED) {
        let next = word(change.change);
        let between = match (verb.is_empty(), verb == next) {
            (true, _) => format!("{next} "),
            (false, true) => ", ".to_owned(),
            (false, false) => format!("; {next} "),
        };
        text.push_str(&between);
        text.push_str(&change.path);
        verb = next;
    }
    match changes.len().saturating_sub(MOST_NAMED) {
        0 if changes.is_empty() => "what is covered has changed".to_owned(),
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn word(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Added => "added",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "changed the mode of",
        _ => "changed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_changes_by_kind() {
        let change = |path: &str, change| PathChange { path: path.to_owned(), change };
        assert_eq!(changes_line(&[]), "what is covered has changed");
        let few = [
            change("a", ChangeKind::Modified),
            change("b", ChangeKind::Added),
            change("c", ChangeKind::Deleted),
            change("d", ChangeKind::Added),
        ];
        assert_eq!(changes_line(&few), "added b, d; changed a; deleted c");
        let many: Vec<PathChange> =
            (0..10).map(|number| change(&number.to_string(), ChangeKind::Added)).collect();
        assert_eq!(changes_line(&many), "added 0, 1, 2, 3, 4, 5 and 4 more");
    }
}
