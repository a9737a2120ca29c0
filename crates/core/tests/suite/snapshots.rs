//! Snapshots: their content, and how they are restored.

use std::collections::BTreeSet;

use backstitch_core::session::{
    CaptureOptions, Session, SessionError, Slice, SlicePolicy, Snapshot, SnapshotMismatchError,
};

use crate::samples::{Deed, Line, Note, Total, clock, items, note, one_of_each, session, session_id, values};

/// The numbers of the items in the slice of each policy: State, Log, Cache, Journal.
type Contents = [Vec<u32>; 4];

fn contents(session: &Session) -> Contents {
    [
        items::<Note>(session).into_iter().map(|note| note.key).collect(),
        items::<Deed>(session).into_iter().map(|deed| deed.0).collect(),
        items::<Total>(session).into_iter().map(|total| total.0).collect(),
        items::<Line>(session).into_iter().map(|line| line.0).collect(),
    ]
}

/// Appends an item to each slice.
fn append_to_each(session: &mut Session, number: u32) {
    session.append(note(number, "more")).unwrap();
    session.append(Deed(number)).unwrap();
    session.append(Total(number)).unwrap();
    session.append(Line(number)).unwrap();
}

fn fresh() -> Session {
    Session::new(session_id(2), clock())
}

fn through_json(snapshot: &Snapshot) -> Snapshot {
    Snapshot::from_json(&snapshot.to_json().unwrap()).unwrap()
}

#[test]
fn a_default_snapshot_captures_state_and_journal() {
    let snapshot = one_of_each().snapshot();
    assert_eq!(*snapshot.captured(), BTreeSet::from([SlicePolicy::State, SlicePolicy::Journal]));
    for snapshot in [through_json(&snapshot), snapshot] {
        assert_eq!(values(&snapshot.all::<Note>().unwrap()), [note(1, "one")]);
        assert_eq!(values(&snapshot.all::<Line>().unwrap()), [Line(1)]);
        assert!(snapshot.all::<Deed>().unwrap().is_empty());
        assert!(snapshot.all::<Total>().unwrap().is_empty());
        let policies: BTreeSet<_> = snapshot.policies().collect();
        let wanted = [Note::POLICY, Deed::POLICY, Total::POLICY, Line::POLICY];
        let wanted = ["note", "deed", "total", "line"].into_iter().zip(wanted).collect();
        assert_eq!(policies, wanted, "it knows the policies of all");
    }
}

#[test]
fn a_snapshot_can_capture_more_or_less() {
    let session = one_of_each();
    let all = through_json(&session.snapshot_with(CaptureOptions::include_all()));
    assert_eq!(values(&all.all::<Deed>().unwrap()), [Deed(1)]);
    assert_eq!(values(&all.all::<Total>().unwrap()), [Total(1)]);
    let logs = through_json(&session.snapshot_with(CaptureOptions::policies([SlicePolicy::Log])));
    assert_eq!(values(&logs.all::<Deed>().unwrap()), [Deed(1)]);
    assert!(logs.all::<Note>().unwrap().is_empty());
}

#[test]
fn a_snapshot_does_not_change_with_its_session() {
    let mut session = one_of_each();
    let snapshot = session.snapshot_with(CaptureOptions::default().tag("why", "before the call"));
    let text = snapshot.to_json().unwrap();
    append_to_each(&mut session, 2);
    session.set_tag("name", "other");
    session.add_child(session_id(3));
    assert_eq!(snapshot.to_json().unwrap(), text);
    assert_eq!(snapshot.tags()["why"], "before the call");
    assert_eq!((snapshot.session().id, snapshot.session().children.len()), (session_id(1), 0));
    assert_ne!(snapshot.id(), session.snapshot().id());
}

#[test]
fn the_digest_of_a_snapshot_is_that_of_its_content() {
    let mut session = one_of_each();
    let digest = |session: &Session| session.snapshot().content_digest().unwrap();
    let before = digest(&session);
    assert_eq!(digest(&session), before, "ids and times do not count");
    assert_eq!(through_json(&session.snapshot()).content_digest().unwrap(), before);
    session.append(Deed(2)).unwrap();
    assert_eq!(digest(&session), before, "what is not captured does not count");
    session.append(note(2, "b")).unwrap();
    assert_ne!(digest(&session), before);
    session.clear_where::<Note>(|note| note.key == 2).unwrap();
    assert_eq!(digest(&session), before);
}

