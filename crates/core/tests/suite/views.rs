//! Evaluations, status, boundaries, the ledger, and the live session of a journal.

use std::collections::HashSet;

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{
    CallVerdict, Decision, EvaluationOutcome, EvaluationResumed, InnerMessage, Origin, PauseReason,
    PauseResolved, Point, Position, ProcessStarted, RecordBody, SessionPaused,
};
use backstitch_core::machine::{EvaluationHistory, TurnNumbers, conversation};
use backstitch_core::message::RoleHint;
use backstitch_core::session::{SessionError, Snapshot, StoredOp};
use backstitch_core::view::{CallStatus, DriverPresence, JournalView, SessionStatus};
use serde_json::json;

use super::journals::{Standing, Tally, Trace, Writer, clock, parts, result, root, session_id};

#[test]
fn an_evaluation_has_a_start_turns_and_an_outcome() {
    let mut writer = Writer::new(1);
    assert!(writer.view().latest_evaluation().is_none());
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    writer.request(evaluation, None);
    let view = writer.view();
    let one = view.evaluation(evaluation).unwrap();
    assert_eq!((one.turns, one.messages, one.outcome()), (0, 1, None));
    assert_eq!(one.started, Point { session: session_id(1), position: Position::new(1) });
    assert_eq!(one.open_request.as_ref().unwrap().turn, 1);
    writer.answer(evaluation, "done", &["{}"]);
    let view = writer.view();
    let one = view.evaluation(evaluation).unwrap();
    assert_eq!((one.turns, one.messages, one.open_request.is_none()), (1, 3, true));
    writer.request(evaluation, None);
    for outcome in [
        EvaluationOutcome::Completed,
        EvaluationOutcome::Failed,
        EvaluationOutcome::Cancelled,
        EvaluationOutcome::Superseded,
    ] {
        let mut writer = Writer::new(1);
        let evaluation = writer.start();
        writer.request(evaluation, None);
        let position = writer.finish(evaluation, outcome);
        let next = writer.start();
        let view = writer.view();
        let one = view.evaluation(evaluation).unwrap();
        assert_eq!((one.outcome(), one.open_request.is_none()), (Some(outcome), true));
        assert_eq!(one.finished.as_ref().unwrap().point.position, position);
        assert_eq!(view.latest_evaluation().unwrap().evaluation_id, next);
    }
}

#[test]
fn a_conversation_is_the_line_of_evaluations_that_follow_each_other() {
    let mut writer = Writer::new(1);
    let ended = |writer: &mut Writer, follows, outcome| {
        let evaluation = writer.start_after(follows);
        writer.say(evaluation, parts(RoleHint::System, &format!("system of {evaluation}")));
        writer.say(evaluation, parts(RoleHint::User, &format!("asked in {evaluation}")));
        writer.answer(evaluation, "done", &[]);
        writer.finish(evaluation, outcome);
        evaluation
    };
    let old = ended(&mut writer, None, EvaluationOutcome::Completed);
    let first = ended(&mut writer, None, EvaluationOutcome::Completed);
    let second = ended(&mut writer, Some(first), EvaluationOutcome::Superseded);
    let view = writer.view();
    assert_eq!(view.to_follow(None), Some(second), "the latest, however it ended");
    assert_eq!(view.to_follow(Some(second)), Some(first), "what the superseded one followed");
    assert_eq!(view.to_follow(Some(first)), None);
    let cut = writer.head();
    let third = ended(&mut writer, Some(first), EvaluationOutcome::Failed);
    let fourth = ended(&mut writer, Some(third), EvaluationOutcome::Completed);
    let view = writer.view();
    assert_eq!(view.followed(fourth), [first, third]);
    assert_eq!(view.followed(second), [first]);
    assert_eq!((view.followed(old), view.followed(first)), (vec![], vec![]));
    let past = EvaluationHistory::of(&view, fourth).unwrap();
    let said: Vec<_> = past.conversation().iter().map(|message| message.content()).collect();
    let expected = [
        format!("system of {fourth}"),
        format!("asked in {first}"),
        "done".to_owned(),
        format!("asked in {third}"),
        "done".to_owned(),
        format!("asked in {fourth}"),
        "done".to_owned(),
    ];
    assert_eq!(said, expected);
    assert_eq!(past.conversation(), conversation(&view.transcript().unwrap(), &[first, third], fourth));
    assert_eq!(past.messages.len(), 3, "the evaluation itself is its own messages");
    let mut numbers = TurnNumbers::default();
    let numbered: Vec<u64> = past.conversation().iter().map(|message| numbers.number(message)).collect();
    assert_eq!(numbered, [0, 0, 1, 2, 3, 4, 5]);
    // Evaluations that are not visible are not followed.
    writer.rewind(cut);
    assert_eq!(writer.view().to_follow(None), Some(second));
    // A chain ends at a missing evaluation, and at a circle.
    let lost = ended(&mut writer, Some(fourth), EvaluationOutcome::Completed);
    assert_eq!(writer.view().followed(lost), []);
    let next = writer.start_after(None);
    let RecordBody::EvaluationStarted(started) = &writer.records.last().unwrap().body else { panic!() };
    let mut itself = (**started).clone();
    itself.follows = Some(next);
    writer.records.last_mut().unwrap().body = itself.into();
    assert_eq!(writer.view().followed(next), []);
}

