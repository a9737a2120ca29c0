//! Properties of every way of calling tools, over any files.
//!
//! Each function checks one property, and panics if it does not hold. A caller runs them all with
//! [`tool_conformance!`](crate::tool_conformance), which generates a test for each. [`parity`] compares two
//! callers.

#![allow(clippy::unwrap_used, reason = "a property that does not hold panics")]

mod abandoned;
mod acceptance;
mod commits;
mod failures;
mod random;

pub use abandoned::*;
pub use acceptance::*;
pub use commits::*;
pub use failures::*;
pub use random::*;

use backstitch_core::execution::snapshots_equivalent;
use backstitch_core::session::SlicePolicy;
use backstitch_filesystem::{FileOperations, FilePath};

use super::{Act, CallConclusion, CallReport, CallerFactory, Counter, Outcome, Script, ToolCaller, tools};
use crate::sample::{Remark, Task};

/// Calls a macro with the names of all properties.
#[doc(hidden)]
#[macro_export]
macro_rules! each_tool_property {
    ([$($callback:tt)*] $($factory:expr)?) => {
        $($callback)*! {
            $($factory;)?
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
}

/// Generates a test for each property.
///
/// Its argument is an expression for a [`CallerFactory`](crate::tool::CallerFactory). Call it inside of a
/// module of tests.
#[macro_export]
macro_rules! tool_conformance {
    ($factory:expr) => {
        $crate::each_tool_property!([$crate::tool_conformance_tests] $factory);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tool_conformance_tests {
    ($factory:expr; $($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                $crate::tool::conformance::$name(&$factory);
            }
        )*
    };
}

fn open(factory: &dyn CallerFactory) -> Box<dyn ToolCaller> {
    factory.open(tools())
}

/// Makes one call that may change files.
fn run(caller: &dyn ToolCaller, acts: impl IntoIterator<Item = Act>, outcome: Outcome) -> CallReport {
    let mut ends = caller.turn(vec![Script::new(acts, outcome).asked("act")]);
    assert_eq!(ends.len(), 1, "a turn of one call has one end");
    ends.remove(0)
}

/// Creates initial state: tasks, files in several directories, and a number.
fn prepare(caller: &dyn ToolCaller) {
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
fn tasks(caller: &dyn ToolCaller) -> Vec<String> {
    let mut keys = Vec::new();
    caller.inspect(&mut |session| {
        assert_eq!(session.policy_of::<Task>(), SlicePolicy::State);
        keys = session.all::<Task>().unwrap().iter().map(|task| task.key.clone()).collect();
    });
    keys
}

/// The texts of the log.
fn remarks(caller: &dyn ToolCaller) -> Vec<String> {
    let mut texts = Vec::new();
    caller.inspect(&mut |session| {
        texts = session.all::<Remark>().unwrap().iter().map(|remark| remark.text.clone()).collect();
    });
    texts
}

/// The text of a file, if it exists.
fn file(caller: &dyn ToolCaller, path: &str) -> Option<String> {
    caller.filesystem().read_text(&FilePath::new(path).unwrap()).ok()
}

/// The number of the counter.
fn number(caller: &dyn ToolCaller) -> u64 {
    let state = caller.state();
    let counter = state.resources.get(Counter::NAME).expect("the counter is part of the state");
    serde_json::from_value(counter.to_json().unwrap()).unwrap()
}

/// Panics if state, files or resources differ in content from an earlier snapshot.
#[track_caller]
fn assert_unchanged(
    before: &backstitch_core::execution::CompositeSnapshot,
    caller: &dyn ToolCaller,
    what: &str,
) {
    let after = caller.state();
    assert!(after.resources.contains_key("workspace"), "the files are part of the state");
    assert!(after.resources.contains_key(Counter::NAME), "the counter is part of the state");
    assert!(snapshots_equivalent(before, &after).unwrap(), "{what} left something behind");
}
