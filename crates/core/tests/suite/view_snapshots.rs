//! Snapshots of views: a snapshot of any cut, and the records after it, are the fold of everything.

use std::sync::Arc;

use backstitch_core::journal::{
    Batch, InnerMessage, Origin, Position, Provenance, Record, RecordBody, SessionCreated,
};
use backstitch_core::message::RoleHint;
use backstitch_core::session::{CaptureOptions, SlicePolicy, StoredOp, StoredSlice};
use backstitch_core::view::{
    Call, Checkpoint, ConversationState, DriverPresence, Evaluation, FoldProblem, JournalView, Ledger,
    SessionStatus, Transition, ViewSnapshotError,
};
use backstitch_testkit::sample;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::journal_steps::{journal, steps, written};
use super::journals::{Tally, Trace, Writer, clock, parts, time};

/// Everything that a view shows.
#[derive(Debug, PartialEq)]
struct Shown {
    created: SessionCreated,
    head: Position,
    rewinds: Vec<(Position, Position)>,
    ledger: Ledger,
    evaluations: Vec<Evaluation>,
    followed: Vec<Vec<backstitch_core::id::EvaluationId>>,
    spent: Vec<backstitch_core::budget::Amounts>,
    calls: Vec<Call>,
    checkpoints: Vec<Checkpoint>,
    pauses: Vec<Arc<backstitch_core::journal::SessionPaused>>,
    status: [SessionStatus; 2],
    stop: Option<backstitch_core::journal::SessionStopped>,
    recorded_at: Option<backstitch_core::time::Timestamp>,
    files: Option<backstitch_core::journal::WorkspaceRevision>,
    owed: Option<backstitch_core::journal::WorkspaceRevision>,
    resources: Vec<Arc<backstitch_core::journal::ResourceChanged>>,
    provenance: Provenance,
    transcript: Vec<Arc<InnerMessage>>,
    messages_of: Vec<Vec<Arc<InnerMessage>>>,
    transitions: Vec<Vec<Transition>>,
    conversations: Vec<String>,
    slices: Vec<StoredSlice>,
    export: String,
    digest: backstitch_core::digest::Digest,
}

fn shown(view: &JournalView) -> Shown {
    let transcript = view.transcript().unwrap();
    let evaluations: Vec<_> = view.evaluations().cloned().collect();
    let ids: Vec<_> = evaluations.iter().map(|known| known.evaluation_id).collect();
    let session = view.session(clock());
    let whole = session.snapshot_with(CaptureOptions::include_all());
    let conversations = ids.iter().filter_map(|id| transcript.conversation(*id));
    let as_json = |state: ConversationState| serde_json::to_string(&state).unwrap();
    for id in &ids {
        assert_eq!(view.messages_of(*id).unwrap(), transcript.inner_messages(*id));
    }
    assert_eq!(view.message_count(), transcript.all().len());
    Shown {
        created: view.created().clone(),
        head: view.head(),
        rewinds: view.lineage().rewinds().to_vec(),
        ledger: view.ledger().clone(),
        followed: ids.iter().map(|id| view.followed(*id)).collect(),
        spent: evaluations.iter().map(|known| view.spent_by(known)).collect(),
        calls: view.calls().cloned().collect(),
        checkpoints: view.checkpoints(),
        pauses: view.pauses().cloned().collect(),
        status: [DriverPresence::Present, DriverPresence::Absent].map(|driver| view.status(driver)),
        stop: view.stopped().cloned(),
        recorded_at: view.recorded_at(),
        files: view.files(),
        owed: view.owed_files(),
        resources: view.resources().cloned().collect(),
        provenance: view.provenance(),
        messages_of: ids.iter().map(|id| transcript.inner_messages(*id)).collect(),
        transitions: ids.iter().map(|id| transcript.transitions(*id)).collect(),
        conversations: conversations.map(as_json).collect(),
        transcript: transcript.all().iter().cloned().collect(),
        slices: whole.stored_slices().unwrap(),
        export: session.snapshot().to_json().unwrap(),
        digest: view.content_digest(clock()).unwrap(),
        evaluations,
    }
}

