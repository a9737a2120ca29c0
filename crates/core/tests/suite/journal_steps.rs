//! Random journals: steps that a [`Writer`] turns into valid records.
//!
//! A step that is not possible at its place is skipped, so that any list of steps is a journal and shrinking
//! one gives another.

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{
    AfterFailure, ApplyFinished, ApplyStarted, CallVerdict, Decision, EvaluationOutcome, EvaluationResumed,
    EvaluationStarted, Finish, ObservationCause, PauseReason, PauseResolved, Position, ProcessStarted,
    ProgramStarted, RecordBody, RecordsRedacted, RequestFinished, ResourceChanged, SessionStopped,
    StepFinished, TaskFinished, TurnFinished, WorkspaceIsolated, WorkspaceObserved, WorkspaceRoot,
};
use backstitch_core::message::{Content, MediaPart, MediaUrl, Message, Modality, Part, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::session::StoredOp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::journals::{Tally, Trace, Writer, failure, parts, result, tokens};
use super::strategies;

/// Kind of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Start,
    Resume,
    Supersede,
    System,
    User,
    Media,
    Answer,
    AnswerWithCalls,
    StartCall,
    FinishCall,
    FailCall,
    ResultAlone,
    LispCall,
    Tally,
    Trace,
    Pause,
    Resolve,
    Request,
    Charge,
    Note,
    Look,
    Turn,
    Finish,
    SayAgain,
    Rewind,
    Undo,
}

const ACTIONS: [Action; 32] = {
    use Action::*;
    [
        Start,
        Resume,
        Supersede,
        System,
        User,
        Media,
        Answer,
        AnswerWithCalls,
        AnswerWithCalls,
        AnswerWithCalls,
        StartCall,
        StartCall,
        StartCall,
        FinishCall,
        FinishCall,
        FailCall,
        ResultAlone,
        LispCall,
        Tally,
        Tally,
        Trace,
        Trace,
        Pause,
        Resolve,
        Request,
        Charge,
        Note,
        Look,
        Turn,
        SayAgain,
        Rewind,
        Undo,
    ]
};

/// A step: its action, an index to select a target, and a text.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    action: Action,
    pick: usize,
    text: String,
}

fn step() -> impl Strategy<Value = Step> {
    let action = prop_oneof![30 => select(ACTIONS.to_vec()), 1 => Just(Action::Finish)];
    (action, 0..1_000usize, strategies::text()).prop_map(|(action, pick, text)| Step { action, pick, text })
}

/// Steps of a journal.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..most)
}

/// A valid journal.
pub(crate) fn journal(most: usize) -> impl Strategy<Value = Writer> {
    steps(most).prop_map(|steps| written(Writer::new(1), &steps))
}

/// Applies these steps to a writer.
pub(crate) fn written(mut writer: Writer, steps: &[Step]) -> Writer {
    if writer.now.evaluations.is_empty() {
        writer.start();
    }
    for step in steps {
        take(&mut writer, step);
    }
    writer
}

