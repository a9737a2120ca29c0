//! The fold compared with growing record by record, with the visible records alone, and with the logs alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::journal::{InnerMessage, Position, Record, RecordBody, SessionPaused, SessionSummary};
use backstitch_core::session::{CaptureOptions, SlicePolicy, StoredOp};
use backstitch_core::view::{
    Call, CallStatus, Checkpoint, DriverPresence, Evaluation, JournalView, Ledger, SessionStatus,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::journal_steps::{journal, steps, written};
use super::journals::{Tally, Trace, Writer, clock, tokens};

/// The visible data of a view.
#[derive(Debug, PartialEq)]
struct Shown {
    evaluations: Vec<Evaluation>,
    calls: Vec<Call>,
    checkpoints: Vec<Checkpoint>,
    pauses: Vec<SessionPaused>,
    status: SessionStatus,
    transcript: Vec<Arc<InnerMessage>>,
    state: Digest,
}

/// The visible data, and the data that no rewind cuts.
#[derive(Debug, PartialEq)]
struct All {
    shown: Shown,
    head: Position,
    rewinds: Vec<(Position, Position)>,
    ledger: Ledger,
    summary: SessionSummary,
    logs: Vec<Arc<Trace>>,
    digest: Digest,
}

fn shown(view: &JournalView) -> Shown {
    let state = view.session(clock()).snapshot().content_digest().unwrap();
    Shown {
        evaluations: view.evaluations().cloned().collect(),
        calls: view.calls().cloned().collect(),
        checkpoints: view.checkpoints(),
        pauses: view.pauses().map(|pause| (**pause).clone()).collect(),
        status: view.status(DriverPresence::Absent),
        transcript: view.transcript().unwrap().all().iter().cloned().collect(),
        state,
    }
}

fn all(view: &JournalView) -> All {
    All {
        shown: shown(view),
        head: view.head(),
        rewinds: view.lineage().rewinds().to_vec(),
        ledger: view.ledger().clone(),
        summary: view.summary(),
        logs: logs(view),
        digest: view.content_digest(clock()).unwrap(),
    }
}

fn logs(view: &JournalView) -> Vec<Arc<Trace>> {
    view.session(clock()).all::<Trace>().unwrap().iter().cloned().collect()
}

/// The view after each record, grown one by one; rewinds use the view of the prefix.
fn grown(base: Option<&JournalView>, records: &[Record]) -> Vec<JournalView> {
    let mut views = vec![JournalView::begin(base, &records[0]).unwrap()];
    for record in &records[1..] {
        let mut view = views.last().unwrap().clone();
        match &record.body {
            RecordBody::Rewound(rewound) => {
                view.rewind(record, &views[rewound.to.number() as usize - 1]).unwrap();
            }
            _ => view.apply(record).unwrap(),
        }
        views.push(view);
    }
    views
}

/// The records that are visible at the head, as a journal of their own.
fn visible_alone(view: &JournalView, records: &[Record]) -> Vec<Record> {
    let ranges = view.lineage().visible(view.head());
    let visible = records.iter().filter(|record| ranges.iter().any(|range| range.contains(&record.position)));
    renumbered(visible.filter(|record| match &record.body {
        RecordBody::Rewound(_) => false,
        RecordBody::SliceChanged(change) => change.policy != SlicePolicy::Log,
        _ => true,
    }))
}

fn renumbered<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Record> {
    records
        .zip(0..)
        .map(|(record, number)| Record { position: Position::new(number), ..record.clone() })
        .collect()
}

/// The visible data without positions.
fn without_places(view: &JournalView) -> impl PartialEq + std::fmt::Debug + use<> {
    let evaluations: Vec<_> = view
        .evaluations()
        .map(|one| {
            let finished = one.finished.as_ref().map(|finished| finished.record.clone());
            (
                one.evaluation_id,
                one.turns,
                one.messages,
                one.start.clone(),
                one.open_request.clone(),
                finished,
            )
        })
        .collect();
    let calls: Vec<_> = view
        .calls()
        .map(|call| {
            let intent = call.intent.as_ref().map(|intent| intent.record.clone());
            let finished = call.finished.as_ref().map(|finished| (finished.at, finished.record.clone()));
            (call.call_id, call.evaluation_id, call.name.clone(), call.status(), intent, finished)
        })
        .collect();
    let Shown { pauses, status, transcript, state, .. } = shown(view);
    (evaluations, calls, pauses, status, transcript, state)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_fold_of_any_prefix_equals_the_view_that_grew(writer in journal(50)) {
        let views = grown(None, &writer.records);
        for (index, view) in views.iter().enumerate() {
            let folded = JournalView::fold(&writer.records[..=index]).unwrap();
            prop_assert_eq!(all(&folded), all(view));
        }
    }

    #[test]
    fn a_view_with_rewinds_equals_that_of_the_visible_records_alone(writer in journal(60)) {
        let view = writer.view();
        let alone = JournalView::fold(&visible_alone(&view, &writer.records)).unwrap();
        prop_assert_eq!(without_places(&view), without_places(&alone));
    }

    #[test]
    fn logs_and_charges_are_those_of_all_records(writer in journal(60)) {
        let view = writer.view();
        let logged = writer.records.iter().filter(|record| match &record.body {
            RecordBody::SessionCreated(_) => true,
            RecordBody::SliceChanged(change) => change.policy == SlicePolicy::Log,
            _ => false,
        });
        let alone = JournalView::fold(&renumbered(logged)).unwrap();
        prop_assert_eq!(logs(&view), logs(&alone));
        let charged = writer.records.iter().filter_map(|record| match &record.body {
            RecordBody::BudgetCharged(charge) => Some(charge.amounts),
            _ => None,
        });
        prop_assert_eq!(view.ledger().charged(), charged.fold(tokens(0), |sum, amounts| sum.plus(amounts)));
    }

    #[test]
    fn undoing_a_rewind_gives_back_what_was_shown(
        before in journal(40), to in any::<prop::sample::Index>(), after in steps(12),
    ) {
        let (then, before_head) = (shown(&before.view()), before.head());
        let mut writer = before;
        writer.rewind(Position::new(1 + to.index(writer.records.len()) as u64));
        let mut writer = written(writer, &after);
        writer.rewind(before_head);
        prop_assert_eq!(shown(&writer.view()), then);
    }

    #[test]
    fn sequences_are_dense_on_the_visible_branch(writer in journal(80)) {
        let transcript = writer.view().transcript().unwrap();
        let mut seen = 0;
        for evaluation in transcript.evaluations() {
            let messages = transcript.inner_messages(evaluation);
            let sequences: Vec<_> = messages.iter().map(|message| message.sequence).collect();
            prop_assert_eq!(&sequences, &(0..messages.len() as u64).collect::<Vec<_>>());
            seen += messages.len();
        }
        prop_assert_eq!(seen, transcript.all().len());
    }

    #[test]
    fn a_fork_shows_what_its_parent_did_and_goes_its_own_way(
        parent in journal(40), at in any::<prop::sample::Index>(), after in steps(20),
    ) {
        let position = Position::new(1 + at.index(parent.records.len()) as u64);
        let base = JournalView::fold(&parent.records[..position.number() as usize]).unwrap();
        let fork = parent.fork(2, position);
        let view = JournalView::fold_fork(&base, &fork.records).unwrap();
        let of_parent = shown(&base);
        // Nobody drove the fork, so nobody was interrupted.
        let status = match of_parent.status {
            SessionStatus::Interrupted => SessionStatus::New,
            status => status,
        };
        prop_assert_eq!(shown(&view), Shown { status, ..of_parent });
        prop_assert_eq!(logs(&view), logs(&base));
        prop_assert_eq!(view.ledger(), &Ledger::default());
        prop_assert!(view.session_id() != base.session_id());
        prop_assert_eq!(view.session(clock()).info().parent, Some(base.session_id()));

        let fork = written(fork, &after);
        let views = grown(Some(&base), &fork.records);
        let folded = JournalView::fold_fork(&base, &fork.records).unwrap();
        prop_assert_eq!(all(&folded), all(views.last().unwrap()));
        prop_assert_eq!(shown(&base), shown(&JournalView::fold(&parent.records[..position.number() as usize]).unwrap()));
    }

    #[test]
    fn a_live_session_holds_what_the_journal_says(writer in journal(60)) {
        let view = writer.view();
        let session = view.session(clock());
        prop_assert_eq!(session.all::<Tally>().unwrap().len(), writer.now.tally);
        prop_assert_eq!(session.all::<Trace>().unwrap().len(), writer.trace);
        let digest = session.snapshot_with(CaptureOptions::include_all()).content_digest().unwrap();
        prop_assert_eq!(digest, view.content_digest(clock()).unwrap());
    }
}

#[test]
fn a_slice_that_became_a_log_is_the_same_folded_and_grown() {
    let mut writer = Writer::new(1);
    let cut = writer.head();
    writer.change::<Tally>(StoredOp::Extend(vec![json!(1), json!(2)]));
    writer.change::<Tally>(StoredOp::Patch { remove: vec![0], append: vec![] });
    let RecordBody::SliceChanged(change) = &writer.records[2].body else { panic!() };
    let mut change = (**change).clone();
    change.policy = SlicePolicy::Log;
    writer.records[2].body = change.into();
    writer.rewind(cut);
    let views = grown(None, &writer.records);
    assert_eq!(all(&writer.view()), all(views.last().unwrap()));
    let kept = writer.view().session(clock()).all::<Tally>().unwrap();
    assert_eq!(
        kept.iter().map(|item| item.0).collect::<Vec<_>>(),
        [2],
        "a log is kept, whatever it was before"
    );
}

/// Random journals are useful only if all kinds of events occur in them.
#[test]
fn everything_happens_in_random_journals() {
    let mut runner =
        TestRunner::new_with_rng(ProptestConfig::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut seen = BTreeMap::<&str, usize>::new();
    for _ in 0..100 {
        let writer = journal(60).new_tree(&mut runner).unwrap().current();
        let view = writer.view();
        let mut see = |what, times: usize| *seen.entry(what).or_default() += times;
        for record in &writer.records {
            see(record.body.kind(), 1);
        }
        let undone = view
            .lineage()
            .rewinds()
            .iter()
            .filter(|(_, to)| view.lineage().rewinds().iter().any(|(at, _)| at == to));
        see("undone rewinds", undone.count());
        see("several branches visible", usize::from(view.lineage().visible(view.head()).len() > 2));
        see("pending calls", view.pending_calls().count());
        see("open calls", view.calls().filter(|call| call.is_open()).count());
        let attempts = |call: &&Call| call.intent.as_ref().is_some_and(|intent| intent.record.attempt > 1);
        see("second attempts", view.calls().filter(attempts).count());
        see("failed calls", view.calls().filter(|call| call.status() == CallStatus::Failed).count());
        let transcript = view.transcript().unwrap();
        let unparsable = |message: &&Arc<InnerMessage>| {
            message.message.option_call().is_some_and(|call| !call.arguments.is_parsable())
        };
        see("unparsable arguments", transcript.all().iter().filter(unparsable).count());
        for evaluation in transcript.evaluations() {
            let messages = transcript.inner_messages(evaluation);
            let late = messages.windows(2).filter(|pair| pair[0].turn > pair[1].turn);
            see("late results", late.count());
            let results = messages.iter().filter_map(|message| message.tool_call_id());
            let calls =
                messages.iter().filter_map(|message| Some(message.message.option_call()?.invocation_id));
            let answered: Vec<_> = results.collect();
            see(
                "results out of order",
                usize::from(!calls.filter(|call| answered.contains(call)).eq(answered.iter().copied())),
            );
        }
        see("several evaluations", usize::from(transcript.evaluations().len() > 1));
    }
    for (kind, _) in RecordBody::KINDS {
        assert!(seen.contains_key(kind), "{kind}: {seen:?}");
    }
    assert!(seen.values().all(|times| *times > 0), "{seen:?}");
}
