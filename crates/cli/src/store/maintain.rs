//! `verify`, `salvage` and `gc`: look after a store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::host::{CollectOptions, IndexProgress};
use backstitch::ports::{Erasure, GcMode, IndexedStatus};
use backstitch::report::{StoreCheck, WrongSnapshot};
use backstitch::stores::StoreAddress;
use backstitch::stores::side_files::SideFileChange;
use backstitch::{Runtime, RuntimeError};
use clap::Args;

use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode, code_of, message_of};
use crate::open::{OpenStore, ProgressLines, ProjectStore, short};
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Salvage {
    /// Path of the new store, which must not exist. The damaged store is only read.
    to: PathBuf,
}

/// The error of a failed salvage. The hint of a damaged store would name this command.
fn unsalvageable(common: &Common, error: anyhow::Error) -> anyhow::Error {
    let code = code_of(&error);
    if code == ErrorCode::StoreUnsupported {
        return error;
    }
    let hint = format!(
        "nothing was written; `{}` reports the extent of the damage, and a `backup` may be sound",
        common.hint("verify")
    );
    CommandError::new(code, message_of(&error)).with_hint(hint).into()
}

impl Salvage {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let from = OpenStore::address(common)?;
        let salvaged = Runtime::salvage(&from, &self.to).await;
        let salvaged = salvaged
            .with_context(|| format!("{from} cannot be salvaged"))
            .map_err(|error| unsalvageable(common, error))?;
        let content = &salvaged.content;
        let sessions = content.sessions.iter().map(|one| {
            let (id, records) = (short(one.session), counted(one.records, "record"));
            match &one.lost {
                None => format!("{id}: whole, {records}"),
                Some(lost) => format!(
                    "{id}: {records}; {} from position {} on are lost ({})",
                    lost.records, lost.position, lost.reason
                ),
            }
        });
        let objects = counted(content.objects, "object");
        Ok(Report::new(&salvaged)
            .lines(sessions)
            .line(format!("{objects} kept, {} lost", content.lost_objects.len()))
            .lines(content.notes.iter().cloned())
            .line(format!("written to {}", self.to.display()))
            .print(common))
    }
}

#[derive(Args)]
pub(crate) struct Gc {
    /// Delete in the stores of all projects.
    #[arg(long)]
    all: bool,
    /// Delete nothing, and print what would be freed.
    #[arg(long)]
    dry_run: bool,
    /// Delete the files at boundaries of calls older than this many days. A rewind to them is refused from
    /// then on. Default: keep all.
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Delete the files at all but the latest N boundaries of calls of each session. Default: keep all.
    #[arg(long, value_name = "N")]
    keep_boundaries: Option<u64>,
    /// Delete sessions without a record in the last DAYS days, with what is written about them beside the store.
    /// Sessions that a process holds, and those with forks that stay, are kept. Default: delete none.
    #[arg(long, value_name = "DAYS")]
    expire_days: Option<u32>,
    /// Delete only sessions of these statuses.
    #[arg(
        long,
        value_name = "STATUSES",
        value_delimiter = ',',
        default_value = "idle,failed",
        requires = "expire_days"
    )]
    expire_status: Vec<IndexedStatus>,
}

