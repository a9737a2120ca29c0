//! Forks move with the records before them, and sessions with their sub-agents.

use backstitch_core::journal::{InboxId, InboxItem, Origin, Position};
use backstitch_core::ports::Store as _;
use backstitch_core::ports::{BundleError, SessionRole, TransferOutcome};
use backstitch_testkit::{block_on, sample};

use super::super::agent::Agent;
use super::super::support::{Temporary, read};
use super::{check_same, check_sound, empty, exported, imported, sessions};

#[test]
fn a_fork_moves_with_the_beginnings_of_its_ancestors() {
    let store = Temporary::new();
    let mut eldest = Agent::new(&store, 50);
    eldest.call(&[("file", "0")]);
    let cut = eldest.next;
    eldest.call(&[("file", "secret of the parent")]);
    let mut middle = eldest.fork(51, cut);
    middle.call(&[("file", "1")]);
    let second = middle.next;
    middle.call(&[("file", "later")]);
    let mut fork = middle.fork(52, second);
    fork.call(&[("file", "2")]);
    block_on(store.send(eldest.session(), sample::item("for the parent"))).unwrap();

    let path = exported(&store, fork.session(), "fork.bundle");
    let target = empty();
    let report = imported(&target, &path).unwrap();
    let moved: Vec<_> = report.sessions.iter().map(|one| (one.session, one.role, one.records)).collect();
    let expected = [
        (eldest.session(), SessionRole::Ancestor, cut.number()),
        (middle.session(), SessionRole::Ancestor, second.number()),
        (fork.session(), SessionRole::Main, fork.next.number()),
    ];
    assert_eq!(moved, expected);
    check_sound(&target);
    check_same(&store, &target, fork.session());
    let prefix = read(&*store, eldest.session()).unwrap();
    assert_eq!(read(&*target, eldest.session()).unwrap(), prefix[..cut.number() as usize]);
    let inbox: Vec<(InboxId, InboxItem)> = block_on(target.inbox(eldest.session())).unwrap();
    assert_eq!(inbox, [], "items of an ancestor are about what follows");
    let later = Agent::tree_of(&[("file", "secret of the parent")]);
    assert_eq!(block_on(target.object(later)).unwrap(), None);

    // The ancestors themselves, as they are now, extend what is there.
    let whole = imported(&target, &exported(&store, eldest.session(), "eldest.bundle")).unwrap();
    assert_eq!(whole.outcome(), TransferOutcome::Extended { from: cut });
    check_same(&store, &target, eldest.session());
    // And the bundle of the fork finds them there.
    let again = imported(&target, &path).unwrap();
    assert!(again.sessions.iter().all(|one| one.outcome == TransferOutcome::Present), "{again:?}");
    check_sound(&target);
}

#[test]
fn sub_agents_move_with_their_parents_and_not_alone() {
    let store = Temporary::new();
    let [child, grandchild, unborn, stranger] = [60, 61, 62, 63].map(sample::session);
    let mut agent = Agent::new(&store, 50);
    let main = agent.session();
    let [call, _, _] = [child, unborn, stranger].map(|session| agent.start_child(session));
    let mut of_child = Agent::created(&store, 60, Origin::Call { session: main, call });
    let call = of_child.start_child(grandchild);
    let mut of_grandchild = Agent::created(&store, 61, Origin::Call { session: child, call });
    of_grandchild.call(&[("file", "deep")]);
    block_on(store.send(grandchild, sample::item("waits"))).unwrap();
    // A session that a record names, but that is not a sub-agent of it.
    Agent::new(&store, 63);

    let path = exported(&store, main, "tree.bundle");
    let target = empty();
    let report = imported(&target, &path).unwrap();
    let moved: Vec<_> = report.sessions.iter().map(|one| (one.session, one.role)).collect();
    let expected =
        [(grandchild, SessionRole::SubAgent), (child, SessionRole::SubAgent), (main, SessionRole::Main)];
    assert_eq!(moved, expected, "each after those that it depends on");
    for session in [main, child, grandchild] {
        check_same(&store, &target, session);
    }
    assert_eq!(sessions(&target).len(), 3);
    check_sound(&target);

    let alone = store.export_bundle(child, store.path().with_file_name("child.bundle"), &mut |_| {});
    let is_refused =
        matches!(alone, Err(BundleError::SubAgent { session, parent }) if (session, parent) == (child, main));
    assert!(is_refused, "{alone:?}");
}

#[test]
fn a_circle_of_forks_is_refused() {
    let store = Temporary::new();
    let [one, two] = [60, 61].map(sample::session);
    for (seed, session) in [(60, two), (61, one), (62, sample::session(62))] {
        Agent::created(&store, seed, Origin::Fork { session, position: Position::new(1) });
    }
    for session in [one, sample::session(62)] {
        let refused = store.export_bundle(session, store.path().with_file_name("circle"), &mut |_| {});
        assert!(matches!(refused, Err(BundleError::Invalid { .. })), "{refused:?}");
    }
    // A fork at a position that its parent does not have.
    Agent::created(&store, 63, Origin::Fork { session: one, position: Position::new(99) });
    let refused = store.export_bundle(sample::session(63), store.path().with_file_name("far"), &mut |_| {});
    assert!(matches!(refused, Err(BundleError::Invalid { .. })), "{refused:?}");
}

#[test]
fn sub_agents_of_calls_that_were_open_at_a_fork_stay_behind() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    let main = agent.session();
    let calls = [60, 61].map(|seed| {
        let call = agent.start_child(sample::session(seed));
        Agent::created(&store, seed, Origin::Call { session: main, call });
        call
    });
    agent.finish(calls[0], &[("file", "0")]).unwrap();
    let fork = agent.fork(51, agent.next);
    agent.finish(calls[1], &[("file", "1")]).unwrap();
    let target = empty();
    imported(&target, &exported(&store, fork.session(), "fork.bundle")).unwrap();
    assert_eq!(sessions(&target), [main, sample::session(60), fork.session()]);
    check_sound(&target);
}
