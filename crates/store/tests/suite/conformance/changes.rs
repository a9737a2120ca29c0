//! What stores promise about changed paths: those that the end of a call lists are in the index when the batch is, and gone when
//! the session is. What is put replaces them at the same head only.

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    Batch, CallChanges, CallFinished, CallVerdict, ChangeCounts, ChangeKind, ChangedPath, FileContent,
    Origin, Position,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ChangingSessions, ErasureMode, ForkRemoval, ListedChanges, Owner, Redaction, Removal, Store, StoreError,
};
use backstitch_core::redaction::{MARKER, SensitiveValue};
use backstitch_core::time::Clock as _;
use backstitch_testkit::{block_on, sample};

use super::{Writer, append, head, written};

fn paths<const COUNT: usize>(names: [&str; COUNT]) -> CallChanges {
    let content = FileContent { object: Object::blob(*b"cloth").id(), bytes: Some(5) };
    let changed =
        |name: &str| ChangedPath { after: Some(content), ..ChangedPath::new(name, ChangeKind::Added) };
    CallChanges::new(names.map(changed).into())
}

fn counts() -> CallChanges {
    CallChanges::Counts(ChangeCounts { added: 300, mode: 1, ..ChangeCounts::default() })
}

/// A batch that ends a call.
fn end(seed: u64, changes: Option<CallChanges>) -> Batch {
    let call: CallId = sample::ids(seed).next();
    let finished = CallFinished { changes, ..CallFinished::new(call, CallVerdict::Succeeded) };
    Batch::at(sample::clock().now()).with(finished)
}

fn listed(position: u64, changes: Option<CallChanges>) -> ListedChanges {
    ListedChanges { position: Position::new(position), changes }
}

fn changes(store: &dyn Store, session: SessionId) -> Option<Vec<ListedChanges>> {
    block_on(store.changes(session)).expect("the changes of a session that exists can be read")
}

fn found(store: &dyn Store, path: &str) -> ChangingSessions {
    block_on(store.changing_sessions(path)).expect("sessions can be found by a path")
}

/// Paths, counts and contents are read as they were recorded, in the order of the calls. A call that lists nothing has no entry.
pub(crate) fn changed_paths_are_listed_with_the_end_of_their_call(store: &dyn Store) {
    let both = CallChanges::new(vec![
        ChangedPath::new("a", ChangeKind::Mode),
        ChangedPath {
            before: Some(FileContent { object: Object::blob(*b"old").id(), bytes: None }),
            ..ChangedPath::new("b/é \"c\"", ChangeKind::Deleted)
        },
    ]);
    let ends = [Some(both.clone()), None, Some(counts()), Some(paths(["hem.txt"]))];
    let batches = (1..).zip(ends).map(|(seed, changes)| end(seed, changes));
    let session = written(store, 1, Origin::Root, batches);
    let expected = [listed(1, Some(both)), listed(3, Some(counts())), listed(4, Some(paths(["hem.txt"])))];
    assert_eq!(changes(store, session).as_deref(), Some(&expected[..]));
    let other = written(store, 2, Origin::Root, [sample::notes(["nothing"])]);
    assert_eq!(changes(store, other), Some(Vec::new()));
    assert_fails!(block_on(store.changes(sample::session(3))), StoreError::NotFound { .. });
}

/// Whatever a batch is refused for, none of its paths is listed.
pub(crate) fn a_refused_batch_lists_no_paths(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let early = append(store, session, Position::new(7), fence, end(1, Some(paths(["early.txt"]))));
    assert_fails!(early, StoreError::Conflict { .. });
    let refers = sample::every_kind().batches[1].bodies()[1].clone();
    let missing = writer.append(end(2, Some(paths(["missing.txt"]))).with(refers));
    assert_fails!(missing, StoreError::MissingObject { .. });
    assert_eq!(changes(store, session), Some(Vec::new()));
    assert_eq!(found(store, ""), ChangingSessions::default());
}

