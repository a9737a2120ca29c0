//! `verify`: checks a store for damage, and its index and snapshots against the journals.

use std::process::ExitCode;

use backstitch::host::IndexProgress;
use backstitch::report::{StoreCheck, WrongSnapshot};
use clap::Args;

use crate::common::{Common, counted};
use crate::open::place::{OpenStore, short};
use crate::open::progress::ProgressLines;
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Verify {
    /// Rebuild the index and delete snapshots where they differ from the journals. Nothing else is changed.
    #[arg(long)]
    repair: bool,
}

impl Verify {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = if self.repair { OpenStore::existing(common)? } else { OpenStore::for_reading(common)? };
        let mut lines = ProgressLines::new("compared", "summaries");
        let mut progress = |done: IndexProgress| lines.report(done.done, done.total);
        let check = match self.repair {
            true => place.runtime.repair(&mut progress).await?,
            false => place.runtime.verify(&mut progress).await?,
        };
        self.lines(common, &check).into_iter().fold(Report::new(&check), Report::line).print(common);
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
        let agrees = self.repair || differing.is_empty() && snapshots.is_empty();
        if self.repair {
            let rebuilt = check.index.rebuilt;
            lines.push(format!("{rebuilt} summaries rebuilt, {} snapshots deleted", snapshots.len()));
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
