//! Observers: notified after a commit, and unable to undo it.

use std::sync::{Arc, Mutex};

use backstitch_core::session::{Items, Observation, Session, SliceOp, Snapshot};

use crate::samples::{Deed, Knock, Line, Note, clock, items, note, session, session_id};

type Seen = Arc<Mutex<Vec<(Vec<u32>, Vec<u32>)>>>;

fn watch(session: &mut Session) -> Seen {
    let seen = Seen::default();
    let notes = seen.clone();
    session.observe::<Deed>(move |observation| {
        let numbers = |items: &Items<Deed>| items.iter().map(|deed| deed.0).collect();
        notes.lock().unwrap().push((numbers(&observation.old), numbers(&observation.new)));
        Ok(())
    });
    seen
}

#[test]
fn they_are_told_once_for_each_commit_that_changed_their_slice() {
    let mut session = session();
    let seen = watch(&mut session);
    session.append(Deed(1)).unwrap();
    session.append(note(1, "elsewhere")).unwrap();
    let mut draft = session.draft();
    draft.append(Deed(2)).unwrap().append(Deed(3)).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1, "a draft is not a commit");
    session.commit(draft).unwrap();
    drop(session.draft().append(Deed(4)));
    assert_eq!(*seen.lock().unwrap(), [(vec![], vec![1]), (vec![1], vec![1, 2, 3])]);
}

#[test]
fn a_dispatch_that_fails_is_not_told() {
    let mut session = session();
    let seen = watch(&mut session);
    session.register::<Deed, Knock>(|_, knock, _| Ok(SliceOp::append(Deed(knock.times))));
    session.register::<Deed, Knock>(|_, _, _| Err("stuck".into()));
    assert!(session.dispatch(Knock { times: 1 }).is_err());
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn one_that_fails_or_panics_changes_nothing_and_does_not_keep_others_from_being_told() {
    let mut session = session();
    session.observe::<Deed>(|_| Err("not listening".into()));
    session.observe::<Deed>(|_| panic!("really not"));
    let seen = watch(&mut session);
    assert_eq!(session.append(Deed(1)).unwrap().len(), 1);
    let mut draft = session.draft();
    draft.append(Deed(2)).unwrap();
    session.commit(draft).unwrap();
    assert_eq!((items::<Deed>(&session), seen.lock().unwrap().len()), (vec![Deed(1), Deed(2)], 2));
}

#[test]
fn one_of_a_journal_slice_can_take_a_snapshot_of_what_was_committed() {
    let saved = Arc::new(Mutex::new(Vec::new()));
    let checkpoints = saved.clone();
    let mut session = session();
    session.observe::<Line>(move |observation: &Observation<'_, Line>| {
        checkpoints.lock().unwrap().push(observation.session.snapshot().to_json()?);
        Ok(())
    });
    session.append(note(1, "state")).unwrap();
    session.append(Line(1)).unwrap();
    session.append(Line(2)).unwrap();

    let saved = saved.lock().unwrap();
    assert_eq!(saved.len(), 2);
    let mut resumed = Session::new(session_id(2), clock());
    resumed.rollback(&Snapshot::from_json(&saved[1]).unwrap()).unwrap();
    assert_eq!(items::<Line>(&resumed), [Line(1), Line(2)]);
    assert_eq!(items::<Note>(&resumed), [note(1, "state")]);
}
