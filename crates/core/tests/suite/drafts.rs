//! Drafts: committed as a whole, or dropped without effect.

use backstitch_core::session::{Session, SessionError, SliceOp, SlicePolicy, Snapshot, upsert_by};

use crate::samples::{Deed, Knock, Line, Note, Total, items, note, one_of_each, session};

fn deeds(session: &Session) -> Vec<u32> {
    items::<Deed>(session).into_iter().map(|deed| deed.0).collect()
}

fn keys(session: &Session) -> Vec<u32> {
    items::<Note>(session).into_iter().map(|note| note.key).collect()
}

#[track_caller]
fn assert_conflict<T: std::fmt::Debug>(result: Result<T, SessionError>, wanted: &str) {
    let error = result.unwrap_err();
    assert!(matches!(&error, SessionError::Conflict { slice } if slice == wanted), "{error}");
}

#[test]
fn a_dropped_draft_leaves_no_trace() {
    let mut session = one_of_each();
    let before = session.snapshot().content_digest().unwrap();
    let mut draft = session.draft();
    draft.append(note(2, "b")).unwrap().seed([Deed(9)]).unwrap().clear::<Total>().unwrap();
    draft.append(Line(2)).unwrap().clear_where::<Note>(|note| note.key == 1).unwrap();
    assert_eq!((keys(&draft), deeds(&draft)), (vec![2], vec![9]), "the draft sees its own changes");
    drop(draft);
    assert_eq!(session.snapshot().content_digest().unwrap(), before);
    session.append(note(3, "c")).unwrap();
    assert_eq!(keys(&session), [1, 3]);
}

#[test]
fn a_commit_carries_everything_over_in_order() {
    let mut session = one_of_each();
    let mut draft = session.draft();
    draft.append(note(2, "b")).unwrap().append(Deed(2)).unwrap();
    draft.clear_where::<Note>(|note| note.key == 1).unwrap();
    let made: Vec<_> = draft.changes().map(|change| change.slice()).collect();
    assert_eq!(made, ["note", "deed", "note"]);
    assert_eq!((keys(&session), deeds(&session)), (vec![1], vec![1]), "not before the commit");
    let changes = session.commit(draft).unwrap();
    assert_eq!(changes.iter().map(|change| change.slice()).collect::<Vec<_>>(), made);
    assert_eq!((keys(&session), deeds(&session)), (vec![2], vec![1, 2]));
}

#[test]
fn what_fails_in_a_draft_leaves_the_draft_as_it_was() {
    let mut session = session();
    session.register::<Deed, Knock>(|_, knock, _| Ok(SliceOp::append(Deed(knock.times))));
    session.register::<Note, Knock>(|_, knock, _| match knock.times {
        0 => Err("nobody there".into()),
        times => Ok(SliceOp::append(note(times, "in"))),
    });
    let mut draft = session.draft();
    assert!(draft.dispatch(Knock { times: 0 }).is_err());
    assert!(draft.append(Line(1)).unwrap().clear::<Line>().is_err());
    draft.dispatch(Knock { times: 1 }).unwrap();
    session.commit(draft).unwrap();
    assert_eq!((deeds(&session), keys(&session)), (vec![1], vec![1]));
    assert_eq!(items::<Line>(&session), [Line(1)]);
}

#[test]
fn two_drafts_at_once_are_both_committed_by_reducing_again() {
    let mut session = session();
    session.register::<Note, Note>(upsert_by(|note: &Note| note.key));
    session.register::<Deed, Knock>(|deeds, knock, _| {
        Ok(SliceOp::append(Deed(deeds.len() as u32 + knock.times)))
    });
    session.seed([note(1, "old"), note(2, "old")]).unwrap();

    let (mut one, mut other) = (session.draft(), session.draft());
    one.append(note(1, "one")).unwrap().dispatch(Knock { times: 10 }).unwrap();
    other.append(note(2, "other")).unwrap().dispatch(Knock { times: 20 }).unwrap();
    assert_eq!(deeds(&other), [20]);
    session.commit(one).unwrap();
    session.commit(other).unwrap();
    assert_eq!(items::<Note>(&session), [note(1, "one"), note(2, "other")]);
    assert_eq!(deeds(&session), [10, 21], "the second saw what the first had committed");
}

