//! `verify`: checks a store for damage, and its index and snapshots against the journals.

use std::process::ExitCode;

use backstitch::host::{IndexCheck, IndexRepair, SnapshotState, check_snapshot};
use backstitch::id::SessionId;
use backstitch::ports::VerifyReport;
use clap::Args;
use serde_json::json;

use crate::common::{Common, counted};
use crate::open::place::{OpenStore, short};
use crate::open::progress::ProgressLines;

#[derive(Args)]
pub(crate) struct Verify {
    /// Rebuild the index and delete snapshots where they differ from the journals. Nothing else is changed.
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = if self.repair { OpenStore::existing(common)? } else { OpenStore::for_reading(common)? };
        let repair = if self.repair { IndexRepair::Rebuild } else { IndexRepair::Report };
        if self.repair {
            place.admin.remove_stray_summaries().await?;
        }
        let snapshots = wrong_snapshots(&place).await;
        if self.repair {
            for wrong in &snapshots {
                place.admin.remove_snapshot(wrong.session).await?;
            }
        }
        let report = place.admin.verify().await?;
        let mut progress = ProgressLines::new("compared", "summaries");
        let compared = place.runtime.check_index(repair, |done| progress.report(done.done, done.total)).await;
        let check = match compared {
            Ok(check) => check,
            // The damage is the finding.
            Err(_) if !report.is_sound() => IndexCheck::default(),
            Err(error) => return Err(error.into()),
        };
        let agrees = self.repair || check.differing.is_empty() && snapshots.is_empty();
        let is_sound = report.is_sound() && agrees;
        if common.json {
            print_json(&report, &check, &snapshots, is_sound);
        } else {
            print(common, &report, &check, &snapshots, repair);
        }
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A snapshot that differs from its journal or is damaged.
struct WrongSnapshot {
    session: SessionId,
    /// What is wrong with it.
    reason: String,
}

/// Compares all snapshots with the journals. A journal that cannot be read is a finding of the store already.
async fn wrong_snapshots(place: &OpenStore) -> Vec<WrongSnapshot> {
    let mut wrong = Vec::new();
    for session in place.store.sessions().await.unwrap_or_default() {
        let reason = match check_snapshot(&*place.store, session).await {
            Ok(SnapshotState::Wrong(part)) => format!("it differs from the journal ({part})"),
            Ok(SnapshotState::Damaged) => "it is damaged".to_owned(),
            _ => continue,
        };
        wrong.push(WrongSnapshot { session, reason });
    }
    wrong
}

fn print_json(report: &VerifyReport, check: &IndexCheck, snapshots: &[WrongSnapshot], is_sound: bool) {
    let snapshots: Vec<_> =
        snapshots.iter().map(|wrong| json!({"session": wrong.session, "reason": wrong.reason})).collect();
    let report = json!(report);
    println!(
        "{}",
        json!({
            "v": 1, "sound": is_sound, "sessions": report["sessions"], "records": report["records"],
            "objects": report["objects"], "findings": report["findings"], "lost": report["lost"],
            "wrong_snapshots": snapshots, "redacted": report["redacted"],
            "redacted_objects": report["redacted_objects"], "removed": report["removed"],
            "index": {
                "compared": check.compared, "differing": check.differing, "unindexed": check.unindexed,
                "rebuilt": check.rebuilt,
            },
        })
    );
}

fn print(
    common: &Common,
    report: &VerifyReport,
    check: &IndexCheck,
    snapshots: &[WrongSnapshot],
    repair: IndexRepair,
) {
    println!(
        "{}, {}, {}",
        counted(report.sessions, "session"),
        counted(report.records, "record"),
        counted(report.objects, "object")
    );
    for finding in &report.findings {
        println!("damaged: {finding}");
    }
    for (session, positions) in &report.redacted {
        println!("{}: redacted: {}", short(session), counted(positions.len(), "record"));
    }
    if !report.redacted_objects.is_empty() {
        println!("redacted: {}", counted(report.redacted_objects.len(), "object"));
    }
    for one in &report.removed {
        println!("{}: removed, {}", short(one.session), counted(one.records, "record"));
    }
    for object in &report.lost {
        println!("object {object}: lost in a salvage");
    }
    for WrongSnapshot { session, reason } in snapshots {
        println!("session {session}: its snapshot cannot be used: {reason}");
    }
    for session in &check.differing {
        println!("session {session}: its summary differs from its journal");
    }
    if !check.unindexed.is_empty() {
        println!("not indexed: {}", counted(check.unindexed.len(), "session"));
    }
    match repair {
        IndexRepair::Rebuild => {
            println!("{} summaries rebuilt, {} snapshots deleted", check.rebuilt, snapshots.len());
        }
        IndexRepair::Report if !check.differing.is_empty() || !snapshots.is_empty() => {
            println!("`{}` repairs index and snapshots", common.hint("verify --repair"));
        }
        IndexRepair::Report => {}
    }
    let agrees = repair == IndexRepair::Rebuild || check.differing.is_empty() && snapshots.is_empty();
    match report.is_sound() {
        true if !report.lost.is_empty() => {
            println!("everything else is sound; another salvage cannot recover what was lost");
        }
        true if agrees => println!("everything is sound"),
        true => println!("everything else is sound"),
        false => println!("`backstitch salvage NEW_STORE` writes what is sound to a new store"),
    }
}
