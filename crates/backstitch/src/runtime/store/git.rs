//! The files of a session as a git repository, one commit for each call.
//!
//! Commits follow the visible calls in the order of their starts. A call that cannot change files has no commit. If files were changed
//! outside of calls, that is a commit of its own before the next call, so that no call seems to have changed what a person changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstitch_runtime::one_line;
use backstitch_workspace::Coverage;
use backstitch_workspace::export::{
    Author, ExportCommit, ExportError, ExportReport, LeftOutReason, git, partial_path,
};

use super::blocking;
use crate::id::{CallId, SessionId};
use crate::journal::{WorkspaceRevision, WorkspaceRoot};
use crate::ports::{Objects, OpenError, StoreError, UncoveredReason};
use crate::report::{GitExport, GitOmission, UncoveredFile, Version};
use crate::session::BoxError;
use crate::time::Timestamp;
use crate::view::{CallStatus, Checkpoint, JournalView, Transcript};
use crate::{Runtime, RuntimeError};

/// Name of the branch.
const BRANCH: &str = "main";

/// Maximum length of the arguments in the subject of a commit, in characters.
const SUBJECT: usize = 60;

/// The commits of a session.
#[derive(Default)]
struct History {
    commits: Vec<ExportCommit>,
    /// Calls whose files retention has deleted, each with the state after it.
    pruned: Vec<(CallId, WorkspaceRoot)>,
    /// Paths that no root covers.
    uncovered: BTreeMap<String, UncoveredReason>,
}

impl Runtime {
    /// Writes a new bare git repository with one commit for each call of a session that may have changed files. Git is not needed.
    /// Fails with [`RuntimeError::NoFiles`] if the session has none.
    pub async fn export_git(&self, session: SessionId, to: &Path) -> Result<GitExport, RuntimeError> {
        let view = self.view(session).await?;
        let objects = self.store.objects.clone();
        let history = blocking(move || History::of(&*objects, &view)).await?;
        if history.commits.is_empty() {
            return Err(match history.pruned.first() {
                None => RuntimeError::NoFiles { session },
                Some((_, root)) => RuntimeError::Store(StoreError::Pruned { object: root.tree }),
            });
        }
        let _note = self.store.admin.note_unfinished(&partial_path(to)).await;
        let (objects, repository) = (self.store.objects.clone(), to.to_owned());
        let (history, report) = blocking(move || {
            let report = git(&*objects, &history.commits, &repository, BRANCH).map_err(unwritten)?;
            Ok((history, report))
        })
        .await?;
        Ok(report_of(session, to, history, report))
    }
}

fn report_of(session: SessionId, to: &Path, history: History, report: ExportReport) -> GitExport {
    let left_out = report.left_out.into_iter().map(|one| GitOmission {
        path: one.path,
        reason: reason(one.reason).to_owned(),
        commit: report.commits.get(one.commit).copied(),
    });
    let uncovered = history.uncovered.into_iter().map(|(path, reason)| UncoveredFile { path, reason });
    GitExport {
        v: Version,
        session,
        repository: to.to_owned(),
        branch: BRANCH.to_owned(),
        left_out: left_out.collect(),
        objects: report.objects,
        uncovered: uncovered.collect(),
        pruned_calls: history.pruned.into_iter().map(|(call, _)| call).collect(),
        commits: report.commits,
    }
}

impl History {
    fn of(objects: &dyn Objects, view: &JournalView) -> Result<Self, RuntimeError> {
        let mut history = Self::default();
        let transcript = view.transcript()?;
        let created = view.created().created_at;
        for checkpoint in view.checkpoints() {
            let started = view.call(checkpoint.call_id).and_then(|call| Some(call.intent.as_ref()?.at));
            let started = started.unwrap_or(created);
            let before = WorkspaceRevision::of(checkpoint.before.root, checkpoint.before.coverage);
            history.add_observed(objects, view, before, started)?;
            let after = checkpoint.after.and_then(|after| WorkspaceRevision::of(after.root, after.coverage));
            let Some(after) = after else { continue };
            if is_kept(objects, after.root)? {
                let time = checkpoint.recorded_at.unwrap_or(started);
                history.add(objects, after, message(view, &transcript, &checkpoint), time)?;
            } else {
                history.pruned.push((checkpoint.call_id, after.root));
            }
        }
        history.add_observed(objects, view, view.files(), view.recorded_at().unwrap_or(created))?;
        Ok(history)
    }