fn reopened(view: &JournalView) -> JournalView {
    JournalView::decode_snapshot(view.encode_snapshot().unwrap()).unwrap()
}

#[track_caller]
fn assert_same(one: &JournalView, other: &JournalView) {
    assert_eq!(shown(one), shown(other));
    assert_eq!(one.difference(other).unwrap(), None);
}

/// The views of all cuts, from the first record on.
fn every_cut(base: Option<&JournalView>, records: &[Record]) -> Vec<JournalView> {
    let mut views = Vec::new();
    JournalView::fold_each(base, records, |view| views.push(view.clone())).unwrap();
    views
}

/// Takes in records one by one; rewinds take the view of the cut, by a snapshot as well.
fn grown(mut view: JournalView, records: &[Record], cuts: &[JournalView]) -> JournalView {
    for record in records {
        match &record.body {
            RecordBody::Rewound(rewound) => {
                view.rewind(record, &reopened(&cuts[rewound.to.number() as usize - 1])).unwrap();
            }
            _ => view.apply(record).unwrap(),
        }
    }
    view
}

/// Whether a record goes back to before the cut at which `cut` records stand.
fn goes_before(records: &[Record], cut: usize) -> bool {
    records.iter().any(|record| match &record.body {
        RecordBody::Rewound(rewound) => rewound.to < Position::new(cut as u64),
        _ => false,
    })
}

