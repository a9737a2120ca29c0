//! `backup` and `copy`, and what they share with `export` and `import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::code::ErrorCode;
use backstitch::ports::{
    BackupProgress, OpenError, SessionRole, TransferOutcome, TransferProgress, TransferReport, TransferStep,
};
use backstitch::stores::{self, StoreAddress};
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};
use serde_json::{Value, json};

use crate::common::{Common, counted};
use crate::error::CommandError;
use crate::open::place::{OpenStore, short, unopened};
use crate::open::progress::ProgressLines;

#[derive(Args)]
pub(crate) struct Backup {
    /// Path of the backup, which must not exist.
    to: PathBuf,
}

impl Backup {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let from = OpenStore::address(common)?;
        let admin = stores::open_for_rescue(&from).map_err(|error| unopened(&from, error))?;
        let mut lines = ProgressLines::new("wrote", "MiB");
        let mebibytes = |bytes: u64| usize::try_from(bytes >> 20).unwrap_or(usize::MAX);
        let mut report = |progress: BackupProgress| {
            lines.report(mebibytes(progress.written), mebibytes(progress.total.max(progress.written)));
        };
        let bytes = admin.backup(&self.to, &mut report).await;
        let bytes = bytes.with_context(|| format!("{from} cannot be backed up"))?;
        let damage = damage_in(&self.to).await;
        if common.json {
            let is_sound = damage.is_empty();
            println!(
                "{}",
                json!({"v": 1, "store": from.to_string(), "backup": self.to, "bytes": bytes, "sound": is_sound})
            );
        } else {
            println!("written to {} ({bytes} bytes)", self.to.display());
        }
        let Some(first) = damage.first() else { return Ok(ExitCode::SUCCESS) };
        let more = match damage.len() - 1 {
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

/// Verifies a backup, and returns what is damaged. One of an older version is copied as it is, and not verified.
async fn damage_in(backup: &Path) -> Vec<String> {
    let store = match stores::open_read_only(&StoreAddress::File(backup.to_owned())) {
        Ok(store) => store,
        Err(OpenError::Older { .. }) => return Vec::new(),
        Err(error) => return vec![error.to_string()],
    };
    match store.admin.verify().await {
        Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[derive(Args)]
pub(crate) struct Copy {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Address of the other store, which is created if it does not exist.
    #[arg(long, value_name = "STORE", value_hint = ValueHint::AnyPath, value_parser = PathBufValueParser::new().map(StoreAddress::new))]
    to: StoreAddress,
}

impl Copy {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        let other = Common { store: Some(self.to.clone()), ..common.clone() };
        let target = OpenStore::existing_or_new(&other, &std::env::current_dir()?)?;
        let mut lines = TransferLines::new();
        let mut step = |step| lines.report(step);
        let report = place.admin.copy_session(session, &*target.admin, &mut step).await;
        let report = report.with_context(|| format!("session {session} cannot be copied"))?;
        if common.json {
            let mut line = as_json(&report);
            line["store"] = json!(target.address.to_string());
            println!("{line}");
        } else {
            print(&report, "copied");
            println!("`{}` continues it there", other.hint(format_args!("resume {}", short(session))));
        }
        Ok(ExitCode::SUCCESS)
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

/// Renders what was moved as JSON.
pub(crate) fn as_json(report: &TransferReport) -> Value {
    json!({
        "v": 1, "session": report.session, "outcome": report.outcome(), "sessions": report.sessions,
        "objects": report.objects,
    })
}

/// Prints what was moved.
pub(crate) fn print(report: &TransferReport, verb: &str) {
    let id = short(report.session);
    let records = report.sessions.last().map_or(0, |main| main.records);
    match report.outcome() {
        TransferOutcome::Created => println!("{verb} session {id} ({})", counted(records, "record")),
        TransferOutcome::Extended { from } => {
            println!("session {id} was there up to position {from}; {verb} the records from there on");
        }
        TransferOutcome::Present => println!("session {id} is already there, and nothing was changed"),
    }
    let others: Vec<String> =
        [(SessionRole::Ancestor, "it was forked from"), (SessionRole::SubAgent, "of its sub-agents")]
            .into_iter()
            .filter_map(|(role, what)| {
                let count = report.sessions.iter().filter(|one| one.role == role).count();
                (count > 0).then(|| format!("{count} {what}"))
            })
            .collect();
    if !others.is_empty() {
        println!("with other sessions: {}", others.join(", "));
    }
}

/// Formats a size for people.
pub(crate) fn written_to(path: &Path, bytes: u64) -> String {
    format!("written to {} ({bytes} bytes)", path.display())
}
