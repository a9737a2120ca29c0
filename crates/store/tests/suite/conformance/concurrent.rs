//! Guarantees of stores for concurrent use.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use backstitch_core::journal::{Position, RecordBody};
use backstitch_core::object::Object;
use backstitch_core::ports::{ClaimMode, SessionClaim, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{Writer, append, claim, head, object, read, records, texts};

/// Two writers share a claim and append at the same position: in every round exactly one of them wins, and
/// the error of the other has the next position.
pub(crate) fn of_two_writers_exactly_one_wins(store: &dyn Store) {
    const ROUNDS: u64 = 200;
    let writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let position_of = |round: u64| Position::new(1 + 2 * round);
    // Outcomes are checked when both threads have ended: a thread that panics would leave the other waiting.
    let race = |name: &str| {
        let mut outcomes = Vec::new();
        for round in 0..ROUNDS {
            let batch = sample::notes([format!("{name} {round}"), "and more".into()]);
            start.wait();
            outcomes.push(append(store, session, position_of(round), fence, batch));
            end.wait();
        }
        outcomes
    };
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| race("one"));
        let other = scope.spawn(|| race("other"));
        (one.join().expect("the first writer ends"), other.join().expect("the second writer ends"))
    });
    let found = records(store, session);
    let found = texts(&found);
    for (round, (one, other)) in (0..ROUNDS).zip(one.into_iter().zip(other)) {
        let (expected, after) = (position_of(round), position_of(round + 1));
        let (winner, next, lost) = match (one, other) {
            (Ok(next), Err(lost)) => ("one", next, lost),
            (Err(lost), Ok(next)) => ("other", next, lost),
            both => panic!("round {round}: not exactly one has won: {both:?}"),
        };
        assert_eq!(next, after, "round {round}");
        let StoreError::Conflict { expected: believed, actual, .. } = lost else { panic!("{lost:?}") };
        assert_eq!((believed, actual), (expected, after), "round {round}");
        let first = 2 * round as usize;
        assert_eq!(found[first..first + 2], [&format!("{winner} {round}"), "and more"]);
    }
    assert_eq!(found.len() as u64, 2 * ROUNDS);
}

/// Signals readers that the writer is done, also when it panics: otherwise they would never end.
struct DoneGuard<'a>(&'a AtomicBool);

impl Drop for DoneGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Readers that poll while batches are written see all of a batch or nothing of it, and never less than
/// before.
pub(crate) fn readers_see_whole_batches(store: &dyn Store) {
    const SIZE: usize = 7;
    const BATCHES: usize = 300;
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    let (start, done) = (Barrier::new(3), AtomicBool::new(false));
    let poll = || {
        start.wait();
        let (mut seen, mut last) = (0, false);
        while !last {
            // Read again after the writer is done, so that all records are seen.
            last = done.load(Ordering::SeqCst);
            let announced = head(store, session).number() as usize - 1;
            let found = read(store, session, 1, usize::MAX);
            assert_eq!(announced % SIZE, 0, "the head is inside of a batch");
            assert_eq!(found.len() % SIZE, 0, "a batch was seen in part");
            assert!(seen <= announced && announced <= found.len(), "{seen}, {announced}, {}", found.len());
            seen = found.len();
            for (index, batch) in texts(&found).chunks(SIZE).enumerate() {
                assert!(batch.iter().all(|text| *text == index.to_string()), "batch {index}: {batch:?}");
            }
        }
        assert_eq!(seen, BATCHES * SIZE);
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(poll), scope.spawn(poll)];
        start.wait();
        let writing = DoneGuard(&done);
        for index in 0..BATCHES {
            writer.append(sample::notes(vec![index.to_string(); SIZE])).expect("notes fit anywhere");
            thread::yield_now();
        }
        drop(writing);
        for reader in readers {
            reader.join().expect("the reader saw whole batches");
        }
    });
}