/// The table of `session/rollback.rs`, row by row: the content after a rollback or rewind, by policy.
#[test]
fn what_going_back_does_to_each_policy() {
    type GoBack = fn(&mut Session, &Snapshot) -> Result<(), SnapshotMismatchError>;
    let (old, kept, none) = (vec![1], vec![1, 2], Vec::new());
    let rows: [(&str, CaptureOptions, GoBack, Contents); 6] = [
        // State, Log, Cache, Journal
        (
            "rollback",
            CaptureOptions::default(),
            Session::rollback,
            [old.clone(), kept.clone(), none.clone(), kept.clone()],
        ),
        (
            "rollback",
            CaptureOptions::include_all(),
            Session::rollback,
            [old.clone(), kept.clone(), old.clone(), kept.clone()],
        ),
        (
            "rollback_with_logs",
            CaptureOptions::include_all(),
            Session::rollback_with_logs,
            [old.clone(), old.clone(), old.clone(), kept.clone()],
        ),
        (
            "rollback_with_logs",
            CaptureOptions::policies([SlicePolicy::State, SlicePolicy::Log]),
            Session::rollback_with_logs,
            [old.clone(), old.clone(), none.clone(), kept.clone()],
        ),
        (
            "rewind_to",
            CaptureOptions::default(),
            Session::rewind_to,
            [old.clone(), kept.clone(), none.clone(), old.clone()],
        ),
        (
            "rewind_to",
            CaptureOptions::include_all(),
            Session::rewind_to,
            [old.clone(), kept.clone(), old.clone(), old.clone()],
        ),
    ];
    for (name, capture, go_back, wanted) in rows {
        for json in [false, true] {
            let mut session = one_of_each();
            let snapshot = session.snapshot_with(capture.clone());
            let snapshot = if json { through_json(&snapshot) } else { snapshot };
            append_to_each(&mut session, 2);
            go_back(&mut session, &snapshot).unwrap();
            assert_eq!(contents(&session), wanted, "{name} of {capture:?}, through JSON: {json}");
        }
    }
}

#[test]
fn slices_that_came_after_the_snapshot_go_or_stay_by_their_policy() {
    for json in [false, true] {
        let mut session = session();
        let snapshot = session.snapshot();
        let snapshot = if json { through_json(&snapshot) } else { snapshot };
        append_to_each(&mut session, 1);
        session.rollback(&snapshot).unwrap();
        assert_eq!(contents(&session), [vec![], vec![1], vec![], vec![1]]);
        session.rewind_to(&snapshot).unwrap();
        assert_eq!(contents(&session), [vec![], vec![1], vec![], vec![]]);
    }
}

#[test]
fn a_fresh_session_takes_over_what_the_snapshot_holds() {
    let snapshot = through_json(&one_of_each().snapshot_with(CaptureOptions::include_all()));
    let mut session = fresh();
    session.rollback(&snapshot).unwrap();
    assert_eq!(contents(&session), [vec![1], vec![], vec![1], vec![1]], "the logs of a session are its own");
    let mut session = fresh();
    session.rollback_with_logs(&snapshot).unwrap();
    assert_eq!(contents(&session), [vec![1], vec![1], vec![1], vec![1]]);
    append_to_each(&mut session, 2);
    assert_eq!(contents(&session)[3], [1, 2]);
}

#[test]
fn the_policy_in_the_snapshot_holds() {
    let mut session = session();
    session.append(note(1, "one")).unwrap();
    let snapshot = session.snapshot();
    session.set_policy::<Note>(SlicePolicy::Log).append(note(2, "two")).unwrap();
    session.rollback(&snapshot).unwrap();
    assert_eq!(items::<Note>(&session), [note(1, "one")]);
}

#[test]
fn what_would_lose_something_is_refused_and_changes_nothing() {
    let mut session = one_of_each();
    let take =
        |policies: &[SlicePolicy]| session.snapshot_with(CaptureOptions::policies(policies.iter().copied()));
    let (logs, state, default) = (
        take(&[SlicePolicy::Log]),
        take(&[SlicePolicy::State]),
        take(&[SlicePolicy::State, SlicePolicy::Journal]),
    );
    append_to_each(&mut session, 2);
    let before = contents(&session);

    assert!(matches!(session.rollback(&logs), Err(SnapshotMismatchError::WithoutState)));
    assert!(matches!(session.rollback_with_logs(&default), Err(SnapshotMismatchError::WouldWipeLogs)));
    assert!(matches!(session.rewind_to(&state), Err(SnapshotMismatchError::WithoutJournal)));
    assert_eq!(contents(&session), before);
    session.rollback(&state).expect("without a journal, it is kept");
    assert_eq!(contents(&session)[3], [1, 2]);
}

