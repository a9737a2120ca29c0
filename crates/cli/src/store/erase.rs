//! `redact` and `rm`: remove data from a store.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use backstitch::ports::{
    Erasure, ErasureMode, ForkRemoval, Owner, Redaction, RedactionReport, Removal, RemovalReport,
};
use backstitch::redaction::SensitiveValue;
use backstitch::time::Clock as _;
use backstitch::{SystemClock, id::SessionId};
use clap::Args;
use serde_json::{Value, json};

use super::remainders;
use crate::common::{Common, counted};
use crate::error::{CommandError, ReportedError, code_of};
use crate::history::isolated::{copies_of, remove_copies};
use crate::open::place::{OpenStore, part_of_id, short};
use crate::usage::Usage;

/// Where a redaction does not look.
const NOT_SEARCHED: &str = "not searched: other encodings of the value (base64, percent-encoding), compressed or encoded media, files in \
    the workspace, backups, exported files";

#[derive(Args)]
pub(crate) struct Redact {
    /// Session, by the start or the end of its id. Its forks, the sessions that it was forked from, its
    /// sub-agents and its callers are redacted with it.
    session: String,
    /// Report what would be removed, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Redact {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let value = read_value()?;
        let mode = mode(self.dry_run);
        let place = open(common, mode)?;
        let session = place.session(Some(&self.session)).await?;
        let (owner, at) = (owner("redact"), SystemClock::new().now());
        // They may hold the value too.
        let left = remainders::remove(&*place.admin, self.dry_run).await;
        let report = place.store.redact(Redaction { session, value, owner, at, mode }).await?;
        match common.json {
            true => {
                let mut line = redaction_json(&report, self.dry_run);
                line["left"] = json!(left);
                println!("{line}");
            }
            false => {
                remainders::print(&left, self.dry_run);
                print_redaction(&report, self.dry_run);
            }
        }
        finished(common, &report.erasure)
    }
}

