//! `export --git`: the files of a session as a git repository, one commit for each call.
//!
//! Commits follow the visible calls in the order of their starts. A call that cannot change files has no
//! commit. If files were changed outside of calls, that is a commit of its own before the next call, so that
//! no call seems to have changed what a person changed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use backstitch::host::one_line;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::WorkspaceRoot;
use backstitch::object::ObjectId;
use backstitch::ports::UncoveredReason;
use backstitch::time::Timestamp;
use backstitch::view::{CallStatus, Checkpoint, JournalView, Transcript};
use backstitch::workspace::Coverage;
use backstitch::workspace::export::{Author, ExportCommit, ExportReport, LeftOutReason, git, partial_path};
use serde_json::json;

use crate::common::Common;
use crate::open::place::{OpenStore, short};
use crate::usage::Usage;

/// Name of the branch.
const BRANCH: &str = "main";

/// Maximum length of the arguments in the subject of a commit, in characters.
const SUBJECT: usize = 60;

/// The commits of a session.
#[derive(Default)]
struct History {
    commits: Vec<ExportCommit>,
    /// Calls whose files retention has deleted.
    pruned: Vec<CallId>,
    /// Paths that no root covers.
    uncovered: BTreeMap<String, UncoveredReason>,
}

pub(crate) async fn export(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    path: &Path,
) -> anyhow::Result<()> {
    let view = place.view(session).await?;
    let history = History::of(place, &view)?;
    if history.commits.is_empty() {
        let message = match history.pruned.len() {
            0 => "the session has no files, so there is nothing to commit",
            _ => "retention has deleted the files of all calls of this session",
        };
        return Err(Usage(message.to_owned()).into());
    }
    let _note = place.admin.note_unfinished(&partial_path(path)).await;
    let report = git(&*place.objects, &history.commits, path, BRANCH)
        .with_context(|| format!("session {session} cannot be exported"))?;
    tell(common, session, path, &history, &report);
    Ok(())
}

impl History {
    fn of(place: &OpenStore, view: &JournalView) -> anyhow::Result<Self> {
        let mut history = Self::default();
        let transcript = view.transcript()?;
        let created = view.created().created_at;
        let mut last: Option<WorkspaceRoot> = None;
        for checkpoint in view.checkpoints() {
            let started = view.call(checkpoint.call_id).and_then(|call| Some(call.intent.as_ref()?.at));
            let started = started.unwrap_or(created);
            if let Some(before) = checkpoint.before.root.filter(|root| last != Some(*root)) {
                let coverage = checkpoint.before.coverage;
                history.add_observed(place, view, (before, coverage), started, &mut last)?;
            }
            let Some((after, root)) = checkpoint.after.and_then(|after| Some((after, after.root?))) else {
                continue;
            };
            if is_kept(place, root)? {
                let time = checkpoint.recorded_at.unwrap_or(started);
                let message = message(view, &transcript, &checkpoint);
                history.add(place, (root, after.coverage), message, time)?;
                last = Some(root);
            } else {
                history.pruned.push(checkpoint.call_id);
            }
        }
        if let Some(files) = view.files().filter(|files| last != Some(files.root)) {
            let time = view.recorded_at().unwrap_or(created);
            history.add_observed(place, view, (files.root, files.coverage), time, &mut last)?;
        }
        Ok(history)
    }

    /// Adds the files at the start of the session, or as they were found between two calls.
    fn add_observed(
        &mut self,
        place: &OpenStore,
        view: &JournalView,
        (root, coverage): (WorkspaceRoot, Option<ObjectId>),
        time: Timestamp,
        last: &mut Option<WorkspaceRoot>,
    ) -> anyhow::Result<()> {
        if !is_kept(place, root)? {
            return Ok(());
        }
        let subject = match self.commits.is_empty() {
            true => "start of the session",
            false => "files changed outside of calls",
        };
        let message = format!("{subject}\n\nSession: {}\n", view.session_id());
        self.add(place, (root, coverage), message, time)?;
        *last = Some(root);
        Ok(())
    }

    fn add(
        &mut self,
        place: &OpenStore,
        (root, coverage): (WorkspaceRoot, Option<ObjectId>),
        message: String,
        time: Timestamp,
    ) -> anyhow::Result<()> {
        let stored =
            coverage.map(|id| place.objects.get(id)).transpose().map_err(anyhow::Error::from_boxed)?;
        if let Some(coverage) = stored.flatten() {
            let paths = Coverage::from_json(coverage.bytes())?;
            self.uncovered.extend(paths.uncovered().map(|one| (one.path, one.reason)));
        }
        let parents = self.commits.len().checked_sub(1).into_iter().collect();
        self.commits.push(ExportCommit { root, message, author: Author::default(), time, parents });
        Ok(())
    }
}

fn is_kept(place: &OpenStore, root: WorkspaceRoot) -> anyhow::Result<bool> {
    let contains = |id| place.objects.contains(id).map_err(anyhow::Error::from_boxed);
    Ok(contains(root.tree)? && contains(root.manifest)?)
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

fn tell(common: &Common, session: SessionId, path: &Path, history: &History, report: &ExportReport) {
    if common.json {
        let left_out: Vec<_> = report
            .left_out
            .iter()
            .map(|one| {
                let commit = report.commits.get(one.commit);
                json!({"path": one.path, "reason": reason(one.reason), "commit": commit})
            })
            .collect();
        let uncovered: Vec<_> =
            history.uncovered.iter().map(|(path, reason)| json!({"path": path, "reason": reason})).collect();
        println!(
            "{}",
            json!({
                "v": 1, "session": session, "repository": path, "branch": BRANCH, "commits": report.commits,
                "objects": report.objects, "left_out": left_out, "uncovered": uncovered,
                "pruned_calls": history.pruned,
            })
        );
        return;
    }
    println!("{} commits of session {} in {}", report.commits.len(), short(session), path.display());
    for one in &report.left_out {
        println!("left out: {} ({})", one.path, reason(one.reason));
    }
    for (path, reason) in &history.uncovered {
        println!("not covered: {path} ({reason})");
    }
    if !history.pruned.is_empty() {
        println!("left out: the files of {} calls, which retention has deleted", history.pruned.len());
    }
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
