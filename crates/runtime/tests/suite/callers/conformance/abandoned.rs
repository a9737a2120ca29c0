//! A call may be dropped at any await point.

use backstitch_core::view::CallStatus;

use super::*;

/// More polls than any call of the suite needs.
const MOST_POLLS: usize = 10_000;

/// Wherever a call is dropped, the next call finds the session as it was before, or, if the commit had
/// started, as it is after the call. The journal records which.
pub(crate) fn a_call_that_is_dropped_anywhere_is_rolled_back_before_the_next(kind: Kind) {
    for (tool, outcome) in [
        ("act", Outcome::Success),
        ("act", Outcome::Error),
        ("act", Outcome::Panic),
        ("act", Outcome::EventRefused),
        ("think", Outcome::Success),
    ] {
        let caller = open(kind);
        prepare(&caller);
        for polls in 0..MOST_POLLS {
            let what = format!("{tool} that would end with {outcome:?}, dropped after {polls} polls");
            let before = caller.state();
            let mut acts = vec![Act::Append("more".into()), Act::Log(what.clone())];
            if tool == "act" {
                acts.push(Act::Count(7));
                acts.push(Act::Write("file.txt".into(), what.clone()));
                acts.push(Act::Yield);
                acts.push(Act::Delete("directory".into()));
            }
            acts.push(Act::Yield);
            let (dropped, had_ended) = caller.abandon(Script::new(acts, outcome).asked(tool), polls);
            // The next call fails too, so that its rollback shows which state it started from.
            let next = Script::new([Act::Append("next".into())], Outcome::Error).asked("act");
            assert_eq!(caller.turn(vec![next])[0].ending, CallConclusion::Failed, "{what}");
            let (status, is_open) = caller.status(dropped);
            assert!(!is_open, "{what}: it is still open");
            match status {
                CallStatus::Completed => {
                    assert_eq!(tasks(&caller).last().map(String::as_str), Some("more"), "{what}");
                    if tool == "act" {
                        assert_eq!(file(&caller, "file.txt"), Some(what), "it is committed, or it is not");
                    }
                }
                CallStatus::Failed | CallStatus::Pending => assert_unchanged(&before, &caller, &what),
            }
            if had_ended {
                break;
            }
        }
    }
}
