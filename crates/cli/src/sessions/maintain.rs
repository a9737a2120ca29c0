//! `verify`, `salvage` and `gc`: maintain a store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::store::{GcMode, Retention, SqliteStore};
use clap::Args;
use serde_json::json;

use super::Common;
use super::place::{OpenStore, short};

#[derive(Args)]
pub(crate) struct Verify {}

impl Verify {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let report = place.store.verify()?;
        if common.json {
            let redacted = report.redacted.iter();
            let redacted: Vec<_> = redacted
                .map(|(session, positions)| json!({"session": session, "positions": positions}))
                .collect();
            let removed = report.removed.iter();
            let removed: Vec<_> =
                removed.map(|one| json!({"session": one.session, "records": one.records})).collect();
            let findings: Vec<_> = report.findings.iter().map(|finding| finding.to_string()).collect();
            println!(
                "{}",
                json!({
                    "v": 1, "sound": report.is_sound(), "sessions": report.sessions, "records": report.records,
                    "objects": report.objects, "findings": findings, "lost": report.lost,
                    "redacted": redacted, "redacted_objects": report.redacted_objects, "removed": removed,
                })
            );
        } else {
            println!("{} sessions, {} records, {} objects", report.sessions, report.records, report.objects);
            for finding in &report.findings {
                println!("damaged: {finding}");
            }
            for (session, positions) in &report.redacted {
                println!("{}: {} records were redacted", short(session), positions.len());
            }
            if !report.redacted_objects.is_empty() {
                println!("{} objects were redacted", report.redacted_objects.len());
            }
            for one in &report.removed {
                println!("{}: removed, {} records", short(one.session), one.records);
            }
            for object in &report.lost {
                println!("object {object}: lost in a salvage");
            }
            if !report.is_sound() {
                println!("`backstitch salvage NEW_STORE` writes what is sound to a new store");
            } else if report.lost.is_empty() {
                println!("everything is sound");
            } else {
                println!("everything else is sound; another salvage cannot recover what was lost");
            }
        }
        Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[derive(Args)]
pub(crate) struct Salvage {
    /// Path of the new store, which must not exist. The damaged store is only read.
    to: PathBuf,
}

impl Salvage {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let from = OpenStore::path(common)?;
        let report = SqliteStore::salvage(&from, &self.to)
            .with_context(|| format!("{} cannot be salvaged", from.display()))?;
        if common.json {
            let sessions: Vec<_> = report
                .sessions
                .iter()
                .map(|one| {
                    let lost = one.lost.as_ref().map(|lost| {
                    json!({"position": lost.position, "reason": lost.reason, "records": lost.records})
                });
                    json!({"session": one.session, "records": one.records, "lost": lost})
                })
                .collect();
            println!(
                "{}",
                json!({
                    "v": 1, "complete": report.is_complete(), "sessions": sessions, "objects": report.objects,
                    "lost_objects": report.lost_objects, "notes": report.notes,
                })
            );
        } else {
            for one in &report.sessions {
                match &one.lost {
                    None => println!("{}: all {} records", short(one.session), one.records),
                    Some(lost) => println!(
                        "{}: {} records; {} from position {} on are lost ({})",
                        short(one.session),
                        one.records,
                        lost.records,
                        lost.position,
                        lost.reason
                    ),
                }
            }
            println!("{} objects kept, {} lost", report.objects, report.lost_objects.len());
            report.notes.iter().for_each(|note| println!("{note}"));
            println!("written to {}", self.to.display());
        }
        Ok(ExitCode::SUCCESS)
    }
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
}

impl Gc {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let mut retention = Retention::keep_all();
        if let Some(days) = self.keep_days {
            retention = retention.keep_days(days);
        }
        if let Some(boundaries) = self.keep_boundaries {
            retention = retention.keep_boundaries(boundaries);
        }
        let collect = if self.dry_run { GcMode::DryRun } else { GcMode::Now };
        let report = place.store.gc(retention, collect)?;
        let freed: Vec<_> = report.freed.iter().map(|freed| {
            json!({
                "session": freed.session, "kind": freed.kind.as_str(), "objects": freed.objects, "bytes": freed.bytes,
            })
        }).collect();
        if common.json {
            println!(
                "{}",
                json!({
                    "v": 1, "dry_run": self.dry_run, "freed": freed, "freed_bytes": report.freed_bytes(),
                    "kept_objects": report.kept_objects, "kept_bytes": report.kept_bytes,
                    "pruned_roots": report.pruned_roots,
                })
            );
            return Ok(ExitCode::SUCCESS);
        }
        for freed in &report.freed {
            let session = freed.session.map_or_else(|| "no session".to_owned(), short);
            println!("{session}: {} objects ({}), {} bytes", freed.objects, freed.kind.as_str(), freed.bytes);
        }
        let verb = if self.dry_run { "would be freed" } else { "freed" };
        println!("{} bytes {verb}, {} kept", report.freed_bytes(), report.kept_bytes);
        Ok(ExitCode::SUCCESS)
    }
}