/// What is put replaces what was listed if it was made at the head, and is nothing otherwise.
pub(crate) fn changed_paths_are_put_at_the_head_only(store: &dyn Store) {
    let session = written(store, 1, Origin::Root, [end(1, Some(paths(["a.txt"]))), end(2, None)]);
    let put = |head: u64, all: Vec<ListedChanges>| {
        block_on(store.put_changes(session, Position::new(head), all)).expect("no claim is needed")
    };
    let before = changes(store, session);
    for wrong in [0, 2, 4] {
        assert!(!put(wrong, Vec::new()), "at {wrong}");
        assert_eq!(changes(store, session), before);
    }
    let all = vec![listed(1, Some(paths(["a.txt", "b.txt"]))), listed(2, None)];
    assert!(put(3, all.clone()));
    assert_eq!(changes(store, session), Some(all));
    assert_eq!(head(store, session), Position::new(3), "no record is written");
    let unknown = block_on(store.put_changes(sample::session(9), Position::START, Vec::new()));
    assert_fails!(unknown, StoreError::NotFound { .. });
}

/// A path finds what changed it or something below it, and never a name that only begins alike. Calls whose paths are not listed
/// make their session a possible one.
pub(crate) fn sessions_are_found_by_the_paths_that_they_changed(store: &dyn Store) {
    let file = written(store, 5, Origin::Root, [end(1, Some(paths(["src/hem.rs"])))]);
    let alike = written(store, 3, Origin::Root, [end(2, Some(paths(["src.rs", "src-old/hem.rs", "src0"])))]);
    let many = written(store, 8, Origin::Root, [end(3, Some(counts())), end(4, Some(paths(["src"])))]);
    let unknown = written(store, 1, Origin::Root, [end(5, None)]);
    block_on(store.put_changes(unknown, Position::new(2), vec![listed(1, None)])).expect("it is put");
    written(store, 2, Origin::Root, [end(6, None)]);

    let of = |certain: &[SessionId], possible: &[SessionId]| ChangingSessions {
        certain: certain.to_vec(),
        possible: possible.to_vec(),
    };
    assert_eq!(found(store, "src"), of(&[file, many], &[unknown]));
    assert_eq!(found(store, "src/hem.rs"), of(&[file], &[many, unknown]));
    assert_eq!(found(store, "src/hem"), of(&[], &[many, unknown]));
    assert_eq!(found(store, "src-old"), of(&[alike], &[many, unknown]));
    assert_eq!(found(store, ""), of(&[file, alike, many], &[unknown]));
}

/// A removed session is not found by its paths, and a redacted one by its new paths only.
pub(crate) fn changed_paths_are_removed_and_redacted_with_their_session(store: &dyn Store) {
    let gone = written(store, 1, Origin::Root, [end(1, Some(paths(["a.txt"])))]);
    let redacted = written(store, 2, Origin::Root, [end(2, Some(paths(["a.txt", "secret value.txt"])))]);
    let (owner, at) = (Owner::new("a test"), sample::clock().now());
    let value = SensitiveValue::new("secret value").expect("the value is long enough");
    let redaction = Redaction { session: redacted, value, owner: owner.clone(), at, mode: ErasureMode::Now };
    block_on(store.redact(redaction)).expect("a free session can be redacted");
    let new = format!("{MARKER}.txt");
    assert_eq!(changes(store, redacted), Some(vec![listed(1, Some(paths(["a.txt", new.as_str()])))]));
    assert_eq!(found(store, "secret value.txt"), ChangingSessions::default());
    assert_eq!(found(store, &new).certain, [redacted]);

    let (sessions, forks, mode) = (vec![gone], ForkRemoval::Refuse, ErasureMode::Now);
    block_on(store.remove(Removal { sessions, forks, owner, at, mode })).expect("it can be removed");
    assert_eq!(found(store, "a.txt").certain, [redacted]);
}
