//! `log`: what happened in a session, record by record, with what was gone back from.

use std::process::ExitCode;

use backstitch::journal::{Position, Record, RecordBody};
use backstitch::view::JournalView;
use backstitch::{SessionEvent, describe, load_view, read_records};
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::place::OpenStore;
use super::waiting::{PendingCall, pending_call};

#[derive(Args)]
pub(crate) struct Log {
    /// The session, by the beginning or the end of its id; without it, the latest.
    session: Option<String>,
    /// Shows every record, also those that only machines need.
    #[arg(long)]
    all: bool,
    /// Goes on as records come, until the session has ended, has stopped or is paused.
    #[arg(long, short)]
    follow: bool,
}

impl Log {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let view = place.view(session).await?;
        for record in read_records(&*place.store, session, Position::START, None).await? {
            self.print(common, &place, &view, &record).await?;
        }
        if self.follow {
            let mut events = place.runtime.events(session).from(view.head());
            loop {
                let Some(SessionEvent::Record(record)) = events.next().await? else { continue };
                let ended = matches!(
                    record.body,
                    RecordBody::EvaluationFinished(_) | RecordBody::Paused(_) | RecordBody::SessionStopped(_)
                );
                self.print(common, &place, &place.view(session).await?, &record).await?;
                if ended {
                    break;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn print(
        &self,
        common: &Common,
        place: &OpenStore,
        view: &JournalView,
        record: &Record,
    ) -> anyhow::Result<()> {
        let visible = is_visible(view, record.position);
        let branch = view.lineage().branch_of(record.position).0;
        let told = describe(record);
        if told.is_none() && !self.all {
            return Ok(());
        }
        let told = told.unwrap_or_else(|| record.body.kind().to_owned());
        let call = asked_about(place, view, record).await?;
        if common.json {
            let mut line = as_json(record)?;
            (line["branch"], line["visible"], line["text"]) = (json!(branch), json!(visible), json!(told));
            if let Some(call) = call {
                (line["name"], line["arguments"]) = (json!(call.name), call.arguments);
            }
            println!("{line}");
        } else {
            let mark = if visible { "*" } else { "·" };
            let rail = "| ".repeat(usize::try_from(branch).unwrap_or(0).min(8));
            println!("{:>5} {rail}{mark} {told}", record.position.number());
            if let Some(call) = call {
                println!("{}", call.text(&format!("      {rail}    ")));
            }
        }
        Ok(())
    }
}

/// A record as it was appended: kind, version of the kind, place, time, data, and fields that this program does not know. This is a
/// stable form, see docs/cli.md.
fn as_json(record: &Record) -> anyhow::Result<Value> {
    let mut stored = serde_json::to_value(record)?;
    let mut line = json!({
        "v": 1, "position": record.position, "at": record.at, "kind": record.body.kind(),
        "version": record.version(), "data": stored["data"].take(),
    });
    if let Some(stored) = stored.as_object_mut() {
        ["position", "v", "kind", "at", "data"].iter().for_each(|known| _ = stored.remove(*known));
        if !stored.is_empty() {
            line["extra"] = json!(stored);
        }
    }
    Ok(line)
}

/// The call that a person had to decide about there, with all of its arguments. One that was gone back from is looked for where the
/// session was then.
async fn asked_about(
    place: &OpenStore,
    view: &JournalView,
    record: &Record,
) -> anyhow::Result<Option<PendingCall>> {
    let RecordBody::Paused(paused) = &record.body else { return Ok(None) };
    if paused.call_id.is_none_or(|call| view.call(call).is_some()) {
        return pending_call(&*place.store, view, paused).await;
    }
    let then = load_view(&*place.store, view.session_id(), Some(record.position.next())).await?;
    pending_call(&*place.store, &then, paused).await
}

fn is_visible(view: &JournalView, position: Position) -> bool {
    view.lineage().visible(view.head()).iter().any(|range| range.contains(&position))
}
