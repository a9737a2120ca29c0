//! Importing again, importing more, and importing something else under the same id.

use backstitch_core::ports::{
    BundleError, ClaimMode, ErasureMode, ForkRemoval, GcMode, ImportChanges, Owner, Redaction, Removal,
    Retention, Store as _, StoreError, TransferOutcome, TransferStep,
};
use backstitch_core::redaction::SensitiveValue;
use backstitch_core::time::Clock as _;
use backstitch_store::{SqliteOptions, SqliteStore};
use backstitch_testkit::{block_on, sample};

use super::super::agent::Agent;
use super::super::support::{Temporary, Writer, claim, notes, read, write};
use super::{check_same, check_sound, empty, exported, imported};

#[test]
fn a_second_import_finds_everything_there() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    block_on(store.send(journal.session, sample::item("waits"))).unwrap();
    let path = exported(&store, journal.session, "one.bundle");
    let target = empty();
    imported(&target, &path).unwrap();
    let again = imported(&target, &path).unwrap();
    assert_eq!((again.outcome(), again.objects), (TransferOutcome::Present, 0));
    check_same(&store, &target, journal.session);
    // A session that has continued since is not changed.
    let held = claim(&*target, journal.session, ClaimMode::IfFree).unwrap();
    let next = block_on(target.head(journal.session)).unwrap();
    let mut writer = Writer { store: &*target, claim: held, next };
    writer.append(sample::notes(["here"])).unwrap();
    // It may be running.
    assert_eq!(imported(&target, &path).unwrap().outcome(), TransferOutcome::Present);
    writer.append(sample::notes(["still here"])).unwrap();
    check_sound(&target);
}

#[test]
fn a_session_moves_to_another_store_and_back() {
    let (home, away) = (Temporary::new(), empty());
    let mut writer = Writer::create(&*home, sample::session(1));
    writer.append(sample::notes(["at home"])).unwrap();
    let session = writer.session();
    block_on(home.send(session, sample::item("sent at home"))).unwrap();
    imported(&away, &exported(&home, session, "there.bundle")).unwrap();

    let held = claim(&*away, session, ClaimMode::IfFree).unwrap();
    let mut there = Writer { store: &*away, claim: held, next: writer.next };
    there.append(sample::notes(["away"])).unwrap();
    block_on(away.send(session, sample::item("sent away"))).unwrap();
    let back = exported(&away, session, "back.bundle");

    // As long as a process holds the session, its journal is not changed.
    let held = imported(&home, &back);
    assert!(matches!(held, Err(BundleError::Store(StoreError::Held { .. }))), "{held:?}");
    assert_eq!(notes(&*home, session), ["at home"]);
    block_on(home.release(writer.claim.clone())).unwrap();
    let report = imported(&home, &back).unwrap();
    assert_eq!(report.outcome(), TransferOutcome::Extended { from: writer.next });
    assert_eq!(notes(&*home, session), ["at home", "away"]);
    let items: Vec<_> = block_on(home.inbox(session)).unwrap().into_iter().map(|(_, item)| item).collect();
    assert_eq!(items, [sample::item("sent at home"), sample::item("sent away")], "none is there twice");
    // An earlier holder cannot write, and nothing holds the session.
    let stale = block_on(home.append(session, there.next, writer.claim.fence, sample::notes(["stale"])));
    assert!(matches!(stale, Err(StoreError::Fenced { .. })), "{stale:?}");
    let held = claim(&*home, session, ClaimMode::IfFree).unwrap();
    Writer { store: &*home, claim: held, next: there.next }.append(sample::notes(["home again"])).unwrap();
    check_sound(&home);
}

