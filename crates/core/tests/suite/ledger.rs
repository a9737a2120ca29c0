//! Spending: reserved, settled, and never refunded by a rewind.

use backstitch_core::journal::{CallVerdict, EvaluationOutcome};
use backstitch_core::view::JournalView;

use super::journals::{Writer, tokens};

#[test]
fn what_is_held_back_counts_until_it_is_settled() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let ask = writer.reservation(tokens(100));
    writer.request(evaluation, Some(ask));
    let ledger = writer.view().ledger().clone();
    assert_eq!(
        (ledger.charged(), ledger.reserved(), ledger.committed()),
        (tokens(0), tokens(100), tokens(100))
    );
    writer.charge(Some(ask.id), tokens(70));
    let ledger = writer.view().ledger().clone();
    assert_eq!(
        (ledger.charged(), ledger.reserved(), ledger.committed()),
        (tokens(70), tokens(0), tokens(70))
    );
    writer.charge(None, tokens(5));
    assert_eq!(writer.view().ledger().charged(), tokens(75));
}

#[test]
fn after_a_crash_a_request_stays_charged_and_a_call_does_not() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let reserved = |writer: &Writer| writer.view().ledger().reserved().input_tokens;
    let ask = writer.reservation(tokens(100));
    writer.request(evaluation, Some(ask));
    // The answer never arrived, and the request is repeated: the model may have answered twice.
    let ask = writer.reservation(tokens(10));
    writer.request(evaluation, Some(ask));
    writer.charge(Some(ask.id), tokens(9));
    assert_eq!(reserved(&writer), 100);
    let calls = writer.answer(evaluation, "", &["{}", "{}", "{}"]);
    for call in &calls {
        let hold = writer.reservation(tokens(1));
        writer.start_call_with(evaluation, *call, Some(hold));
    }
    assert_eq!(reserved(&writer), 103);
    let hold = writer.reservation(tokens(1));
    writer.start_call_with(evaluation, calls[0], Some(hold));
    assert_eq!(reserved(&writer), 103, "a second attempt replaces the first");
    writer.finish_call(evaluation, calls[0], CallVerdict::Succeeded);
    assert_eq!(reserved(&writer), 102);
    let before = writer.head();
    writer.rewind(before);
    assert_eq!(reserved(&writer), 100, "after a rewind there are no calls in progress");
    let hold = writer.reservation(tokens(1));
    writer.start_call_with(evaluation, calls[1], Some(hold));
    writer.finish(evaluation, EvaluationOutcome::Failed);
    assert_eq!(reserved(&writer), 100, "nor after the end of an evaluation");
}

#[test]
fn an_evaluation_has_spent_what_its_session_has_since_it_began() {
    let mut writer = Writer::new(1);
    let first = writer.start();
    writer.charge(None, tokens(40));
    writer.finish(first, EvaluationOutcome::Completed);
    let second = writer.start();
    let begun = writer.head();
    writer.charge(None, tokens(7));
    let spent = |writer: &Writer| {
        let view = writer.view();
        view.spent_by(view.evaluation(second).unwrap())
    };
    assert_eq!(spent(&writer), tokens(7));
    writer.rewind(begun);
    assert_eq!(spent(&writer), tokens(7), "a rewind refunds nothing");
    // A fork pays its own costs.
    let mut fork = writer.fork(2, writer.head());
    fork.charge(None, tokens(3));
    let view = JournalView::fold_fork(&writer.view(), &fork.records).unwrap();
    assert_eq!(view.spent_by(view.evaluation(second).unwrap()), tokens(3));
}

#[test]
fn spent_is_spent_whatever_is_rewound() {
    let mut writer = Writer::new(1);
    let start = writer.head();
    let evaluation = writer.start();
    let ask = writer.reservation(tokens(100));
    writer.request(evaluation, Some(ask));
    writer.charge(None, tokens(40));
    writer.rewind(start);
    let view = writer.view();
    assert_eq!((view.ledger().charged(), view.ledger().reserved()), (tokens(40), tokens(100)));
    assert!(view.latest_evaluation().is_none());
    // A reservation of another branch can still be settled.
    writer.charge(Some(ask.id), tokens(60));
    assert_eq!(writer.view().ledger().committed(), tokens(100));
}
