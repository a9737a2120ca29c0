//! Functions for fuzzers. Each takes bytes and panics if a guarantee is broken.
//!
//! The tests of this crate run each function on mutations of real encodings, and so do the targets in
//! `fuzz/`, which include this file, for as long as they are left running.
#![allow(unreachable_pub, reason = "`fuzz/` includes this file as a public module")]

use std::sync::Arc;

use backstitch_core::digest::Digest;
use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{Batch, EvaluationStarted, Position, Record, RecordBody, SessionCreated};
use backstitch_core::json::JsonLimits;
use backstitch_core::rng::Seed;
use backstitch_core::session::{CaptureOptions, Session, Snapshot, SnapshotMismatchError, StoredSlice};
use backstitch_core::slices::{
    Plan, PromptExecuted, PromptRendered, ToolInvoked, VisibilityOverrides, WorkspaceDigest,
};
use backstitch_core::time::{FixedClock, Timestamp};
use backstitch_core::view::{ConversationState, DriverPresence, JournalView};

/// Limits that keep inputs small, so that many of them run.
const LIMITS: JsonLimits = JsonLimits { bytes: 64 * 1024, depth: 80 };

/// Decodes a snapshot. A decoded snapshot must be stable as JSON. Restoring it must succeed or fail with an
/// error that leaves the session unchanged. Returns whether the bytes were a snapshot.
pub fn snapshot_decoder(bytes: &[u8]) -> bool {
    let Ok(snapshot) = Snapshot::from_json_within(bytes, LIMITS) else { return false };

    let text = snapshot.to_json().expect("what was read can be written");
    let again = Snapshot::from_json(&text).expect("what was written can be read");
    assert_eq!(again.to_json().expect("and written again"), text, "writing is stable");
    assert_eq!(digest(&again), digest(&snapshot), "the content is the same");
    assert_eq!((again.id(), again.created_at()), (snapshot.id(), snapshot.created_at()));
    assert_eq!((again.session(), again.tags()), (snapshot.session(), snapshot.tags()));
    assert_eq!(again.captured(), snapshot.captured());

    restore_into_a_session_that_knows_no_types(&snapshot);
    restore_into_a_session_that_knows_types(&snapshot);
    true
}

fn restore_into_a_session_that_knows_no_types(snapshot: &Snapshot) {
    for restore in [Session::rollback, Session::rollback_with_logs, Session::rewind_to] {
        let mut session = fresh_session();
        match restore(&mut session, snapshot) {
            Ok(()) => {
                let text = all(&session).to_json().expect("what was restored can be written");
                Snapshot::from_json(&text).expect("and read");
            }
            Err(
                SnapshotMismatchError::WithoutState
                | SnapshotMismatchError::WouldWipeLogs
                | SnapshotMismatchError::WithoutJournal,
            ) => {}
            Err(error) => panic!("a fresh session refused the snapshot: {error}"),
        }
    }
}

fn restore_into_a_session_that_knows_types(snapshot: &Snapshot) {
    let mut session = fresh_session();
    session.register_slice::<Plan>().register_slice::<VisibilityOverrides>();
    session.register_slice::<WorkspaceDigest>().register_slice::<ToolInvoked>();
    session.register_slice::<PromptRendered>().register_slice::<PromptExecuted>();
    let plan = Plan::new("hold", ["sew"]).expect("one step is not too many");
    session.append(plan).expect("an item is appended");
    let before = digest(&all(&session));
    match session.rollback(snapshot) {
        Ok(()) => {
            session.all::<Plan>().expect("what was restored was decoded");
            all(&session).to_json().expect("what was restored can be written");
        }
        Err(_) => assert_eq!(digest(&all(&session)), before, "a refused restore changes nothing"),
    }
}

/// Decodes a record. A decoded record must survive encoding and decoding. A journal must accept it, or refuse
/// it and leave its view unchanged. Returns whether the bytes were a record.
pub fn record_decoder(bytes: &[u8]) -> bool {
    let Ok(record) = Record::decode_within(Position::new(2), bytes, LIMITS) else { return false };

    let text = record.encode().expect("what was read can be written");
    let again = Record::decode(record.position, &text).expect("what was written can be read");
    assert_eq!(again, record, "it is the same record");
    assert_eq!(again.encode().expect("and written again"), text, "writing is stable");
    let batch = Batch::at(record.at).with(record.body.clone());
    let (stored, _) = batch.into_records(record.position);
    stored[0].encode().expect("what was moved out leaves a record");

    if let RecordBody::SessionCreated(_) = &record.body {
        let first = Record { position: Position::START, ..record.clone() };
        if let Ok(view) = JournalView::fold(&[first]) {
            read_everything(&view);
        }
    }
    fold_record(record);
    true
}

