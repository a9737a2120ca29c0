//! Where an engine continues: what it is asked, and after which point of its own conversation.
//!
//! All of it follows from the journal. The messages to the program are those of people and of the runtime, each with its
//! own id, and the program's own ids of calls are recorded with the calls. Requests name the conversation that they belong
//! to. So after a crash, a rewind or a fork, the points that the program may continue after are those of the visible
//! messages, the latest one first.
//!
//! A program that does not have the conversation receives it as text.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{EvaluationOutcome, InnerMessage, Note, ProcessStarted, RecordBody, Role};
use backstitch_core::message::Content;
use backstitch_core::text::one_line;
use backstitch_core::view::{Call, JournalView};
use serde_json::{Map, Value, json};

use super::{EnginePoint, EngineResume};
use crate::driver::{Driver, STOPPED, WAITED};
use crate::error::Result;
use crate::live::{LiveSession, read_records};
use crate::observed::observed_conversation;
use crate::process::end_survivors;

/// Topic of notes about the process of an engine.
const TOPIC: &str = "engine";

/// The most points that are offered.
const MOST_POINTS: usize = 100;

/// The end of a sentence about a call that did not end.
const INTERRUPTED: &str =
    "was interrupted; its changes to files were rolled back, and other effects of it are not known";

/// The end of a sentence about a call that did not begin.
const NOT_RUN: &str = "was not run, because the session was stopped or rewound before it";

/// The end of a sentence about a call that waited for approval when its program was stopped.
const WAITED_AT_STOP: &str = "waited for approval and was not run, because the session was being stopped";

/// The end of a sentence about a call that was refused because nothing may begin any more.
pub(super) const REFUSED_AT_STOP: &str = "was not run, because the session was being stopped";

/// Asks a program to continue.
const CONTINUE: &str = "Continue with the task.";

/// Returns the end of a sentence about a call without an end.
pub(super) fn without_end(call: &Call) -> &'static str {
    if call.may_have_run() { INTERRUPTED } else { NOT_RUN }
}

/// The same at the moment when a program is stopped: a call that has not begun waited for approval.
pub(super) fn without_end_at_stop(call: &Call) -> &'static str {
    if call.may_have_run() { INTERRUPTED } else { WAITED_AT_STOP }
}

/// What a program is asked, and where it continues.
pub(super) struct EngineTask {
    pub(super) prompt_id: String,
    pub(super) prompt: String,
    pub(super) resume: Option<EngineResume>,
    /// The conversation before the prompt.
    pub(super) history: Vec<Arc<InnerMessage>>,
}

/// Returns the task of an evaluation. Messages that wait in the inbox become part of it. If the program has worked on the
/// evaluation already and no message waits, one that asks it to continue is recorded.
pub(super) async fn task(driver: &Driver, evaluation: EvaluationId) -> Result<EngineTask> {
    let view = driver.session().view().await;
    let (mut history, mut after) = (Vec::new(), Vec::new());
    for earlier in followed(&view, evaluation) {
        let messages = driver.messages_of(earlier).await?;
        let is_answered = view.evaluation(earlier).and_then(|known| known.outcome());
        after.splice(0..0, points(&messages, is_answered == Some(EvaluationOutcome::Completed)));
        history.extend(messages);
    }
    after.truncate(MOST_POINTS);
    let is_prompt = |message: &Arc<InnerMessage>| {
        message.role() == Role::User && matches!(message.message.content, Content::Parts(_))
    };
    let mut first = history.len();
    while first > 0 && is_prompt(&history[first - 1]) {
        first -= 1;
    }
    let mut asked = history.split_off(first);
    let unfinished = if asked.is_empty() { unfinished_calls(&history) } else { None };
    asked.extend(driver.take_messages(evaluation).await?);
    // A message says how to continue.
    let text = match (asked.is_empty(), unfinished) {
        (true, None) => Some(CONTINUE.to_owned()),
        (true, Some(calls)) => Some(format!("{CONTINUE} {calls}")),
        (false, unfinished) => unfinished,
    };
    if let Some(text) = text {
        asked.push(driver.notify_engine(evaluation, &text).await?);
    }
    let prompt = asked.iter().map(|message| message.content()).collect::<Vec<_>>().join("\n\n");
    let prompt_id = asked.last().map(|message| message.message_id.to_string()).unwrap_or_default();
    let resume = conversation(&view).map(|known| EngineResume { after, ..known });
    let resume = resume.filter(|resume| !resume.after.is_empty());
    Ok(EngineTask { prompt_id, prompt, resume, history })
}

