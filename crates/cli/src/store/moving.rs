//! `backup` and `copy`, and what they share with `export` and `import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::Runtime;
use backstitch::ports::{BackupProgress, SessionRole, TransferOutcome, TransferProgress, TransferStep};
use backstitch::report::SessionTransfer;
use backstitch::stores::StoreAddress;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};

use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode};
use crate::open::{OpenStore, ProgressLines, short};
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Backup {
    /// Path of the backup, which must not exist.
    to: PathBuf,
}

impl Backup {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let from = OpenStore::address(common)?;
        let mut lines = ProgressLines::new("wrote", "MiB");
        let mebibytes = |bytes: u64| usize::try_from(bytes >> 20).unwrap_or(usize::MAX);
        let mut progress = |progress: BackupProgress| {
            lines.report(mebibytes(progress.written), mebibytes(progress.total.max(progress.written)));
        };
        let backup = Runtime::backup(&from, &self.to, &mut progress).await;
        let backup = backup.with_context(|| format!("{from} cannot be backed up"))?;
        let done = Report::new(&backup).line(written_to(&self.to, backup.bytes)).print(common);
        let Some((first, more)) = backup.findings.split_first() else { return Ok(done) };
        let more = match more.len() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!("the store is damaged, and so is its backup: {first}{more}");
        let hint = format!(
            "the backup is kept; `{}` lists the damage, and `{}` copies what is sound",
            common.hint("verify"),
            common.hint("salvage NEW")
        );
        Err(CommandError::new(ErrorCode::StoreDamaged, message).with_hint(hint).into())
    }
}

#[derive(Args)]
pub(crate) struct Copy {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Address of the other store, which is created if it does not exist.
    #[arg(long, value_name = "STORE", value_hint = ValueHint::AnyPath, value_parser = PathBufValueParser::new().map(crate::keys::store_address))]
    to: StoreAddress,
}

impl Copy {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        let other = Common { store: Some(self.to.clone()), ..common.clone() };
        let target = OpenStore::existing_or_new(&other, &std::env::current_dir()?)?;
        let mut lines = TransferLines::new();
        let copied = place.runtime.copy(session, &target.runtime, &mut |step| lines.report(step)).await;
        let copied = copied.with_context(|| format!("session {session} cannot be copied"))?;
        let next = other.hint(format_args!("resume {}", short(session)));
        let report = Report::new(&copied).lines(transfer_lines(&copied.transfer, "copied"));
        Ok(report.line(format!("`{next}` continues it there")).print(common))
    }
}

/// Prints the progress of a transfer.
pub(crate) struct TransferLines {
    step: TransferStep,
    lines: ProgressLines,
}

impl TransferLines {
    pub(crate) fn new() -> Self {
        Self { step: TransferStep::Check, lines: lines_of(TransferStep::Check) }
    }

    pub(crate) fn report(&mut self, progress: TransferProgress) {
        if progress.step != self.step {
            *self = Self { step: progress.step, lines: lines_of(progress.step) };
        }
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.lines.report(number(progress.done), number(progress.total));
    }
}

fn lines_of(step: TransferStep) -> ProgressLines {
    match step {
        TransferStep::Check => ProgressLines::new("checked", "objects"),
        TransferStep::Objects => ProgressLines::new("wrote", "objects"),
        TransferStep::Sessions => ProgressLines::new("wrote", "sessions"),
    }
}

/// Describes what was moved.
pub(crate) fn transfer_lines(transfer: &SessionTransfer, verb: &str) -> Vec<String> {
    let content = &transfer.content;
    let id = short(content.session);
    let records = content.sessions.last().map_or(0, |main| main.records);
    let mut lines = vec![match transfer.outcome {
        TransferOutcome::Created => format!("{verb} session {id} ({})", counted(records, "record")),
        TransferOutcome::Extended { from } => {
            format!("session {id} was there up to position {from}; {verb} the records from there on")
        }
        TransferOutcome::Present => format!("session {id} is already there, and nothing was changed"),
    }];
    let others: Vec<String> =
        [(SessionRole::Ancestor, "it was forked from"), (SessionRole::SubAgent, "of its sub-agents")]
            .into_iter()
            .filter_map(|(role, what)| {
                let count = content.sessions.iter().filter(|one| one.role == role).count();
                (count > 0).then(|| format!("{count} {what}"))
            })
            .collect();
    if !others.is_empty() {
        lines.push(format!("with other sessions: {}", others.join(", ")));
    }
    lines
}

/// Formats a size for people.
pub(crate) fn written_to(path: &Path, bytes: u64) -> String {
    format!("written to {} ({bytes} bytes)", path.display())
}
