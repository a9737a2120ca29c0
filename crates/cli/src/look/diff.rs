//! `diff`: the difference between two points of a session. `cat`: a file at a point.

use std::process::ExitCode;

use backstitch::PointSpec;
use backstitch::ports::{ChangeKind, PathChange};
use backstitch::report::{ChangedFile, DiffReport, FileDetail};
use clap::Args;

use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode};
use crate::open::{FileAtPoint, OpenStore, SessionPoints, in_session, short};
use crate::report::{Report, ReportLine};
use crate::terminal::{self, Pager, Role, Text, difference, style};
use crate::usage;

#[derive(Args)]
pub(crate) struct Diff {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: the latest session.
    session: Option<String>,
    /// First point: a position, before:CALL, after:CALL, CALL, turn:N, start, head or rescue:POSITION. Default: start.
    from: Option<String>,
    /// Second point, in the same forms. Default: head.
    to: Option<String>,
    /// List the names of the files that differ, without their content.
    #[arg(long)]
    names: bool,
}

impl Diff {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let SessionPoints { session, points } = SessionPoints::of([self.session, self.from, self.to])?;
        let mut points = points.into_iter();
        let (from, to) =
            (points.next().unwrap_or(PointSpec::Start), points.next().unwrap_or(PointSpec::Head));
        if points.next().is_some() {
            return usage::refuse("`diff` compares two points: the first of three has to be a session");
        }
        let place = OpenStore::for_reading(common)?;
        let view = place.view(place.session(session.as_deref()).await?).await?;
        let detail = if self.names { FileDetail::Names } else { FileDetail::Diffs };
        let report = place.runtime.diff(&view, &from, &to, detail).await?;
        let _pager = Pager::new();
        let shown = Report::new(&report);
        let shown = match report.is_empty() {
            true => shown.line("nothing differs"),
            false => shown.lines(lines(&report)),
        };
        Ok(shown.print(common))
    }
}

fn lines(report: &DiffReport) -> Vec<ReportLine> {
    let mut lines: Vec<ReportLine> = report.files.iter().flat_map(change_lines).collect();
    for (name, (before, after)) in &report.state {
        lines.push(counts(&format!("state {name}"), *before, *after, "item").into());
    }
    let (before, after) = (report.messages.from, report.messages.to);
    if before != after {
        lines.push(counts("conversation", before, after, "message").into());
    }
    lines
}

/// A number of things at both points.
fn counts(of: &str, before: usize, after: usize, what: &str) -> Text {
    let things = counted(before as u64, what);
    let change = if before == after { format!("{things}, changed") } else { format!("{things} -> {after}") };
    Text::new().add(Role::Emphasis, of).plain(": ").plain(change)
}

fn letter(change: ChangeKind) -> (&'static str, Role) {
    match change {
        ChangeKind::Added => ("A", Role::Added),
        ChangeKind::Deleted => ("D", Role::Removed),
        ChangeKind::Mode => ("T", Role::Warning),
        _ => ("M", Role::Accent),
    }
}

/// Formats the letter and the path of a change.
pub(crate) fn named(change: &PathChange) -> Text {
    heading(&change.path, change.change)
}

fn heading(path: &str, change: ChangeKind) -> Text {
    let (letter, role) = letter(change);
    Text::new().add(role, letter).plain(" ").add(Role::Emphasis, path)
}

/// Formats the change of a file: its letter and path, and what changed in it, if that is known. A diff is exact in a pipe.
pub(super) fn change_lines(file: &ChangedFile) -> Vec<ReportLine> {
    let mut lines = vec![heading(&file.path, file.change).into()];
    match file.text() {
        Some(text) if style::stdout_has_colors() => {
            lines.extend(difference::lines(text).into_iter().map(ReportLine::Exact));
        }
        Some(text) => lines.push(ReportLine::Data(text.to_owned())),
        None => {}
    }
    lines
}

#[derive(Args)]
pub(crate) struct Cat {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    /// Point and path of the file: turn:2:src/main.rs, before:CALL:PATH, 12:PATH, rescue:POSITION:PATH and so on. Without
    /// a point: the file at the head.
    #[arg(value_name = "POINT:PATH")]
    file: FileAtPoint,
}

impl Cat {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let FileAtPoint { point, path } = &self.file;
        let path = in_session(&view, path)?;
        let report = place.runtime.file(&view, point, &path).await?.ok_or_else(|| {
            let message = format!("there is no file {path} at {point}");
            let list = common.hint(format_args!("show {} {point} --files", short(session)));
            CommandError::new(ErrorCode::FileNotFound, message).with_hint(format!("`{list}` lists the files"))
        })?;
        if common.json {
            return Ok(Report::new(&report).print(common));
        }
        // Its bytes, which need not be text.
        terminal::bytes(&report.content());
        Ok(ExitCode::SUCCESS)
    }
}