/// A reader of a record finds every object that it refers to.
pub(crate) fn readers_find_the_objects_of_what_they_read(store: &dyn Store) {
    let journal = sample::shaped(5, 60, sample::Shape { large: 6, ..sample::Shape::RICH });
    let mut writer = Writer::claim(store, journal.session);
    let (first, rest) = journal.batches.split_first().expect("a sample journal is not empty");
    writer.append(first.clone()).expect("a claimed session can be created");
    let done = AtomicBool::new(false);
    let poll = || {
        let (mut from, mut found, mut last) = (0, 0, false);
        while !last {
            last = done.load(Ordering::SeqCst);
            let more = read(store, journal.session, from, usize::MAX);
            from += more.len() as u64;
            for id in more.iter().flat_map(|record| record.body.object_refs()) {
                assert_eq!(object(store, id).as_ref().map(Object::id), Some(id));
                found += 1;
            }
        }
        found
    };
    let found = thread::scope(|scope| {
        let reader = scope.spawn(poll);
        let writing = DoneGuard(&done);
        writer.append_all(rest.iter().cloned());
        drop(writing);
        reader.join().expect("the reader found all objects")
    });
    assert!(found > 20, "the sample refers to objects");
}

/// Of many concurrent claims to a free session one is granted; the errors of the others name its holder.
pub(crate) fn of_many_claims_one_is_granted(store: &dyn Store) {
    for round in 0..20 {
        let session = sample::session(round);
        let claims = claim_at_once(store, session, ClaimMode::IfFree);
        let granted: Vec<&SessionClaim> = claims.iter().flatten().collect();
        let [held] = granted[..] else { panic!("{} were granted the session", granted.len()) };
        for error in claims.iter().filter_map(|claim| claim.as_ref().err()) {
            assert!(matches!(error, StoreError::Held { owner, .. } if *owner == held.owner), "{error:?}");
        }
        assert_eq!(
            block_on(store.holder(session)).expect("the holder can be read"),
            Some(held.owner.clone())
        );
    }
}

/// Concurrent takeovers are all granted, one after the other, and only the last may write.
pub(crate) fn takeovers_at_once_leave_one_holder(store: &dyn Store) {
    for round in 0..20 {
        let session = Writer::create(store, sample::session(round)).session();
        let claims = claim_at_once(store, session, ClaimMode::TakeOver);
        let mut claims: Vec<SessionClaim> =
            claims.into_iter().map(|claim| claim.expect("a held session can be taken over")).collect();
        claims.sort_by_key(|held| held.fence);
        assert!(claims.windows(2).all(|pair| pair[0].fence < pair[1].fence), "a fence was granted twice");
        let last = claims.pop().expect("there are several");
        for held in claims {
            let refused = append(store, session, Position::new(1), held.fence, sample::notes(["late"]));
            assert!(
                matches!(&refused, Err(StoreError::Fenced { owner, .. }) if *owner == Some(last.owner.clone()))
            );
        }
        append(store, session, Position::new(1), last.fence, sample::notes(["last"]))
            .expect("it holds the session");
        assert_eq!(texts(&records(store, session)), ["last"]);
    }
}

fn claim_at_once(
    store: &dyn Store,
    session: backstitch_core::id::SessionId,
    how: ClaimMode,
) -> Vec<Result<SessionClaim, StoreError>> {
    const CLAIMANTS: usize = 6;
    let start = &Barrier::new(CLAIMANTS);
    thread::scope(|scope| {
        let claimants: Vec<_> = (0..CLAIMANTS)
            .map(|index| {
                scope.spawn(move || {
                    start.wait();
                    claim(store, session, &format!("claimant {index}"), how)
                })
            })
            .collect();
        claimants.into_iter().map(|claimant| claimant.join().expect("a claimant ends")).collect()
    })
}

/// Sessions that are written concurrently each have their own journal, complete and in order.
pub(crate) fn sessions_are_written_side_by_side(store: &dyn Store) {
    let journals: Vec<_> = (0..6).map(|seed| sample::journal(seed, 20)).collect();
    thread::scope(|scope| {
        for journal in &journals {
            scope.spawn(move || {
                Writer::claim(store, journal.session).append_all(journal.batches.clone());
            });
        }
    });
    for journal in &journals {
        assert_eq!(records(store, journal.session), journal.records());
        for one in journal.objects() {
            assert_eq!(object(store, one.id()).as_ref(), Some(one));
        }
    }
    let mut sessions = block_on(store.sessions()).expect("sessions can be listed");
    let mut expected: Vec<_> = journals.iter().map(|journal| journal.session).collect();
    sessions.sort();
    expected.sort();
    assert_eq!(sessions, expected);
    let is_creation = |body: &RecordBody| matches!(body, RecordBody::SessionCreated(_));
    for journal in &journals {
        let found = records(store, journal.session);
        assert_eq!(found.iter().filter(|record| is_creation(&record.body)).count(), 1);
    }
}
