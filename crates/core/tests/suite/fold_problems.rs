//! A record that does not fit into a journal is refused with its position, and changes nothing.

use std::error::Error;

use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    CallStarted, CallVerdict, EvaluationOutcome, EvaluationStarted, InnerMessage, Origin, Position, Record,
    RecordBody, RequestStarted, SequenceError, TurnFinished,
};
use backstitch_core::message::RoleHint;
use backstitch_core::session::{SessionError, SlicePolicy, SnapshotRestoreError, StoredOp, StoredSlice};
use backstitch_core::view::{FoldError, FoldProblem, JournalView};
use serde_json::json;

use super::journals::{Standing, Tally, Writer, clock, parts, session_id};

/// The error for the last record, by folding all records and by growing. Growing leaves the view unchanged.
fn refused(writer: &Writer) -> FoldProblem {
    let (last, before) = writer.records.split_last().unwrap();
    let error = JournalView::fold(&writer.records).unwrap_err();
    assert_eq!(error.position, last.position);
    assert!(error.to_string().contains(&last.position.to_string()));
    assert!(error.source().is_some());
    let mut view = JournalView::fold(before).unwrap();
    let digest = view.content_digest(clock()).unwrap();
    let FoldError { position, problem } = view.apply(last).unwrap_err();
    assert_eq!(position, last.position);
    assert_eq!(problem.to_string(), error.problem.to_string());
    assert_eq!((view.head(), view.content_digest(clock()).unwrap()), (last.position, digest));
    problem
}

macro_rules! assert_refused {
    ($writer:expr, $pattern:pat $(if $guard:expr)?) => {
        let problem = refused(&$writer);
        assert!(matches!(&problem, $pattern $(if $guard)?), "{problem:?}");
    };
}

#[test]
fn a_journal_begins_with_its_session_and_only_there() {
    let beginning = |records: &[Record]| JournalView::fold(records).unwrap_err().problem;
    assert!(matches!(beginning(&[]), FoldProblem::Beginning));
    let mut writer = Writer::new(1);
    writer.note("hm");
    assert!(matches!(beginning(&writer.records[1..]), FoldProblem::Beginning));
    let mut late = writer.records[0].clone();
    late.position = Position::new(3);
    assert!(matches!(beginning(&[late]), FoldProblem::Gap { expected: Position::START }));
    let again = writer.records[0].body.clone();
    writer.push(again);
    assert_refused!(writer, FoldProblem::Beginning);
}

#[test]
fn positions_have_no_gap() {
    for position in [1, 3, 9] {
        let mut writer = Writer::new(1);
        writer.note("one");
        writer.note("two");
        writer.records[2].position = Position::new(position);
        let error = JournalView::fold(&writer.records).unwrap_err();
        assert!(matches!(error.problem, FoldProblem::Gap { expected } if expected == Position::new(2)));
    }
}

#[test]
fn a_rewind_needs_a_cut_that_exists_and_the_journal_up_to_it() {
    for to in [0, 4, u64::MAX] {
        let mut writer = Writer::new(1);
        writer.note("one");
        writer.note("two");
        writer.rewind(Position::new(to));
        assert_refused!(writer, FoldProblem::NoSuchCut { to: cut } if *cut == Position::new(to));
    }
    let mut writer = Writer::new(1);
    writer.note("one");
    writer.note("two");
    let before = writer.view();
    let rewound = writer.rewind(Position::new(2));
    let record = &writer.records[rewound.number() as usize];
    let mut view = before.clone();
    let needs = |result: Result<(), FoldError>| {
        let problem = result.unwrap_err().problem;
        assert!(matches!(problem, FoldProblem::NeedsPrefix { to } if to == Position::new(2)), "{problem:?}");
    };
    needs(view.apply(record));
    needs(view.rewind(record, &JournalView::fold(&writer.records[..1]).unwrap()));
    let mut other = Writer::new(2);
    other.note("one");
    needs(view.rewind(record, &other.view()));
    assert_eq!(view.head(), before.head());
    view.rewind(record, &JournalView::fold(&writer.records[..2]).unwrap()).unwrap();
    assert_eq!(view.head(), rewound.next());
    // A rewind to the head is allowed: it starts a branch and changes nothing.
    writer.rewind(writer.head());
    assert_eq!(writer.view().lineage().rewinds().len(), 2);
}

