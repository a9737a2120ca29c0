//! Cache slices and their computation.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use backstitch_core::session::{Session, SessionError};

use crate::samples::{Deed, Total, items, session};

fn with_total() -> (Session, Arc<Mutex<u32>>) {
    let computed = Arc::new(Mutex::new(0));
    let count = computed.clone();
    let mut session = session();
    session.register_cache::<Total>(move |session| {
        *count.lock().unwrap() += 1;
        Ok(vec![Total(session.all::<Deed>()?.iter().map(|deed| deed.0).sum())])
    });
    (session, computed)
}

#[test]
fn they_are_computed_when_they_are_read_and_then_kept() {
    let (mut session, computed) = with_total();
    session.seed([Deed(1), Deed(2)]).unwrap();
    assert_eq!(*computed.lock().unwrap(), 0);
    assert_eq!((items::<Total>(&session), items::<Total>(&session)), (vec![Total(3)], vec![Total(3)]));
    assert_eq!(*computed.lock().unwrap(), 1);
    session.append(Total(9)).unwrap();
    assert_eq!(items::<Total>(&session), [Total(3), Total(9)], "a change builds on the computed items");
}

#[test]
fn they_are_computed_again_after_they_were_dropped() {
    let (mut session, _) = with_total();
    let snapshot = session.snapshot();
    session.append(Deed(1)).unwrap();
    assert_eq!(items::<Total>(&session), [Total(1)]);
    session.append(Deed(2)).unwrap();
    session.clear::<Total>().unwrap();
    assert_eq!(items::<Total>(&session), [Total(3)], "by clearing them");
    session.append(Deed(3)).unwrap();
    session.rollback(&snapshot).unwrap();
    assert_eq!(items::<Total>(&session), [Total(6)], "by a rollback");
    session.append(Deed(4)).unwrap();
    let mut draft = session.draft();
    draft.clear::<Total>().unwrap();
    session.commit(draft).unwrap();
    assert_eq!(items::<Total>(&session), [Total(10)], "by a draft");
    session.reset();
    assert_eq!(items::<Total>(&session), [Total(0)], "by a reset");
}

#[test]
fn what_cannot_be_computed_is_an_error_and_can_be_tried_again() {
    let mut session = session();
    session.register_cache::<Total>(|session| match session.latest::<Deed>()? {
        Some(deed) if deed.0 == 0 => panic!("nothing to divide by"),
        Some(deed) => Ok(vec![Total(12 / deed.0)]),
        None => Err("no deed".into()),
    });
    let error = session.all::<Total>().unwrap_err();
    assert!(matches!(&error, SessionError::Cache { slice, .. } if slice == "total"), "{error}");
    session.append(Deed(0)).unwrap();
    let read = std::panic::AssertUnwindSafe(|| session.all::<Total>());
    assert!(std::panic::catch_unwind(read).is_err());
    session.append(Deed(4)).unwrap();
    assert_eq!(items::<Total>(&session), [Total(3)]);
}

#[test]
fn one_that_reads_itself_finds_nothing_and_a_circle_is_refused() {
    let mut session = session();
    session.register_cache::<Total>(|session| Ok(vec![Total(session.all::<Total>()?.len() as u32)]));
    assert_eq!(items::<Total>(&session), [Total(0)]);

    session.register_cache::<Deed>(|session| Ok(vec![Deed(session.all::<Total>()?.len() as u32)]));
    session.register_cache::<Total>(|session| Ok(vec![Total(session.all::<Deed>()?.len() as u32)]));
    assert!(matches!(session.all::<Total>(), Err(SessionError::Cache { .. })));
    assert!(matches!(session.all::<Deed>(), Err(SessionError::Cache { .. })));
}

#[test]
fn two_threads_may_read_one_at_once() {
    let entered = Arc::new((Mutex::new(0), Condvar::new()));
    let mut session = session();
    session.register_cache::<Total>(move |_| {
        // Each waits for the other, so that both compute at the same time.
        let (count, changed) = &*entered;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        drop(changed.wait_timeout_while(count, Duration::from_secs(10), |count| *count < 2).unwrap());
        Ok(vec![Total(5)])
    });
    std::thread::scope(|scope| {
        let first = scope.spawn(|| items::<Total>(&session));
        let second = scope.spawn(|| items::<Total>(&session));
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (vec![Total(5)], vec![Total(5)]));
    });
}
