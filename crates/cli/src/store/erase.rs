//! `redact` and `rm`: remove data from a store.

use std::collections::HashSet;
use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::host::{IdPart, RemoveOptions};
use backstitch::id::SessionId;
use backstitch::ports::{Erasure, ErasureMode, ForkRemoval, RemovalReport};
use backstitch::redaction::SensitiveValue;
use backstitch::report::{SessionRedaction, SessionRemoval};
use clap::Args;

use super::maintain::{of_store, remainder_lines, side_file_lines, would_be};
use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode, ReportedError, code_of};
use crate::open::{OpenStore, ProjectStore, listed, short};
use crate::report::Report;
use crate::terminal;
use crate::usage;

/// Where a redaction does not look.
const NOT_SEARCHED: &str = "not searched: other encodings of the value (base64, percent-encoding), compressed or encoded media, files in \
    the workspace, backups, exported files, log files";

#[derive(Args)]
pub(crate) struct Redact {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Its forks, the sessions that it was
    /// forked from, its sub-agents and its callers are redacted with it.
    #[arg(required_unless_present = "all")]
    session: Option<String>,
    /// Redact all sessions of all projects.
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Report what would be removed, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Redact {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let value = read_value()?;
        let mode = mode(self.dry_run);
        if self.all {
            return redact_all(common, &value, mode).await;
        }
        let place = open(common, mode)?;
        let session = place.session(self.session.as_deref()).await?;
        let redacted = place.runtime.redact(session, value, mode).await?;
        let lines = redaction_lines(&redacted);
        Report::new(&redacted).lines(lines).line(NOT_SEARCHED).print(common);
        check_erasure(common, &redacted.content.erasure)
    }
}

/// Redacts the sessions of all stores. A store or a session that cannot be changed does not keep the value in the others.
async fn redact_all(common: &Common, value: &SensitiveValue, mode: ErasureMode) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for store in ProjectStore::all(common)? {
        store.print_heading(common);
        if let Err(error) = redact_store(common, &store, value, mode).await {
            store.print_error(common, &error);
            code = ExitCode::FAILURE;
        }
    }
    if !common.json {
        println!("{NOT_SEARCHED}");
    }
    Ok(code)
}

/// Redacts all sessions of a store, one family of sessions after the other.
async fn redact_store(
    common: &Common,
    store: &ProjectStore,
    value: &SensitiveValue,
    mode: ErasureMode,
) -> anyhow::Result<()> {
    let place = match mode {
        ErasureMode::DryRun => OpenStore::reading(&store.address)?,
        ErasureMode::Now => OpenStore::open(&store.address)?,
    };
    let (mut next, mut done) = (place.store.sessions().await?.into_iter().next(), HashSet::new());
    while let Some(session) = next {
        let mut redacted = place.runtime.redact(session, value.clone(), mode).await?;
        done.insert(session);
        done.extend(redacted.content.sessions.iter().map(|one| one.session));
        let elsewhere = std::mem::take(&mut redacted.content.elsewhere);
        next = elsewhere.into_iter().find(|other| !done.contains(other));
        let is_empty = redacted.content.sessions.is_empty() && redacted.side_files.is_empty();
        // The first one says that nothing was found.
        if !is_empty || (done.len() == 1 && next.is_none()) {
            let lines = redaction_lines(&redacted);
            of_store(Report::new(&redacted), Some(store)).lines(lines).print(common);
        }
        check_erasure(common, &redacted.content.erasure)?;
    }
    Ok(())
}

/// Reads the value from standard input. One newline at its end is not part of it.
fn read_value() -> anyhow::Result<SensitiveValue> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        let words = "standard input is a terminal, which would show the value: pipe it in, or use `< FILE`";
        return usage::refuse(words);
    }
    let mut value = String::new();
    input.read_to_string(&mut value).context("the value cannot be read from standard input")?;
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let value = value.strip_suffix('\r').unwrap_or(value);
    if value.is_empty() {
        return usage::refuse("standard input is empty: it has to be the value to remove");
    }
    Ok(SensitiveValue::new(value)?)
}

fn mode(dry_run: bool) -> ErasureMode {
    if dry_run { ErasureMode::DryRun } else { ErasureMode::Now }
}

fn open(common: &Common, mode: ErasureMode) -> anyhow::Result<OpenStore> {
    match mode {
        ErasureMode::DryRun => OpenStore::for_reading(common),
        ErasureMode::Now => OpenStore::existing(common),
    }
}

/// Names a few sessions, and counts the others.
fn names(sessions: &[SessionId]) -> String {
    listed(&sessions.iter().map(short).collect::<Vec<_>>()).unwrap_or_default()
}