#[test]
fn messages_stand_where_they_belong() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let said = writer.say(evaluation, parts(RoleHint::User, "hello"));
    let mut gap = writer.next_message(evaluation, 0, parts(RoleHint::User, "hm"));
    gap.sequence = 5;
    writer.push(gap);
    assert_refused!(writer, FoldProblem::Sequence(SequenceError::Gap { expected: 1, found: 5, .. }));
    writer.records.pop();
    let mut other = said.clone();
    other.message = parts(RoleHint::User, "goodbye");
    writer.push(other);
    assert_refused!(writer, FoldProblem::Sequence(SequenceError::Differs { sequence: 0, .. }));
    writer.records.pop();
    writer.push(said);
    assert_eq!(
        writer.view().evaluation(evaluation).unwrap().messages,
        1,
        "the same once more changes nothing"
    );
}

#[test]
fn a_message_that_a_rewind_hid_may_be_another_one_now() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let cut = writer.head();
    writer.say(evaluation, parts(RoleHint::User, "hello"));
    writer.rewind(cut);
    let said = writer.say(evaluation, parts(RoleHint::User, "goodbye"));
    assert_eq!(said.sequence, 0);
    let transcript = writer.view().transcript().unwrap();
    assert_eq!(transcript.all().iter().map(|message| message.content()).collect::<Vec<_>>(), ["goodbye"]);
}

#[test]
fn slices_change_as_they_can() {
    let mut writer = Writer::new(1);
    writer.change::<Tally>(StoredOp::Append(json!(1)));
    writer.now.tally = 9;
    writer.change::<Tally>(StoredOp::Patch { remove: vec![4], append: vec![] });
    assert_refused!(writer, FoldProblem::Slice(SessionError::PatchOutOfRange { position: 4, length: 1, .. }));

    let mut writer = Writer::new(1);
    writer.change::<InnerMessage>(StoredOp::Append(json!({})));
    assert_refused!(writer, FoldProblem::TranscriptChanged);
}

#[test]
fn what_is_about_an_evaluation_needs_one() {
    let nobody: EvaluationId = Writer::new(7).id();
    type Write = fn(&mut Writer, EvaluationId);
    let about: [Write; 3] = [
        |writer, nobody| {
            let (evaluation, call) = (writer.start(), writer.id());
            writer.start_call(evaluation, call);
            let Some(RecordBody::CallStarted(started)) = writer.records.pop().map(|record| record.body)
            else {
                panic!()
            };
            writer.push(CallStarted { evaluation_id: nobody, ..(*started).clone() });
        },
        |writer, evaluation_id| {
            writer.push(TurnFinished::new(evaluation_id, 1, json!(1)));
        },
        |writer, nobody| {
            let evaluation = writer.start();
            writer.request(evaluation, None);
            let Some(RecordBody::RequestStarted(started)) = writer.records.pop().map(|record| record.body)
            else {
                panic!()
            };
            writer.push(RequestStarted { evaluation_id: nobody, ..(*started).clone() });
        },
    ];
    for write in about {
        let mut writer = Writer::new(1);
        write(&mut writer, nobody);
        assert_refused!(writer, FoldProblem::UnknownEvaluation { evaluation } if *evaluation == nobody);
    }
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.finish(evaluation, EvaluationOutcome::Failed);
    writer.finish(evaluation, EvaluationOutcome::Completed);
    assert_refused!(writer, FoldProblem::AlreadyFinished { .. });

    let mut writer = Writer::new(1);
    writer.start();
    let RecordBody::EvaluationStarted(started) = &writer.records[1].body else { panic!() };
    let started = EvaluationStarted::clone(started);
    writer.push(started);
    assert_refused!(writer, FoldProblem::AlreadyStarted { .. });
}

#[test]
fn what_ends_a_call_needs_one() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let call = writer.answer(evaluation, "", &["{}"])[0];
    writer.finish_call(evaluation, call, CallVerdict::Succeeded);
    let finished = writer.records.pop().unwrap();
    writer.records.truncate(2);
    writer.push(finished.body);
    assert_refused!(writer, FoldProblem::UnknownCall { .. });
}

fn slice(name: &str, items: Vec<serde_json::Value>) -> StoredSlice {
    StoredSlice {
        name: name.into(),
        version: 1,
        policy: SlicePolicy::State,
        items,
        item_versions: Vec::new(),
        extra: Extra::default(),
    }
}