/// Returns an evaluation and those that it follows, the first one first.
fn followed(view: &JournalView, evaluation: EvaluationId) -> Vec<EvaluationId> {
    let mut line = vec![evaluation];
    let before = |of: EvaluationId| view.evaluation(of)?.started_with()?.follows;
    while let Some(next) = line.last().copied().and_then(before).filter(|next| !line.contains(next)) {
        line.push(next);
    }
    line.reverse();
    line
}

/// Returns the conversation of the last visible request, without the points in it.
fn conversation(view: &JournalView) -> Option<EngineResume> {
    let evaluations: Vec<_> = view.evaluations().collect();
    let named = evaluations.iter().rev().flat_map(|evaluation| evaluation.requests.iter().rev());
    let conversation = named.into_iter().find_map(|request| observed_conversation(request))?;
    let text = |name: &str| conversation.get(name).and_then(Value::as_str).map(str::to_owned);
    let owner = text("owner");
    Some(EngineResume {
        session: text("session")?,
        transcript: text("transcript").map(PathBuf::from),
        is_shared: owner.is_some_and(|owner| owner != view.session_id().to_string()),
        after: Vec::new(),
    })
}

/// Returns the origin that requests of a conversation are recorded with. `owner` is the session that it belongs to.
pub(super) fn conversation_of(
    owner: SessionId,
    session: &str,
    transcript: Option<&PathBuf>,
) -> Map<String, Value> {
    let mut fields = Map::from_iter([
        ("session".to_owned(), Value::from(session)),
        ("owner".to_owned(), Value::from(owner.to_string())),
    ]);
    let transcript = transcript.map(|path| Value::from(path.to_string_lossy().into_owned()));
    fields.extend(transcript.map(|path| ("transcript".to_owned(), path)));
    fields
}

/// Returns the points of an evaluation, the latest one first: its answer, and the results of its calls.
fn points(messages: &[Arc<InnerMessage>], is_answered: bool) -> Vec<EnginePoint> {
    let prompt = messages.iter().rev().find(|message| message.role() == Role::User).filter(|_| is_answered);
    let answer = prompt.map(|message| EnginePoint::Answer(message.message_id.to_string()));
    let point_of = |message: &Arc<InnerMessage>| {
        let result = message.message.option_result()?;
        let mut calls = messages.iter().filter_map(|message| message.message.option_call());
        let call = calls.find(|call| call.invocation_id == result.invocation_id)?;
        let id = call.provider_call_id.clone()?;
        let is_without_end = was_interrupted(message)
            || [NOT_RUN, REFUSED_AT_STOP, WAITED].iter().any(|text| is_error_with(message, text));
        Some(if is_without_end { EnginePoint::Before(id) } else { EnginePoint::Call(id) })
    };
    let calls = messages.iter().rev().filter_map(point_of);
    answer.into_iter().chain(calls).take(MOST_POINTS).collect()
}

/// Whether a message is the result of a call that was interrupted, of the program or of the agent's tools.
fn was_interrupted(message: &InnerMessage) -> bool {
    is_error_with(message, INTERRUPTED) || is_error_with(message, STOPPED)
}

fn is_error_with(message: &InnerMessage, text: &str) -> bool {
    message.message.option_result().is_some_and(|result| result.is_error) && message.content().contains(text)
}

