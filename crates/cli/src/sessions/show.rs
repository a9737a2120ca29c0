//! `show`: prints a session as it is, or as it was at a point.

use std::process::ExitCode;

use backstitch::filesystem::format;
use backstitch::journal::Role;
use backstitch::one_line;
use backstitch::ports::{IndexedStatus, ObjectOverlay, SessionPresence, Store as _};
use backstitch::session::CaptureOptions;
use backstitch::view::{CallStatus, DriverPresence, JournalView};
use backstitch::{PointSpec, SystemClock, load_view, locate, reason_word, unfinished};
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::failure::{attempts, evaluations, last_stop, text};
use super::place::{OpenStore, short};
use super::turns;
use super::waiting::{self, PendingDecision, waiting};
use crate::common::counted;

#[derive(Args)]
pub(crate) struct Show {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    /// Point to show: a position, before:CALL, after:CALL, CALL, turn:N, start or head. Default: head.
    point: Option<PointSpec>,
    /// Show the items of all slices.
    #[arg(long)]
    state: bool,
    /// List the files of the workspace.
    #[arg(long)]
    files: bool,
    /// Show the turns of an agent that answers with programs: program, calls, printed text and result.
    #[arg(long)]
    turns: bool,
}

impl Show {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let head = place.view(session).await?;
        let view = match &self.point {
            None => head,
            Some(point) => {
                let found = locate(&*place.store, &head, point).await?;
                load_view(&*place.store, found.session, Some(found.cut)).await?
            }
        };
        let driver = match place.store.holder(session).await? {
            Some(_) => DriverPresence::Present,
            None => DriverPresence::Absent,
        };
        let waits = waiting(&*place.store, &view).await?;
        if common.json {
            let mut shown = self.as_json(&place, &view, driver)?;
            shown["waiting"] = waiting::as_json(&waits);
            if self.turns {
                let all = turns::of(&place, &view).await?;
                let turns: Vec<_> = all.iter().flat_map(|of_one| &of_one.turns).collect();
                shown["turns"] = serde_json::to_value(&turns)?;
            }
            println!("{shown}");
        } else if self.turns {
            turns::print(&place, &view).await?;
        } else {
            self.print(&place, &view, driver, &waits)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(
        &self,
        place: &OpenStore,
        view: &JournalView,
        driver: DriverPresence,
        waits: &[PendingDecision],
    ) -> anyhow::Result<()> {
        println!("session {} ({}), {} records", view.session_id(), status_word(view, driver), view.head());
        let spent = view.ledger().charged();
        let cached = match spent.cache_read_tokens {
            0 => String::new(),
            tokens => format!(", {tokens} of them read from a cache"),
        };
        println!("{}; {} tokens spent{cached}", counted(view.calls().count(), "call"), spent.total_tokens());
        attempts(view).iter().for_each(|line| println!("{line}"));
        if let Some(failure) = view.failure() {
            println!("no answer: {}", text(&failure));
        }
        for one in waits {
            println!("waits ({}): {}", reason_word(one.reason), one.detail);
            if let Some(call) = &one.call {
                println!("{}", call.text("  "));
            }
        }
        println!();
        let transcript = view.transcript()?;
        for message in transcript.all().iter() {
            match (message.role(), message.message.option_call()) {
                (_, Some(call)) => {
                    let status = match transcript.status(call.invocation_id) {
                        CallStatus::Pending => "pending",
                        CallStatus::Completed => "ok",
                        CallStatus::Failed => "failed",
                    };
                    let arguments = one_line(&call.arguments.text(), 70);
                    println!(
                        "  -> {} {arguments}  [{}] {status}",
                        call.option_name,
                        short(call.invocation_id)
                    );
                }
                (Role::Tool, None) => println!("  <- {}", one_line(&message.content(), 90)),
                (role, None) => {
                    let who = match role {
                        Role::System => "system",
                        Role::User => "user",
                        Role::Assistant | Role::Tool => "agent",
                    };
                    println!("{who}: {}{}", message.content(), unfinished(message));
                }
            }
        }
        if self.state {
            println!("\nstate:");
            for (name, items) in slices(view)? {
                println!("  {name} ({})", items.len());
                items.iter().for_each(|item| println!("    {item}"));
            }
        }
        if self.files {
            println!("\nfiles:");
            files(place, view)?.iter().for_each(|path| println!("  {path}"));
        }
        Ok(())
    }

    fn as_json(
        &self,
        place: &OpenStore,
        view: &JournalView,
        driver: DriverPresence,
    ) -> anyhow::Result<Value> {
        let transcript = view.transcript()?;
        let messages: Vec<_> =
            transcript.all().iter().map(|message| serde_json::to_value(&**message)).collect();
        let calls: Vec<_> = view.calls().map(|call| {
            json!({"call": call.call_id, "name": call.name, "status": call.status(), "checkpoint": call.checkpoint()})
        }).collect();
        let mut shown = json!({
            "v": 1, "session": view.session_id(), "records": view.head(), "status": view.status(driver),
            "pauses": view.pauses().map(|pause| serde_json::to_value(&**pause)).collect::<Result<Vec<_>, _>>()?,
            "spent": view.ledger().charged(), "messages": messages.into_iter().collect::<Result<Vec<_>, _>>()?,
            "calls": calls, "root": view.files().map(|files| files.root), "failure": view.failure(),
            "last_stop": last_stop(view), "evaluations": evaluations(view),
        });
        if self.state {
            shown["state"] =
                slices(view)?.into_iter().map(|(name, items)| (name, Value::Array(items))).collect();
        }
        if self.files {
            shown["files"] = json!(files(place, view)?);
        }
        Ok(shown)
    }
}

/// Returns the names and items of a session's slices, without the transcript.
pub(super) fn slices(view: &JournalView) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let session = view.session(std::sync::Arc::new(SystemClock::new()));
    let stored = session.snapshot_with(CaptureOptions::include_all()).stored_slices()?;
    let others = stored.into_iter().filter(|slice| slice.name != "inner_message" && !slice.items.is_empty());
    Ok(others.map(|slice| (slice.name, slice.items)).collect())
}

/// Returns the paths of the files in the recorded root.
fn files(place: &OpenStore, view: &JournalView) -> anyhow::Result<Vec<String>> {
    let Some(files) = view.files() else { return Ok(Vec::new()) };
    let nothing = backstitch::journal::WorkspaceRoot {
        tree: format::empty_tree().id(),
        manifest: format::Manifest::default().to_object().id(),
    };
    let brought = [format::empty_tree(), format::Manifest::default().to_object()];
    let known = ObjectOverlay::new(brought, &*place.store);
    Ok(format::diff(&known, nothing, files.root)?.into_iter().map(|change| change.path).collect())
}

/// What a session is doing, in a word.
pub(super) fn status_word(view: &JournalView, driver: DriverPresence) -> IndexedStatus {
    let presence = SessionPresence { is_held: driver == DriverPresence::Present, has_waiting: false };
    IndexedStatus::of(view.journal_state(), presence)
}
