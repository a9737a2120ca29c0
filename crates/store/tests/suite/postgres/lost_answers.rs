//! A proxy that loses the answers of commits: the batch is stored, and its writer does not hear of it.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, SessionClaim, Store, StoreAdmin, StoreError};
use backstitch_store::PostgresOptions;
use backstitch_testkit::postgres::{self, PORT, Proxy};
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::{Temporary, options};
use crate::sqlite::support::{Writer, claim, notes, read};

pub(super) fn behind_proxy() -> Option<(Temporary, Proxy, TempDir)> {
    behind_proxy_with(|options| options.with_deadline(std::time::Duration::from_secs(3)))
}

pub(super) fn behind_proxy_with(
    set: impl FnOnce(PostgresOptions) -> PostgresOptions,
) -> Option<(Temporary, Proxy, TempDir)> {
    let server = postgres::server()?;
    let place = TempDir::new().unwrap();
    let proxy = Proxy::start(place.path(), server.socket());
    let address = server.address_on(place.path(), PORT);
    Some((Temporary::at(server, address, set(options())), proxy, place))
}

#[test]
fn a_batch_whose_answer_is_lost_is_acknowledged_once() {
    let Some((store, proxy, _place)) = behind_proxy() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    for number in 0..20 {
        proxy.lose(number % 2);
        writer.append(sample::notes([number.to_string()])).expect("a lost answer is found out");
    }
    assert_eq!(proxy.lost(), 10);
    let wanted: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(notes(&*store, sample::session(1)), wanted);
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
}

#[test]
fn an_outcome_that_cannot_be_found_out_is_said_to_be_unknown() {
    let Some((store, proxy, _place)) = behind_proxy() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    proxy.refuse();
    proxy.lose(1000);
    // The other connections of the pool end too.
    store.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%{schema}%' AND pid <> pg_backend_pid()");
    let unknown = writer.append(sample::notes(["one"]));
    let is_unknown =
        matches!(&unknown, Err(StoreError::OutcomeUnknown { .. } | StoreError::Unavailable { .. }));
    assert!(is_unknown, "{unknown:?}");
    proxy.resume();
    proxy.lose(0);
    // A busy machine may need more than one attempt for a new connection.
    while matches!(read(&*store, sample::session(1)), Err(StoreError::Unavailable { .. })) {}
    let stored = notes(&*store, sample::session(1));
    assert!(stored.is_empty() || stored == ["one"]);
}

/// Removes the last of three records.
fn lose_the_last_record(store: &Temporary) {
    store.sql("DELETE FROM {schema}.records WHERE position = 2");
    store.sql(
        "UPDATE {schema}.sessions s SET head = 2, chain = (SELECT checksum FROM {schema}.records r WHERE r.session = s.id AND r.position = 1)",
    );
}

fn claim_free(store: &Temporary, session: SessionId) -> SessionClaim {
    claim(&**store, session, ClaimMode::IfFree).unwrap()
}

#[test]
fn a_server_that_lost_what_it_acknowledged_is_found_out() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    writer.append(sample::notes(["one", "two"])).unwrap();
    lose_the_last_record(&store);
    let lost = writer.append(sample::notes(["three"]));
    assert!(matches!(&lost, Err(StoreError::HistoryLost { .. })), "{lost:?}");
    assert_eq!(notes(&*store, sample::session(1)), ["one"]);
}

#[test]
fn a_loss_between_two_claims_is_found_out_until_the_session_is_released() {
    let Some(store) = Temporary::new() else { return };
    let session = sample::session(1);
    let mut writer = Writer::create(&*store, session);
    writer.append(sample::notes(["one", "two"])).unwrap();
    block_on(Store::release(&*store, writer.claim)).unwrap();
    lose_the_last_record(&store);
    let mut next = Writer { store: &*store, claim: claim_free(&store, session), next: Position::new(2) };
    for _ in 0..2 {
        let lost = next.append(sample::notes(["three"]));
        assert!(matches!(&lost, Err(StoreError::HistoryLost { .. })), "{lost:?}");
    }
    assert_eq!(notes(&*store, session), ["one"]);
    block_on(Store::release(&*store, next.claim)).unwrap();
    let mut last = Writer { store: &*store, claim: claim_free(&store, session), next: Position::new(2) };
    last.append(sample::notes(["three"])).expect("a person has decided to continue");
    assert_eq!(notes(&*store, session), ["one", "three"]);
}

#[test]
fn a_fence_that_is_given_again_writes_nothing() {
    let Some(store) = Temporary::new() else { return };
    let session = sample::session(1);
    let mut old = Writer::create(&*store, session);
    // As a failover that lost the claim.
    store.sql("UPDATE {schema}.sessions SET fence = fence - 1, claim = NULL, worker = NULL, owner = NULL, since = NULL");
    let mut new = Writer { store: &*store, claim: claim_free(&store, session), next: old.next };
    assert_eq!(new.claim.fence, old.claim.fence);
    for writer in [&mut old, &mut new] {
        let stale = writer.append(sample::notes(["stale"]));
        assert!(matches!(&stale, Err(StoreError::Fenced { .. })), "{stale:?}");
    }
    block_on(Store::release(&*store, new.claim)).unwrap();
    let mut last = Writer { store: &*store, claim: claim_free(&store, session), next: old.next };
    last.append(sample::notes(["one"])).expect("the next fence is used once");
    assert_eq!(notes(&*store, session), ["one"]);
}

super::support::also_on_18! {
    a_batch_whose_answer_is_lost_is_acknowledged_once
    an_outcome_that_cannot_be_found_out_is_said_to_be_unknown
    a_server_that_lost_what_it_acknowledged_is_found_out
    a_loss_between_two_claims_is_found_out_until_the_session_is_released
    a_fence_that_is_given_again_writes_nothing
}
