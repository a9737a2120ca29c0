//! Every failure restores state, files and resources, and adds one error to the transcript.

use backstitch_testkit::tool::CallSpec;
use serde_json::json;

use super::*;

/// The changes that a call makes before it fails.
fn mischief() -> Vec<(&'static str, Vec<Act>)> {
    let change = || [Act::Append("more".into()), Act::ClearWhere("hem".into()), Act::Count(5)];
    let with = |acts: &[Act]| change().into_iter().chain(acts.iter().cloned()).collect();
    vec![
        ("nothing", vec![]),
        ("state alone", with(&[])),
        ("all tasks dropped", vec![Act::Clear]),
        ("a resource alone", vec![Act::Count(1), Act::Yield, Act::Count(2)]),
        ("a file changed", with(&[Act::Write("file.txt".into(), "changed".into())])),
        ("a file appended to", with(&[Act::Extend("file.txt".into(), " and more".into())])),
        ("a file added", with(&[Act::Write("new/deep/file".into(), "new".into())])),
        ("a directory deleted", with(&[Act::Delete("directory".into())])),
        (
            "a directory replaced by a file",
            with(&[Act::Delete("directory".into()), Act::Write("directory".into(), "file".into())]),
        ),
        (
            "a file replaced by a directory",
            with(&[Act::Delete("file.txt".into()), Act::Write("file.txt/inside".into(), "file".into())]),
        ),
        ("a thousand files", with(&[Act::Fill("many".into(), 1_000)])),
        ("everything deleted", with(&[Act::Delete("directory".into()), Act::Delete("file.txt".into())])),
    ]
}

/// Each failure after each kind of change leaves state and files as they were.
pub(crate) fn every_failure_leaves_state_and_files_as_they_were(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    for (index, (what, acts)) in mischief().into_iter().enumerate() {
        // Each change is followed by each failure once; the slow failure, which waits for a timeout, only by
        // some.
        for outcome in Outcome::FAILURES {
            if outcome == Outcome::Hang && index % 4 != 3 {
                continue;
            }
            let told = caller.results().len();
            let what = format!("{what}, then {outcome:?}");
            assert_eq!(run(&caller, acts.clone(), outcome).ending, CallConclusion::Failed, "{what}");
            assert_unchanged(&before, &caller, &what);
            let results = caller.results();
            assert_eq!(results.len(), told + 1, "{what}");
            assert!(results.last().unwrap().is_error, "{what}");
        }
    }
    assert_eq!(
        run(&caller, [Act::Append("at last".into())], Outcome::Success).ending,
        CallConclusion::Succeeded
    );
}

/// Arguments that do not match the schema are refused before anything runs.
pub(crate) fn arguments_that_do_not_fit_change_nothing(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    for arguments in [
        json!({}),
        json!({"acts": 1, "outcome": "success"}),
        json!({"acts": [], "outcome": "success", "more": 1}),
        json!({"acts": [{"write": ["file.txt", "changed"]}, {"unheard_of": 1}], "outcome": "success"}),
    ] {
        let told = caller.results().len();
        let ends = caller.turn(vec![CallSpec::new("act", arguments.clone())]);
        assert_eq!(ends[0].ending, CallConclusion::Failed, "{arguments}");
        assert_unchanged(&before, &caller, "arguments that do not fit");
        assert_eq!(caller.results().len(), told + 1, "{arguments}");
        assert!(caller.results().last().unwrap().is_error, "{arguments}");
    }
}

/// A tool that changes a resource without declaring it fails, and nothing changes.
pub(crate) fn a_tool_that_does_not_declare_resources_cannot_change_one(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    let ends = caller.turn(vec![Script::new([Act::Count(1)], Outcome::Success).asked("think")]);
    assert_eq!(ends[0].ending, CallConclusion::Failed);
    let told = caller.results().last().unwrap().error_message.clone().unwrap();
    assert!(told.contains(r#"resources = "write""#), "{told}");
    assert_unchanged(&before, &caller, "a tool that does not declare resources");
}

/// A call of an unknown tool is an error that the model sees.
pub(crate) fn unknown_tools_change_nothing(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    let ends = caller.turn(vec![CallSpec::new("unheard_of", json!({}))]);
    assert_eq!(ends[0].ending, CallConclusion::Failed);
    assert_unchanged(&before, &caller, "an unknown tool");
    assert!(caller.results().last().unwrap().is_error);
}

/// The logs of a failing call are kept, and nothing else.
pub(crate) fn logs_of_failing_calls_are_kept(kind: Kind) {
    let caller = open(kind);
    prepare(&caller);
    let before = caller.state();
    let log_and_fail = |outcome: Outcome| {
        run(&caller, [Act::Log(format!("{outcome:?}")), Act::Append("more".into())], outcome);
    };
    [Outcome::Error, Outcome::Unsuccessful, Outcome::Panic].into_iter().for_each(log_and_fail);
    // On a busy machine the time of a call may be over before it logs.
    for _ in 0..10 {
        log_and_fail(Outcome::Hang);
        if remarks(&caller).len() > 3 {
            break;
        }
    }
    assert_eq!(remarks(&caller), ["Error", "Unsuccessful", "Panic", "Hang"]);
    assert_unchanged(&before, &caller, "failing calls that log");
}
