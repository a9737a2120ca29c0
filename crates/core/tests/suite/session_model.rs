//! A session compared with a reference model, the rules of `session_rules`.
//!
//! Random interleavings of dispatches, drafts, snapshots, rollbacks, rewinds, restores and forks are applied
//! to both. After each step the session must equal the model: logs are kept, state is restored, only rewinds
//! cut a transcript, refused operations change nothing, and no id occurs twice.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::{IdStream, MessageId, SnapshotId};
use backstitch_core::session::{
    CaptureOptions, Draft, Session, SessionError, SliceOp, Snapshot, SnapshotMismatchError, upsert_by,
};
use backstitch_core::time::FixedClock;
use proptest::prelude::*;

use crate::samples::{Deed, Knock, Line, Note, Total, items, note};
use crate::session_rules::{Act, Done, Model, ModelDraft, ModelSnapshot, Refused, Slices};

#[derive(Debug, Clone)]
enum Step {
    Do(Act),
    Open,
    InDraft(usize, Act),
    Commit(usize),
    KeepLogs(usize),
    Drop(usize),
    Snapshot { all: bool },
    ThroughJson(usize),
    Rollback(usize),
    RollbackWithLogs(usize),
    Rewind(usize),
    RestoreIntoFresh { snapshot: usize, logs: bool },
    Fork,
}

/// A real session and its model.
struct Both {
    session: Session,
    drafts: Vec<(Draft, ModelDraft)>,
    snapshots: Vec<(Snapshot, ModelSnapshot)>,
    model: Model,
    names: IdStream,
    ids: HashSet<MessageId>,
}

fn register(session: &mut Session) {
    session.register_slice::<Deed>().register_slice::<Total>().register_slice::<Line>();
    session.register::<Note, Note>(upsert_by(|note: &Note| note.key % 10));
    session.register::<Note, Knock>(|_, knock, context| {
        let lines = context.session.all::<Line>()?.len() as u32;
        if knock.times == 0 && lines % 2 == 1 {
            Err("an odd conversation".into())
        } else {
            Ok(SliceOp::append(note(100 * knock.times + lines, "")))
        }
    });
    session.register::<Deed, Knock>(|_, _, context| {
        Ok(SliceOp::append(Deed(context.session.all::<Note>()?.len() as u32)))
    });
}

const UNKNOWN: &str = r#"[{"name":"of/tomorrow","version":9,"policy":"state","items":[{"z":1,"a":2}]}]"#;