#[test]
fn journals_that_differ_are_a_conflict_and_nothing_changes() {
    let (one, two) = (Temporary::new(), empty());
    let mut writer = Writer::create(&*one, sample::session(1));
    let session = writer.session();
    for number in 0..9 {
        writer.append(sample::notes([format!("{number}")])).unwrap();
    }
    imported(&two, &exported(&one, session, "same.bundle")).unwrap();
    let held = claim(&*two, session, ClaimMode::IfFree).unwrap();
    let mut other = Writer { store: &*two, claim: held, next: writer.next };
    other.append(sample::notes(["two", "two"])).unwrap();
    block_on(two.release(other.claim.clone())).unwrap();
    for texts in [&["one"][..], &["one", "one", "one"]] {
        writer.append(sample::notes(texts.iter().copied())).unwrap();
        let path = exported(&one, session, &format!("other-{}.bundle", texts.len()));
        let before = notes(&*two, session);
        match imported(&two, &path) {
            Err(BundleError::Conflict { session: named, position }) => {
                assert_eq!((named, position.number()), (session, 10));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(notes(&*two, session), before);
    }
    let mut there = Vec::new();
    let copied = one.copy_session(session, &two, &mut |step| there.push(step.step));
    assert_eq!(copied.unwrap_err().code().as_str(), "session_conflict");
    assert!(!there.contains(&TransferStep::Objects), "nothing was written");
    check_sound(&two);
}

#[test]
fn a_session_that_was_removed_is_imported_again() {
    let store = Temporary::new();
    let journal = sample::every_kind();
    write(&*store, &journal);
    let path = exported(&store, journal.session, "one.bundle");
    let removal = Removal {
        sessions: vec![journal.session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    };
    block_on(store.remove(removal)).unwrap();
    assert_eq!(store.verify().unwrap().removed.len(), 1);
    assert_eq!(imported(&store, &path).unwrap().outcome(), TransferOutcome::Created);
    assert_eq!(store.verify().unwrap().removed, []);
    check_sound(&store);
    assert_eq!(read(&*store, journal.session).unwrap(), journal.records());
}

#[test]
fn a_redaction_is_not_half_imported() {
    let (home, away) = (Temporary::new(), empty());
    let mut writer = Writer::create(&*home, sample::session(1));
    writer.append(sample::notes(["a secret value"])).unwrap();
    let session = writer.session();
    block_on(home.release(writer.claim.clone())).unwrap();
    imported(&away, &exported(&home, session, "there.bundle")).unwrap();
    let redaction = Redaction {
        session,
        value: SensitiveValue::new("secret value").unwrap(),
        owner: Owner::new("redactor"),
        at: sample::clock().now(),
        mode: ErasureMode::Now,
    };
    block_on(away.redact(redaction)).unwrap();
    // The record of the redaction would say that the value is gone.
    match imported(&home, &exported(&away, session, "back.bundle")) {
        Err(BundleError::Conflict { position, .. }) => assert_eq!(position.number(), 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(notes(&*home, session), ["a secret value"]);
}

#[test]
fn garbage_that_is_collected_during_an_import_is_written_again() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 50);
    for index in 0..6_u8 {
        agent.call(&[("a", &index.to_string()), ("b", &(index / 2).to_string())]);
    }
    let path = exported(&store, agent.session(), "files.bundle");
    for round in 0..12 {
        // Every object in its own transaction.
        let target = Temporary::with(SqliteOptions { transaction_bytes: 1, ..SqliteOptions::default() });
        let other = SqliteStore::open(target.path()).unwrap();
        let bundle = backstitch_store::Bundle::open(&path, &mut |_| {}).unwrap();
        let mut count = 0;
        std::thread::scope(|scope| {
            let report = target.import_bundle(&bundle, &ImportChanges::default(), &mut |_| {
                count += 1;
                if count % 12 == round {
                    scope.spawn(|| other.gc(Retention::keep_all(), GcMode::Now).unwrap());
                }
            });
            assert_eq!(report.unwrap().outcome(), TransferOutcome::Created);
        });
        check_sound(&target);
        check_same(&store, &target, agent.session());
    }
}
