//! A failure in the commit or in the changes of a call fails that call and no other.

use backstitch_core::view::CallStatus;
use backstitch_testkit::tool::{CallSpec, Measure, Reading, Seat};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// The holders of the seat.
fn seats(caller: &Caller) -> Vec<String> {
    let mut by = Vec::new();
    caller.inspect(&mut |session| {
        by = session.all::<Seat>().unwrap().iter().map(|seat| seat.by.clone()).collect();
    });
    by
}

/// An item that JSON cannot represent is refused when it is added: a handler that returns the error fails,
/// and a handler that ignores it succeeds.
pub(crate) fn an_item_that_cannot_be_stored_fails_where_it_is_added(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    let acts = |act| [Act::Append("more".into()), Act::Write("file.txt".into(), "changed".into()), act];
    assert_eq!(run(&caller, acts(Act::Unstorable), Outcome::Success).ending, CallConclusion::Failed);
    assert_unchanged(&before, &caller, "an item that cannot be stored");
    let told = caller.results().pop().unwrap().error_message.unwrap();
    assert!(told.contains("sample/measure") && told.contains("NaN"), "{told}");

    for outcome in [Outcome::Error, Outcome::Panic] {
        assert_eq!(run(&caller, acts(Act::TryUnstorable), outcome).ending, CallConclusion::Failed);
        assert_unchanged(&before, &caller, "a failing call that tried it");
    }
    assert_eq!(run(&caller, acts(Act::TryUnstorable), Outcome::Success).ending, CallConclusion::Succeeded);
    assert_eq!(file(&caller, "file.txt").as_deref(), Some("changed"));
    caller.inspect(&mut |session| {
        assert!(session.all::<Measure>().unwrap().is_empty() && session.all::<Reading>().unwrap().is_empty());
    });
}

/// Two calls of a turn claim the only seat: one of them gets it, and the other leaves only its error.
pub(crate) fn a_refusal_at_the_commit_fails_that_call_alone(kind: Kind) {
    for (claim, error) in [
        (Act::Claim as fn(String) -> Act, "invalid_value"),
        (Act::ClaimOrPanic as fn(String) -> Act, "panic"),
    ] {
        let caller = open(kind);
        prepare(&caller);
        // The call with files runs long enough for the other to be committed before it.
        let mut slow = vec![
            Act::Log("slow".into()),
            claim("slow".into()),
            Act::Append("slow".into()),
            Act::Write("file.txt".into(), "slow".into()),
        ];
        slow.extend(std::iter::repeat_n(Act::Yield, 2_000));
        let fast = [claim("fast".into()), Act::Append("fast".into())];
        let turn = vec![
            Script::new(slow, Outcome::Success).asked("act"),
            Script::new(fast, Outcome::Success).asked("think"),
        ];
        let ends = caller.turn(turn);
        let (won, lost) = match ends[0].ending {
            CallConclusion::Succeeded => (0, 1),
            _ => (1, 0),
        };
        assert_eq!(
            (ends[won].ending, ends[lost].ending),
            (CallConclusion::Succeeded, CallConclusion::Failed)
        );
        let winner = ["slow", "fast"][won];
        assert_eq!(seats(&caller), [winner]);
        assert_eq!(tasks(&caller), ["plan", "hem", winner]);
        let text = if won == 0 { "slow" } else { "original" };
        assert_eq!(file(&caller, "file.txt").as_deref(), Some(text));
        assert_eq!(remarks(&caller), ["slow"], "logs of a failed call are kept");
        let results = caller.results();
        let told = results.iter().find(|result| result.invocation_id == ends[lost].call_id).unwrap();
        // The handler itself may also have found the seat taken.
        let kinds = [error, "tool_failed"];
        assert!(told.is_error && kinds.contains(&told.error_type.as_deref().unwrap()), "{told:?}");
        assert_eq!(caller.status(ends[lost].call_id), (CallStatus::Failed, false));
    }
}

/// A random call: its tool, its acts, and its outcome.
fn call() -> impl Strategy<Value = (&'static str, Vec<Act>, Outcome)> {
    let act = prop_oneof![
        4 => Just(Act::Yield),
        2 => Just(Act::Claim(String::new())),
        2 => Just(Act::ClaimOrPanic(String::new())),
        1 => Just(Act::Unstorable),
        1 => Just(Act::TryUnstorable),
    ];
    let failures = vec![
        Outcome::Error,
        Outcome::Unsuccessful,
        Outcome::Validation,
        Outcome::Panic,
        Outcome::EventRefused,
        Outcome::EventPanics,
    ];
    let outcome = prop_oneof![3 => Just(Outcome::Success), 1 => select(failures)];
    (select(vec!["act", "think"]), vec(act, 0..8), outcome)
}

/// Calls may fail in their handler, in the events of their result, in encoding or when they are reduced
/// again, by an error or a panic, alone or concurrently. Each call ends, a failed call leaves no trace, and
/// the changes of successful calls are committed.
pub(crate) fn failures_of_any_kind_harm_no_sibling(kind: Kind) {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let turns = vec(vec(call(), 1..5), 1..4);
    let shown = TestRunner::new(config).run(&turns, |turns| {
        let caller = open(kind);
        let mut stands: Vec<String> = Vec::new();
        for (number, turn) in turns.iter().enumerate() {
            let mark = |index: usize| format!("mark-{number}-{index}");
            let asked: Vec<CallSpec> = turn
                .iter()
                .enumerate()
                .map(|(index, (tool, acts, outcome))| {
                    let mut all = vec![Act::Append(mark(index))];
                    if *tool == "act" {
                        all.push(Act::Write(mark(index), "x".into()));
                    }
                    all.extend(acts.iter().map(|act| match act {
                        Act::Claim(_) => Act::Claim(mark(index)),
                        Act::ClaimOrPanic(_) => Act::ClaimOrPanic(mark(index)),
                        other => other.clone(),
                    }));
                    Script::new(all, *outcome).asked(tool)
                })
                .collect();
            let told = caller.results().len();
            let ends = caller.turn(asked);
            prop_assert_eq!(caller.results().len(), told + turn.len(), "each call has a result: {:?}", turn);
            for (index, (end, (tool, acts, outcome))) in ends.iter().zip(turn).enumerate() {
                let succeeded = end.ending == CallConclusion::Succeeded;
                let status = if succeeded { CallStatus::Completed } else { CallStatus::Failed };
                prop_assert_eq!(caller.status(end.call_id), (status, false), "{:?}", turn);
                prop_assert!(
                    !succeeded || (*outcome == Outcome::Success && !acts.contains(&Act::Unstorable))
                );
                let claims = acts.iter().any(|act| matches!(act, Act::Claim(_) | Act::ClaimOrPanic(_)));
                let must_succeed =
                    *outcome == Outcome::Success && !acts.contains(&Act::Unstorable) && !claims;
                prop_assert!(succeeded || !must_succeed, "a sibling was harmed: {:?}", turn);
                if succeeded {
                    stands.push(mark(index));
                }
                if *tool == "act" {
                    let is_there = file(&caller, &mark(index)).is_some();
                    prop_assert_eq!(is_there, succeeded, "{}: {:?}", mark(index), turn);
                }
            }
            let mut found = tasks(&caller);
            found.sort();
            stands.sort();
            prop_assert_eq!(&found, &stands, "{:?}", turn);
            let seats = seats(&caller);
            prop_assert!(seats.len() <= 1 && seats.iter().all(|by| stands.contains(by)), "{:?}", seats);
        }
        Ok(())
    });
    if let Err(error) = shown {
        panic!("{error}");
    }
}