#[test]
fn an_initial_state_that_cannot_be_is_refused() {
    let begun = |state: Vec<StoredSlice>| {
        let writer = Writer::from(1, Origin::Root, state, (Standing::default(), 0));
        JournalView::fold(&writer.records).map_err(|error| error.problem)
    };
    let twice = begun(vec![slice("tally", vec![]), slice("tally", vec![])]).unwrap_err();
    assert!(
        matches!(&twice, FoldProblem::InitialState(SnapshotRestoreError::DuplicateSlice { .. })),
        "{twice:?}"
    );
    let mut versions = slice("tally", vec![json!(1)]);
    versions.item_versions = vec![1, 1];
    let versions = begun(vec![versions]).unwrap_err();
    assert!(matches!(&versions, FoldProblem::InitialState(SnapshotRestoreError::ItemVersions { .. })));
    let transcript = begun(vec![slice("inner_message", vec![json!({"text": "?"})])]).unwrap_err();
    assert!(matches!(&transcript, FoldProblem::Slice(SessionError::Decode { .. })), "{transcript:?}");
    let mut writer = Writer::new(2);
    let evaluation = writer.start();
    let mut late = writer.next_message(evaluation, 0, parts(RoleHint::User, "hello"));
    late.sequence = 1;
    let late = begun(vec![slice("inner_message", vec![serde_json::to_value(late).unwrap()])]).unwrap_err();
    assert!(matches!(&late, FoldProblem::Sequence(SequenceError::Gap { expected: 0, found: 1, .. })));
    // A cache is computed again, and unknown slices are kept.
    let mut cache = slice("sum", vec![json!(1)]);
    cache.policy = SlicePolicy::Cache;
    let view = begun(vec![cache, slice("unknown", vec![json!({"a": 1})])]).unwrap();
    let session = view.session(clock());
    assert_eq!(session.slice_names().collect::<Vec<_>>(), [("unknown", SlicePolicy::State)]);
}

#[test]
fn a_fork_needs_the_journal_that_it_goes_on_from() {
    let mut parent = Writer::new(1);
    parent.change::<Tally>(StoredOp::Append(json!(1)));
    let fork = parent.fork(2, parent.head());
    let base = parent.view();
    let alone = JournalView::fold(&fork.records).unwrap_err().problem;
    assert!(
        matches!(&alone, FoldProblem::NeedsParent { session, .. } if *session == session_id(1)),
        "{alone:?}"
    );
    parent.note("more");
    let elsewhere = JournalView::fold_fork(&parent.view(), &fork.records).unwrap_err().problem;
    assert!(matches!(elsewhere, FoldProblem::NeedsParent { .. }));
    let other = JournalView::fold_fork(&base, &Writer::new(3).records).unwrap_err().problem;
    assert!(matches!(other, FoldProblem::NotAFork));
    let mut of_another = Writer::new(5);
    of_another.note("hm");
    let foreign = JournalView::fold_fork(&of_another.view(), &fork.records).unwrap_err().problem;
    assert!(matches!(foreign, FoldProblem::NeedsParent { .. }));
    let view = JournalView::fold_fork(&base, &fork.records).unwrap();
    assert_eq!(view.session(clock()).all::<Tally>().unwrap().len(), 1);
    assert_eq!(view.created().origin.parent(), Some(session_id(1)));
}

#[test]
fn a_fork_tells_its_own_boundaries_from_those_of_its_parent() {
    let mut parent = Writer::new(1);
    let evaluation = parent.start();
    let calls = parent.answer(evaluation, "", &["{}", "{}"]);
    parent.note("so that positions of the parent are larger");
    let started = parent.start_call(evaluation, calls[0]);
    let (base, cut) = (parent.view(), parent.head());
    let mut fork = parent.fork(2, cut);
    // The interrupted call ends in the fork, and another one runs there.
    fork.finish_call(evaluation, calls[0], CallVerdict::Succeeded);
    let ended = fork.head();
    let own = fork.start_call(evaluation, calls[1]);
    let view = JournalView::fold_fork(&base, &fork.records).unwrap();
    let checkpoints = view.checkpoints();
    assert_eq!(checkpoints.iter().map(|one| one.call_id).collect::<Vec<_>>(), calls);
    assert_eq!((checkpoints[0].before.session, checkpoints[0].before.position), (session_id(1), started));
    let after = checkpoints[0].after.unwrap();
    assert_eq!((after.session, after.position), (session_id(2), ended));
    assert_eq!((checkpoints[1].before.session, checkpoints[1].before.position), (session_id(2), own));
    assert!(own < started, "by position alone the order would be reversed");
}