#[test]
fn the_status_of_a_session_follows_from_pauses_its_latest_evaluation_and_its_driver() {
    use SessionStatus::{Idle, Interrupted, Paused, Poisoned, Running};
    let status = |writer: &Writer| {
        [DriverPresence::Present, DriverPresence::Absent].map(|driver| writer.view().status(driver))
    };
    let mut writer = Writer::new(1);
    assert_eq!(status(&writer), [Idle, Idle]);
    let evaluation = writer.start();
    assert_eq!(status(&writer), [Running, Interrupted]);
    for reason in [PauseReason::Approval, PauseReason::EffectUnknown, PauseReason::Budget, PauseReason::Asked]
    {
        let before = writer.head();
        writer.pause(reason, None);
        assert_eq!(status(&writer), [Paused { reason }; 2]);
        resolve(&mut writer, None);
        assert_eq!(status(&writer), [Running, Interrupted]);
        writer.rewind(before.next());
        assert_eq!(
            status(&writer),
            [Paused { reason }; 2],
            "after a rewind to a pause the session is paused"
        );
        writer.rewind(before);
    }
    writer.finish(evaluation, EvaluationOutcome::Completed);
    assert_eq!(status(&writer), [Idle, Idle]);
    writer.pause(PauseReason::Asked, None);
    writer.pause(PauseReason::Poisoned, None);
    assert_eq!(status(&writer), [Poisoned, Poisoned]);
    let shown = serde_json::to_value(Paused { reason: PauseReason::EffectUnknown }).unwrap();
    assert_eq!(shown, json!({"status": "paused", "reason": "effect_unknown"}));
}

fn resolve(writer: &mut Writer, call_id: Option<CallId>) {
    writer.push(PauseResolved { call_id, ..PauseResolved::new(Decision::Approve) });
}

#[test]
fn each_call_waits_for_its_own_decision() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}", "{}"]);
    writer.pause(PauseReason::Approval, Some(calls[0]));
    writer.pause(PauseReason::Approval, Some(calls[1]));
    assert_eq!(writer.view().pause().unwrap().call_id, Some(calls[0]));
    resolve(&mut writer, Some(calls[0]));
    assert_eq!(writer.view().pause().unwrap().call_id, Some(calls[1]));
    // A decision about no call does not decide about a call.
    resolve(&mut writer, None);
    assert_eq!(writer.view().pauses().count(), 1);
    // When the evaluation ends, its calls need no decision any more.
    writer.pause(PauseReason::Asked, None);
    writer.finish(evaluation, EvaluationOutcome::Cancelled);
    let view = writer.view();
    assert_eq!(view.pauses().map(|pause| pause.reason).collect::<Vec<_>>(), [PauseReason::Asked]);
}

