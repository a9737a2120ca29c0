//! Guarantees of claims: one holder, and no write without the claim.

use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, FenceToken, Owner, SessionClaim, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{Writer, append, claim, first_batch, head, texts};

fn holder(store: &dyn Store, session: backstitch_core::id::SessionId) -> Option<Owner> {
    block_on(store.holder(session)).expect("the holder can be read")
}

/// Without a claim nothing is written, whatever the fence. A fence that was never granted is invalid.
pub(crate) fn a_session_is_written_by_its_holder_only(store: &dyn Store) {
    let session = sample::session(1);
    for fence in [0, 1, u64::MAX >> 1] {
        let error = append(store, session, Position::START, FenceToken(fence), first_batch(session));
        assert_fails!(error, StoreError::Fenced { owner: None, .. });
    }
    let mut writer = Writer::claim(store, session);
    let granted = writer.claim.fence.0;
    for fence in [granted.wrapping_sub(1), granted + 1] {
        let error = append(store, session, Position::START, FenceToken(fence), first_batch(session));
        let error = error.expect_err("this claim was never granted");
        let StoreError::Fenced { session: named, fence: refused, owner } = error else { panic!("{error:?}") };
        assert_eq!((named, refused, owner), (session, FenceToken(fence), Some(Owner::new("writer"))));
    }
    writer.append(first_batch(session)).expect("the holder may write");
    assert_eq!(writer.records().len(), 1);
}

/// A claim to a held session is refused with the name of the holder. Names are for people: a claim with the
/// same name is still another holder.
pub(crate) fn a_held_session_is_refused_with_the_name_of_its_holder(store: &dyn Store) {
    let session = sample::session(1);
    assert_eq!(holder(store, session), None);
    let held =
        claim(store, session, "ada", ClaimMode::IfFree).expect("a session that is free can be claimed");
    assert_eq!((held.session, &held.owner), (session, &Owner::new("ada")));
    for name in ["bob", "ada"] {
        let error = claim(store, session, name, ClaimMode::IfFree).expect_err("the session is held");
        let StoreError::Held { session: named, owner, .. } = error else { panic!("{error:?}") };
        assert_eq!((named, owner), (session, Owner::new("ada")));
    }
    assert_eq!(holder(store, session), Some(Owner::new("ada")));
    claim(store, sample::session(2), "bob", ClaimMode::IfFree).expect("another session is free");

    block_on(store.release(held)).expect("what is held can be released");
    assert_eq!(holder(store, session), None);
    claim(store, session, "bob", ClaimMode::IfFree).expect("a released session is free");
    assert_eq!(holder(store, session), Some(Owner::new("bob")));
}

/// After a takeover the writes of the earlier holder fail with the name of the new holder.
pub(crate) fn a_claim_that_was_taken_over_writes_nothing(store: &dyn Store) {
    let mut first = Writer::create(store, sample::session(1));
    let session = first.session();
    let held = claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    assert!(held.fence > first.claim.fence);
    let error = first.append(sample::notes(["too late"])).expect_err("the claim is stale");
    let StoreError::Fenced { session: named, fence, owner } = error else { panic!("{error:?}") };
    assert_eq!((named, fence, owner), (session, first.claim.fence, Some(Owner::new("bob"))));

    let mut second = Writer { store, claim: held, next: head(store, session) };
    second.append(sample::notes(["in time"])).expect("the new holder may write");
    first.append(sample::notes(["still too late"])).expect_err("the claim stays stale");
    assert_eq!(texts(&second.records()), ["in time"]);

    // A free session can be taken over too.
    claim(store, sample::session(2), "bob", ClaimMode::TakeOver).expect("a free session can be claimed");
}