fn redaction_lines(redacted: &SessionRedaction) -> Vec<String> {
    let (content, would) = (&redacted.content, would_be(redacted.dry_run));
    let side_files = &redacted.side_files;
    let mut lines: Vec<String> = remainder_lines(&redacted.left, redacted.dry_run).collect();
    for one in &content.sessions {
        let records = counted(one.positions.len(), "record");
        let inbox = match one.inbox {
            0 => String::new(),
            items => format!(", {}", counted(items, "inbox item")),
        };
        let replaced = counted(one.replacements, "replacement");
        lines.push(format!("{}: {records}{inbox} {would}changed, {replaced}", short(one.session)));
    }
    if !content.objects.is_empty() {
        let objects = counted(content.objects.len(), "object");
        lines.push(format!("{objects} {would}removed: large texts, results and files"));
    }
    lines.extend(side_file_lines(side_files, redacted.dry_run));
    if content.sessions.is_empty() && content.objects.is_empty() && side_files.is_empty() {
        lines.push("the value was not found".to_owned());
    }
    if !content.files.is_empty() {
        lines.push("files with the value in the latest state of the workspace:".to_owned());
        lines.extend(content.files.iter().map(|path| format!("  {path}")));
        lines.push("remove it there too: the next call that changes files stores what it finds".to_owned());
    }
    if !content.shared_with.is_empty() {
        lines.push(format!("these objects are also used by {}", names(&content.shared_with)));
    }
    if !content.elsewhere.is_empty() {
        let (sessions, count) =
            (names(&content.elsewhere), counted(content.elsewhere.len(), "other session"));
        let left = if redacted.dry_run { "would be left" } else { "was left" };
        lines.push(format!("the value is also in {count}, where it {left} as it is: {sessions}"));
        lines.push("`--all` removes it from all sessions of all projects".to_owned());
    }
    if !content.kept.is_empty() {
        let records = counted(content.kept.len(), "record");
        lines
            .push(format!("kept in {records}: there the value is part of a name, an id, a time or a number"));
    }
    if !content.file_names.is_empty() {
        let lists = counted(content.file_names.len(), "list");
        lines.push(format!("kept in {lists} of files: there the value is part of a file name"));
    }
    lines
}

/// Fails if the files of the store may still hold what was removed.
fn check_erasure(common: &Common, erasure: &Erasure) -> anyhow::Result<ExitCode> {
    let Erasure::Pending { reason } = erasure else { return Ok(ExitCode::SUCCESS) };
    let message = format!("the data was removed, but the store's files may still hold it: {reason}");
    let hint = "run the same command again when no other process uses the store";
    let error = anyhow::Error::from(CommandError::new(ErrorCode::ErasurePending, message).with_hint(hint));
    // The report says it too.
    Err(if common.json { ReportedError(error).into() } else { error })
}

#[derive(Args)]
pub(crate) struct Remove {
    /// Sessions, by the start or the end of their ids. Their sub-agents are deleted with them.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
    /// Also delete sessions that were forked from these, and sub-agents that have not ended.
    #[arg(long)]
    with_forks: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Report what would be deleted, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Remove {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = open(common, mode(self.dry_run))?;
        let mut sessions = Vec::new();
        for name in &self.sessions {
            sessions.push(find_named(&place, name).await?);
        }
        let forks = if self.with_forks { ForkRemoval::Include } else { ForkRemoval::Refuse };
        if !(self.dry_run || self.yes) {
            let options = RemoveOptions { forks, mode: ErasureMode::DryRun };
            let rehearsed = place.runtime.remove(sessions.iter().copied(), options).await?;
            if !confirm_removal(&rehearsed.content)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        let options = RemoveOptions { forks, mode: mode(self.dry_run) };
        let removed = place.runtime.remove(sessions, options).await?;
        let report = Report::new(&removed).lines(removal_lines(&removed));
        report.lines(side_file_lines(&removed.side_files, removed.dry_run)).print(common);
        check_erasure(common, &removed.content.erasure)
    }
}

/// Finds the session of a name. One whose removal was interrupted may be named again.
async fn find_named(place: &OpenStore, name: &str) -> anyhow::Result<SessionId> {
    let found = place.session(Some(name)).await;
    let Err(error) = found else { return found };
    if code_of(&error) != ErrorCode::SessionNotFound {
        return Err(error);
    }
    let Ok(part) = name.parse::<IdPart>() else { return Err(error) };
    let removed = place.runtime.removed_sessions().await?.into_iter().map(|one| one.session);
    let matching: Vec<SessionId> = removed.filter(|id| part.matches(id)).collect();
    match matching[..] {
        [one] => Ok(one),
        _ => Err(error),
    }
}

fn removal_lines(removed: &SessionRemoval) -> Vec<String> {
    let (content, would) = (&removed.content, would_be(removed.dry_run));
    let sessions = content.sessions.iter();
    let mut lines: Vec<String> = sessions
        .map(|one| format!("{}: {} {would}deleted", short(one.session), counted(one.records, "record")))
        .collect();
    lines.push(format!("{} {would}deleted, {} bytes", counted(content.objects, "object"), content.bytes));
    lines.extend(remainder_lines(&removed.left, removed.dry_run));
    if removed.copies > 0 {
        lines.push(format!("{} {would}removed", counted(removed.copies, "isolated workspace")));
    }
    lines
}

/// Asks on a terminal whether sessions may be deleted.
fn confirm_removal(report: &RemovalReport) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        let words = "nobody can be asked here: `--yes` deletes the sessions, `--dry-run` lists them";
        return usage::refuse(words);
    }
    for one in &report.sessions {
        eprintln!("{}: {}", short(one.session), counted(one.records, "record"));
    }
    let sessions = counted(report.sessions.len() as u64, "session");
    Ok(terminal::confirm(&format!("delete {sessions} for good? [y/N] "))?)
}
