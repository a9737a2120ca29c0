//! One-line descriptions of records, for people.

use backstitch_core::approval::ApprovalRule;
use backstitch_core::journal::{
    CallVerdict, Decision, Finish, InnerMessage, Note, ObservationCause, Origin, PauseReason, PauseResolved,
    Record, RecordBody, Role, SessionName, TagChange,
};
use backstitch_core::message::Large;
use backstitch_core::text::one_line;
use backstitch_repl::transcript::Cut;

/// The topic of notes about restored files.
pub(crate) const FILES_RESTORED: &str = "files_restored";

/// The topic of notes about what git executes.
pub(crate) const REPOSITORY_CHANGED: &str = "repository_changed";

/// The topic of notes with what came of an answer that did not come to its end.
pub(crate) const UNFINISHED: &str = "unfinished";

/// Describes a record in one line. Returns `None` for records that only programs need.
pub fn describe(record: &Record) -> Option<String> {
    Some(match &record.body {
        RecordBody::SessionCreated(created) => match &created.origin {
            Origin::Fork { session, position } => format!("forked from {} at {position}", short(session)),
            Origin::Call { session, .. } => format!("sub-agent of {}", short(session)),
            Origin::Root => format!("session {}", created.session_id),
        },
        RecordBody::EvaluationResumed(resumed) => match &resumed.owner {
            Some(owner) => format!("resumed by {owner}"),
            None => "resumed".to_owned(),
        },
        RecordBody::RequestFailed(failed) => {
            let then = match failed.then.wait() {
                Some(wait) => format!("retry in {:.1} s", wait.as_secs_f64()),
                None => "no retry".to_owned(),
            };
            let message = one_line(&failed.message, 200);
            let (turn, attempt) = (failed.turn, failed.attempt);
            format!("turn {turn}: attempt {attempt} failed ({}): {message}; {then}", failed.kind)
        }
        RecordBody::RequestFinished(finished) if finished.attempt > 1 => {
            format!("  answered at attempt {}", finished.attempt)
        }
        RecordBody::SessionStopped(stopped) => match (&stopped.kind, &stopped.message) {
            (Some(kind), Some(message)) => format!("stopped ({kind}): {}", one_line(message, 200)),
            _ => format!("stopped ({})", stopped.reason.as_str()),
        },
        RecordBody::MessageAppended(message) => return message_line(message),
        RecordBody::CallStarted(started) if started.arguments.is_some() && started.attempt == 1 => {
            let arguments = match &started.arguments {
                Some(Large::Inline(arguments)) => serde_json::to_string(arguments).unwrap_or_default(),
                Some(Large::Object(object)) => format!("arguments of {} bytes", object.length),
                None => String::new(),
            };
            format!("  {} runs with {}", started.name, one_line(&arguments, 200))
        }
        RecordBody::CallStarted(started) => match (started.session, started.attempt) {
            (Some(session), 1) => format!("  {} runs in {}", started.name, short(session)),
            (Some(session), attempt) => {
                format!("  {} continues in {} (attempt {attempt})", started.name, short(session))
            }
            (None, 1) => return None,
            (None, attempt) => format!("  {} runs again (attempt {attempt})", started.name),
        },
        RecordBody::CallFinished(finished) => {
            let summary = one_line(finished.summary.as_deref().unwrap_or_default(), 80);
            let took = finished.elapsed_micros / 1_000;
            match finished.outcome {
                CallVerdict::Succeeded => format!("  done in {took} ms: {summary}"),
                CallVerdict::Failed => {
                    let rescue = finished
                        .rescue
                        .map(|_| format!(" (files as it left them: rescue:{})", record.position));
                    format!("  failed, rolled back: {summary}{}", rescue.unwrap_or_default())
                }
            }
        }
        RecordBody::WorkspaceObserved(observed) => match observed.cause {
            ObservationCause::Started => return None,
            ObservationCause::Restored => "files restored".to_owned(),
            ObservationCause::Drifted => {
                match observed.extra.get("outside").and_then(|seen| seen.get("text")) {
                    // A boundary of a guarded command.
                    Some(serde_json::Value::String(text)) => format!("  {}", one_line(text, 200)),
                    _ => "files were changed from outside".to_owned(),
                }
            }
            ObservationCause::Interrupted => {
                format!("files are restored (as found: rescue:{})", record.position)
            }
        },
        RecordBody::ResourceChanged(changed) => match &changed.state {
            Large::Object(object) => format!("  resource {}: {} bytes", changed.name, object.length),
            Large::Inline(state) => {
                format!("  resource {}: {}", changed.name, one_line(&state.to_string(), 80))
            }
        },
        RecordBody::Rewound(rewound) => {
            let reason = rewound.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let place = match rewound.to == record.position {
                true => "only the files are changed".to_owned(),
                false => format!("back to {}", rewound.to),
            };
            let rescue = rewound.rescue.map(|_| format!(" (files before it: rescue:{})", record.position));
            format!("{place}{reason}{}", rescue.unwrap_or_default())
        }
        RecordBody::Paused(paused) => {
            let detail = paused.detail.as_deref().unwrap_or_default();
            format!("paused ({}): {}", reason_word(paused.reason), one_line(detail, 200))
        }
        RecordBody::Resolved(resolved) => decision_line(resolved),
        RecordBody::SliceChanged(change) => {
            if let Some(cut) = change.appended::<Cut>().first() {
                return Some(cut_line(cut));
            }
            let rules = change.appended::<ApprovalRule>();
            let rule = rules.first()?;
            let by = rule.by.as_deref().unwrap_or("someone");
            format!(
                "rule of {by} for this session: {} `{}`",
                rule.verdict,
                one_line(&rule.scope.to_string(), 200)
            )
        }
        RecordBody::EvaluationFinished(finished) => match &finished.error {
            Some(error) => {
                let message = one_line(&error.message, 200);
                format!("{} ({}): {message}", finished.outcome.as_str(), error.kind)
            }
            None => finished.outcome.as_str().to_owned(),
        },
        RecordBody::WorkspaceIsolated(isolated) => {
            format!("works in a copy of {}: {}", isolated.project, isolated.directory)
        }
        RecordBody::ApplyStarted(started) => match started.undoes {
            Some(undone) => format!("undoes the apply at {undone} in {}", started.directory),
            None => format!("applies its changes to {}", started.directory),
        },
        RecordBody::ApplyFinished(finished) if finished.kept.is_empty() => "applied".to_owned(),
        RecordBody::ApplyFinished(finished) => {
            format!("applied, except to {}", one_line(&finished.kept.join(", "), 200))
        }
        RecordBody::Redacted(redacted) => {
            let (records, objects) = (redacted.positions.len(), redacted.objects.len());
            match (records, objects) {
                (records, 0) => format!("redacted: {} replaced", counted(records, "record")),
                (0, objects) => format!("redacted: {} removed", counted(objects, "object")),
                _ => format!(
                    "redacted: {} replaced, {} removed",
                    counted(records, "record"),
                    counted(objects, "object")
                ),
            }
        }
        RecordBody::Note(note) if note.topic == UNFINISHED => unfinished_line(note),
        RecordBody::Note(note) if note.topic == SessionName::TOPIC => match note.text.as_str() {
            "" => "name removed".to_owned(),
            name => format!("named {}", one_line(name, SessionName::LONGEST)),
        },
        RecordBody::Note(note) if note.topic == TagChange::TOPIC => match note.text.contains('=') {
            true => format!("tagged {}", one_line(&note.text, 200)),
            false => format!("tag {} removed", one_line(&note.text, 200)),
        },
        // The text of this one says everything.
        RecordBody::Note(note) if note.topic == FILES_RESTORED => one_line(&note.text, 200),
        RecordBody::Note(note) => {
            format!("{}: {}", note.topic.replace('_', " "), one_line(&note.text, 200))
        }
        _ => return None,
    })
}