#[test]
fn an_approval_ends_when_a_person_is_asked_again_and_an_edit_stays() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let call = writer.answer(evaluation, "", &["{}"])[0];
    let state = |writer: &Writer| {
        let view = writer.view();
        let known = view.call(call).unwrap();
        (known.approval.is_some(), known.edited_arguments().cloned())
    };
    let arguments = json!({"a": 1}).as_object().cloned().unwrap();
    writer.pause(PauseReason::Approval, Some(call));
    assert_eq!(state(&writer), (false, None));
    let edit = PauseResolved::new(Decision::Edit { arguments: arguments.clone() }).of_call(call);
    writer.push(edit);
    assert_eq!(state(&writer), (true, Some(arguments.clone())));
    // A question about the child session of the call is another one.
    let of_child = SessionPaused::new(PauseReason::Approval).of_call(call);
    writer.push(SessionPaused { session: Some(session_id(2)), ..of_child });
    assert_eq!(state(&writer), (true, Some(arguments.clone())));
    writer.pause(PauseReason::Approval, Some(call));
    assert_eq!(state(&writer), (false, Some(arguments.clone())));
    resolve(&mut writer, Some(call));
    assert_eq!(state(&writer), (true, Some(arguments)));
    // The intent has the arguments from now on, and the approval holds for later attempts.
    writer.start_call(evaluation, call);
    assert_eq!(state(&writer), (true, None));
}

#[test]
fn a_call_has_a_boundary_on_each_side() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}", "{}", "{}"]);
    assert_eq!(writer.view().checkpoints(), []);
    // Started out of order: boundaries are in the order of the intents.
    let started = [writer.start_call(evaluation, calls[1]), writer.start_call(evaluation, calls[0])];
    writer.change::<Tally>(StoredOp::Append(json!(1)));
    let ended = writer.finish_call(evaluation, calls[1], CallVerdict::Succeeded);
    let view = writer.view();
    let checkpoints = view.checkpoints();
    assert_eq!(checkpoints.iter().map(|one| one.call_id).collect::<Vec<_>>(), [calls[1], calls[0]]);
    let done = &checkpoints[0];
    assert_eq!((done.tool_name.as_str(), done.attempt, done.status), ("search", 1, CallStatus::Completed));
    assert_eq!((done.before.position, done.before.root), (started[0], Some(root("before 1"))));
    let after = done.after.unwrap();
    assert_eq!(
        (after.position, after.root, after.session),
        (ended.next(), Some(root("after")), session_id(1))
    );
    assert_eq!((done.result_summary.as_deref(), done.elapsed_micros), (Some("found"), Some(7)));
    assert_eq!(done.recorded_at, Some(writer.records[ended.number() as usize].at));
    let open = &checkpoints[1];
    assert_eq!((open.status, open.after, open.recorded_at), (CallStatus::Pending, None, None));
    assert!(view.call(calls[0]).unwrap().is_open());
    assert!(!view.call(calls[2]).unwrap().is_open(), "a call without an intent cannot have had an effect");
    assert_eq!(view.pending_calls().map(|call| call.call_id).collect::<Vec<_>>(), [calls[0], calls[2]]);

    // The journal up to a boundary gives the state there.
    let mut back = writer;
    back.rewind(after.position);
    assert_eq!(back.view().session(clock()).all::<Tally>().unwrap().len(), 1);
    back.rewind(done.before.position);
    assert_eq!(back.view().session(clock()).all::<Tally>().unwrap().len(), 0);
    assert_eq!(back.view().pending_calls().count(), 3);
}