/// Returns a text about calls that were interrupted, refused, or waited for approval, if there are any.
fn unfinished_calls(history: &[Arc<InnerMessage>]) -> Option<String> {
    let since = history.iter().rposition(|message| message.role() == Role::User).unwrap_or(0);
    let (mut interrupted, mut refused, mut waited) = (Vec::new(), Vec::new(), Vec::new());
    for message in &history[since..] {
        let Some(result) = message.message.option_result() else { continue };
        let lines = if was_interrupted(message) {
            &mut interrupted
        } else if is_error_with(message, WAITED) {
            &mut waited
        } else if is_error_with(message, REFUSED_AT_STOP) {
            &mut refused
        } else {
            continue;
        };
        let mut calls = history.iter().filter_map(|message| message.message.option_call());
        let call = calls.find(|call| call.invocation_id == result.invocation_id);
        let arguments = call.map(|call| one_line(&call.arguments.text(), 300)).unwrap_or_default();
        lines.push(format!("- {} {arguments}", result.option_name));
    }
    let parts = [
        (
            interrupted,
            "These calls were interrupted. Their changes to files were rolled back; check whether they had other effects \
             before you repeat them:",
        ),
        (
            refused,
            "These calls were not run, because the session was being stopped. Make them if they are still needed:",
        ),
        (
            waited,
            "These calls waited for approval and were not run. Make them again if they are still needed:",
        ),
    ];
    let parts = parts.iter().filter(|(lines, _)| !lines.is_empty());
    let texts: Vec<String> = parts.map(|(lines, text)| format!("{text}\n{}", lines.join("\n"))).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Records the process of an engine, so that it can be ended after a crash.
pub(super) async fn note_process(live: &LiveSession, title: &str, process: &ProcessStarted) -> Result<()> {
    let note = Note::new(TOPIC, format!("{title} was started")).with_data(json!({ "process": process }));
    live.record(vec![note.into()]).await
}

/// Ends the processes of engines that an earlier process has left.
pub(super) async fn end_left(live: &LiveSession) -> Result<()> {
    let records =
        read_records(&**live.store(), live.id(), backstitch_core::journal::Position::START, None).await;
    let mut last = None;
    for record in records? {
        if let RecordBody::Note(note) = &record.body
            && note.topic == TOPIC
        {
            let process = note.data.inline().and_then(|data| data.get("process")).cloned();
            last =
                process.and_then(|process| serde_json::from_value::<ProcessStarted>(process).ok()).or(last);
        }
    }
    end_survivors(last.as_ref()).await?;
    Ok(())
}

/// The most characters of the text.
const LONGEST: usize = 60_000;

/// The most characters of one call or result.
const LONGEST_PART: usize = 2_000;

/// Writes the conversation so far before a prompt. The oldest messages are left out if it is too long.
pub(super) fn with_history(history: &[Arc<InnerMessage>], prompt: &str) -> String {
    let mut lines: Vec<String> = history.iter().filter_map(|message| line(message)).collect();
    let mut length: usize = lines.iter().map(String::len).sum();
    let mut left_out = 0;
    while length > LONGEST && !lines.is_empty() {
        length -= lines.remove(0).len();
        left_out += 1;
    }
    if lines.is_empty() && left_out == 0 {
        return prompt.to_owned();
    }
    let note =
        if left_out > 0 { format!(" The first {left_out} entries are left out.") } else { String::new() };
    format!(
        "This task was begun in a conversation that is not available any more. Its record follows; the files are as it \
         left them.{note} Do not repeat what is done.\n\n<record>\n{}\n</record>\n\n{prompt}",
        lines.join("\n")
    )
}

fn line(message: &InnerMessage) -> Option<String> {
    let text = match &message.message.content {
        Content::OptionCall(call) => {
            format!("call {} {}", call.option_name, one_line(&call.arguments.text(), LONGEST_PART))
        }
        Content::OptionResult(result) => {
            let word = if result.is_error { "error of" } else { "result of" };
            format!("{word} {}: {}", result.option_name, one_line(&message.content(), LONGEST_PART))
        }
        Content::Parts(_) => {
            let author = match message.role() {
                Role::System => return None,
                Role::User => "person",
                Role::Assistant | Role::Tool => "you",
            };
            format!("{author}: {}", message.content())
        }
    };
    Some(text)
}
