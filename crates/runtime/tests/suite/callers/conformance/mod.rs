//! Properties of every way of calling tools, over any files.
//!
//! Each function checks one property, and panics if it does not hold. `tool_conformance!` generates a test for
//! each. [`parity`] compares two kinds of callers.

mod abandoned;
mod acceptance;
mod commits;
mod failures;
mod random;

pub(crate) use abandoned::*;
pub(crate) use acceptance::*;
pub(crate) use commits::*;
pub(crate) use failures::*;
pub(crate) use random::*;

use backstitch_core::execution::{CompositeSnapshot, snapshots_equivalent};
use backstitch_core::session::SlicePolicy;
use backstitch_filesystem::{FileOperations as _, FilePath};
use backstitch_testkit::sample::{Remark, Task};
use backstitch_testkit::tool::{Act, Counter, Outcome, Script, tools};

use super::{CallConclusion, CallReport, Caller, Place, Way};

/// Where the files are, and how tools are called.
pub(crate) type Kind = (Place, Way);

/// Generates a test for each property of a kind of caller. Call it inside of a module of tests.
macro_rules! tool_conformance {
    ($kind:expr) => {
        $crate::callers::conformance::tool_conformance! {
            $kind;
            a_failing_tool_changes_nothing,
            a_visibility_expansion_is_as_if_nothing_had_run,
            state_goes_back_to_a_tool_boundary,
            every_failure_leaves_state_and_files_as_they_were,
            arguments_that_do_not_fit_change_nothing,
            unknown_tools_change_nothing,
            logs_of_failing_calls_are_kept,
            an_item_that_cannot_be_stored_fails_where_it_is_added,
            a_refusal_at_the_commit_fails_that_call_alone,
            failures_of_any_kind_harm_no_sibling,
            a_call_that_is_dropped_anywhere_is_rolled_back_before_the_next,
            calls_of_a_turn_see_files_in_their_order,
            calls_of_a_turn_change_resources_in_their_order,
            a_tool_that_does_not_declare_resources_cannot_change_one,
            random_turns_do_as_the_model_does,
        }
    };
    ($kind:expr; $($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $crate::callers::conformance::$name($kind);
            }
        )*
    };
}
pub(crate) use tool_conformance;

fn open((place, way): Kind) -> Caller {
    super::open(place, way, tools())
}

/// Makes one call that may change files.
fn run(caller: &Caller, acts: impl IntoIterator<Item = Act>, outcome: Outcome) -> CallReport {
    let mut ends = caller.turn(vec![Script::new(acts, outcome).asked("act")]);
    assert_eq!(ends.len(), 1, "a turn of one call has one end");
    ends.remove(0)
}

/// Creates initial state: tasks, files in several directories, and a number.
fn prepare(caller: &Caller) {
    let ended = run(
        caller,
        [
            Act::Seed("plan".into()),
            Act::Append("hem".into()),
            Act::Write("file.txt".into(), "original".into()),
            Act::Write("directory/below/deep.txt".into(), "deep".into()),
            Act::Write("directory/other.txt".into(), "other".into()),
            Act::Count(7),
        ],
        Outcome::Success,
    );
    assert_eq!(ended.ending, CallConclusion::Succeeded);
}

/// The keys of the tasks.
fn tasks(caller: &Caller) -> Vec<String> {
    let mut keys = Vec::new();
    caller.inspect(&mut |session| {
        assert_eq!(session.policy_of::<Task>(), SlicePolicy::State);
        keys = session.all::<Task>().unwrap().iter().map(|task| task.key.clone()).collect();
    });
    keys
}

/// The texts of the log.
fn remarks(caller: &Caller) -> Vec<String> {
    let mut texts = Vec::new();
    caller.inspect(&mut |session| {
        texts = session.all::<Remark>().unwrap().iter().map(|remark| remark.text.clone()).collect();
    });
    texts
}

/// The text of a file, if it exists.
fn file(caller: &Caller, path: &str) -> Option<String> {
    caller.filesystem().read_text(&FilePath::new(path).unwrap()).ok()
}

/// The number of the counter.
fn number(caller: &Caller) -> u64 {
    let state = caller.state();
    let counter = state.resources.get(Counter::NAME).expect("the counter is part of the state");
    serde_json::from_value(counter.to_json().unwrap()).unwrap()
}

/// Panics if state, files or resources differ in content from an earlier snapshot.
#[track_caller]
fn assert_unchanged(before: &CompositeSnapshot, caller: &Caller, what: &str) {
    let after = caller.state();
    assert!(after.resources.contains_key("workspace"), "the files are part of the state");
    assert!(after.resources.contains_key(Counter::NAME), "the counter is part of the state");
    assert!(snapshots_equivalent(before, &after).unwrap(), "{what} left something behind");
}
