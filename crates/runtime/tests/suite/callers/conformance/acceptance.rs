//! Guarantees about execution state.

use backstitch_core::execution::snapshots_equivalent;

use super::*;

/// A tool that writes files and state and then returns a failure changes neither.
pub(crate) fn a_failing_tool_changes_nothing(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    let acts = [Act::Write("file.txt".into(), "changed".into()), Act::Seed("another".into()), Act::Count(1)];
    assert_eq!(run(&caller, acts, Outcome::Unsuccessful).ending, CallConclusion::Failed);
    assert_eq!(file(&caller, "file.txt").as_deref(), Some("original"));
    assert_eq!(tasks(&caller), ["plan", "hem"]);
    assert_unchanged(&before, &caller, "a failing tool");
}

/// A call that requires sections to be opened counts as never made, for state, files, logs and transcript.
pub(crate) fn a_visibility_expansion_is_as_if_nothing_had_run(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let (before, told, logged) = (caller.state(), caller.results(), remarks(&caller));
    let acts = [
        Act::Write("file.txt".into(), "changed".into()),
        Act::Append("more".into()),
        Act::Log("on the way".into()),
        Act::Count(1),
    ];
    assert_eq!(run(&caller, acts, Outcome::Expansion).ending, CallConclusion::VisibilityExpansion);
    assert_unchanged(&before, &caller, "an expansion");
    assert_eq!(caller.results(), told, "the transcript does not change");
    assert_eq!(remarks(&caller), logged);
}

/// After several calls the state can be restored to before each of them.
pub(crate) fn state_goes_back_to_a_tool_boundary(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let mut calls = Vec::new();
    for name in ["a", "b", "c"] {
        let before = caller.state();
        let acts = [Act::Append(name.into()), Act::Extend("file.txt".into(), name.into()), Act::Count(1)];
        let ended = run(&caller, acts, Outcome::Success);
        assert_eq!(ended.ending, CallConclusion::Succeeded);
        calls.push((ended.call_id, before));
    }
    let failed = run(&caller, [Act::Append("d".into())], Outcome::Error);
    // A call without files changes none, and a rewind to it restores the files of that time.
    let thought = caller.turn(vec![Script::new([Act::Append("e".into())], Outcome::Success).asked("think")]);
    let before_thought = caller.state();
    run(&caller, [Act::Write("file.txt".into(), "late".into())], Outcome::Success);
    caller.rewind_before(thought[0].call_id).unwrap();
    assert_eq!(file(&caller, "file.txt").as_deref(), Some("originalabc"));
    assert!(!snapshots_equivalent(&before_thought, &caller.state()).unwrap(), "it is the state before it");
    caller.rewind_before(failed.call_id).unwrap();

    let (call_b, before_b) = &calls[1];
    caller.rewind_before(*call_b).unwrap();
    assert_eq!(tasks(&caller), ["plan", "hem", "a"]);
    assert_eq!(file(&caller, "file.txt").as_deref(), Some("originala"));
    assert_unchanged(before_b, &caller, "a rewind");
    let (call_a, before_a) = &calls[0];
    caller.rewind_before(*call_a).unwrap();
    assert_unchanged(before_a, &caller, "a second rewind");
    let nobody = "01890a5d-ac96-774b-bcce-0123456789ab".parse().unwrap();
    assert!(caller.rewind_before(nobody).is_err());
    assert_unchanged(before_a, &caller, "a rewind to an unknown call");
    // The next call starts from that state.
    assert_eq!(run(&caller, [Act::Append("f".into())], Outcome::Success).ending, CallConclusion::Succeeded);
    assert_eq!(tasks(&caller), ["plan", "hem", "f"]);
}

/// The same calls have the same effects and results with both callers.
pub(crate) fn parity(one: Kind, other: Kind) {
    let (one, other) = (open(one), open(other));
    let write = |text: &str| Act::Write("file.txt".into(), text.into());
    let turns = [
        vec![Script::new([Act::Append("a".into()), write("1"), Act::Count(1)], Outcome::Success)],
        vec![Script::new([Act::Append("b".into()), write("2"), Act::Count(2)], Outcome::Error)],
        vec![
            Script::new([Act::Append("c".into()), Act::Fill("many".into(), 20)], Outcome::Success),
            Script::new([Act::Delete("many".into()), Act::Clear], Outcome::Panic),
            Script::new(
                [Act::Delete("many/7".into()), Act::Append("d".into()), Act::Count(3)],
                Outcome::Success,
            ),
        ],
        vec![Script::new([Act::Seed("e".into()), write("3")], Outcome::Expansion)],
        vec![Script::new([Act::ClearWhere("c".into()), Act::Log("so far".into())], Outcome::Success)],
        vec![Script::new([Act::Clear, write("4")], Outcome::Hang)],
        vec![Script::new([Act::Append("f".into()), write("5")], Outcome::Validation)],
    ];
    for turn in turns {
        let asked = || turn.iter().map(|script| script.asked("act")).collect::<Vec<_>>();
        let endings = |ends: Vec<CallReport>| ends.into_iter().map(|end| end.ending).collect::<Vec<_>>();
        assert_eq!(endings(one.turn(asked())), endings(other.turn(asked())), "{turn:?}");
        assert!(snapshots_equivalent(&one.state(), &other.state()).unwrap(), "after {turn:?}");
        assert_eq!(remarks(&one), remarks(&other));
    }
    let told = |caller: &Caller| {
        let results = caller.results().into_iter();
        let told =
            results.map(|result| (result.is_error, result.error_type, result.error_message, result.result));
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(&one), told(&other), "models see the same results");
}