impl Both {
    fn new() -> Self {
        let names = IdStream::from_seed([3; 32], Arc::new(FixedClock::default()));
        let mut session = Session::new(names.next(), names.clock().clone());
        register(&mut session);
        // A slice of an unknown type is present from the beginning, and must still be present at the end.
        let text = session
            .snapshot()
            .to_json()
            .unwrap()
            .replace(r#""slices":[]"#, &format!(r#""slices":{UNKNOWN}"#));
        session.rollback(&Snapshot::from_json(&text).unwrap()).unwrap();
        let (drafts, snapshots) = (Vec::new(), Vec::new());
        Self { session, drafts, snapshots, model: Model::default(), names, ids: HashSet::new() }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Do(act) => {
                let real = act_on_session(&mut self.session, act);
                let wanted = self.model.atomically(|slices| Model::act(slices, act).map(drop));
                assert_eq!(real.map_err(refused), wanted);
            }
            Step::Open => {
                let model = ModelDraft {
                    base: self.model.slices.clone(),
                    slices: self.model.slices.clone(),
                    done: Vec::new(),
                };
                self.drafts.push((self.session.draft(), model));
            }
            Step::InDraft(index, act) => {
                let Some((draft, model)) = pick(&mut self.drafts, *index) else { return };
                let real = act_on_draft(draft, act);
                let notes_before = model.slices.notes.clone();
                let mut slices = model.slices.clone();
                let wanted = Model::act(&mut slices, act).map(|logged| {
                    model.slices = slices;
                    model.done.push(Done { act: act.clone(), notes_before, logged });
                });
                assert_eq!(real.map_err(refused), wanted);
                assert_holds(draft, &model.slices);
            }
            Step::Commit(index) => {
                let Some((draft, model)) = take(&mut self.drafts, *index) else { return };
                let real = self.session.commit(draft).map(drop);
                assert_eq!(real.map_err(refused), self.model.commit(&model));
            }
            Step::KeepLogs(index) => {
                let Some((draft, model)) = take(&mut self.drafts, *index) else { return };
                let prepared = self.session.prepare_logs(&draft).unwrap();
                self.session.apply(prepared).unwrap();
                self.model.slices.deeds.extend(model.done.iter().flat_map(|done| &done.logged));
            }
            Step::Drop(index) => drop(take(&mut self.drafts, *index)),
            Step::Snapshot { all } => {
                let capture = if *all { CaptureOptions::include_all() } else { CaptureOptions::default() };
                let slices = self.model.slices.clone();
                let model = ModelSnapshot { slices, all: *all };
                self.snapshots.push((self.session.snapshot_with(capture), model));
            }
            Step::ThroughJson(index) => {
                if let Some((snapshot, _)) = pick(&mut self.snapshots, *index) {
                    *snapshot = Snapshot::from_json(&snapshot.to_json().unwrap()).unwrap();
                }
            }
            Step::Rollback(index) => self.go_back(*index, Session::rollback, false, false),
            Step::RollbackWithLogs(index) => self.go_back(*index, Session::rollback_with_logs, true, false),
            Step::Rewind(index) => self.go_back(*index, Session::rewind_to, false, true),
            Step::RestoreIntoFresh { snapshot, logs } => {
                let Some((snapshot, model)) = pick(&mut self.snapshots, *snapshot) else { return };
                let text = snapshot.to_json().unwrap();
                self.session = Session::new(self.names.next(), self.names.clock().clone());
                self.drafts.clear();
                let model = model.clone();
                let snapshot = Snapshot::from_json(&text).unwrap();
                let logs = *logs && model.all;
                if logs {
                    self.session.rollback_with_logs(&snapshot).unwrap();
                } else {
                    self.session.rollback(&snapshot).unwrap();
                }
                // Registered only now, to show that a restore needs no registration.
                register(&mut self.session);
                self.model.slices = Slices::default();
                self.model.go_back(&model, logs, false).unwrap();
            }
            Step::Fork => {
                let id = self.names.next();
                self.session.add_child(id);
                self.session = self.session.fork(id);
            }
        }
        assert_holds(&self.session, &self.model.slices);
        assert!(self.ids.insert(self.session.ids().next()), "an id occurs twice");
    }

    fn go_back(
        &mut self,
        index: usize,
        go_back: fn(&mut Session, &Snapshot) -> Result<(), SnapshotMismatchError>,
        logs: bool,
        rewind: bool,
    ) {
        let Some((snapshot, model)) = pick(&mut self.snapshots, index) else { return };
        let real = go_back(&mut self.session, snapshot);
        let wanted = self.model.go_back(model, logs, rewind);
        assert_eq!(real.map_err(|_| Refused::Mismatch), wanted);
    }

    fn finish(mut self) {
        let last: serde_json::Value =
            serde_json::from_str(&self.session.snapshot().to_json().unwrap()).unwrap();
        let unknown = last["slices"].as_array().unwrap().iter().find(|slice| slice["name"] == "of/tomorrow");
        let wanted: serde_json::Value = serde_json::from_str(UNKNOWN).unwrap();
        assert_eq!(unknown, wanted.get(0));
        let mut ids: HashSet<SnapshotId> = HashSet::new();
        self.snapshots.retain(|(snapshot, _)| !ids.insert(snapshot.id()));
        assert!(self.snapshots.is_empty(), "two snapshots have one id");
    }
}

fn pick<T>(list: &mut [T], index: usize) -> Option<&mut T> {
    let length = list.len();
    list.get_mut(index.checked_rem(length)?)
}

fn take<T>(list: &mut Vec<T>, index: usize) -> Option<T> {
    let index = index.checked_rem(list.len())?;
    Some(list.remove(index))
}