#[test]
fn a_failed_call_ends_at_the_files_it_began_with() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let calls = writer.answer(evaluation, "", &["{}"]);
    writer.start_call(evaluation, calls[0]);
    writer.finish_call(evaluation, calls[0], CallVerdict::Failed);
    let view = writer.view();
    let checkpoint = &view.checkpoints()[0];
    assert_eq!(checkpoint.status, CallStatus::Failed);
    assert_eq!(checkpoint.after.unwrap().root, checkpoint.before.root);
    assert_eq!(view.call(calls[0]).unwrap().finished.as_ref().unwrap().record.rescue, Some(root("rescue")));
}

#[test]
fn the_processes_of_a_call_are_known_until_it_ends() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let call = writer.answer(evaluation, "", &["{}"])[0];
    writer.start_call(evaluation, call);
    let process = ProcessStarted {
        call_id: call,
        program: "/bin/sh".into(),
        group: 4_711,
        started: "163024".into(),
        boot: "a boot".into(),
        extra: Extra::default(),
    };
    writer.push(process.clone());
    // Processes that a crash left behind are still listed when the call starts again.
    writer.start_call(evaluation, call);
    let view = writer.view();
    let processes: Vec<_> = view.call(call).unwrap().processes.iter().map(|one| (**one).clone()).collect();
    assert_eq!(processes, [process]);
    writer.finish_call(evaluation, call, CallVerdict::Failed);
    assert!(writer.view().call(call).unwrap().processes.is_empty());
}

#[test]
fn of_several_attempts_the_last_one_counts() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let call = writer.answer(evaluation, "", &["{}"])[0];
    writer.start_call(evaluation, call);
    let second = writer.start_call(evaluation, call);
    let view = writer.view();
    let checkpoints = view.checkpoints();
    assert_eq!(checkpoints.len(), 1);
    assert_eq!((checkpoints[0].attempt, checkpoints[0].before.position), (2, second));
    assert_eq!(checkpoints[0].before.root, Some(root("before 2")));
    writer.finish_call(evaluation, call, CallVerdict::Succeeded);
    assert_eq!(writer.view().checkpoints()[0].after.unwrap().position, writer.head());

    // A call of a program has no messages: its records define its status, and starting it again reopens it.
    let call = writer.id();
    writer.start_call(evaluation, call);
    assert_eq!(writer.view().call(call).unwrap().status(), CallStatus::Pending);
    let said = writer.head();
    writer.finish_call(evaluation, call, CallVerdict::Failed);
    writer.records.remove(said.number() as usize);
    writer.records[said.number() as usize].position = said;
    let view = writer.view();
    assert_eq!(view.call(call).unwrap().status(), CallStatus::Failed);
    writer.start_call(evaluation, call);
    let view = writer.view();
    assert!(view.call(call).unwrap().is_open());
    assert_eq!(view.call(call).unwrap().checkpoint().unwrap().after, None);
}

#[test]
fn the_live_session_of_a_journal_is_ready_to_go_on() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    writer.change::<Tally>(StoredOp::Extend(vec![json!(1), json!(2)]));
    let view = writer.view();
    let mut session = view.session(clock());
    assert_eq!((session.id(), session.info().parent), (view.session_id(), None));
    assert_eq!(*session.latest::<Tally>().unwrap().unwrap(), Tally(2));
    let mut gap = writer.next_message(evaluation, 0, parts(RoleHint::User, "hello"));
    gap.sequence += 1;
    let refused = session.append(gap.clone()).unwrap_err();
    assert!(
        matches!(refused, SessionError::Reducer { .. }),
        "the transcript's reducer is registered: {refused}"
    );
    gap.sequence -= 1;
    session.append(gap).unwrap();
    assert_eq!(session.all::<InnerMessage>().unwrap().len(), 2);
}

