//! The calls, one case for each way to fail.

use backstitch_testkit::tool::{Act, CallSpec, Outcome, Script};
use serde_json::{Value, json};

use super::picture::Picture;

/// What a caller has to do about the call, beside making it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// Cancel it once the file [`Case::BEGUN`] exists.
    Cancelled,
    /// Deny it when it waits for approval.
    Denied,
    /// Nothing: the budget has no call left for it.
    Budget,
}

/// A call that comes after a few others.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The call.
    pub(super) call: CallSpec,
    pub(super) trouble: Trouble,
    /// Part of the error, if the call fails. Empty if each caller says it in its own words.
    error: Option<&'static str>,
}

impl Case {
    /// A file that the call writes before it waits to be cancelled.
    pub(super) const BEGUN: &str = "begun";

    /// What a call logs. It is kept when the call fails.
    pub(super) const TRIED: &str = "tried";

    /// The reason of a denial.
    pub(super) const DENIED: &str = "not on a Sunday";

    /// The calls before it.
    pub(super) fn before(&self) -> Vec<CallSpec> {
        let acts = [
            Act::Seed("plan".into()),
            Act::Append("hem".into()),
            Act::Write("file.txt".into(), "original".into()),
            Act::Write("directory/below/deep.txt".into(), "deep".into()),
            Act::Count(7),
            Act::Log("prepared".into()),
        ];
        vec![Script::new(acts, Outcome::Success).asked("act")]
    }

    /// All calls, in their order.
    pub(super) fn calls(&self) -> Vec<CallSpec> {
        let mut calls = self.before();
        calls.push(self.call.clone());
        calls
    }

    /// Checks what has to hold for any caller.
    pub(super) fn check(&self, picture: &Picture, caller: &str) {
        let what = format!("{}: {caller}", self.name);
        let is_changed = picture.files.get("file.txt").map(String::as_str) != Some("original");
        match self.error {
            None => assert!(is_changed && picture.files.contains_key("new/file"), "{what}: {picture:?}"),
            Some(_) => {
                assert!(!is_changed, "{what}: {picture:?}");
                let names: Vec<_> = picture.files.keys().map(String::as_str).collect();
                assert_eq!(names, ["directory/below/deep.txt", "file.txt"], "{what}");
                assert_eq!(picture.tasks, ["plan", "hem"], "{what}");
                assert_eq!(picture.counter, json!(7), "{what}");
            }
        }
        if let (Some(error), Some(told)) = (self.error, &picture.told) {
            assert!(told.contains(error), "{what}: {told}");
        }
    }

    /// Whether the call has so little time that a busy machine may stop it before it has done anything.
    pub(super) fn is_brief(&self) -> bool {
        self.call.name == "act_briefly"
    }

    /// Whether all callers hear the same text.
    pub(super) fn has_one_text(&self) -> bool {
        self.error.is_none_or(|error| !error.is_empty())
    }
}

/// Changes to everything, and a log that is kept.
fn mischief() -> Vec<Act> {
    vec![
        Act::Append("more".into()),
        Act::ClearWhere("hem".into()),
        Act::Count(5),
        Act::Log(Case::TRIED.into()),
        Act::Write("file.txt".into(), "changed".into()),
        Act::Delete("directory".into()),
        Act::Write("new/file".into(), "new".into()),
    ]
}

fn scripted(name: &'static str, outcome: Outcome, error: Option<&'static str>) -> Case {
    Case { name, call: Script::new(mischief(), outcome).asked("act"), trouble: Trouble::None, error }
}

pub(super) fn success() -> Case {
    scripted("success", Outcome::Success, None)
}

pub(super) fn handler_error() -> Case {
    scripted("an error of the handler", Outcome::Error, Some("it did not work"))
}

pub(super) fn unsuccessful_result() -> Case {
    scripted("an unsuccessful result", Outcome::Unsuccessful, Some("it did not work"))
}

pub(super) fn refused_by_the_handler() -> Case {
    scripted("arguments that the handler refuses", Outcome::Validation, Some("it makes no sense"))
}

pub(super) fn panic() -> Case {
    scripted("a panic", Outcome::Panic, Some("it fell over"))
}

pub(super) fn timeout() -> Case {
    scripted("a timeout", Outcome::Hang, Some("longer than"))
}

pub(super) fn reducer_refusal() -> Case {
    scripted("a refusal of a reducer", Outcome::EventRefused, Some("it is not welcome"))
}

pub(super) fn reducer_panic() -> Case {
    scripted("a panic of a reducer", Outcome::EventPanics, Some("it is not welcome"))
}

pub(super) fn invalid_arguments() -> Case {
    let call = CallSpec::new("act", json!({"acts": 1, "outcome": "success"}));
    Case { name: "arguments that do not fit", call, trouble: Trouble::None, error: Some("acts") }
}

pub(super) fn unknown_tool() -> Case {
    let call = CallSpec::new("unheard_of", json!({}));
    Case { name: "an unknown tool", call, trouble: Trouble::None, error: Some("") }
}

pub(super) fn capture_error() -> Case {
    let call = CallSpec::new("act_and_break", json!({}));
    Case { name: "a resource that cannot be captured", call, trouble: Trouble::None, error: Some("captured") }
}

pub(super) fn cancellation() -> Case {
    let mut acts = mischief();
    acts.push(Act::Write(Case::BEGUN.into(), "1".into()));
    let script = Script::new(acts, Outcome::Hang);
    // The tool with the long timeout.
    let call = CallSpec::new("act", written(&script));
    Case { name: "a cancellation", call, trouble: Trouble::Cancelled, error: Some("") }
}

pub(super) fn denied_approval() -> Case {
    let call = CallSpec::new("act_if_approved", written(&Script::new(mischief(), Outcome::Success)));
    Case { name: "a denied approval", call, trouble: Trouble::Denied, error: Some(Case::DENIED) }
}

pub(super) fn spent_budget() -> Case {
    let call = Script::new(mischief(), Outcome::Success).asked("act");
    Case { name: "a spent budget", call, trouble: Trouble::Budget, error: Some("") }
}

fn written(script: &Script) -> Value {
    serde_json::to_value(script).unwrap()
}
