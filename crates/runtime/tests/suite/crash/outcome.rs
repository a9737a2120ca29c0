//! The outcome of a session without the parts that may differ: ids, times, the order of results inside one
//! turn, and the records of interrupted attempts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    Effect, InnerMessage, ObservationCause, Position, Record, RecordBody, WorkspaceRoot,
};
use backstitch_core::message::Content;
use backstitch_core::session::{CaptureOptions, SlicePolicy};
use backstitch_core::slices::ToolInvoked;
use backstitch_core::view::{JournalView, Transcript};
use backstitch_runtime::SystemClock;
use backstitch_runtime::{DriveOutcome, load_view, read_records};
use std::sync::Arc;

use super::session::{self, outside};
use super::stage::{Opened, Place, Stage};

/// The outcome of a session, normalized for comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    answer: String,
    /// The digest of all `State` slices.
    state: String,
    /// The resources, as recorded in the journal.
    resources: Vec<String>,
    /// The root of the files, as recorded in the journal.
    root: String,
    /// The files themselves, if they are in a directory.
    files: BTreeMap<String, String>,
    transcript: Vec<String>,
    journal: Vec<String>,
    /// Transcripts and journals of all child sessions, recursively.
    children: Vec<(Vec<String>, Vec<String>)>,
    /// The kept roots of files before they were restored.
    rescued: BTreeSet<String>,
}

impl Outcome {
    /// The outcome of the session, which has just ended like this.
    pub(crate) async fn of(stage: &Stage, opened: &Opened, ended: DriveOutcome) -> Self {
        let view = load_view(&*opened.store, session::id(), None).await.unwrap();
        let records = read_records(&*opened.store, session::id(), Position::START, None).await.unwrap();
        let root = view.files().map(|files| files.root);
        if stage.place == Place::Host {
            let found = opened.workspace.capture().unwrap().root;
            assert_eq!(Some(found), root, "the files are as recorded");
        }
        let transcript = view.transcript().unwrap();
        let calls = ordinals(&records);
        let mut views = vec![view.clone()];
        let mut rescued = rescues(&records);
        let mut children = Vec::new();
        let mut next = workers(&records);
        while let Some(child) = next.pop_front() {
            let records = read_records(&*opened.store, child, Position::START, None).await.unwrap();
            let view = load_view(&*opened.store, child, None).await.unwrap();
            let calls = ordinals(&records);
            children.push((said(&view.transcript().unwrap(), &calls), essence(&records, &calls)));
            rescued.extend(rescues(&records));
            next.extend(workers(&records));
            views.push(view);
        }
        let state = view.session(Arc::new(SystemClock::default()));
        let state =
            state.snapshot_with(CaptureOptions::policies([SlicePolicy::State])).content_digest().unwrap();
        check_effects(stage, &views);
        Self {
            answer: {
                let answered = ended.answer().unwrap();
                format!("{} {:?}", answered.text, answered.output)
            },
            state: format!("{state:?}"),
            resources: view
                .resources()
                .map(|one| format!("{} {}", one.name, one.state.inline().unwrap()))
                .collect(),
            root: format!("{root:?}"),
            files: if stage.place == Place::Host { files(stage) } else { BTreeMap::new() },
            transcript: said(&transcript, &calls),
            journal: essence(&records, &calls),
            children,
            rescued,
        }
    }

    /// Panics unless both outcomes are equal, and shows where they differ.
    pub(crate) fn assert_is(&self, other: &Self, what: &str) {
        for (one, another) in self.journal.iter().zip(&other.journal) {
            assert_eq!(
                one, another,
                "{what}: the journals differ\n{:#?}\n{:#?}",
                self.journal, other.journal
            );
        }
        assert!(self.rescued.is_superset(&other.rescued), "{what}: files were restored without a rescue");
        assert_eq!(Self { rescued: other.rescued.clone(), ..self.clone() }, *other, "{what}");
    }
}

/// The number of each call, in the order of the calls in the transcript.
fn ordinals(records: &[Record]) -> HashMap<CallId, usize> {
    let messages = records.iter().filter_map(|record| match &record.body {
        RecordBody::MessageAppended(message) => message.message.option_call(),
        _ => None,
    });
    messages.enumerate().map(|(number, call)| (call.invocation_id, number)).collect()
}

/// The child sessions, in the order of their calls.
fn workers(records: &[Record]) -> VecDeque<SessionId> {
    let mut workers = VecDeque::new();
    for record in records {
        if let RecordBody::CallStarted(started) = &record.body
            && let Some(session) = started.session
            && !workers.contains(&session)
        {
            workers.push_back(session);
        }
    }
    workers
}

fn rescues(records: &[Record]) -> BTreeSet<String> {
    records.iter().filter_map(rescue).map(|root| format!("{root:?}")).collect()
}