#[test]
fn a_snapshot_of_another_conversation_is_refused() {
    let other = |lines: &[u32]| {
        let mut session = fresh();
        session.append(note(9, "theirs")).unwrap();
        lines.iter().for_each(|line| drop(session.append(Line(*line)).unwrap()));
        session.snapshot()
    };
    let mut session = session();
    [1, 2, 3].into_iter().for_each(|line| drop(session.append(Line(line)).unwrap()));
    for lines in [&[1, 9][..], &[9, 2], &[9, 2, 3], &[1, 2, 3, 4], &[1, 9, 3, 4]] {
        for snapshot in [other(lines), through_json(&other(lines))] {
            let error = session.rollback(&snapshot).unwrap_err();
            assert!(
                matches!(&error, SnapshotMismatchError::OtherTranscript { slice } if slice == "line"),
                "{error}"
            );
            let rewound = session.clone().rewind_to(&snapshot);
            assert_eq!(rewound.is_ok(), lines == [1, 2, 3, 4], "a rewind may also be undone: {lines:?}");
        }
    }
    assert_eq!(contents(&session), [vec![], vec![], vec![], vec![1, 2, 3]]);
    session.rollback(&other(&[1, 2])).expect("the beginning of this one");
    assert_eq!(contents(&session), [vec![9], vec![], vec![], vec![1, 2, 3]]);
}

#[test]
fn a_rewind_can_be_undone_until_something_else_is_said() {
    let mut session = one_of_each();
    let early = session.snapshot();
    append_to_each(&mut session, 2);
    let late = session.snapshot();
    session.rewind_to(&early).unwrap();
    assert!(matches!(session.rollback(&late), Err(SnapshotMismatchError::OtherTranscript { .. })));
    session.rewind_to(&late).unwrap();
    assert_eq!(contents(&session)[3], [1, 2]);
    session.rewind_to(&early).unwrap();
    session.append(Line(3)).unwrap();
    assert!(matches!(session.rewind_to(&late), Err(SnapshotMismatchError::OtherTranscript { .. })));
    assert_eq!(contents(&session)[3], [1, 3]);
}

#[test]
fn what_does_not_parse_is_refused_where_its_type_is_known() {
    let text = one_of_each().snapshot().to_json().unwrap().replace(r#""text":"one""#, r#""txt":"one""#);
    let snapshot = Snapshot::from_json(&text).unwrap();
    let refused = |session: &mut Session| {
        let error = session.rollback(&snapshot).unwrap_err();
        let SnapshotMismatchError::Slice { slice, source } = &error else { panic!("{error}") };
        assert!(slice == "note" && matches!(**source, SessionError::Decode { .. }), "{error}");
    };
    refused(fresh().register_slice::<Note>());
    let mut used = one_of_each();
    refused(&mut used);
    assert_eq!(contents(&used), [vec![1], vec![1], vec![1], vec![1]]);

    let mut unaware = fresh();
    unaware.rollback(&snapshot).expect("the type is not registered");
    assert!(matches!(unaware.all::<Note>(), Err(SessionError::Decode { .. })));
    assert!(unaware.append(note(2, "b")).is_err(), "and nothing is overwritten");
    assert!(unaware.snapshot().to_json().unwrap().contains(r#""txt":"one""#));
}

#[test]
fn logs_that_do_not_parse_do_not_stand_in_the_way_of_a_rollback() {
    let session = one_of_each();
    let text = session.snapshot_with(CaptureOptions::include_all()).to_json().unwrap();
    let text = text.replace(r#""policy":"log","items":[1]"#, r#""policy":"log","items":["one"]"#);
    let mut resumed = fresh();
    resumed.rollback_with_logs(&Snapshot::from_json(&text).unwrap()).unwrap();
    resumed.register_slice::<Deed>();
    let snapshot = resumed.snapshot();
    resumed.append(note(2, "b")).unwrap();
    resumed.rollback(&snapshot).unwrap();
    assert_eq!(items::<Note>(&resumed), [note(1, "one")]);
    assert!(matches!(resumed.all::<Deed>(), Err(SessionError::Decode { .. })), "they are kept as they are");
}