fn take(writer: &mut Writer, Step { action, pick, text }: &Step) {
    let open: Vec<EvaluationId> =
        writer.now.evaluations.iter().filter(|running| !running.finished).map(|running| running.id).collect();
    // Mostly the latest evaluation, but sometimes an older one continues concurrently.
    let evaluation = match pick % 5 {
        0 => open.get(pick % open.len().max(1)).copied(),
        _ => open.last().copied(),
    };
    match (action, evaluation) {
        (Action::Start, _) => {
            writer.start();
        }
        (Action::Resume, Some(evaluation_id)) => {
            let (owner, deadline_millis) = (Some(text.clone()), Some(*pick as u64));
            let directory = pick.is_multiple_of(3).then(|| text.clone());
            writer.push(EvaluationResumed {
                owner,
                deadline_millis,
                directory,
                ..EvaluationResumed::new(evaluation_id)
            });
        }
        (Action::Supersede, Some(evaluation)) => supersede(writer, evaluation),
        (Action::System, Some(id)) => drop(writer.say(id, parts(RoleHint::System, text))),
        (Action::User, Some(id)) => drop(writer.say(id, parts(RoleHint::User, text))),
        (Action::Media, Some(id)) => drop(writer.say(id, media(text))),
        (Action::Answer, Some(id)) => drop(writer.answer(id, if text.is_empty() { "…" } else { text }, &[])),
        (Action::AnswerWithCalls, Some(id)) => {
            let arguments = [r#"{"q":1}"#, r#"{ "q" : [2] }"#, text.as_str(), "{}"];
            drop(writer.answer(id, text, &arguments[..1 + pick % 4]));
        }
        (Action::StartCall, Some(id)) => with_call(writer, id, *pick, |writer, call| {
            let reservation = (pick % 3 == 0).then(|| writer.reservation(tokens(*pick as u64)));
            writer.start_call_with(id, call, reservation);
            if pick % 2 == 0 {
                let (group, started, boot) = (*pick as u32, pick.to_string(), "a boot".to_owned());
                let (program, extra) = (text.clone(), Extra::default());
                writer.push(ProcessStarted { call_id: call, program, group, started, boot, extra });
            }
        }),
        (Action::FinishCall, Some(id)) => with_call(writer, id, *pick, |writer, call| {
            writer.start_call(id, call);
            writer.change::<Tally>(StoredOp::Append(json!(pick)));
            writer.push(ResourceChanged::new(format!("spool {}", pick % 3), json!(pick)));
            writer.finish_call(id, call, CallVerdict::Succeeded);
        }),
        (Action::FailCall, Some(id)) => with_call(writer, id, *pick, |writer, call| {
            writer.start_call(id, call);
            let (name, value) = (format!("step {}", pick % 2), json!(pick));
            writer.push(StepFinished { call_id: call, name, value, extra: Extra::default() });
            writer.change::<Trace>(StoredOp::Append(json!(pick)));
            writer.finish_call(id, call, CallVerdict::Failed);
        }),
        (Action::ResultAlone, Some(id)) => with_call(writer, id, *pick, |writer, call| {
            let message =
                if pick % 2 == 0 { failure(call, text) } else { result(call, json!({"text": text})) };
            writer.say(id, message);
        }),
        (Action::LispCall, Some(id)) => {
            let call = writer.id();
            writer.start_call(id, call);
        }
        (Action::Tally, _) => drop(writer.change::<Tally>(op(*pick, writer.now.tally))),
        (Action::Trace, _) => drop(writer.change::<Trace>(op(*pick, writer.trace))),
        (Action::Pause, Some(id)) => {
            let call = writer.running(id).pending.first().map(|call| call.id).filter(|_| pick % 2 == 0);
            let reason = [PauseReason::Approval, PauseReason::Asked, PauseReason::Poisoned][pick % 3];
            writer.pause(reason, call);
        }
        (Action::Resolve, _) => {
            if let Some(call_id) = writer.now.pauses.pop() {
                let decision = decision(*pick, text, call_id);
                writer.push(PauseResolved { call_id, ..PauseResolved::new(decision) });
            }
        }
        (Action::Request, Some(id)) => {
            let reservation = Some(writer.reservation(tokens(*pick as u64)));
            writer.request(id, reservation);
            let turn = writer.running(id).turns + 1;
            for attempt in 1..=(*pick as u32 % 3) {
                writer.fail_request(id, turn, attempt, AfterFailure::Retry { wait_millis: 10 });
            }
            match pick % 5 {
                0 => _ = writer.push(RequestFinished::new(id, turn, Finish::Stop)),
                1 => _ = writer.push(SessionStopped::error(id, "network", text.as_str())),
                _ => {}
            }
        }
        (Action::Charge, _) => {
            let open = writer.records.iter().rev().filter_map(|record| match &record.body {
                RecordBody::RequestStarted(request) => request.reservation,
                RecordBody::CallStarted(call) => call.reservation,
                _ => None,
            });
            let reservation = open.take(3).nth(pick % 3).map(|reservation| reservation.id);
            writer.charge(reservation, tokens(*pick as u64 / 2));
        }
        (Action::Note, _) if *pick % 4 == 0 => {
            let positions = vec![Position::START];
            writer.push(RecordsRedacted { positions, replacements: 1, ..RecordsRedacted::default() });
        }
        (Action::Note, _) if *pick % 4 == 1 => {
            let object = Object::blob(text.clone().into_bytes()).id();
            let root = WorkspaceRoot { tree: object, manifest: object };
            let (project, directory) = (text.clone(), format!("{text}-copy"));
            let (left_out, extra) = (Vec::new(), Extra::default());
            writer.push(WorkspaceIsolated { project, directory, root, coverage: None, left_out, extra });
            let directory = text.clone();
            let started = writer.push(ApplyStarted {
                directory,
                base: root,
                result: root,
                before: root,
                coverage: None,
                after: root,
                next_base: root,
                undoes: None,
                extra: Extra::default(),
            });
            writer.push(ApplyFinished::new(started));
        }
        (Action::Note, _) => drop(writer.note(text)),
        (Action::Look, _) => {
            let object = Object::blob(text.clone().into_bytes()).id();
            let root = WorkspaceRoot { tree: object, manifest: object };
            let cause = ObservationCause::Drifted;
            writer.push(WorkspaceObserved::new(root, cause));
        }
        (Action::Turn, Some(evaluation_id)) => {
            let (turn, data) = (*pick as u64, json!({"program": text}));
            let now = super::journals::time(0);
            writer.push(ProgramStarted {
                evaluation_id,
                turn,
                source: Some(text.clone().into()),
                now,
                seed: turn,
                memory: None,
                interpreter: "0".to_owned(),
                inputs: None,
                extra: Extra::default(),
            });
            writer.push(TaskFinished {
                evaluation_id,
                turn,
                path: "0".to_owned(),
                task: "1".to_owned(),
                value: json!(text).into(),
                extra: Extra::default(),
            });
            writer.push(TurnFinished::new(evaluation_id, turn, data));
        }
        (Action::Finish, Some(id)) => {
            let outcomes =
                [EvaluationOutcome::Completed, EvaluationOutcome::Failed, EvaluationOutcome::Cancelled];
            writer.finish(id, outcomes[pick % 3]);
        }
        (Action::SayAgain, _) => {
            if let Some(message) = writer.now.said.get(pick % writer.now.said.len().max(1)).cloned() {
                writer.push(message);
            }
        }
        (Action::Rewind, _) => {
            let to = Position::new(1 + *pick as u64 % writer.head().number());
            writer.rewind(to);
        }
        (Action::Undo, _) => {
            let rewinds =
                writer.records.iter().filter(|record| matches!(record.body, RecordBody::Rewound(_)));
            let rewinds: Vec<_> = rewinds.map(|record| record.position).collect();
            if let Some(to) = rewinds.get(pick % rewinds.len().max(1)) {
                writer.rewind(*to);
            }
        }
        (_, None) => {}
    }
}

fn supersede(writer: &mut Writer, evaluation: EvaluationId) {
    writer.finish(evaluation, EvaluationOutcome::Superseded);
    writer.start();
    let Some(record) = writer.records.last_mut() else { return };
    if let RecordBody::EvaluationStarted(started) = &record.body {
        let started = EvaluationStarted { parent_evaluation: Some(evaluation), ..(**started).clone() };
        record.body = started.into();
    }
}

fn with_call(
    writer: &mut Writer,
    evaluation: EvaluationId,
    pick: usize,
    act: impl FnOnce(&mut Writer, CallId),
) {
    let pending = &writer.running(evaluation).pending;
    if let Some(call) = pending.get(pick % pending.len().max(1)).map(|call| call.id) {
        act(writer, call);
    }
}

/// A change of a slice that has `length` items.
fn op(pick: usize, length: usize) -> StoredOp {
    match pick % 7 {
        0 => StoredOp::Clear,
        1 => StoredOp::Replace(vec![json!(pick), json!(0)]),
        2 => StoredOp::Extend(vec![json!(pick), json!(1)]),
        3 if length > 0 => StoredOp::Patch { remove: vec![pick % length], append: vec![json!(pick)] },
        4 if length > 2 => StoredOp::Patch { remove: vec![length - 1, 0], append: vec![] },
        _ => StoredOp::Append(json!(pick)),
    }
}

fn decision(pick: usize, text: &str, call: Option<CallId>) -> Decision {
    let reason = Some(text.to_owned());
    match (pick % 6, call) {
        (0, Some(_)) => Decision::Approve,
        (1, Some(_)) => Decision::Deny { reason },
        (2, Some(_)) => Decision::Retry,
        (3, Some(_)) => Decision::Fail { reason },
        (4, Some(call)) => match result(call, json!(text)).content {
            Content::OptionResult(result) => Decision::Happened { result: Box::new(result) },
            _ => Decision::Continue,
        },
        _ => Decision::Continue,
    }
}

fn media(text: &str) -> Message {
    let mut message = parts(RoleHint::User, text);
    if let Content::Parts(content) = &mut message.content {
        let url = MediaUrl::blob(Object::blob(*b"a picture").id());
        content.parts.push(Part::Media(MediaPart::new(Modality::Image, url)));
    }
    message
}