/// Decodes a conversation. A decoded conversation must be stable as JSON, and a session must be able to start
/// from its messages or refuse them. Returns whether the bytes were a conversation.
pub fn conversation_decoder(bytes: &[u8]) -> bool {
    if LIMITS.check(bytes).is_err() {
        return false;
    }
    let Ok(conversation) = serde_json::from_slice::<ConversationState>(bytes) else { return false };
    let text = serde_json::to_string(&conversation).expect("what was read can be written");
    let again: ConversationState = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).expect("and written again"), text, "writing is stable");

    let _ = conversation.check();
    let messages = conversation.inner_messages();
    assert_eq!(again.inner_messages(), messages, "the messages are the same");
    if let Ok(state) = StoredSlice::of(&messages) {
        let created = SessionCreated { state: vec![state], ..created() };
        let (records, _) = Batch::at(Timestamp::UNIX_EPOCH).with(created).into_records(Position::START);
        if let Ok(view) = JournalView::fold(&records) {
            read_everything(&view);
        }
    }
    true
}

/// Decodes a snapshot of a view, without its header, which is added. A decoded view must be encoded and decoded
/// again without loss; its pages, and a further record, must be accepted or fail with an error. Returns whether
/// the bytes were a snapshot.
pub fn view_snapshot_decoder(bytes: &[u8]) -> bool {
    let header = JournalView::fold(&beginning()).map(|view| view.encode_snapshot());
    let Ok(Ok(header)) = header else { return false };
    let whole = header.iter().take(40).chain(bytes).copied().collect();
    let Ok(mut view) = JournalView::decode_snapshot(whole) else { return false };

    query_everything(&view);
    if let Ok(bytes) = view.encode_snapshot() {
        let again = JournalView::decode_snapshot(bytes.clone()).expect("what was written can be read");
        if let Ok(difference) = again.difference(&view) {
            assert_eq!(difference, None, "it is the same view");
        }
        assert_eq!(again.encode_snapshot().expect("and written again"), bytes, "writing is stable");
    }
    if let Some(record) = beginning().pop() {
        let _ = view.apply(&Record { position: view.head(), ..record });
    }
    true
}

/// Evaluation of the journal to which mutated records are added.
const EVALUATION: &str = "01890a5d-ac96-774b-bcce-000000000002";

fn session_id() -> SessionId {
    "00000000-0000-0000-0000-000000000001".parse().expect("it is a UUID")
}

fn created() -> SessionCreated {
    SessionCreated::new(session_id(), Timestamp::UNIX_EPOCH, Seed::new(1))
}

/// Returns the records of a session with one evaluation.
fn beginning() -> Vec<Record> {
    let evaluation: EvaluationId = EVALUATION.parse().expect("it is a UUID");
    let started = EvaluationStarted::new(evaluation, "", "");
    Batch::at(Timestamp::UNIX_EPOCH).with(created()).with(started).into_records(Position::START).0
}

fn fold_record(record: Record) {
    let mut records = beginning();
    let before = JournalView::fold(&records).expect("a session and an evaluation are a journal");
    let mut grown = before.clone();
    let applied = grown.apply(&record);
    records.push(record);
    match JournalView::fold(&records) {
        Ok(view) => read_everything(&view),
        Err(_) => assert!(applied.is_err(), "growing accepts no more than folding"),
    }
    if applied.is_err() {
        let seen =
            |view: &JournalView| (view.head(), view.content_digest(Arc::new(FixedClock::default())).ok());
        assert_eq!(seen(&grown), seen(&before), "a refused record changes nothing");
    }
}

/// Reads all parts of a view, which need not be consistent with each other.
fn query_everything(view: &JournalView) {
    let session = view.session(Arc::new(FixedClock::default()));
    let _ = all(&session).to_json();
    view.checkpoints();
    view.provenance();
    view.status(DriverPresence::Absent);
    view.lineage().visible(view.head());
    view.ledger().committed();
    for evaluation in view.evaluations() {
        view.followed(evaluation.evaluation_id);
        view.budget_left(evaluation);
        let _ = view.messages_of(evaluation.evaluation_id);
    }
    let Ok(transcript) = view.transcript() else { return };
    for evaluation in transcript.evaluations() {
        transcript.transitions(evaluation);
        transcript.pending_tool_calls(evaluation);
        transcript.conversation(evaluation);
    }
}

fn read_everything(view: &JournalView) {
    let session = view.session(Arc::new(FixedClock::default()));
    let _ = all(&session).to_json();
    view.checkpoints();
    view.status(DriverPresence::Absent);
    view.lineage().visible(view.head());
    view.ledger().committed();
    let Ok(transcript) = view.transcript() else { return };
    for evaluation in transcript.evaluations() {
        transcript.transitions(evaluation);
        transcript.pending_tool_calls(evaluation);
        let state =
            transcript.conversation(evaluation).expect("an evaluation with messages is a conversation");
        assert_eq!(state.inner_messages(), transcript.inner_messages(evaluation), "nothing is lost");
    }
}

fn fresh_session() -> Session {
    Session::new(session_id(), Arc::new(FixedClock::default()))
}

fn all(session: &Session) -> Snapshot {
    session.snapshot_with(CaptureOptions::include_all())
}

fn digest(snapshot: &Snapshot) -> Digest {
    snapshot.content_digest().expect("what was read has a digest")
}