    /// Adds the files at the start of the session, or as they were found between two calls, if they are not those of the last
    /// commit.
    fn add_observed(
        &mut self,
        objects: &dyn Objects,
        view: &JournalView,
        files: Option<WorkspaceRevision>,
        time: Timestamp,
    ) -> Result<(), RuntimeError> {
        let last = self.commits.last().map(|last| last.root);
        let Some(files) = files.filter(|files| last != Some(files.root)) else { return Ok(()) };
        if !is_kept(objects, files.root)? {
            return Ok(());
        }
        let subject = match self.commits.is_empty() {
            true => "start of the session",
            false => "files changed outside of calls",
        };
        let message = format!("{subject}\n\nSession: {}\n", view.session_id());
        self.add(objects, files, message, time)
    }

    fn add(
        &mut self,
        objects: &dyn Objects,
        WorkspaceRevision { root, coverage }: WorkspaceRevision,
        message: String,
        time: Timestamp,
    ) -> Result<(), RuntimeError> {
        let stored = coverage.map(|id| objects.get(id)).transpose().map_err(unread)?;
        if let Some(coverage) = stored.flatten() {
            let paths = Coverage::from_json(coverage.bytes()).map_err(|error| StoreError::DamagedObject {
                object: coverage.id(),
                reason: error.to_string(),
            })?;
            self.uncovered.extend(paths.uncovered().map(|one| (one.path, one.reason)));
        }
        let parents = self.commits.len().checked_sub(1).into_iter().collect();
        self.commits.push(ExportCommit { root, message, author: Author::default(), time, parents });
        Ok(())
    }
}

fn is_kept(objects: &dyn Objects, root: WorkspaceRoot) -> Result<bool, RuntimeError> {
    Ok(objects.contains(root.tree).map_err(unread)? && objects.contains(root.manifest).map_err(unread)?)
}

/// Returns the error of a store whose objects could not be read.
fn unread(error: BoxError) -> RuntimeError {
    RuntimeError::Store(match error.downcast::<StoreError>() {
        Ok(error) => *error,
        Err(error) => StoreError::Backend(error),
    })
}

/// Returns the error of a repository that could not be written.
fn unwritten(error: ExportError) -> RuntimeError {
    match error {
        ExportError::Exists { path } => OpenError::Exists { path: PathBuf::from(path) }.into(),
        ExportError::Io { path, source } => OpenError::Io { path: PathBuf::from(path), source }.into(),
        ExportError::Root(error) => error.into(),
        other => RuntimeError::Internal { reason: other.to_string() },
    }
}

fn message(view: &JournalView, transcript: &Transcript, checkpoint: &Checkpoint) -> String {
    let call = transcript.message_of(checkpoint.call_id);
    let arguments = call.and_then(|message| message.message.option_call()).map(|call| call.arguments.text());
    let arguments = one_line(&arguments.unwrap_or_default(), SUBJECT);
    let failed = if checkpoint.status == CallStatus::Failed { " (failed, rolled back)" } else { "" };
    let name = one_line(&checkpoint.tool_name, SUBJECT);
    let mut message = format!("{name}{failed}: {arguments}\n\n");
    if let Some(summary) = &checkpoint.result_summary {
        message.push_str(&one_line(summary, 500));
        message.push_str("\n\n");
    }
    let owner = checkpoint.before.session;
    message.push_str(&format!("Session: {owner}\nCall: {}\n", checkpoint.call_id));
    if owner != view.session_id() {
        message.push_str(&format!("Fork: {}\n", view.session_id()));
    }
    message
}

fn reason(reason: LeftOutReason) -> &'static str {
    match reason {
        LeftOutReason::Name => "git refuses its name",
        LeftOutReason::Content => "git refuses its content",
        LeftOutReason::EmptyDirectory => "an empty directory",
        LeftOutReason::Mode => "its exact mode",
        LeftOutReason::Redacted => "its content was redacted",
        _ => "git cannot hold it",
    }
}