impl Gc {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if !self.all {
            return self.collect(common, OpenStore::existing(common)?, None).await;
        }
        let mut code = ExitCode::SUCCESS;
        for store in ProjectStore::all(common)? {
            store.print_heading(common);
            let place = OpenStore::open(&store.address);
            let done = async { self.collect(common, place?, Some(&store)).await };
            if let Err(error) = done.await {
                store.print_error(common, &error);
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    async fn collect(
        &self,
        common: &Common,
        place: OpenStore,
        store: Option<&ProjectStore>,
    ) -> anyhow::Result<ExitCode> {
        let options = CollectOptions {
            mode: if self.dry_run { GcMode::DryRun } else { GcMode::Now },
            keep_days: self.keep_days,
            keep_boundaries: self.keep_boundaries,
            expire_days: self.expire_days,
            expire_statuses: self.expire_status.clone(),
        };
        let collected = place.runtime.collect(options).await.map_err(uncollected)?;
        if let Some(Erasure::Pending { reason }) = &collected.erasure {
            eprintln!("warning: the store's files may still hold expired sessions: {reason}");
        }
        let (expired, freed) =
            if self.dry_run { ("would expire", "would be freed") } else { ("expired", "freed") };
        let objects = collected.content.freed.iter().map(|freed| {
            let session = freed.session.map_or_else(|| "no session".to_owned(), short);
            let (objects, bytes) = (counted(freed.objects, "object"), counted(freed.bytes, "byte"));
            format!("{session}: {objects} ({}), {bytes}", freed.kind.as_str())
        });
        let (bytes, kept) = (counted(collected.freed_bytes, "byte"), collected.content.kept_bytes);
        Ok(of_store(Report::new(&collected), store)
            .lines(collected.expired.iter().map(|session| format!("{}: {expired}", short(session))))
            .lines(remainder_lines(&collected.left, self.dry_run))
            .lines(side_file_lines(&collected.side_files, self.dry_run))
            .lines(objects)
            .line(format!("{bytes} {freed}, {kept} kept"))
            .print(common))
    }
}

/// Names the store in a report, where there are several.
pub(super) fn of_store(report: Report, store: Option<&ProjectStore>) -> Report {
    match store {
        Some(store) => report.with("store", store.address.to_string()),
        None => report,
    }
}

/// Describes the side files that were changed.
pub(super) fn side_file_lines(changes: &[SideFileChange], dry_run: bool) -> impl Iterator<Item = String> {
    let would = would_be(dry_run);
    changes.iter().map(move |SideFileChange { kind, path, entries }| {
        let noun = if *entries == 1 { "entry" } else { "entries" };
        format!("{kind}: {entries} {noun} {would}changed or removed in {}", path.display())
    })
}

/// Returns the beginning of a verb about what a rehearsal only describes.
pub(super) fn would_be(dry_run: bool) -> &'static str {
    if dry_run { "would be " } else { "" }
}

/// Adds the options that help to an error about the clock.
fn uncollected(error: RuntimeError) -> anyhow::Error {
    match error {
        RuntimeError::UnsetClock { .. } => CommandError::new(error.code(), error.to_string())
            .with_hint("nothing was deleted; set the clock, or leave out `--expire-days` and `--keep-days`")
            .into(),
        error => error.into(),
    }
}

#[derive(Args)]
pub(crate) struct Verify {
    /// Check the stores of all projects.
    #[arg(long)]
    all: bool,
    /// Rebuild the index, also of changed paths, and delete snapshots where they differ from the journals. Nothing else is changed.
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if !self.all {
            let address = OpenStore::address(common)?;
            return self.check(common, &address, None).await;
        }
        let mut code = ExitCode::SUCCESS;
        for store in ProjectStore::all(common)? {
            store.print_heading(common);
            match self.check(&store.options(common), &store.address, Some(&store)).await {
                Ok(done) if done == ExitCode::SUCCESS => {}
                Ok(_) => code = ExitCode::FAILURE,
                Err(error) => {
                    store.print_error(common, &error);
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }

    async fn check(
        &self,
        common: &Common,
        address: &StoreAddress,
        store: Option<&ProjectStore>,
    ) -> anyhow::Result<ExitCode> {
        let place = if self.repair { OpenStore::open(address)? } else { OpenStore::reading(address)? };
        let mut lines = ProgressLines::new("compared", "summaries");
        let mut progress = |done: IndexProgress| lines.report(done.done, done.total);
        let check = match self.repair {
            true => place.runtime.repair(&mut progress).await?,
            false => place.runtime.verify(&mut progress).await?,
        };
        of_store(Report::new(&check), store).lines(self.lines(common, &check)).print(common);
        Ok(if check.sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn lines(&self, common: &Common, check: &StoreCheck) -> Vec<String> {
        let (snapshots, differing) = (&check.wrong_snapshots, &check.index.differing);
        let counts = [
            counted(check.sessions, "session"),
            counted(check.records, "record"),
            counted(check.objects, "object"),
        ];
        let mut lines = vec![counts.join(", ")];
        lines.extend(check.findings.iter().map(|finding| format!("damaged: {finding}")));
        for one in &check.redacted {
            let records = counted(one.positions.len(), "record");
            lines.push(format!("{}: redacted: {records}", short(one.session)));
        }
        if !check.redacted_objects.is_empty() {
            lines.push(format!("redacted: {}", counted(check.redacted_objects.len(), "object")));
        }
        for one in &check.removed {
            lines.push(format!("{}: removed, {}", short(one.session), counted(one.records, "record")));
        }
        lines.extend(check.lost.iter().map(|object| format!("object {object}: lost in a salvage")));
        for WrongSnapshot { session, reason } in snapshots {
            lines.push(format!("session {session}: its snapshot cannot be used: {reason}"));
        }
        for session in differing {
            lines.push(format!("session {session}: its summary differs from its journal"));
        }
        if !check.index.unindexed.is_empty() {
            lines.push(format!("not indexed: {}", counted(check.index.unindexed.len(), "session")));
        }
        let changes = &check.changes;
        for session in &changes.differing {
            lines.push(format!("session {session}: its changed paths in the index differ from its journal"));
        }
        if !changes.unlisted.is_empty() {
            let sessions = counted(changes.unlisted.len(), "session");
            lines.push(format!("changed paths not indexed: {sessions}"));
        }
        let agrees =
            self.repair || differing.is_empty() && changes.differing.is_empty() && snapshots.is_empty();
        if self.repair {
            let rebuilt = check.index.rebuilt;
            lines.push(format!("{rebuilt} summaries rebuilt, {} snapshots deleted", snapshots.len()));
            if changes.rebuilt > 0 {
                let sessions = counted(changes.rebuilt, "session");
                lines.push(format!("changed paths listed again: {sessions}"));
            }
        } else if !agrees {
            lines.push(format!("`{}` repairs index and snapshots", common.hint("verify --repair")));
        }
        lines.push(match check.findings.is_empty() {
            true if !check.lost.is_empty() => {
                "everything else is sound; another salvage cannot recover what was lost".to_owned()
            }
            true if agrees => "everything is sound".to_owned(),
            true => "everything else is sound".to_owned(),
            false => "`backstitch salvage NEW_STORE` writes what is sound to a new store".to_owned(),
        });
        lines
    }
}

/// Describes what an operation has removed, or would remove, of what killed processes left outside of the store.
pub(super) fn remainder_lines(paths: &[PathBuf], dry_run: bool) -> impl Iterator<Item = String> {
    let verb = if dry_run { "would remove" } else { "removed" };
    paths.iter().map(move |path| format!("{verb} {}, which a killed process had left", path.display()))
}