/// Reads the value from standard input. One newline at its end is not part of it.
fn read_value() -> anyhow::Result<SensitiveValue> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        let words = "standard input is a terminal, which would show the value: pipe it in, or use `< FILE`";
        return Err(Usage(words.to_owned()).into());
    }
    let mut value = String::new();
    input.read_to_string(&mut value).context("the value cannot be read from standard input")?;
    let value = value.strip_suffix('\n').unwrap_or(&value);
    let value = value.strip_suffix('\r').unwrap_or(value);
    if value.is_empty() {
        return Err(Usage("standard input is empty: it has to be the value to remove".to_owned()).into());
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

fn owner(command: &str) -> Owner {
    Owner::new(format!("`{command}` (process {})", std::process::id()))
}

fn names(sessions: &[SessionId]) -> String {
    sessions.iter().map(short).collect::<Vec<_>>().join(", ")
}

fn redaction_json(report: &RedactionReport, dry_run: bool) -> Value {
    let session = |one: &backstitch::ports::RedactedSession| {
        json!({
            "session": one.session, "positions": one.positions, "replacements": one.replacements,
            "inbox": one.inbox,
        })
    };
    json!({
        "v": 1, "dry_run": dry_run, "sessions": report.sessions.iter().map(session).collect::<Vec<_>>(),
        "objects": report.objects, "files": report.files, "shared_with": report.shared_with,
        "elsewhere": report.elsewhere, "kept": report.kept, "file_names": report.file_names,
        "erasure": erasure_json(&report.erasure),
    })
}

fn erasure_json(erasure: &Erasure) -> Value {
    match erasure {
        Erasure::Complete => json!({"state": "complete"}),
        Erasure::NotStarted => json!({"state": "not_started"}),
        Erasure::Pending { reason } => json!({"state": "pending", "reason": reason}),
    }
}

fn print_redaction(report: &RedactionReport, dry_run: bool) {
    let would = if dry_run { "would be " } else { "" };
    for one in &report.sessions {
        let records = counted(one.positions.len() as u64, "record");
        let inbox = match one.inbox {
            0 => String::new(),
            items => format!(", {}", counted(items, "inbox item")),
        };
        let replaced = counted(one.replacements, "replacement");
        println!("{}: {records}{inbox} {would}changed, {replaced}", short(one.session));
    }
    if !report.objects.is_empty() {
        let objects = counted(report.objects.len() as u64, "object");
        println!("{objects} {would}removed: large texts, results and files");
    }
    if report.sessions.is_empty() && report.objects.is_empty() {
        println!("the value was not found");
    }
    if !report.files.is_empty() {
        println!("files with the value in the latest state of the workspace:");
        report.files.iter().for_each(|path| println!("  {path}"));
        println!("remove it there too: the next call that changes files stores what it finds");
    }
    if !report.shared_with.is_empty() {
        println!("these objects are also used by {}", names(&report.shared_with));
    }
    if !report.elsewhere.is_empty() {
        println!("the value is also in {}, which {would}left as it is", names(&report.elsewhere));
    }
    if !report.kept.is_empty() {
        let records = counted(report.kept.len() as u64, "record");
        println!("kept in {records}: there the value is part of a name, an id, a time or a number");
    }
    if !report.file_names.is_empty() {
        let lists = counted(report.file_names.len() as u64, "list");
        println!("kept in {lists} of files: there the value is part of a file name");
    }
    println!("{NOT_SEARCHED}");
}

/// Fails if the files of the store may still hold what was removed.
fn finished(common: &Common, erasure: &Erasure) -> anyhow::Result<ExitCode> {
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
            sessions.push(named(&place, name).await?);
        }
        let removal = |mode| Removal {
            sessions: sessions.clone(),
            forks: if self.with_forks { ForkRemoval::Include } else { ForkRemoval::Refuse },
            owner: owner("rm"),
            at: SystemClock::new().now(),
            mode,
        };
        if !(self.dry_run || self.yes) {
            let rehearsed = place.store.remove(removal(ErasureMode::DryRun)).await?;
            if !confirmed(&rehearsed)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        let concerned = place.store.remove(removal(ErasureMode::DryRun)).await?.sessions;
        let copies = copies_of(&place, concerned.into_iter().map(|one| one.session)).await;
        let report = place.store.remove(removal(mode(self.dry_run))).await?;
        let copies = if self.dry_run { copies.len() } else { remove_copies(copies)? };
        let left = remainders::remove(&*place.admin, self.dry_run).await;
        if common.json {
            let session = |one: &backstitch::ports::RemovedSession| json!({"session": one.session, "records": one.records});
            println!(
                "{}",
                json!({
                    "v": 1, "dry_run": self.dry_run,
                    "sessions": report.sessions.iter().map(session).collect::<Vec<_>>(),
                    "objects": report.objects, "bytes": report.bytes, "copies": copies, "left": left, "erasure": erasure_json(&report.erasure),
                })
            );
        } else {
            print_removal(&report, self.dry_run);
            remainders::print(&left, self.dry_run);
            if copies > 0 {
                let would = if self.dry_run { "would be " } else { "" };
                println!("{} {would}removed", counted(copies as u64, "isolated workspace"));
            }
        }
        finished(common, &report.erasure)
    }
}

/// Finds the session of a name. One whose removal was interrupted may be named again.
async fn named(place: &OpenStore, name: &str) -> anyhow::Result<SessionId> {
    let found = place.session(Some(name)).await;
    let Err(error) = found else { return found };
    if code_of(&error) != ErrorCode::SessionNotFound {
        return Err(error);
    }
    let part = part_of_id(name)?;
    let removed = place.admin.removed().await?.into_iter().map(|one| one.session);
    let matching: Vec<SessionId> = removed
        .filter(|id| {
            let id = id.to_string();
            id.starts_with(&part) || id.ends_with(&part)
        })
        .collect();
    match matching[..] {
        [one] => Ok(one),
        _ => Err(error),
    }
}

fn print_removal(report: &RemovalReport, dry_run: bool) {
    let would = if dry_run { "would be " } else { "" };
    for one in &report.sessions {
        println!("{}: {} {would}deleted", short(one.session), counted(one.records, "record"));
    }
    println!("{} {would}deleted, {} bytes", counted(report.objects, "object"), report.bytes);
}

/// Asks on a terminal whether sessions may be deleted.
fn confirmed(report: &RemovalReport) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        let words = "nobody can be asked here: `--yes` deletes the sessions, `--dry-run` lists them";
        return Err(Usage(words.to_owned()).into());
    }
    for one in &report.sessions {
        eprintln!("{}: {}", short(one.session), counted(one.records, "record"));
    }
    let sessions = counted(report.sessions.len() as u64, "session");
    eprint_question(&format!("delete {sessions} for good? [y/N] "))?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Prints a question without a newline.
fn eprint_question(question: &str) -> std::io::Result<()> {
    let mut stderr = std::io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()
}
