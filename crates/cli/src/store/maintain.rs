//! `salvage` and `gc`: maintain a store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::SystemClock;
use backstitch::code::ErrorCode;
use backstitch::ports::{
    Erasure, ErasureMode, Expiry, ForkRemoval, GcMode, IndexedStatus, Owner, Removal, RemovedSession,
    Retention,
};
use backstitch::stores;
use backstitch::time::{Clock as _, Timestamp};
use clap::Args;
use serde_json::json;

use super::remainders;
use crate::common::{Common, counted};
use crate::error::{CommandError, code_of, message_of};
use crate::history::isolated::{copies_of, remove_copies};
use crate::open::place::{OpenStore, short, unopened};

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
        let admin = stores::open_for_rescue(&from).map_err(|error| unopened(&from, error))?;
        let report = admin.salvage(&self.to).await;
        let report = report
            .with_context(|| format!("{from} cannot be salvaged"))
            .map_err(|error| unsalvageable(common, error))?;
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "complete": report.is_complete(), "sessions": report.sessions,
                    "objects": report.objects, "lost_objects": report.lost_objects, "notes": report.notes,
                })
            );
        } else {
            for one in &report.sessions {
                match &one.lost {
                    None => println!("{}: whole, {}", short(one.session), counted(one.records, "record")),
                    Some(lost) => println!(
                        "{}: {}; {} from position {} on are lost ({})",
                        short(one.session),
                        counted(one.records, "record"),
                        lost.records,
                        lost.position,
                        lost.reason
                    ),
                }
            }
            println!("{} kept, {} lost", counted(report.objects, "object"), report.lost_objects.len());
            report.notes.iter().for_each(|note| println!("{note}"));
            println!("written to {}", self.to.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Refuses to count days from a clock that was never set.
fn check_clock(now: Timestamp) -> Result<(), CommandError> {
    if now >= Timestamp::UNIX_EPOCH {
        return Ok(());
    }
    let message = format!("the clock of this machine says {now}, and ages cannot be told from it");
    Err(CommandError::new(ErrorCode::Usage, message)
        .with_hint("nothing was deleted; set the clock, or leave out `--expire-days` and `--keep-days`"))
}

#[derive(Args)]
pub(crate) struct Gc {
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
    /// Delete sessions without a record in the last DAYS days. Sessions that a process holds, and those with
    /// forks that stay, are kept. Default: delete none.
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
    /// Removes the sessions that have expired.
    async fn expire(&self, place: &OpenStore) -> anyhow::Result<Vec<RemovedSession>> {
        let Some(days) = self.expire_days else { return Ok(Vec::new()) };
        // Only what is indexed can expire.
        place.runtime.index(|_| {}).await?;
        let now = SystemClock::new().now();
        let expiry = Expiry::after_days(now, days).with_statuses(self.expire_status.iter().copied());
        let removal = Removal {
            sessions: place.admin.expired(expiry).await?,
            forks: ForkRemoval::Refuse,
            owner: Owner::new(format!("`gc` (process {})", std::process::id())),
            at: now,
            mode: if self.dry_run { ErasureMode::DryRun } else { ErasureMode::Now },
        };
        let copies = copies_of(place, removal.sessions.iter().copied()).await;
        let report = place.store.remove(removal).await?;
        if !self.dry_run {
            remove_copies(copies)?;
        }
        if let Erasure::Pending { reason } = &report.erasure {
            eprintln!("warning: the store's files may still hold expired sessions: {reason}");
        }
        Ok(report.sessions)
    }

    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.expire_days.is_some() || self.keep_days.is_some() {
            check_clock(SystemClock::new().now())?;
        }
        let place = OpenStore::existing(common)?;
        let mut retention = Retention::keep_all();
        if let Some(days) = self.keep_days {
            retention = retention.keep_days(SystemClock::new().now(), days);
        }
        if let Some(boundaries) = self.keep_boundaries {
            retention = retention.keep_boundaries(boundaries);
        }
        let expired = self.expire(&place).await?;
        let left = remainders::remove(&*place.admin, self.dry_run).await;
        let collect = if self.dry_run { GcMode::DryRun } else { GcMode::Now };
        let report = place.admin.collect(retention, collect).await?;
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "dry_run": self.dry_run, "freed": report.freed, "freed_bytes": report.freed_bytes(),
                    "kept_objects": report.kept_objects, "kept_bytes": report.kept_bytes,
                    "pruned_roots": report.pruned_roots,
                    "left": left, "expired": expired.iter().map(|one| one.session).collect::<Vec<_>>(),
                })
            );
            return Ok(ExitCode::SUCCESS);
        }
        let verb = if self.dry_run { "would expire" } else { "expired" };
        expired
            .iter()
            .for_each(|one| println!("{}: {verb}, {}", short(one.session), counted(one.records, "record")));
        remainders::print(&left, self.dry_run);
        for freed in &report.freed {
            let session = freed.session.map_or_else(|| "no session".to_owned(), short);
            println!(
                "{session}: {} ({}), {}",
                counted(freed.objects, "object"),
                freed.kind.as_str(),
                counted(freed.bytes, "byte")
            );
        }
        let verb = if self.dry_run { "would be freed" } else { "freed" };
        println!("{} {verb}, {} kept", counted(report.freed_bytes(), "byte"), report.kept_bytes);
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_refused() {
        assert!(check_clock("2026-01-02T03:04:05Z".parse().unwrap()).is_ok());
        assert!(check_clock(Timestamp::UNIX_EPOCH).is_ok());
        let refused = check_clock("1969-12-31T23:59:59Z".parse().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("says 1969"), "{refused}");
    }
}
