//! `log`: what happened in a session, record by record, with what was gone back from.

use std::process::ExitCode;

use backstitch::journal::{CallOutcome, ObservationCause, Origin, Position, Record, RecordBody, Role};
use backstitch::view::JournalView;
use backstitch::{load_view, read_records};
use clap::Args;
use serde_json::json;

use super::Common;
use super::list::{line, reason_word};
use super::place::{Place, short};
use super::show::unfinished;
use super::waiting::{PendingCall, pending_call};

#[derive(Args)]
pub(crate) struct Log {
    /// The session, by the beginning or the end of its id; without it, the latest.
    session: Option<String>,
    /// Shows every record, also those that only machines need.
    #[arg(long)]
    all: bool,
    /// Goes on as records come, until the session has ended or is paused.
    #[arg(long, short)]
    follow: bool,
}

impl Log {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = Place::for_reading(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let view = place.view(session).await?;
        for record in read_records(&*place.store, session, Position::START, None).await? {
            self.print(common, &place, &view, &record).await?;
        }
        if self.follow {
            let mut events = place.runtime.events(session).from(view.head());
            loop {
                let record = events.next().await?;
                let ended = matches!(record.body, RecordBody::EvaluationFinished(_) | RecordBody::Paused(_));
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
        place: &Place,
        view: &JournalView,
        record: &Record,
    ) -> anyhow::Result<()> {
        let visible = is_visible(view, record.position);
        let branch = view.lineage().branch_of(record.position).0;
        let told = tell(record);
        if told.is_none() && !self.all {
            return Ok(());
        }
        let told = told.unwrap_or_else(|| record.body.kind().to_owned());
        let call = asked_about(place, view, record).await?;
        if common.json {
            let mut line = json!({
                "v": 1, "position": record.position, "at": record.at, "kind": record.body.kind(),
                "branch": branch, "visible": visible, "text": told,
            });
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

/// The call that a person had to decide about there, with all of its arguments. One that was gone back from is looked for where the
/// session was then.
async fn asked_about(
    place: &Place,
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

/// What a record says, in a line; `None` for one that only machines need.
fn tell(record: &Record) -> Option<String> {
    Some(match &record.body {
        RecordBody::SessionCreated(created) => match &created.origin {
            Origin::Fork { session, position } => format!("forked from {} at {position}", short(session)),
            Origin::Call { session, .. } => format!("works for a call of {}", short(session)),
            Origin::Root => format!("session {}", created.session_id),
        },
        RecordBody::EvaluationResumed(resumed) => {
            format!("resumed by {}", resumed.owner.as_deref().unwrap_or("someone"))
        }
        RecordBody::MessageAppended(message) => {
            let text = line(&message.content(), 90);
            match message.role() {
                Role::User => format!("asked: {text}"),
                Role::Assistant => match message.message.option_call() {
                    Some(call) => {
                        let arguments = line(&call.arguments.text(), 70);
                        format!("  calls {} {arguments}  [{}]", call.option_name, short(call.invocation_id))
                    }
                    None if text.is_empty() && unfinished(message).is_empty() => return None,
                    None => format!("turn {}: {text}{}", message.turn, unfinished(message)),
                },
                Role::System | Role::Tool => return None,
            }
        }
        RecordBody::CallStarted(started) => match (started.session, started.attempt) {
            (Some(session), 1) => format!("  {} works in {}", started.name, short(session)),
            (Some(session), attempt) => {
                format!("  {} goes on in {} (attempt {attempt})", started.name, short(session))
            }
            (None, 1) => return None,
            (None, attempt) => format!("  {} runs again (attempt {attempt})", started.name),
        },
        RecordBody::CallFinished(finished) => {
            let summary = line(finished.summary.as_deref().unwrap_or_default(), 80);
            let took = finished.elapsed_micros / 1_000;
            match finished.outcome {
                CallOutcome::Succeeded => format!("  done in {took} ms: {summary}"),
                CallOutcome::Failed => {
                    let rescue = finished
                        .rescue
                        .map(|_| format!(" (files as it left them: rescue:{})", record.position));
                    format!("  failed, rolled back: {summary}{}", rescue.unwrap_or_default())
                }
            }
        }
        RecordBody::WorkspaceObserved(observed) => match observed.cause {
            ObservationCause::Started => return None,
            ObservationCause::Restored => "files put back".to_owned(),
            ObservationCause::Drifted => "files were changed from outside".to_owned(),
            ObservationCause::Interrupted => {
                format!("files are restored (as found: rescue:{})", record.position)
            }
        },
        RecordBody::ResourceChanged(changed) => match &changed.state_object {
            Some(object) => format!("  resource {}: {} bytes", changed.name, object.length),
            None => format!("  resource {}: {}", changed.name, line(&changed.state.to_string(), 80)),
        },
        RecordBody::Rewound(rewound) => {
            let reason = rewound.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let rescue = rewound.rescue.map(|_| format!(" (files before it: rescue:{})", record.position));
            format!("back to {}{reason}{}", rewound.to, rescue.unwrap_or_default())
        }
        RecordBody::Paused(paused) => {
            format!(
                "paused ({}): {}",
                reason_word(paused.reason),
                paused.detail.as_deref().unwrap_or_default()
            )
        }
        RecordBody::Resolved(resolved) => {
            let by = resolved.by.as_deref().unwrap_or("someone");
            let decision = serde_json::to_value(&resolved.decision).unwrap_or_default();
            format!("decided by {by}: {}", decision["kind"].as_str().unwrap_or_default())
        }
        RecordBody::EvaluationFinished(finished) => match &finished.error {
            Some(error) => format!("ended: {:?} ({}): {}", finished.outcome, error.kind, error.message),
            None => format!("ended: {:?}", finished.outcome),
        },
        RecordBody::Note(note) => format!("{}: {}", note.topic, note.text),
        _ => return None,
    })
}