fn act_on_session(session: &mut Session, act: &Act) -> Result<(), SessionError> {
    match act.clone() {
        Act::Note(key) => session.append(note(key, "")),
        Act::Deed(number) => session.append(Deed(number)),
        Act::Total(number) => session.append(Total(number)),
        Act::Line(number) => session.append(Line(number)),
        Act::Knock(times) => session.dispatch(Knock { times }),
        Act::SeedNotes(keys) => session.seed(keys.into_iter().map(|key| note(key, ""))),
        Act::ClearNotes => session.clear::<Note>(),
        Act::ClearNotesWhere(modulus) => session.clear_where::<Note>(|note| note.key % modulus == 0),
        Act::ClearLines => session.clear::<Line>(),
    }
    .map(drop)
}

fn act_on_draft(draft: &mut Draft, act: &Act) -> Result<(), SessionError> {
    match act.clone() {
        Act::Note(key) => draft.append(note(key, "")),
        Act::Deed(number) => draft.append(Deed(number)),
        Act::Total(number) => draft.append(Total(number)),
        Act::Line(number) => draft.append(Line(number)),
        Act::Knock(times) => draft.dispatch(Knock { times }),
        Act::SeedNotes(keys) => draft.seed(keys.into_iter().map(|key| note(key, ""))),
        Act::ClearNotes => draft.clear::<Note>(),
        Act::ClearNotesWhere(modulus) => draft.clear_where::<Note>(|note| note.key % modulus == 0),
        Act::ClearLines => draft.clear::<Line>(),
    }
    .map(|_| ())
}

fn refused(error: SessionError) -> Refused {
    match error {
        SessionError::Reducer { .. } => Refused::Reducer,
        SessionError::JournalOnlyGrows { .. } => Refused::JournalOnlyGrows,
        SessionError::Conflict { .. } => Refused::Conflict,
        other => panic!("the model knows no such refusal: {other}"),
    }
}

#[track_caller]
fn assert_holds(session: &Session, model: &Slices) {
    let notes: Vec<_> = items::<Note>(session).into_iter().map(|note| note.key).collect();
    let deeds: Vec<_> = items::<Deed>(session).into_iter().map(|deed| deed.0).collect();
    let totals: Vec<_> = items::<Total>(session).into_iter().map(|total| total.0).collect();
    let lines: Vec<_> = items::<Line>(session).into_iter().map(|line| line.0).collect();
    assert_eq!(
        [&notes, &deeds, &totals, &lines],
        [&model.notes, &model.deeds, &model.totals, &model.lines],
        "notes, deeds, totals and lines, in the session and in the model"
    );
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0u32..20).prop_map(Act::Note),
        2 => (0u32..5).prop_map(Act::Deed),
        1 => (0u32..5).prop_map(Act::Total),
        3 => (0u32..3).prop_map(Act::Line),
        3 => (0u32..3).prop_map(Act::Knock),
        1 => prop::collection::vec(0u32..20, 0..4).prop_map(Act::SeedNotes),
        1 => Just(Act::ClearNotes),
        2 => (1u32..4).prop_map(Act::ClearNotesWhere),
        1 => Just(Act::ClearLines),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = || 0usize..8;
    prop_oneof![
        8 => act().prop_map(Step::Do),
        4 => Just(Step::Open),
        8 => (index(), act()).prop_map(|(index, act)| Step::InDraft(index, act)),
        4 => index().prop_map(Step::Commit),
        1 => index().prop_map(Step::KeepLogs),
        1 => index().prop_map(Step::Drop),
        4 => any::<bool>().prop_map(|all| Step::Snapshot { all }),
        1 => index().prop_map(Step::ThroughJson),
        3 => index().prop_map(Step::Rollback),
        1 => index().prop_map(Step::RollbackWithLogs),
        2 => index().prop_map(Step::Rewind),
        1 => (index(), any::<bool>())
            .prop_map(|(snapshot, logs)| Step::RestoreIntoFresh { snapshot, logs }),
        1 => Just(Step::Fork),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_does_what_the_model_says(steps in prop::collection::vec(step(), 1..80)) {
        let mut both = Both::new();
        for step in &steps {
            both.step(step);
        }
        both.finish();
    }
}
