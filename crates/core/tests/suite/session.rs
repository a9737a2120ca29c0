//! The operations of a session, and their edge cases.

use std::sync::Arc;

use backstitch_core::session::{
    Items, ReducerContext, ReducerResult, Session, SessionError, SliceOp, SlicePolicy, append_all,
    replace_latest, replace_latest_by, upsert_by,
};

use crate::samples::{Deed, Knock, Line, Note, items, note, one_of_each, session, session_id};

fn deeds(session: &Session) -> Vec<u32> {
    items::<Deed>(session).into_iter().map(|deed| deed.0).collect()
}

fn texts(session: &Session) -> Vec<String> {
    items::<Note>(session).into_iter().map(|note| note.text).collect()
}

fn knock_deed(_: &Items<Deed>, knock: &Arc<Knock>, _: &ReducerContext<'_>) -> ReducerResult<Deed> {
    Ok(SliceOp::append(Deed(knock.times)))
}

#[test]
fn several_reducers_of_an_event_run_in_the_order_of_registration() {
    let mut session = session();
    session.register::<Deed, Knock>(knock_deed);
    session.register::<Note, Knock>(|_, _, context| {
        let seen = context.session.all::<Deed>()?.len();
        Ok(SliceOp::append(note(0, &format!("after {seen} deeds at {}", context.now))))
    });
    session.register::<Deed, Knock>(|deeds, knock, _| {
        Ok(SliceOp::append(Deed(deeds.latest().map_or(0, |deed| deed.0) + knock.times)))
    });
    let changes = session.dispatch(Knock { times: 2 }).unwrap();

    assert_eq!(deeds(&session), [2, 4]);
    assert_eq!(texts(&session), ["after 1 deeds at 2026-01-02T03:04:05.000000Z"]);
    let changed: Vec<_> = changes.iter().map(|change| (change.slice(), change.policy())).collect();
    assert_eq!(
        changed,
        [("deed", SlicePolicy::Log), ("note", SlicePolicy::State), ("deed", SlicePolicy::Log)]
    );
    assert!(changes[0].op::<Deed>().is_some() && changes[0].op::<Note>().is_none());
}

#[test]
fn without_a_reducer_an_item_is_appended_to_its_own_slice() {
    let mut session = session();
    session.dispatch(Deed(1)).unwrap();
    session.append(Deed(1)).unwrap();
    assert_eq!(deeds(&session), [1, 1]);
}

#[test]
fn a_registered_reducer_takes_the_place_of_the_default() {
    let mut session = session();
    session.register::<Note, Deed>(|_, deed, _| Ok(SliceOp::append(note(deed.0, "done"))));
    session.append(Deed(7)).unwrap();
    assert_eq!((deeds(&session), texts(&session)), (vec![], vec!["done".to_owned()]));
}

#[test]
fn an_event_without_a_reducer_is_refused() {
    let error = session().dispatch(Knock { times: 1 }).unwrap_err();
    assert!(matches!(error, SessionError::NoReducer { event } if event.ends_with("Knock")), "{error}");
}

#[test]
fn a_failing_reducer_fails_the_dispatch_and_leaves_nothing() {
    let mut session = session();
    session.append(Deed(1)).unwrap();
    session.register::<Deed, Knock>(knock_deed);
    session.register::<Note, Knock>(|_, _, _| Err("the door is stuck".into()));
    let error = session.dispatch(Knock { times: 2 }).unwrap_err();
    assert!(
        matches!(&error, SessionError::Reducer { slice, source, .. }
            if slice == "note" && source.to_string() == "the door is stuck"),
        "{error}"
    );
    assert_eq!((deeds(&session), texts(&session).len()), (vec![1], 0));
}

#[test]
fn a_panicking_reducer_leaves_nothing_either() {
    let mut session = session();
    session.append(Deed(1)).unwrap();
    session.register::<Deed, Knock>(knock_deed);
    session.register::<Note, Knock>(|_, _, _| panic!("the door fell"));
    let mut draft = session.draft();
    for _ in 0..2 {
        let dispatch = std::panic::AssertUnwindSafe(|| session.dispatch(Knock { times: 2 }).map(drop));
        assert!(std::panic::catch_unwind(dispatch).is_err());
        let dispatch = std::panic::AssertUnwindSafe(|| draft.dispatch(Knock { times: 2 }).map(drop));
        assert!(std::panic::catch_unwind(dispatch).is_err());
    }
    assert_eq!((deeds(&session), deeds(&draft), draft.changes().count()), (vec![1], vec![1], 0));
    assert_eq!(session.commit(draft).unwrap().len(), 0);
}

