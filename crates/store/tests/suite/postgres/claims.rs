//! Claims end with the lease of their holder, or with its process.

use std::time::Duration;

use backstitch_core::journal::{Batch, Position};
use backstitch_core::ports::{ClaimMode, Owner, SessionClaim, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::support::{Temporary, options, until_available};

fn claim(store: &dyn Store, mode: ClaimMode) -> Result<SessionClaim, StoreError> {
    block_on(store.claim(sample::session(1), Owner::new("tailor"), mode))
}

/// Waits until a condition holds.
fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it never happened");
}

#[test]
fn a_store_that_is_closed_holds_nothing() {
    let Some(store) = Temporary::new() else { return };
    let other = store.reopen();
    claim(&other, ClaimMode::IfFree).unwrap();
    let refused = claim(&*store, ClaimMode::IfFree);
    assert!(
        matches!(&refused, Err(StoreError::Held { process: Some(process), .. }) if process.pid == std::process::id())
    );
    drop(other);
    claim(&*store, ClaimMode::IfFree).unwrap();
    assert_eq!(store.sql("SELECT count(*) FROM {schema}.workers"), "1");
}

#[test]
fn a_worker_that_no_longer_renews_its_lease_holds_nothing() {
    let Some(store) = Temporary::with(options().with_lease(Duration::from_secs(1))) else { return };
    let lost = claim(&*store, ClaimMode::IfFree).unwrap();
    // As if it were the worker of another machine, which is gone. On a busy machine, the store may be its second worker.
    store.sql(
        "WITH gone AS (
            UPDATE {schema}.workers SET id = gen_random_uuid(), place = 'elsewhere' WHERE id = (SELECT worker FROM {schema}.sessions) RETURNING id
        ) UPDATE {schema}.sessions SET worker = gone.id FROM gone",
    );
    let other = store.reopen();
    eventually(|| match claim(&other, ClaimMode::IfFree) {
        Ok(_) => true,
        Err(StoreError::Held { .. }) => false,
        Err(other) => panic!("{other:?}"),
    });
    assert!(!block_on(store.is_current(lost.session, lost.fence)).unwrap());
    eventually(|| !store.is_within_lease(lost.session, lost.fence));
    // The store is another worker now, whose lease is not that of the claim that it lost.
    block_on(store.claim(sample::session(2), Owner::new("tailor"), ClaimMode::IfFree)).unwrap();
    assert!(!store.is_within_lease(lost.session, lost.fence));
    let position = Position::START;
    let session = lost.session;
    let created = sample::created(session);
    let stale =
        block_on(store.append(session, position, lost.fence, Batch::at(created.created_at).with(created)));
    assert!(matches!(stale, Err(StoreError::Fenced { .. })), "{stale:?}");
}

#[test]
fn a_lease_is_renewed_for_as_long_as_the_store_is_open() {
    let Some(store) = Temporary::with(options().with_lease(Duration::from_secs(3))) else { return };
    let held = claim(&*store, ClaimMode::IfFree).unwrap();
    let first = store.sql("SELECT lease_until FROM {schema}.workers");
    // Together: a busy machine may be late once, and the lease is renewed all the same.
    eventually(|| {
        store.sql("SELECT lease_until FROM {schema}.workers") != first
            && block_on(store.is_current(held.session, held.fence)).unwrap()
    });
}

/// The server may have freed the session meanwhile: without an answer, nothing of the worker may continue beyond its lease.
#[test]
fn a_worker_that_cannot_renew_its_lease_stops_itself() {
    let Some((store, cuts, _place)) = super::lost_answers::behind_proxy_with(|options| {
        options.with_lease(Duration::from_secs(6)).with_deadline(Duration::from_secs(20))
    }) else {
        return;
    };
    let held = claim(&*store, ClaimMode::IfFree).unwrap();
    assert!(block_on(store.is_current(held.session, held.fence)).unwrap());
    assert!(store.is_within_lease(held.session, held.fence));
    cuts.stop();
    let since = std::time::Instant::now();
    eventually(|| !block_on(store.is_current(held.session, held.fence)).unwrap_or(true));
    assert!(since.elapsed() < Duration::from_secs(15), "it does not wait for the server");
    // No statement is sent for this answer.
    assert!(!store.is_within_lease(held.session, held.fence));
    cuts.resume();
}

/// Nobody else would free a session that a living process holds without knowing it.
#[test]
fn a_claim_whose_release_was_lost_can_be_claimed_again() {
    let Some((store, cuts, _place)) =
        super::lost_answers::behind_proxy_with(|options| options.with_deadline(Duration::from_millis(500)))
    else {
        return;
    };
    // The deadline is short for the release only.
    let held = until_available(|| claim(&*store, ClaimMode::IfFree)).unwrap();
    cuts.stop();
    block_on(store.release(held)).expect_err("the server is away");
    cuts.resume();
    eventually(|| match claim(&*store, ClaimMode::IfFree) {
        Ok(_) => true,
        Err(StoreError::Unavailable { .. }) => false,
        Err(other) => panic!("{other:?}"),
    });
    let held = until_available(|| claim(&*store, ClaimMode::IfFree));
    assert!(matches!(held, Err(StoreError::Held { .. })), "a claim that is known is not free: {held:?}");
}

#[test]
fn only_one_of_many_tasks_of_a_store_claims_a_session() {
    let Some(store) = Temporary::new() else { return };
    for _ in 0..5 {
        let claims = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| claim(&*store, ClaimMode::IfFree))).collect();
            all.into_iter().filter_map(|one| one.join().unwrap().ok()).collect::<Vec<_>>()
        });
        assert_eq!(claims.len(), 1);
        assert!(block_on(store.is_current(claims[0].session, claims[0].fence)).unwrap());
        block_on(store.release(claims[0].clone())).unwrap();
    }
}

#[test]
fn a_fence_that_a_failover_gives_again_does_not_let_its_first_holder_write() {
    let Some(store) = Temporary::new() else { return };
    let first = claim(&*store, ClaimMode::IfFree).unwrap();
    // The standby did not have the claim yet.
    store.sql("UPDATE {schema}.sessions SET claim = NULL, worker = NULL, fence = fence - 1");
    let other = store.reopen();
    let second = claim(&other, ClaimMode::IfFree).unwrap();
    assert_eq!(first.fence, second.fence);
    let created = sample::created(first.session);
    let batch = Batch::at(created.created_at).with(created);
    let start = Position::START;
    let stale = block_on(store.append(first.session, start, first.fence, batch.clone()));
    assert!(matches!(stale, Err(StoreError::Fenced { .. })), "{stale:?}");
    block_on(other.append(second.session, start, second.fence, batch)).unwrap();
}

super::support::also_on_18! {
    a_store_that_is_closed_holds_nothing
    a_worker_that_no_longer_renews_its_lease_holds_nothing
    a_lease_is_renewed_for_as_long_as_the_store_is_open
    a_worker_that_cannot_renew_its_lease_stops_itself
    a_claim_whose_release_was_lost_can_be_claimed_again
    only_one_of_many_tasks_of_a_store_claims_a_session
    a_fence_that_a_failover_gives_again_does_not_let_its_first_holder_write
}
