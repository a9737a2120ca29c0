//! The kinds of calls, and what comes before them.

use serde_json::{Value, json};

use super::super::client::{Client, failed, worked};
use crate::stage::Stage;

/// The agent of these tests.
pub(super) const AGENT: &str = r#"
name = "tailor"
tools = ["read_file", "write_file", "shell", "setup_plan", "add_plan_step", "read_plan"]

[[tool]]
name = "mend"
description = "Runs a script."
command = ["sh", "-c", "{script}"]
parameters = { type = "object", properties = { script = { type = "string" } }, required = ["script"] }
effect = "workspace"
"#;

/// The client's id of the call.
pub(super) const ID: &str = "toolu_it";

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes a file, in a new session of a new store.
    First,
    /// Writes a file.
    Write,
    /// Changes state and no files.
    State,
    /// Runs a command that has effects outside.
    Shell,
    /// Changes files and fails.
    Failing,
    /// Runs a command when it is approved.
    Approved,
    /// Returns to before a call.
    Rewind,
    /// Undoes a rewind.
    Undo,
    /// Starts another session.
    Fork,
}

impl Kind {
    /// More arguments of the server.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        if self == Self::Approved { &["--approve", "shell"] } else { &[] }
    }

    /// Whether the result of an undisturbed call is a success.
    pub(super) fn succeeds(self) -> bool {
        self != Self::Failing
    }

    /// Whether the command of the call leaves a mark each time it runs.
    pub(super) fn leaves_marks(self) -> bool {
        matches!(self, Self::Shell | Self::Failing | Self::Approved)
    }

    /// Whether the journal shows if an interrupted call has happened, so that a repeated one always has its result.
    pub(super) fn is_always_completed(self) -> bool {
        matches!(self, Self::Rewind | Self::Undo)
    }

    /// Makes the calls that come before. Returns the id of the second one here.
    pub(super) fn prepare(self, client: &mut Client) -> Option<String> {
        if self == Self::First {
            return None;
        }
        worked(&client.call_as("one", "write_file", json!({"path": "note.txt", "text": "seven\n"})));
        let plan = json!({"objective": "Mend the coat", "steps": ["Find the tear"]});
        worked(&client.call_as("plan", "setup_plan", plan));
        if !matches!(self, Self::Rewind | Self::Undo) {
            return None;
        }
        let written = client.call_as("two", "write_file", second());
        worked(&written);
        let id = written["result"]["_meta"]["backstitch/call"]["call"].as_str().unwrap().to_owned();
        if self == Self::Undo {
            worked(&client.call_as("back", "rewind", json!({"point": format!("before:{id}")})));
        }
        Some(id)
    }

    /// Returns the tool and the arguments of the call.
    pub(super) fn call(self, stage: &Stage, second: Option<&str>) -> (&'static str, Value) {
        let mark = stage.path("mark");
        let mark = mark.display();
        match self {
            Self::First => ("write_file", json!({"path": "note.txt", "text": "first\n"})),
            Self::Write => ("write_file", json!({"path": "note.txt", "text": "nine\n"})),
            Self::State => ("add_plan_step", json!({"title": "Sew it"})),
            Self::Shell | Self::Approved => {
                let command = format!(
                    "echo ran >> {mark}; echo half > half.txt; echo nine > note.txt; rm half.txt; echo new > new.txt"
                );
                ("shell", json!({"command": command}))
            }
            Self::Failing => {
                let script = format!(
                    "echo ran >> {mark}; echo broken > note.txt; mkdir deep; echo half > deep/half.txt; exit 3"
                );
                ("mend", json!({"script": script}))
            }
            Self::Rewind => ("rewind", json!({"point": format!("before:{}", second.unwrap())})),
            Self::Undo => ("undo", json!({})),
            Self::Fork => ("fork", json!({})),
        }
    }

    /// Checks what only holds for this kind, once the call has succeeded.
    pub(super) fn check_success(self, stage: &Stage, client: &mut Client) {
        match self {
            Self::Rewind => {
                let told = failed(&client.call_as("two", "write_file", second()));
                assert!(told.contains("undone by a rewind"), "{told}");
                assert_eq!(stage.file("note.txt").unwrap(), "seven\n");
            }
            Self::Undo => {
                let again = client.call_as("two", "write_file", second());
                worked(&again);
                assert_eq!(again["result"]["_meta"]["backstitch/call"]["repeated"], true, "{again}");
            }
            _ => {}
        }
    }
}

fn second() -> Value {
    json!({"path": "note.txt", "text": "eight\n"})
}