/// Checks snapshots of these cuts of a journal.
fn check(base: Option<&JournalView>, records: &[Record], cuts: impl Iterator<Item = usize>) {
    let views = every_cut(base, records);
    let whole = views.last().unwrap();
    for cut in cuts {
        let snapshot = reopened(&views[cut - 1]);
        let rest = &records[cut..];
        // First without anything having been read, so that all of it is taken in beside pages.
        match snapshot.clone().fold_after(rest, |_| {}) {
            Ok(folded) => {
                assert!(!goes_before(rest, cut));
                // A snapshot of what was opened from a snapshot.
                assert_same(&reopened(&folded), whole);
                assert_same(&folded, whole);
            }
            Err(error) => {
                assert!(matches!(error.problem, FoldProblem::NeedsPrefix { .. }), "{error:?}");
                assert!(goes_before(rest, cut));
            }
        }
        assert_same(&grown(snapshot.clone(), rest, &views), whole);
        // Then after all of it was read.
        assert_same(&snapshot, &views[cut - 1]);
        assert_same(&grown(snapshot, rest, &views), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_snapshot_of_any_cut_and_the_records_after_it_are_the_fold_of_everything(
        writer in journal(60), cuts in prop::collection::vec(any::<prop::sample::Index>(), 3),
    ) {
        check(None, &writer.records, cuts.iter().map(|cut| 1 + cut.index(writer.records.len())));
    }

    #[test]
    fn so_are_those_of_forks(
        parent in journal(40), at in any::<prop::sample::Index>(), after in steps(30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
    ) {
        let position = Position::new(1 + at.index(parent.records.len()) as u64);
        let base = JournalView::fold(&parent.records[..position.number() as usize]).unwrap();
        let fork = written(parent.fork(2, position), &after);
        for base in [&reopened(&base), &base] {
            check(Some(base), &fork.records, cuts.iter().map(|cut| 1 + cut.index(fork.records.len())));
        }
    }

    #[test]
    fn so_are_those_of_sessions_that_adopted_others(
        before in journal(40), after in steps(30), cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
    ) {
        let records = adopted(&before.view(), &after);
        check(None, &records, cuts.iter().map(|cut| 1 + cut.index(records.len())));
    }
}

/// The journal of a session that starts from what another one holds.
fn adopted(view: &JournalView, after: &[super::journal_steps::Step]) -> Vec<Record> {
    let slices = view.session(clock()).snapshot().stored_slices().unwrap();
    let writer = written(Writer::new(7), after);
    let RecordBody::SessionCreated(created) = &writer.records[0].body else { panic!() };
    let created = SessionCreated {
        state: slices.into_iter().filter(|slice| slice.name != "tally").collect(),
        adopted: Some(Box::new(view.provenance())),
        origin: Origin::Root,
        ..(**created).clone()
    };
    let first = Record::new(Position::START, writer.records[0].at, created);
    [first].into_iter().chain(writer.records[1..].iter().cloned()).collect()
}

#[test]
fn so_are_those_of_samples() {
    let samples =
        [sample::every_kind(), sample::conversation(12), sample::journal(1, 12), sample::journal(2, 12)];
    for journal in samples {
        let records = journal.records();
        let cuts = [1, records.len() / 2, records.len()];
        check(None, &records, cuts.into_iter().filter(|cut| *cut > 0));
    }
}

#[test]
fn a_snapshot_of_many_pages_is_read_in_parts() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    for number in 0..500 {
        writer.say(evaluation, parts(RoleHint::User, &format!("message {number}")));
        writer.change::<Trace>(StoredOp::Append(json!(number)));
    }
    let view = writer.view();
    let opened = reopened(&view);
    let all: Vec<_> = view.transcript().unwrap().all().iter().cloned().collect();
    for range in [0..0, 0..1, 63..65, 64..64, 120..300, 499..500, 498..600, 500..501, 600..700] {
        let expected: Vec<_> = all.iter().skip(range.start).take(range.len()).cloned().collect();
        assert_eq!(opened.messages(range.clone()).unwrap(), expected, "{range:?}");
    }
    // More is added, also to the last page, which is not full, and some of it is taken away again.
    let cut = writer.head();
    for number in 500..600 {
        writer.say(evaluation, parts(RoleHint::User, &format!("message {number}")));
        writer.change::<Trace>(StoredOp::Append(json!(number)));
    }
    writer.change::<Trace>(StoredOp::Patch { remove: vec![0, 599], append: vec![json!(7)] });
    let records = &writer.records[cut.number() as usize..];
    let grown = opened.fold_after(records, |_| {}).unwrap();
    assert_eq!(reopened(&reopened(&grown)).difference(&writer.view()).unwrap(), None);
    assert_same(&grown, &writer.view());
    let latest = grown.session(clock()).latest::<Trace>().unwrap();
    assert_eq!(latest, Some(Arc::new(Trace(7))));
}

#[test]
fn slices_on_pages_change_as_others_do() {
    let mut writer = Writer::new(1);
    writer.change::<Tally>(StoredOp::Extend((0..200).map(|number| json!(number)).collect()));
    let cut = writer.head().number() as usize;
    let ops = [
        StoredOp::Append(json!(1)),
        StoredOp::Extend(vec![]),
        StoredOp::Patch { remove: vec![], append: vec![json!(1), json!(2)] },
        StoredOp::Patch { remove: vec![0, 70, 199], append: vec![json!(3)] },
        StoredOp::Replace(vec![json!(5)]),
        StoredOp::Clear,
    ];
    for op in ops {
        let mut later = Writer::new(1);
        later.records = writer.records.clone();
        later.now = writer.now.clone();
        later.change::<Tally>(op.clone());
        let opened = reopened(&writer.view()).fold_after(&later.records[cut..], |_| {}).unwrap();
        assert_same(&opened, &later.view());
        // The same by a session that knows the type.
        let mut session = reopened(&writer.view()).session(clock());
        let items = |session: &backstitch_core::session::Session| {
            session.all::<Tally>().unwrap().iter().map(|item| item.0).collect::<Vec<_>>()
        };
        let draft = session.draft();
        session.dispatch(Tally(1)).unwrap();
        assert_eq!(items(&session).len(), 201);
        session.clear_where::<Tally>(|item| item.0 == 1).unwrap();
        assert_eq!(items(&session).len(), 199);
        assert_eq!(draft.all::<Tally>().unwrap().len(), 200);
        session.seed([Tally(9)]).unwrap();
        assert_eq!(items(&session), [9]);
    }
    let mut journal = reopened(&writer.view());
    let cleared = Record::new(
        writer.head(),
        time(1),
        backstitch_core::session::StoredChange {
            slice: "tally".into(),
            version: 1,
            policy: SlicePolicy::Journal,
            op: StoredOp::Clear,
            extra: Default::default(),
        },
    );
    assert!(journal.apply(&cleared).is_err());
    assert_same(&journal, &writer.view());
}

#[test]
fn rollbacks_of_sessions_that_were_opened_from_pages() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    (0..100).for_each(|_| drop(writer.say(evaluation, parts(RoleHint::User, "hem"))));
    writer.change::<Tally>(StoredOp::Extend((0..100).map(|number| json!(number)).collect()));
    let opened = reopened(&writer.view());
    let mut session = opened.session(clock());
    let (early, digest) = (session.snapshot(), session.snapshot().content_digest().unwrap());
    session.dispatch(Tally(100)).unwrap();
    session.rollback(&early).unwrap();
    assert_eq!(session.snapshot().content_digest().unwrap(), digest);
    // Read, changed and undone.
    session.all::<InnerMessage>().unwrap();
    session.dispatch(Trace(1)).unwrap();
    let later = session.snapshot();
    session.rewind_to(&early).unwrap();
    session.rollback(&later).unwrap();
    assert_eq!(session.all::<InnerMessage>().unwrap().len(), 100);
    // A snapshot of the fold fits a session that was opened from pages, and the other way round.
    let folded = writer.view().session(clock()).snapshot();
    opened.session(clock()).rewind_to(&folded).unwrap();
    writer.view().session(clock()).rewind_to(&opened.session(clock()).snapshot()).unwrap();
    let mut other = Writer::new(1);
    let evaluation = other.start();
    (0..100).for_each(|_| drop(other.say(evaluation, parts(RoleHint::User, "seam"))));
    opened.session(clock()).rewind_to(&other.view().session(clock()).snapshot()).unwrap_err();
}

#[test]
fn what_is_no_snapshot_of_this_program_is_refused() {
    let bytes = Writer::new(1).view().encode_snapshot().unwrap();
    let refused = |bytes: &[u8]| JournalView::decode_snapshot(bytes.to_vec()).unwrap_err();
    assert!(matches!(refused(b"{\"version\":1,\"slices\":[]}"), ViewSnapshotError::NotASnapshot));
    let mut other = bytes.clone();
    other[8] ^= 1;
    assert!(matches!(refused(&other), ViewSnapshotError::OtherVersion));
    for end in 0..bytes.len() {
        refused(&bytes[..end]);
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert!(matches!(refused(&longer), ViewSnapshotError::Malformed(_)));
}

#[test]
fn a_snapshot_is_refused_where_it_would_lose_what_its_writer_does_not_know() {
    /// What a later version of a program writes.
    #[derive(Serialize, Deserialize)]
    struct Row {
        number: u64,
    }
    impl backstitch_core::session::Slice for Row {
        const NAME: &'static str = "row";
    }
    let view = |item: serde_json::Value| {
        let state = StoredSlice {
            name: "row".into(),
            version: 1,
            policy: SlicePolicy::State,
            items: vec![item],
            item_versions: Vec::new(),
            extra: Default::default(),
        };
        let created = SessionCreated { state: vec![state], ..sample::created(sample::session(1)) };
        let (records, _) = Batch::at(time(0)).with(created).into_records(Position::START);
        let mut view = JournalView::fold(&records).unwrap();
        // Something is changed by a session that knows the type.
        let session = view.session(clock());
        let mut prepared = session.prepare_nothing();
        session.prepare_more(&mut prepared, Row { number: 2 }).unwrap();
        view.expect(&session, &prepared).unwrap();
        view
    };
    view(json!({ "number": 1 })).encode_snapshot().unwrap();
    let error = view(json!({ "number": 1, "of_tomorrow": true })).encode_snapshot().unwrap_err();
    assert!(matches!(error, ViewSnapshotError::UnknownFields { slice } if slice == "row"));
}
