//! Properties of removals: the sessions are gone, and everything that others need stays.

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Batch, EvaluationStarted, Origin, Position};
use backstitch_core::object::Object;
use backstitch_core::ports::{ErasureMode, ForkRemoval, Owner, Removal, RemovalReport, Store, StoreError};
use backstitch_core::time::Clock as _;
use backstitch_testkit::{block_on, sample};

use super::{Writer, first_batch, object, records, written};

fn remove(
    store: &dyn Store,
    sessions: &[SessionId],
    forks: ForkRemoval,
    mode: ErasureMode,
) -> Result<RemovalReport, StoreError> {
    let (sessions, owner, at) = (sessions.to_vec(), Owner::new("remover"), sample::clock().now());
    block_on(store.remove(Removal { sessions, forks, owner, at, mode }))
}

fn remove_now(store: &dyn Store, session: SessionId) -> Result<RemovalReport, StoreError> {
    remove(store, &[session], ForkRemoval::Refuse, ErasureMode::Now)
}

fn sessions(store: &dyn Store) -> Vec<SessionId> {
    block_on(store.sessions()).expect("sessions can be listed")
}

fn removed(report: &RemovalReport) -> Vec<SessionId> {
    report.sessions.iter().map(|one| one.session).collect()
}

fn stored(store: &dyn Store, one: &Object) -> bool {
    object(store, one.id()).is_some()
}

/// A note that names an object, with the object.
fn naming(object: &Object) -> Batch {
    let note = sample::note("names an object").with_data(object.id().to_string().into());
    let mut batch = Batch::at(sample::clock().now()).with(note);
    batch.add_object(object.clone());
    batch
}

/// A removed session is not found by any operation. Objects that only it named are gone.
pub(crate) fn a_removed_session_is_gone(store: &dyn Store) {
    let (own, shared) = (Object::blob(*b"its own"), Object::blob(*b"shared"));
    let kept = written(store, 1, Origin::Root, [naming(&shared)]);
    let gone = written(store, 2, Origin::Root, [naming(&own), naming(&shared), sample::notes(["more"])]);
    block_on(store.send(gone, sample::item("hello"))).expect("an item can be sent");
    let before = records(store, kept);
    let report = remove_now(store, gone).expect("a free session can be removed");
    assert_eq!(removed(&report), [gone]);
    assert_eq!((report.sessions[0].records, report.objects), (4, 1));

    assert_eq!(sessions(store), [kept]);
    let found = |error: &StoreError| matches!(error, StoreError::NotFound { session } if *session == gone);
    let read = block_on(store.read(gone, Position::START, 1)).expect_err("it was removed");
    let head = block_on(store.head(gone)).expect_err("it was removed");
    let sent = block_on(store.send(gone, sample::item("again"))).expect_err("it was removed");
    assert!(found(&read) && found(&head) && found(&sent), "{read:?} {head:?} {sent:?}");
    assert_eq!(block_on(store.inbox(gone)).expect("an inbox can be read"), []);
    assert_eq!(block_on(store.snapshot(gone)).expect("snapshots can be read"), None);
    assert!(!stored(store, &own) && stored(store, &shared));
    assert_eq!(records(store, kept), before);
}

/// Forks need the records of their parent, so it is removed only with them.
pub(crate) fn a_session_with_forks_is_removed_only_with_them(store: &dyn Store) {
    let root = written(store, 1, Origin::Root, [sample::notes(["one"])]);
    let fork = written(store, 2, Origin::Fork { session: root, position: Position::new(2) }, []);
    let second = written(store, 3, Origin::Fork { session: fork, position: Position::new(1) }, []);
    let error = remove_now(store, root).expect_err("it has a fork");
    let StoreError::Shared { session, forks, children } = error else { panic!("{error:?}") };
    assert_eq!((session, forks, children), (root, vec![fork], vec![]));
    assert_eq!(sessions(store), [root, fork, second]);
    // A fork without forks can go alone, and naming all of them is enough.
    remove_now(store, second).expect("it has no forks");
    let both = remove(store, &[fork, root], ForkRemoval::Refuse, ErasureMode::Now);
    assert_eq!(removed(&both.expect("all forks are named")), [root, fork]);
    assert_eq!(sessions(store), []);

    let root = written(store, 4, Origin::Root, []);
    let fork = written(store, 5, Origin::Fork { session: root, position: Position::new(1) }, []);
    let with_forks = remove(store, &[root], ForkRemoval::Include, ErasureMode::Now);
    assert_eq!(removed(&with_forks.expect("forks are included")), [root, fork]);
}

