//! Views of requests, their attempts, and the reasons why a session stopped.

use std::time::Duration;

use backstitch_core::budget::Amounts;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    AfterFailure, EvaluationOutcome, EvaluationResumed, Finish, RequestFinished, SessionStopped, StopReason,
};
use backstitch_core::view::{DriverPresence, FoldProblem, JournalView, SessionStatus};

use super::journals::{Writer, tokens};

const RETRY: AfterFailure = AfterFailure::Retry { wait_millis: 1_500 };

fn resumed(evaluation_id: EvaluationId) -> EvaluationResumed {
    EvaluationResumed::new(evaluation_id)
}

fn answered(evaluation: EvaluationId, turn: u64, attempt: u32) -> RequestFinished {
    RequestFinished {
        attempt,
        usage: tokens(7),
        elapsed_millis: 20,
        ..RequestFinished::new(evaluation, turn, Finish::Stop)
    }
}

#[test]
fn an_evaluation_knows_its_requests_and_their_attempts() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let started = writer.request(evaluation, None);
    let failed = writer.fail_request(evaluation, 1, 1, RETRY);
    writer.fail_request(evaluation, 1, 2, RETRY);
    writer.answer(evaluation, "done", &["{}"]);
    let finished = writer.push(answered(evaluation, 1, 3));
    writer.request(evaluation, None);
    writer.fail_request(evaluation, 2, 1, AfterFailure::Stop);
    // An interrupted request is repeated.
    writer.request(evaluation, None);

    let view = writer.view();
    let requests = &view.evaluation(evaluation).unwrap().requests;
    assert_eq!(requests.len(), 3);
    let [first, second, third] = [0, 1, 2].map(|index| requests[index].clone());
    assert_eq!(first.started.point.position, started);
    assert_eq!(first.failures[0].point.position, failed);
    assert_eq!(first.failures[1].record.attempt, 2);
    assert_eq!(first.failures[1].record.then.wait(), Some(Duration::from_millis(1_500)));
    assert_eq!(first.finished.as_ref().unwrap().point.position, finished);
    assert_eq!(first.finished.as_ref().unwrap().record.usage, tokens(7));
    assert_eq!((first.attempts(), second.attempts(), third.attempts()), (3, 1, 0));
    let last = second.last_failure().unwrap();
    assert_eq!((last.kind.as_str(), last.message.as_str()), ("rate_limited", "too many requests"));
    assert_eq!((last.then.wait(), second.finished.is_none()), (None, true));
    assert_eq!(third.last_failure(), None);
}

#[test]
fn only_charges_count_as_spent() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.request(evaluation, None);
    writer.answer(evaluation, "done", &[]);
    writer.push(answered(evaluation, 1, 1));
    assert_eq!(writer.view().ledger().committed(), Amounts::ZERO, "a reported usage is not charged");
    writer.charge(None, tokens(7));
    assert_eq!(writer.view().ledger().committed(), tokens(7));
}

#[test]
fn requests_go_back_with_the_session() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let cut = writer.request(evaluation, None).next();
    writer.fail_request(evaluation, 1, 1, RETRY);
    let head = writer.head();
    let attempts = |writer: &Writer| writer.view().evaluation(evaluation).unwrap().requests[0].attempts();
    assert_eq!(attempts(&writer), 1);
    writer.rewind(cut);
    assert_eq!(attempts(&writer), 0);
    writer.rewind(head);
    assert_eq!(attempts(&writer), 1);
}

#[test]
fn an_end_of_a_request_that_is_not_the_last_one_is_refused() {
    let refused = |writer: &Writer| JournalView::fold(&writer.records).unwrap_err().problem;
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.fail_request(evaluation, 1, 1, RETRY);
    assert!(matches!(refused(&writer), FoldProblem::UnknownRequest { turn: 1, .. }));
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.request(evaluation, None);
    writer.push(answered(evaluation, 2, 1));
    assert!(matches!(refused(&writer), FoldProblem::UnknownRequest { turn: 2, .. }));
    let mut writer = Writer::new(1);
    let unknown: EvaluationId = writer.id();
    writer.push(answered(unknown, 1, 1));
    assert!(matches!(refused(&writer), FoldProblem::UnknownEvaluation { .. }));
}

#[test]
fn a_stop_counts_until_the_session_is_driven_and_is_kept_after_that() {
    let mut writer = Writer::new(1);
    assert!(writer.view().stopped().is_none() && writer.view().last_stop().is_none());
    let evaluation = writer.start();
    let stop = SessionStopped::error(evaluation, "auth", "no such key");
    let position = writer.push(stop.clone());
    let stopped = writer.view();
    assert_eq!(stopped.stopped(), Some(&stop));
    assert_eq!(
        stopped.status(DriverPresence::Absent),
        SessionStatus::Interrupted,
        "as before there were stops"
    );
    writer.note("changed");
    assert_eq!(writer.view().stopped(), Some(&stop), "it is not driven yet");

    writer.push(resumed(evaluation));
    assert!(writer.view().stopped().is_none());
    assert_eq!(writer.view().last_stop().unwrap().point.position, position);
    writer.finish(evaluation, EvaluationOutcome::Completed);
    assert_eq!(*writer.view().last_stop().unwrap().record, stop);

    let second = writer.start();
    let released = SessionStopped::new(StopReason::Released, Some(second));
    writer.push(released.clone());
    assert_eq!(writer.view().stopped(), Some(&released), "the last one counts");
    writer.rewind(position);
    assert!(writer.view().stopped().is_none(), "a rewind ends the stop");
    assert_eq!(*writer.view().last_stop().unwrap().record, released, "and the stop itself is kept");
}

#[test]
fn no_time_passes_for_an_evaluation_that_has_stopped() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let active = |writer: &Writer| writer.view().evaluation(evaluation).unwrap().active;
    writer.push(SessionStopped::error(evaluation, "network", "gone"));
    let before = active(&writer);
    writer.note("much later");
    assert_eq!(active(&writer), before);
    writer.push(resumed(evaluation));
    writer.note("driven");
    assert!(active(&writer) > before);
}