#[test]
fn an_event_keeps_its_time_when_it_is_reduced_again() {
    let clock = crate::samples::clock();
    let mut session = Session::new(crate::samples::session_id(1), clock.clone());
    session.register::<Note, Knock>(|_, _, context| Ok(SliceOp::append(note(0, &context.now.to_string()))));
    let mut draft = session.draft();
    draft.dispatch(Knock { times: 1 }).unwrap();
    clock.advance(std::time::Duration::from_secs(60));
    session.append(Deed(1)).unwrap();
    session.commit(draft).unwrap();
    assert_eq!(items::<Note>(&session), [note(0, "2026-01-02T03:04:05.000000Z")]);
}

#[test]
fn a_reducer_that_fails_the_second_time_fails_the_commit() {
    let mut session = session();
    session.register::<Deed, Knock>(|deeds, _, _| {
        if deeds.is_empty() { Ok(SliceOp::append(Deed(1))) } else { Err("only one".into()) }
    });
    let (mut one, mut other) = (session.draft(), session.draft());
    one.dispatch(Knock { times: 1 }).unwrap();
    other.dispatch(Knock { times: 1 }).unwrap().append(note(1, "with it")).unwrap();
    session.commit(one).unwrap();
    assert!(matches!(session.commit(other), Err(SessionError::Reducer { .. })));
    assert_eq!((deeds(&session), keys(&session)), (vec![1], vec![]));
}

#[test]
fn overwriting_what_someone_else_changed_is_a_conflict() {
    type Overwrite = fn(&mut backstitch_core::session::Draft);
    let overwrites: [Overwrite; 3] = [
        |draft| {
            draft.seed([note(9, "mine")]).unwrap();
        },
        |draft| {
            draft.clear::<Note>().unwrap();
        },
        |draft| {
            draft.clear_where::<Note>(|note| note.key == 1).unwrap();
        },
    ];
    for overwrite in overwrites {
        let mut session = one_of_each();
        let mut draft = session.draft();
        overwrite(&mut draft);
        session.append(note(2, "theirs")).unwrap();
        assert_conflict(session.commit(draft), "note");
        assert_eq!(keys(&session), [1, 2]);

        let mut draft = session.draft();
        overwrite(&mut draft);
        session.append(Deed(2)).unwrap();
        session.commit(draft).expect("another slice may change concurrently");
    }
}

#[test]
fn overwriting_a_slice_that_someone_else_made_is_a_conflict() {
    let mut session = session();
    let mut draft = session.draft();
    draft.seed([note(1, "mine")]).unwrap();
    session.seed([note(2, "theirs")]).unwrap();
    assert_conflict(session.commit(draft), "note");
}

#[test]
fn that_there_was_nothing_to_take_out_holds_only_as_long_as_it_is_so() {
    let mut session = one_of_each();
    let mut draft = session.draft();
    draft.clear_where::<Note>(|note| note.key == 2).unwrap();
    assert_eq!(draft.changes().count(), 0);
    session.append(note(2, "theirs")).unwrap();
    assert_conflict(session.commit(draft), "note");

    let mut draft = session.draft();
    draft.append(note(3, "mine")).unwrap().clear_where::<Note>(|note| note.key == 9).unwrap();
    session.append(Deed(2)).unwrap();
    session.commit(draft).expect("another slice may change concurrently");
    assert_eq!(keys(&session), [1, 2, 3]);
}

#[test]
fn positions_are_not_taken_out_of_what_was_reduced_to_something_else() {
    // The draft's note is dropped when it is reduced again, so the removed position would be that of another
    // note.
    let mut session = session();
    session.register::<Note, Knock>(|_, knock, context| {
        let (first, second) = (note(knock.times, "first"), note(knock.times + 1, "second"));
        let has_deeds = !context.session.all::<Deed>()?.is_empty();
        Ok(SliceOp::extend(if has_deeds { [second, first] } else { [first, second] }))
    });
    let mut draft = session.draft();
    draft.dispatch(Knock { times: 1 }).unwrap().clear_where::<Note>(|note| note.key == 1).unwrap();
    assert_eq!(keys(&draft), [2]);
    session.append(Deed(1)).unwrap();
    assert_conflict(session.commit(draft), "note");
}