#[test]
fn ids_do_not_repeat_when_a_session_is_opened_again_further_on() {
    let mut writer = Writer::new(1);
    let mut seen = HashSet::new();
    for _ in 0..5 {
        let ids = writer.view().session(clock()).ids().clone();
        for _ in 0..500 {
            assert!(seen.insert(ids.next::<CallId>()));
        }
        writer.note("something was recorded");
    }
    let fork = JournalView::fold_fork(&writer.view(), &writer.fork(2, writer.head()).records).unwrap();
    let ids = fork.session(clock()).ids().clone();
    assert!((0..500).all(|_| seen.insert(ids.next::<CallId>())));
}

#[test]
fn a_session_may_start_from_a_snapshot_of_another() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "be brief"));
    let calls = writer.answer(evaluation, "", &["{}", "{}"]);
    writer.say(evaluation, result(calls[0], json!(1)));
    writer.change::<Tally>(StoredOp::Append(json!(7)));
    writer.change::<Trace>(StoredOp::Append(json!(8)));
    let snapshot = writer.view().session(clock()).snapshot();
    let snapshot = Snapshot::from_json(&snapshot.to_json().unwrap()).unwrap();

    let state = snapshot.stored_slices().unwrap();
    let mut other = Writer::from(2, Origin::Root, state, (Standing::default(), 0));
    let view = other.view();
    assert_eq!(view.transcript().unwrap().all(), writer.view().transcript().unwrap().all());
    let session = view.session(clock());
    assert_eq!(session.all::<Tally>().unwrap().len(), 1);
    assert_eq!(session.all::<Trace>().unwrap().len(), 0, "logs are not in a default snapshot");
    assert_eq!(session.snapshot().content_digest().unwrap(), snapshot.content_digest().unwrap());
    let loaded = view.latest_evaluation().unwrap();
    assert_eq!((loaded.evaluation_id, loaded.turns, loaded.messages), (evaluation, 1, 4));
    assert_eq!((loaded.started.session, loaded.start.is_none()), (session_id(2), true));
    assert_eq!(view.status(DriverPresence::Absent), SessionStatus::Interrupted);
    assert_eq!(view.pending_calls().map(|call| call.call_id).collect::<Vec<_>>(), [calls[1]]);

    // The evaluation continues at the pending call, and a rewind to the start of the session restores what it
    // was loaded with.
    other.now = writer.now.clone();
    other.start_call(evaluation, calls[1]);
    other.finish_call(evaluation, calls[1], CallVerdict::Succeeded);
    assert_eq!(other.view().pending_calls().count(), 0);
    other.rewind(Position::new(1));
    assert_eq!(other.view().pending_calls().count(), 1);
}

#[test]
fn active_time_counts_only_while_somebody_drives() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let seconds = |writer: &Writer| writer.view().evaluation(evaluation).unwrap().active.as_secs();
    let step = (writer.records[1].at.since(writer.records[0].at)).as_secs();
    writer.note("one");
    writer.note("two");
    assert_eq!(seconds(&writer), 2 * step);
    writer.pause(PauseReason::Asked, None);
    assert_eq!(seconds(&writer), 3 * step);
    // Neither the time until a decision nor the time without a process counts.
    let (call_id, decision, extra) = (None, Decision::Continue, Extra::default());
    writer.push(PauseResolved { call_id, decision, by: None, subject: None, extra });
    assert_eq!(seconds(&writer), 3 * step);
    writer.push(resumed(evaluation, None));
    assert_eq!(seconds(&writer), 3 * step);
    writer.note("three");
    assert_eq!(seconds(&writer), 4 * step);
    assert_eq!(writer.view().evaluation(evaluation).unwrap().time_left(), None);

    writer.push(resumed(evaluation, Some(1_000 * step + 500)));
    writer.note("four");
    let left = writer.view().evaluation(evaluation).unwrap().time_left();
    assert_eq!(left, Some(std::time::Duration::from_millis(500)), "a new allotment starts anew");
}

fn resumed(evaluation_id: EvaluationId, deadline_millis: Option<u64>) -> EvaluationResumed {
    EvaluationResumed { deadline_millis, ..EvaluationResumed::new(evaluation_id) }
}