fn said(transcript: &Transcript, calls: &HashMap<CallId, usize>) -> Vec<String> {
    let mut lines: Vec<((u64, bool, usize), String)> = Vec::new();
    for (place, message) in transcript.all().iter().enumerate() {
        let result = message.message.option_result().map(|result| calls[&result.invocation_id]);
        lines.push(((message.turn, result.is_some(), result.unwrap_or(place)), line(message, calls)));
    }
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn line(message: &InnerMessage, calls: &HashMap<CallId, usize>) -> String {
    let (role, turn, policy) = (message.role(), message.turn, &message.message.policy);
    let content = match &message.message.content {
        Content::OptionCall(call) => {
            format!("calls #{} {} {}", calls[&call.invocation_id], call.option_name, call.arguments.text())
        }
        Content::OptionResult(result) => format!(
            "#{} {} gave {:?} {:?} {:?}",
            calls[&result.invocation_id],
            result.option_name,
            result.result.inline(),
            result.error_type,
            result.error_message
        ),
        Content::Parts(_) => message.content(),
    };
    format!("turn {turn} {role:?} {policy} step {:?}: {content}", message.message.step_num)
}

/// The records of a journal, without those of interrupted attempts and of their recovery.
fn essence(records: &[Record], calls: &HashMap<CallId, usize>) -> Vec<String> {
    let mut last_start: HashMap<CallId, usize> = HashMap::new();
    let mut last_request: HashMap<_, usize> = HashMap::new();
    for (place, record) in records.iter().enumerate() {
        match &record.body {
            RecordBody::CallStarted(started) => drop(last_start.insert(started.call_id, place)),
            RecordBody::RequestStarted(request) => {
                last_request.insert((request.evaluation_id, request.turn), place);
            }
            _ => {}
        }
    }
    let mut lines = Vec::new();
    for (place, record) in records.iter().enumerate() {
        lines.extend(match &record.body {
            RecordBody::EvaluationResumed(_) | RecordBody::Paused(_) | RecordBody::Resolved(_) => None,
            RecordBody::Note(note) if note.topic == "inbox" => None,
            // What is restored depends on the progress of the attempt.
            RecordBody::Note(note) if note.topic == "files_restored" => None,
            // Each attempt of a request notes what it does not show.
            RecordBody::Note(note) if note.topic == "request" => None,
            RecordBody::WorkspaceObserved(observed) if observed.cause != ObservationCause::Started => None,
            RecordBody::WorkspaceObserved(observed) => Some(format!("files {:?}", observed.root)),
            RecordBody::RequestStarted(request) => {
                let last = last_request[&(request.evaluation_id, request.turn)];
                (last == place).then(|| format!("request {}", request.turn))
            }
            RecordBody::CallStarted(started) => (last_start[&started.call_id] == place).then(|| {
                format!("started #{} {:?} {:?}", calls[&started.call_id], started.effect, started.root)
            }),
            RecordBody::ProcessStarted(process) => (last_start[&process.call_id] < place)
                .then(|| format!("process of #{} {}", calls[&process.call_id], process.program)),
            // A call that counts as never made may be made again.
            RecordBody::CallFinished(finished) if last_start[&finished.call_id] > place => None,
            RecordBody::CallFinished(finished) => Some(format!(
                "finished #{} {:?} {:?}",
                calls[&finished.call_id], finished.outcome, finished.root
            )),
            RecordBody::MessageAppended(message) => Some(line(message, calls)),
            RecordBody::TurnFinished(turn) => {
                let mut data = turn.data.inline().unwrap().clone();
                for call in data["tool_calls"].as_array_mut().into_iter().flatten() {
                    // Ids depend on the process.
                    call["call_id"] = serde_json::Value::Null;
                }
                Some(format!("turn {} {data}", turn.turn))
            }
            // Telemetry did not see a call that a person resolved.
            RecordBody::SliceChanged(change)
                if change.slice == <ToolInvoked as backstitch_core::session::Slice>::NAME =>
            {
                None
            }
            RecordBody::SliceChanged(change) if change.policy == SlicePolicy::Log => {
                Some(format!("logs {}", change.slice))
            }
            RecordBody::SliceChanged(change) => Some(format!("changes {} {:?}", change.slice, change.op)),
            RecordBody::ResourceChanged(changed) => {
                Some(format!("resource {} {}", changed.name, changed.state.inline().unwrap()))
            }
            other => Some(other.kind().to_owned()),
        });
    }
    // Concurrent calls may be recorded in any order.
    lines.sort();
    lines
}

/// The root of the files before a restore, if the record keeps one.
fn rescue(record: &Record) -> Option<WorkspaceRoot> {
    match &record.body {
        RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted => {
            Some(observed.root)
        }
        RecordBody::CallFinished(finished) => finished.rescue,
        RecordBody::Rewound(rewound) => rewound.rescue,
        _ => None,
    }
}

/// Asserts that external effects happened as often as their effect class permits.
fn check_effects(stage: &Stage, views: &[JournalView]) {
    let happened = outside(stage);
    for (index, one) in happened.iter().enumerate() {
        if happened[..index].iter().any(|earlier| earlier.key == one.key) {
            assert_eq!(one.tool, "mail", "an external effect happened twice: {happened:?}");
            assert!(one.again, "a repeated call has `is_resume`: {happened:?}");
        }
    }
    let made = views.iter().flat_map(|view| view.calls()).filter(|call| {
        if call.session().is_some() {
            return false;
        }
        let effect = call.intent.as_ref().map(|intent| intent.record.effect);
        matches!(effect, Some(Effect::Idempotent | Effect::External))
    });
    let mut keys: Vec<_> = happened.iter().map(|one| one.key.clone()).collect();
    keys.sort();
    keys.dedup();
    for call in made {
        let key = call.intent.as_ref().unwrap().record.idempotency_key.to_string();
        let was_seen = keys.contains(&key);
        let completed = call.status() == backstitch_core::view::CallStatus::Completed;
        assert_eq!(was_seen, completed, "call {} of {}: {happened:?}", call.call_id, call.name);
        keys.retain(|other| *other != key);
    }
    assert!(keys.is_empty(), "these effects belong to no call: {keys:?}");
}

/// The files of a directory.
pub(crate) fn files(stage: &Stage) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(&stage.file(""), "", &mut found);
    found
}

pub(crate) fn collect(directory: &std::path::Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}