/// Sub-agents belong to a call of their session and are removed with it, unless one has not ended.
pub(crate) fn sub_agents_are_removed_with_their_session(store: &dyn Store) {
    let ids = sample::ids(9);
    let call: CallId = ids.next();
    let root = written(store, 1, Origin::Root, []);
    let child = written(store, 2, Origin::Call { session: root, call }, []);
    let grandchild = written(store, 3, Origin::Call { session: child, call }, []);
    let report = remove_now(store, root).expect("no sub-agent is open");
    assert_eq!(removed(&report), [root, child, grandchild]);

    let root = written(store, 4, Origin::Root, []);
    let started = EvaluationStarted::new(ids.next(), "shop", "tailor");
    let open = Batch::at(sample::clock().now()).with(started);
    let child = written(store, 5, Origin::Call { session: root, call }, [open]);
    let error = remove_now(store, root).expect_err("a sub-agent is open");
    let StoreError::Shared { forks, children, .. } = error else { panic!("{error:?}") };
    assert_eq!((forks, children), (vec![], vec![child]));
    // A sub-agent can be removed by itself. Its caller stays.
    remove_now(store, child).expect("it is named itself");
    assert_eq!(sessions(store), [root]);
}

/// While a process holds one of the sessions, nothing is removed, and the error names the session.
pub(crate) fn a_held_session_is_not_removed(store: &dyn Store) {
    let free = written(store, 1, Origin::Root, []);
    let held = Writer::create(store, sample::session(2));
    let error = remove(store, &[free, held.session()], ForkRemoval::Refuse, ErasureMode::Now);
    assert_fails!(error, StoreError::Held { session, .. } if session == held.session());
    assert_eq!(sessions(store).len(), 2);
    assert_eq!(block_on(store.holder(free)).expect("the holder can be read"), None);
}

/// A session may be created again under the id of a removed one. No fence is issued twice.
pub(crate) fn a_removed_session_can_be_created_again(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    writer.append(sample::notes(["first"])).expect("a batch that fits is appended");
    let first = writer.claim.fence;
    writer.release();
    remove_now(store, session).expect("a free session can be removed");
    let mut again = Writer::claim(store, session);
    assert!(again.claim.fence > first);
    again.append(first_batch(session)).expect("a removed session can be created again");
    again.append(sample::notes(["second"])).expect("a batch that fits is appended");
    assert_eq!(super::texts(&again.records()), ["second"]);
    assert_eq!(sessions(store), [session]);
}

/// A dry run reports the same, and changes nothing.
pub(crate) fn a_dry_run_of_a_removal_changes_nothing(store: &dyn Store) {
    let object = Object::blob(*b"its own");
    let session = written(store, 1, Origin::Root, [naming(&object)]);
    let rehearsed = remove(store, &[session], ForkRemoval::Refuse, ErasureMode::DryRun);
    let rehearsed = rehearsed.expect("a session can be looked at");
    assert_eq!(sessions(store), [session]);
    assert!(stored(store, &object));
    let report = remove_now(store, session).expect("a free session can be removed");
    assert_eq!((&rehearsed.sessions, rehearsed.objects), (&report.sessions, report.objects));
}

/// A session that never existed is not found. One that was removed may be named again.
pub(crate) fn an_unknown_session_is_not_removed(store: &dyn Store) {
    assert_fails!(remove_now(store, sample::session(1)), StoreError::NotFound { .. });
    let session = written(store, 1, Origin::Root, []);
    remove_now(store, session).expect("a free session can be removed");
    let again = remove_now(store, session).expect("a removal may be repeated");
    assert_eq!(removed(&again), []);
}