/// After its release a claim writes nothing, whether the session is free or has another holder.
pub(crate) fn a_claim_that_was_released_writes_nothing(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    block_on(store.release(writer.claim.clone())).expect("what is held can be released");
    assert_fails!(writer.append(sample::notes(["too late"])), StoreError::Fenced { owner: None, .. });
    claim(store, session, "bob", ClaimMode::IfFree).expect("a released session is free");
    assert_fails!(writer.append(sample::notes(["too late"])), StoreError::Fenced { owner: Some(_), .. });
    assert_eq!(writer.records().len(), 1);
}

/// Each claim has a larger fence than all before it, over releases, takeovers and the creation of the
/// session.
pub(crate) fn fences_grow_over_claim_and_release(store: &dyn Store) {
    let session = sample::session(1);
    let mut last = None;
    for round in 0..20 {
        let how = if round % 3 == 0 { ClaimMode::TakeOver } else { ClaimMode::IfFree };
        let held = claim(store, session, "ada", how).expect("the session is free");
        assert!(last.is_none_or(|last| held.fence > last), "{:?} after {last:?}", held.fence);
        last = Some(held.fence);
        if round == 5 {
            append(store, session, Position::START, held.fence, first_batch(session))
                .expect("the holder may write");
        }
        if round % 3 != 2 {
            block_on(store.release(held)).expect("what is held can be released");
        }
    }
}

/// The release of a claim that is no longer valid neither frees the session nor fails.
pub(crate) fn a_release_that_comes_too_late_changes_nothing(store: &dyn Store) {
    let first = Writer::create(store, sample::session(1));
    let session = first.session();
    let held = claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    for _ in 0..2 {
        block_on(store.release(first.claim.clone())).expect("a late release is not an error");
        assert_eq!(holder(store, session), Some(Owner::new("bob")));
    }
    let mut second = Writer { store, claim: held.clone(), next: first.next };
    second.append(sample::notes(["in time"])).expect("the holder may write");
    for _ in 0..2 {
        block_on(store.release(held.clone())).expect("what is held can be released");
        assert_eq!(holder(store, session), None);
    }
    let mut unknown = held;
    unknown.session = sample::session(9);
    block_on(store.release(unknown)).expect("a release without a claim is not an error");
}

/// A claim is current until the session is taken over or released.
pub(crate) fn a_claim_is_current_until_it_is_replaced_or_released(store: &dyn Store) {
    let is_current = |held: &SessionClaim| {
        block_on(store.is_current(held.session, held.fence)).expect("claims can be looked up")
    };
    let first = Writer::create(store, sample::session(1));
    assert!(is_current(&first.claim));
    assert!(store.is_within_lease(first.session(), first.claim.fence));
    // The same owner may claim a session twice.
    let owner = first.claim.owner.to_string();
    let second = claim(store, first.session(), &owner, ClaimMode::TakeOver).expect("it can be taken over");
    assert!(!is_current(&first.claim) && is_current(&second));
    block_on(store.release(second.clone())).expect("what is held can be released");
    assert!(!is_current(&first.claim) && !is_current(&second));
    let unknown = SessionClaim { session: sample::session(9), ..second };
    assert!(!is_current(&unknown));
}

/// A stale fence is reported before a wrong position: a writer that was replaced must not read again and
/// retry.
pub(crate) fn a_stale_fence_counts_before_a_wrong_position(store: &dyn Store) {
    let writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    for position in [0, 1, 7] {
        let batch = if position == 0 { first_batch(session) } else { sample::notes(["late"]) };
        let error = append(store, session, Position::new(position), writer.claim.fence, batch);
        assert!(matches!(error, Err(StoreError::Fenced { .. })), "{error:?}");
    }
}

/// A session that was claimed but not written does not exist yet.
pub(crate) fn a_claim_creates_no_session(store: &dyn Store) {
    let writer = Writer::claim(store, sample::session(1));
    let session = writer.session();
    assert_eq!(block_on(store.sessions()).expect("sessions can be listed"), []);
    assert_fails!(block_on(store.head(session)), StoreError::NotFound { session: named } if named == session);
    assert_fails!(block_on(store.read(session, Position::START, 1)), StoreError::NotFound { .. });
}