#[test]
fn the_reducers_of_the_house_do_what_their_names_say() {
    let mut session = session();
    session.register::<Deed, Deed>(append_all);
    for number in [1, 2, 1] {
        session.append(Deed(number)).unwrap();
    }
    assert_eq!(deeds(&session), [1, 2, 1]);

    let mut session = self::session();
    session.register::<Deed, Deed>(replace_latest);
    for number in [1, 2, 1] {
        session.append(Deed(number)).unwrap();
    }
    assert_eq!(deeds(&session), [1]);
}

#[test]
fn an_upsert_takes_out_every_item_with_the_key_and_appends_at_the_end() {
    let upsert = |session: &mut Session| {
        session.seed([note(1, "a"), note(2, "b"), note(1, "c"), note(3, "d")]).unwrap();
        let changes = session.append(note(1, "new")).unwrap();
        assert_eq!(texts(session), ["b", "d", "new"]);
        let op = changes[0].op::<Note>().unwrap();
        assert!(
            matches!(op, SliceOp::Patch { remove, append } if *remove == [0, 2] && append.len() == 1),
            "the change is as large as what changes: {op:?}"
        );
        session.append(note(4, "other")).unwrap();
        assert_eq!(texts(session), ["b", "d", "new", "other"]);
    };
    upsert(session().register::<Note, Note>(upsert_by(|note: &Note| note.key)));
    upsert(session().register::<Note, Note>(replace_latest_by(|note: &Note| note.key)));
}

#[test]
fn a_change_that_is_none_is_none() {
    let mut session = session();
    session.register::<Deed, Knock>(|_, _, _| Ok(SliceOp::keep()));
    assert!(session.dispatch(Knock { times: 1 }).unwrap().is_empty());
    assert!(session.clear_where::<Deed>(|_| true).unwrap().is_empty());
    assert_eq!(session.slice_names().count(), 0);
}

#[test]
fn seeding_and_clearing_go_past_reducers() {
    let mut session = session();
    session.register::<Note, Note>(|_, _, _| Err("closed".into()));
    session.seed([note(1, "a"), note(2, "b"), note(3, "c")]).unwrap();
    assert_eq!(texts(&session), ["a", "b", "c"]);
    session.clear_where::<Note>(|note| note.key != 2).unwrap();
    assert_eq!(texts(&session), ["b"]);
    session.seed([note(4, "d")]).unwrap();
    assert_eq!(texts(&session), ["d"]);
    session.clear::<Note>().unwrap();
    assert!(texts(&session).is_empty());
    assert!(session.append(note(5, "e")).is_err(), "appending does not");
}

#[test]
fn many_items_can_be_taken_out_at_once() {
    let mut session = session();
    session.seed((0..1_000).map(Deed)).unwrap();
    session.clear_where::<Deed>(|deed| deed.0 % 3 != 0).unwrap();
    assert_eq!(deeds(&session), (0..1_000).step_by(3).collect::<Vec<_>>());
}

#[test]
fn a_patch_beyond_the_end_is_refused() {
    let mut session = session();
    session.append(Deed(1)).unwrap();
    session.register::<Deed, Knock>(|_, knock, _| {
        Ok(SliceOp::Patch { remove: vec![0, knock.times as usize], append: vec![] })
    });
    let error = session.dispatch(Knock { times: 1 }).unwrap_err();
    assert!(
        matches!(&error, SessionError::PatchOutOfRange { slice, position: 1, length: 1 } if slice == "deed"),
        "{error}"
    );
    assert_eq!(deeds(&session), [1]);
    session.dispatch(Knock { times: 0 }).unwrap();
    assert!(deeds(&session).is_empty(), "a position that is named twice is one position");
}

#[test]
fn reads_are_values_that_nothing_changes_later() {
    let mut session = session();
    assert!(session.latest::<Deed>().unwrap().is_none());
    session.seed((0..100).map(Deed)).unwrap();
    let all = session.all::<Deed>().unwrap();
    let even = session.filter::<Deed>(|deed| deed.0 % 2 == 0).unwrap();
    session.append(Deed(100)).unwrap();
    session.clear_where::<Deed>(|deed| deed.0 < 50).unwrap();
    assert_eq!((all.len(), all[0].0, all.latest().unwrap().0), (100, 0, 99));
    assert_eq!((even.len(), even[49].0), (50, 98));
    assert_eq!((all.get(100), all.is_empty(), all.iter().rev().count()), (None, false, 100));
    assert_eq!(*session.latest::<Deed>().unwrap().unwrap(), Deed(100));
}

