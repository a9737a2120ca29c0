//! Guarantees about snapshots: the latest one is returned, and only the holder of a session saves one.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, FenceToken, Store, StoreError};
use backstitch_testkit::{block_on, sample};

use super::{Writer, claim};

fn save(
    store: &dyn Store,
    session: SessionId,
    fence: FenceToken,
    position: u64,
    bytes: &[u8],
) -> Result<(), StoreError> {
    block_on(store.save_snapshot(session, fence, Position::new(position), bytes.to_vec()))
}

fn snapshot(store: &dyn Store, session: SessionId) -> Option<(u64, Vec<u8>)> {
    let found = block_on(store.snapshot(session)).expect("a snapshot can be read");
    found.map(|saved| (saved.position.number(), saved.bytes))
}

/// There is one snapshot, the last that was saved, byte for byte. A snapshot of an earlier cut replaces it
/// too.
pub(crate) fn a_snapshot_replaces_the_one_before(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let other = Writer::create(store, sample::session(2));
    let (session, fence) = (writer.session(), writer.claim.fence);
    assert_eq!(snapshot(store, session), None);
    assert_eq!(snapshot(store, sample::session(3)), None);
    writer.append(sample::notes(["one", "two"])).expect("notes fit anywhere");
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    for (position, bytes) in [(1, &b"first"[..]), (3, &bytes), (0, b""), (2, b"last")] {
        save(store, session, fence, position, bytes).expect("the holder may save a snapshot");
        assert_eq!(snapshot(store, session), Some((position, bytes.to_vec())));
    }
    let until =
        |cut| block_on(store.snapshot_until(session, Position::new(cut))).expect("a snapshot can be read");
    assert_eq!(until(1), None, "it is of a later cut");
    for cut in [2, 3, u64::MAX] {
        assert_eq!(until(cut).map(|saved| saved.bytes), Some(b"last".to_vec()), "{cut}");
    }
    assert_eq!(snapshot(store, other.session()), None);
    assert_eq!(writer.records().len(), 3, "a snapshot writes no records");
}

/// Without a valid claim no snapshot is saved.
pub(crate) fn a_snapshot_is_saved_by_the_holder_only(store: &dyn Store) {
    let writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    save(store, session, fence, 1, b"mine").expect("the holder may save a snapshot");
    let fenced = |result: Result<(), StoreError>| {
        assert!(matches!(result, Err(StoreError::Fenced { .. })), "{result:?}");
        assert_eq!(snapshot(store, session), Some((1, b"mine".to_vec())));
    };
    fenced(save(store, session, FenceToken(fence.0 + 1), 1, b"never granted"));
    let held = claim(store, session, "bob", ClaimMode::TakeOver).expect("a held session can be taken over");
    fenced(save(store, session, fence, 1, b"taken over"));
    block_on(store.release(held.clone())).expect("what is held can be released");
    fenced(save(store, session, held.fence, 1, b"released"));
}

/// A snapshot beyond the head is refused.
pub(crate) fn a_snapshot_stands_no_later_than_the_head(store: &dyn Store) {
    let writer = Writer::create(store, sample::session(1));
    let (session, fence) = (writer.session(), writer.claim.fence);
    for position in [2, 1_000_000, u64::MAX] {
        let error = save(store, session, fence, position, b"early").expect_err("it is beyond the head");
        let StoreError::BeyondHead { session: named, head, .. } = error else { panic!("{error:?}") };
        assert_eq!((named, head), (session, Position::new(1)));
    }
    assert_eq!(snapshot(store, session), None);
    let claimed = Writer::claim(store, sample::session(2));
    let error = save(store, claimed.session(), claimed.claim.fence, 0, b"too early");
    assert!(matches!(error, Err(StoreError::NotFound { .. })), "{error:?}");
}