#[test]
fn a_preparation_is_for_one_state_of_the_session() {
    let mut session = one_of_each();
    let mut draft = session.draft();
    draft.append(note(2, "b")).unwrap();
    let prepared = session.prepare(&draft).unwrap();
    assert_eq!(prepared.changes().len(), 1);
    assert_eq!(keys(&session), [1], "preparing changes nothing");

    session.append(Deed(2)).unwrap();
    let error = session.apply(prepared).unwrap_err();
    assert!(matches!(error, SessionError::StalePreparation), "{error}");
    assert_eq!(keys(&session), [1]);

    let prepared = session.prepare(&draft).unwrap();
    session.apply(prepared).unwrap();
    assert_eq!((keys(&session), deeds(&session)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn what_was_changed_can_be_stored() {
    let mut session = session();
    let mut draft = session.draft();
    draft.append(note(1, "a")).unwrap().append(Line(7)).unwrap().clear::<Note>().unwrap();
    let prepared = session.prepare(&draft).unwrap();
    let stored: Vec<_> = prepared.changes().iter().map(|change| change.encode().unwrap()).collect();
    insta::assert_snapshot!(serde_json::to_string(&stored).unwrap().replace("},{\"slice", "},\n{\"slice"), @r#"
    [{"slice":"note","version":1,"policy":"state","op":{"append":{"key":1,"text":"a"}}},
    {"slice":"line","version":1,"policy":"journal","op":{"append":7}},
    {"slice":"note","version":1,"policy":"state","op":"clear"}]
    "#);
    session.apply(prepared).unwrap();
}

#[test]
fn of_a_call_that_failed_only_the_logs_are_kept() {
    let mut session = one_of_each();
    let mut draft = session.draft();
    draft.append(note(2, "b")).unwrap().append(Deed(2)).unwrap().append(Line(2)).unwrap();
    draft.seed([Total(9)]).unwrap().clear_where::<Deed>(|deed| deed.0 == 1).unwrap();
    let prepared = session.prepare_logs(&draft).unwrap();
    assert!(prepared.changes().iter().all(|change| change.policy() == SlicePolicy::Log));
    session.apply(prepared).unwrap();
    assert_eq!((keys(&session), deeds(&session)), (vec![1], vec![2]));
    assert_eq!((items::<Total>(&session), items::<Line>(&session)), (vec![Total(1)], vec![Line(1)]));
}

#[test]
fn a_log_says_what_the_failed_call_saw() {
    let mut session = session();
    session.register::<Note, Knock>(|_, knock, _| Ok(SliceOp::append(note(knock.times, "in"))));
    session.register::<Deed, Knock>(|_, _, context| match context.session.latest::<Note>()? {
        Some(note) => Ok(SliceOp::append(Deed(note.key))),
        None => Err("nobody came in".into()),
    });
    let mut draft = session.draft();
    draft.dispatch(Knock { times: 5 }).unwrap();
    for others in 0..2 {
        let prepared = session.prepare_logs(&draft).unwrap();
        assert_eq!(prepared.changes().len(), 1);
        session.apply(prepared).unwrap();
        assert_eq!((keys(&session), deeds(&session).pop()), (vec![], Some(5)), "after {others} others");
    }
}

#[test]
fn logs_that_take_something_out_are_reduced_again_or_conflict() {
    let mut session = session();
    session.register::<Deed, Deed>(upsert_by(|deed: &Deed| deed.0 % 10));
    session.seed([Deed(1), Deed(2)]).unwrap();
    let mut draft = session.draft();
    draft.append(Deed(11)).unwrap().append(note(1, "lost")).unwrap();
    session.append(Deed(3)).unwrap();
    session.append(Deed(21)).unwrap();
    let prepared = session.prepare_logs(&draft).unwrap();
    session.apply(prepared).unwrap();
    assert_eq!((deeds(&session), keys(&session)), (vec![2, 3, 11], vec![]));

    let mut draft = session.draft();
    draft.clear::<Deed>().unwrap();
    session.append(Deed(4)).unwrap();
    assert_conflict(session.prepare_logs(&draft), "deed");
}

#[test]
fn a_draft_can_be_committed_after_a_rollback() {
    let mut session = one_of_each();
    let snapshot = session.snapshot();
    session.append(note(2, "b")).unwrap();
    let mut draft = session.draft();
    draft.append(note(3, "c")).unwrap();
    session.rollback(&snapshot).unwrap();
    session.commit(draft).unwrap();
    assert_eq!(keys(&session), [1, 3]);
}

#[test]
fn what_is_the_same_as_before_is_no_conflict() {
    // Registering a type between two rollbacks changes how its slice is held, but not its content.
    let snapshot = Snapshot::from_json(&one_of_each().snapshot().to_json().unwrap()).unwrap();
    let mut session = session();
    session.rollback(&snapshot).unwrap();
    let mut draft = session.draft();
    draft.seed([note(9, "mine")]).unwrap();
    session.append(note(2, "theirs")).unwrap();
    session.register_slice::<Note>().rollback(&snapshot).unwrap();
    session.commit(draft).unwrap();
    assert_eq!(keys(&session), [9]);
}