#[test]
fn a_reset_empties_every_slice_and_keeps_registrations() {
    let mut session = one_of_each();
    session.register::<Deed, Knock>(knock_deed);
    session.reset();
    assert_eq!(session.slice_names().count(), 0);
    session.dispatch(Knock { times: 3 }).unwrap();
    assert_eq!(deeds(&session), [3]);
}

#[test]
fn a_clone_goes_its_own_way_with_the_same_rules() {
    let mut session = one_of_each();
    session.register::<Deed, Knock>(knock_deed).set_policy::<Note>(SlicePolicy::Log);
    session.observe::<Deed>(|_| panic!("observers stay with the original"));
    let mut clone = session.clone();
    clone.dispatch(Knock { times: 3 }).unwrap();
    assert_eq!((clone.id(), deeds(&clone), deeds(&session)), (session.id(), vec![1, 3], vec![1]));
    assert_eq!(clone.policy_of::<Note>(), SlicePolicy::Log);
    let (mine, theirs) = (session.snapshot().id(), clone.snapshot().id());
    assert_ne!(mine, theirs, "they share one stream of ids");
}

#[test]
fn a_fork_is_a_child_with_ids_of_its_own() {
    let mut session = one_of_each();
    session.set_tag("colour", "red");
    session.set_tag("colour", "blue");
    let mut fork = session.fork(session_id(2));
    session.add_child(fork.id());
    session.add_child(fork.id());
    fork.append(Deed(2)).unwrap();
    assert_eq!((deeds(&fork), deeds(&session)), (vec![1, 2], vec![1]));
    assert_eq!((fork.id(), fork.info().parent), (session_id(2), Some(session_id(1))));
    assert_eq!(fork.info().tags["colour"], "blue");
    assert_eq!((session.info().children.as_slice(), session.info().parent), (&[session_id(2)][..], None));
    assert_ne!(session.snapshot().id(), fork.snapshot().id());
}

#[test]
fn two_types_must_not_share_a_name() {
    #[derive(Debug, serde::Serialize, serde::Deserialize, backstitch_macros::Slice)]
    #[slice(name = "deed", crate = backstitch_core::__private)]
    struct Impostor(u32);
    let mut session = session();
    session.append(Deed(1)).unwrap();
    for error in [session.all::<Impostor>().unwrap_err(), session.append(Impostor(2)).unwrap_err()] {
        assert!(matches!(&error, SessionError::TypeClash { slice, .. } if slice == "deed"), "{error}");
    }
    assert_eq!(deeds(&session), [1]);
}

#[test]
fn a_journal_only_grows() {
    let mut session = session();
    session.seed::<Note>([]).unwrap();
    session.append(Line(1)).unwrap();
    session.register::<Line, Knock>(|_, _, _| Ok(SliceOp::Patch { remove: vec![0], append: vec![] }));
    let refused = [
        session.seed([Line(2)]).unwrap_err(),
        session.clear::<Line>().unwrap_err(),
        session.clear_where::<Line>(|_| true).unwrap_err(),
        session.dispatch(Knock { times: 1 }).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(&error, SessionError::JournalOnlyGrows { slice } if slice == "line"), "{error}");
    }
    session.register::<Line, Deed>(|_, deed, _| {
        Ok(SliceOp::Patch { remove: vec![], append: vec![Arc::new(Line(deed.0))] })
    });
    session.append(Deed(2)).unwrap();
    assert_eq!(items::<Line>(&session), [Line(1), Line(2)]);
}

#[test]
fn a_policy_can_be_overridden_for_a_session_and_holds_at_once() {
    let mut session = session();
    session.append(note(1, "before")).unwrap();
    assert_eq!(session.policy_of::<Note>(), SlicePolicy::State);
    session.set_policy::<Note>(SlicePolicy::Log);
    assert_eq!(session.slice_names().collect::<Vec<_>>(), [("note", SlicePolicy::Log)]);
    let snapshot = session.snapshot();
    session.append(note(2, "after")).unwrap();
    session.rollback(&snapshot).unwrap();
    assert_eq!(texts(&session), ["before", "after"]);

    session.set_policy::<Note>(SlicePolicy::Journal);
    assert!(matches!(session.clear::<Note>(), Err(SessionError::JournalOnlyGrows { .. })));
}