/// Describes a cut of a conversation.
fn cut_line(cut: &Cut) -> String {
    let summary = cut.summary.as_ref().filter(|_| cut.leaves_out());
    match summary.map(|summary| summary.text.as_deref()) {
        Some(None) => "the model is asked for a summary of the conversation".to_owned(),
        Some(Some(text)) => format!("summary of earlier answers: {}", one_line(text, 90)),
        None if cut.answers_from.is_some() => {
            "older answers are left out of requests from here on".to_owned()
        }
        None if cut.leaves_out() => "older results are left out of requests from here on".to_owned(),
        None => "requests show the whole conversation again".to_owned(),
    }
}

/// Describes what was kept of an answer, by the beginning of its text, or else of its calls or reasoning.
fn unfinished_line(note: &Note) -> String {
    let data = note.data.inline();
    let piece = |name: &str| data.and_then(|data| data[name].as_str()).filter(|text| !text.is_empty());
    match piece("text").or_else(|| piece("calls")).or_else(|| piece("reasoning")) {
        Some(text) => format!("{}: {}", note.text, one_line(text.trim_start(), 90)),
        None => note.text.clone(),
    }
}

/// Describes a decision, with the arguments that a person put in the place of the model's.
fn decision_line(resolved: &PauseResolved) -> String {
    let because = |reason: &Option<String>| match reason {
        Some(reason) => format!(": {}", one_line(reason, 200)),
        None => String::new(),
    };
    let by = resolved.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let decision = match &resolved.decision {
        Decision::Continue => format!("continued{by}"),
        Decision::Accept => format!("answer accepted{by}"),
        Decision::Approve => format!("approved{by}"),
        Decision::Edit { arguments } => {
            let arguments = serde_json::to_string(arguments).unwrap_or_default();
            format!("approved{by} with other arguments: {}", one_line(&arguments, 200))
        }
        Decision::Deny { reason } => format!("denied{by}{}", because(reason)),
        Decision::Happened { .. } => format!("decided{by}: it happened"),
        Decision::Retry => format!("decided{by}: run it again"),
        Decision::Fail { reason } => format!("decided{by}: it failed{}", because(reason)),
    };
    let call = resolved.call_id.map(|call| format!("  [{}]", short(call))).unwrap_or_default();
    format!("{decision}{call}")
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn message_line(message: &InnerMessage) -> Option<String> {
    let text = one_line(&message_text(message), 90);
    Some(match message.role() {
        Role::User => format!("asked: {text}"),
        Role::Assistant => match message.message.option_call() {
            Some(call) => {
                let arguments = match call.arguments.stored() {
                    Some(object) => format!("arguments of {} bytes", object.length),
                    None => one_line(&call.arguments.text(), 70),
                };
                format!("  calls {} {arguments}  [{}]", call.option_name, short(call.invocation_id))
            }
            None if text.is_empty() && unfinished(message).is_empty() => return None,
            None => format!("turn {}: {text}{}", message.turn, unfinished(message)),
        },
        Role::System | Role::Tool => return None,
    })
}

/// Returns the text of a message. Content that is an object of the store, and was not fetched, is described by its size.
pub fn message_text(message: &InnerMessage) -> String {
    let parts = message.message.parts().unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part.as_text()?.text.object());
    let result = message.message.option_result().and_then(|result| result.result.object());
    match texts.chain(result).map(|object| object.length).sum::<u64>() {
        0 => message.content(),
        bytes => format!("{} ({bytes} bytes)", message.content()).trim_start().to_owned(),
    }
}

/// Returns why an answer is incomplete, in brackets, or an empty string.
pub fn unfinished(message: &InnerMessage) -> &'static str {
    match message.provider.as_ref().and_then(|sidecar| sidecar.finish.as_ref()) {
        Some(Finish::Length) => " [cut off by the token limit]",
        Some(Finish::Filter) => " [withheld by a filter]",
        Some(Finish::Pause) => " [interrupted by the provider]",
        Some(Finish::Interrupted) => " [interrupted]",
        _ => "",
    }
}

/// Returns a word for the reason of a pause.
pub fn reason_word(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Approval => "approval",
        PauseReason::EffectUnknown => "effect unknown",
        PauseReason::Budget => "budget",
        PauseReason::Asked => "on request",
        PauseReason::Truncated => "answer cut off",
        PauseReason::Deadline => "deadline",
        PauseReason::Files => "files",
        PauseReason::Wait => "waits",
        PauseReason::Poisoned => "poisoned",
    }
}

/// Returns the last part of an id, which is enough to distinguish the sessions of a store.
pub(crate) fn short(id: impl ToString) -> String {
    let id = id.to_string();
    id.rsplit('-').next().map_or(id.clone(), str::to_owned)
}
