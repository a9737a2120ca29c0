//! Random turns, compared with a plain model.
//!
//! Calls of one turn run concurrently, but their effects are serializable: calls that use files in the order
//! of the calls, all of them in the order in which their results were recorded.

use std::collections::BTreeMap;

use backstitch_testkit::tool::CallSpec;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Calls that use files wait for each other, so each sees the writes of earlier ones.
pub(crate) fn calls_of_a_turn_see_files_in_their_order(kind: Kind) {
    let caller = open(kind);
    let extend = |text: &str, outcome| {
        Script::new([Act::Yield, Act::Extend("file.txt".into(), text.into())], outcome).asked("act")
    };
    let turn = vec![
        extend("1", Outcome::Success),
        extend("2", Outcome::Success),
        extend("lost", Outcome::Error),
        extend("3", Outcome::Success),
    ];
    let ends = caller.turn(turn);
    assert_eq!(ends[2].ending, CallConclusion::Failed);
    assert_eq!(file(&caller, "file.txt").as_deref(), Some("123"));
}

/// Calls that use resources wait for each other, and failed ones leave no trace.
pub(crate) fn calls_of_a_turn_change_resources_in_their_order(kind: Kind) {
    let caller = open(kind);
    let count =
        |by, tool, outcome| Script::new([Act::Yield, Act::Count(by), Act::Yield], outcome).asked(tool);
    let ends = caller.turn(vec![
        count(1, "act", Outcome::Success),
        count(100, "count", Outcome::Error),
        count(2, "count", Outcome::Success),
        count(200, "act", Outcome::Panic),
        count(3, "act", Outcome::Success),
    ]);
    let failed: Vec<_> = ends.iter().map(|end| end.ending == CallConclusion::Failed).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    assert_eq!(number(&caller), (3 + 2) * 3 + 3, "1, 2 and 3 in this order");
}

/// The expected state of a session.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    tasks: Vec<String>,
    remarks: Vec<String>,
    files: BTreeMap<String, String>,
    number: u64,
}

impl Model {
    fn take(&mut self, script: &Script, ending: CallConclusion) {
        let mut after = self.clone();
        for act in &script.acts {
            after.perform(act);
        }
        match ending {
            CallConclusion::Succeeded => *self = after,
            CallConclusion::Failed => self.remarks = after.remarks,
            CallConclusion::VisibilityExpansion => {}
        }
    }

    fn perform(&mut self, act: &Act) {
        match act {
            Act::Append(key) => self.tasks.push(key.clone()),
            Act::Seed(key) => self.tasks = vec![key.clone()],
            Act::Clear => self.tasks.clear(),
            Act::ClearWhere(key) => self.tasks.retain(|task| task != key),
            Act::Log(text) => self.remarks.push(text.clone()),
            Act::Write(path, text) => drop(self.files.insert(path.clone(), text.clone())),
            Act::Extend(path, text) => self.files.entry(path.clone()).or_default().push_str(text),
            Act::Delete(path) => drop(self.files.remove(path)),
            Act::Count(by) => self.number = self.number.wrapping_mul(3).wrapping_add(*by),
            Act::Fill(..) | Act::Yield | Act::TryUnstorable => {}
            Act::Claim(_) | Act::ClaimOrPanic(_) | Act::Unstorable => {
                unreachable!("these turns do not have it")
            }
        }
    }
}

fn key() -> impl Strategy<Value = String> {
    select(vec!["hem", "seam", "dart"]).prop_map(str::to_owned)
}

fn thought() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => key().prop_map(Act::Append),
        1 => key().prop_map(Act::Seed),
        1 => Just(Act::Clear),
        1 => key().prop_map(Act::ClearWhere),
        1 => key().prop_map(Act::Log),
        2 => Just(Act::Yield),
    ]
}

fn deed() -> impl Strategy<Value = Act> {
    let path = || select(vec!["a", "d/b", "d/c"]).prop_map(str::to_owned);
    prop_oneof![
        3 => thought(),
        2 => (path(), key()).prop_map(|(path, text)| Act::Write(path, text)),
        2 => (path(), key()).prop_map(|(path, text)| Act::Extend(path, text)),
        1 => path().prop_map(Act::Delete),
        2 => (1..9u64).prop_map(Act::Count),
    ]
}

fn counting() -> impl Strategy<Value = Act> {
    prop_oneof![3 => thought(), 2 => (1..9u64).prop_map(Act::Count)]
}

/// A random call: its tool and its script.
fn call() -> impl Strategy<Value = (&'static str, Script)> {
    let outcome = || {
        prop_oneof![
            6 => Just(Outcome::Success),
            3 => select(vec![Outcome::Error, Outcome::Unsuccessful, Outcome::Panic, Outcome::Validation]),
            1 => Just(Outcome::Expansion),
        ]
    };
    prop_oneof![
        (vec(deed(), 0..6), outcome()).prop_map(|(acts, outcome)| ("act", Script::new(acts, outcome))),
        (vec(counting(), 0..6), outcome()).prop_map(|(acts, outcome)| ("count", Script::new(acts, outcome))),
        (vec(thought(), 0..6), outcome()).prop_map(|(acts, outcome)| ("think", Script::new(acts, outcome))),
    ]
}

/// Random turns of one or several calls leave the same state as in the model.
pub(crate) fn random_turns_do_as_the_model_does(kind: Kind) {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let turns = vec(vec(call(), 1..5), 1..6);
    let shown = TestRunner::new(config).run(&turns, |turns| {
        let caller = open(kind);
        let mut model = Model::default();
        for turn in turns {
            let told = caller.results().len();
            let asked: Vec<CallSpec> = turn.iter().map(|(tool, script)| script.asked(tool)).collect();
            let ends = caller.turn(asked);
            let ending_of = |index: usize| ends[index].ending;
            // In the order of the records. Calls without a result have changed nothing.
            for result in &caller.results()[told..] {
                let index = ends.iter().position(|end| end.call_id == result.invocation_id).unwrap();
                let may_succeed = turn[index].1.outcome == Outcome::Success;
                let conflicted = result.error_type.as_deref() == Some("conflict");
                prop_assert_eq!(ending_of(index) == CallConclusion::Succeeded, may_succeed && !conflicted);
                model.take(&turn[index].1, ending_of(index));
            }
            for (index, (_, script)) in turn.iter().enumerate() {
                let expands = script.outcome == Outcome::Expansion;
                prop_assert_eq!(ending_of(index) == CallConclusion::VisibilityExpansion, expands);
            }
            prop_assert_eq!(&tasks(&caller), &model.tasks, "{:?}", turn);
            prop_assert_eq!(&remarks(&caller), &model.remarks, "{:?}", turn);
            prop_assert_eq!(number(&caller), model.number, "{:?}", turn);
            for path in ["a", "d/b", "d/c"] {
                prop_assert_eq!(file(&caller, path), model.files.get(path).cloned(), "{}: {:?}", path, turn);
            }
        }
        Ok(())
    });
    if let Err(error) = shown {
        panic!("{error}");
    }
}
