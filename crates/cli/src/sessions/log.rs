//! `log`: prints the records of a session, including those before a rewind.

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
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    /// Print every record. Default: only those that describe themselves to people.
    #[arg(long)]
    all: bool,
    /// Print new records as they are appended, until the session ends, stops or is paused.
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
        let text = describe(record);
        if text.is_none() && !self.all {
            return Ok(());
        }
        let text = text.unwrap_or_else(|| record.body.kind().to_owned());
        let call = asked_about(place, view, record).await?;
        if common.json {
            let mut line = as_json(record)?;
            (line["branch"], line["visible"], line["text"]) = (json!(branch), json!(visible), json!(text));
            if let Some(call) = call {
                (line["name"], line["arguments"]) = (json!(call.name), call.arguments);
            }
            println!("{line}");
        } else {
            let mark = if visible { "*" } else { "·" };
            let rail = "| ".repeat(usize::try_from(branch).unwrap_or(0).min(8));
            println!("{:>5} {rail}{mark} {text}", record.position.number());
            if let Some(call) = call {
                println!("{}", call.text(&format!("      {rail}    ")));
            }
        }
        Ok(())
    }
}

/// Renders a record as it was appended: position, time, kind, version of the kind, data, and fields that this
/// version does not know. The form is stable, see docs/cli.md.
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

/// Returns the call that a pause was about, with all of its arguments. A call before a rewind is looked up in
/// the session as it was then.
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
