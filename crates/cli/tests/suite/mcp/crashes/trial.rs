//! One server that is killed at a crash point, and the one after it.
//!
//! After the restart, the files are those before the call or those after it. The same request under the same id
//! returns the recorded result and runs nothing, or it runs once, if it was never recorded; or it says that the call
//! was interrupted, and then the call has left nothing in files and state. An answer that the first client got does
//! not change. Another request under the same id is refused. The session accepts the next call, the store is
//! intact, and a model accepts the conversation.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::client::{Client, text, worked};
use super::kind::{AGENT, ID, Kind};
use crate::stage::{Stage, scripted};

/// A crash point, and how often it is reached before the process dies.
#[derive(Debug, Clone)]
pub(super) struct Crash {
    pub(super) point: String,
    pub(super) hit: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{}", self.point, self.hit)
    }
}

/// The files of the workspace, with their content.
pub(super) type Files = BTreeMap<String, String>;

/// What a call does when nothing disturbs it.
pub(super) struct Undisturbed {
    /// The crash points, one per line.
    pub(super) reached: String,
    before: (Files, String),
    after: (Files, String),
    result: (String, bool),
}

/// A directory for one server after another.
pub(super) struct Trial {
    kind: Kind,
    pub(super) stage: Stage,
}

impl Trial {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, stage: Stage::new() }
    }

    /// Runs the call without a crash.
    pub(super) fn run_through(self) -> Undisturbed {
        let list = self.stage.path("reached");
        let (mut client, second) = self.begin("BACKSTITCH_REACHED", list.to_str().unwrap()).unwrap();
        let before = (files(&self.stage), String::new());
        self.mark_start();
        let answer = self.call(&mut client, second.as_deref()).unwrap();
        assert_eq!(client.leave().code, Some(0));
        let reached = std::fs::read_to_string(list).unwrap();
        let after_files = files(&self.stage);
        let mut client = self.connect();
        let after = (after_files, plan(&mut client));
        let before = (before.0, if self.kind == Kind::State { String::new() } else { after.1.clone() });
        let result = text(&answer);
        assert_eq!(!result.1, self.kind.succeeds(), "{result:?}");
        Undisturbed { reached, before, after, result }
    }

    /// Kills a server at a point, and checks what the next one finds. Returns whether it was killed.
    pub(super) fn crash(self, crash: &Crash, undisturbed: &Undisturbed) -> bool {
        let (first, has_died, second) = self.killed(crash);
        let mut client = self.connect();
        let found = files(&self.stage);
        assert!(
            found == undisturbed.before.0 || found == undisturbed.after.0,
            "{crash}: {found:?} is neither before nor after the call"
        );
        let again = self.call(&mut client, second.as_deref()).unwrap();
        self.check_result(crash, undisturbed, &again, &mut client);
        if let Some(first) = &first {
            assert_eq!(text(first), text(&again), "{crash}: an answer changed");
        }
        let once_more = self.call(&mut client, second.as_deref()).unwrap();
        assert_eq!(text(&again), text(&once_more), "{crash}: an answer changed");
        let other = client.call_as(ID, "read_file", json!({"path": "note.txt"}));
        assert_eq!(other["error"]["code"], -32602, "{crash}: {other}");
        let next = client.call_as("next", "write_file", json!({"path": "next.txt", "text": "next\n"}));
        worked(&next);
        let session = next["result"]["_meta"]["backstitch/call"]["session"].as_str().unwrap().to_owned();
        assert_eq!(client.leave().code, Some(0), "{crash}");
        self.check_store(crash, &session);
        has_died
    }

    /// Starts a server with a variable, makes the calls before, and returns the client, unless the server has died.
    fn begin(&self, variable: &str, value: &str) -> Option<(Client, Option<String>)> {
        let start = self.stage.path("started");
        let stage = Stage::beside(&self.stage)
            .with_variable(variable, value)
            .with_variable("BACKSTITCH_REACHED_FROM", start.to_str().unwrap());
        if self.kind == Kind::First {
            self.mark_start();
        }
        let mut client = Client::start_with(&stage, AGENT, self.kind.arguments());
        if !client.shake_hands(&json!({})) {
            return None;
        }
        let second = self.kind.prepare(&mut client);
        Some((client, second))
    }

    /// Points count from now on.
    fn mark_start(&self) {
        std::fs::write(self.stage.path("started"), "").unwrap();
    }

    /// Returns the answer of a server that dies, if it came to that, and whether it died.
    fn killed(&self, crash: &Crash) -> (Option<Value>, bool, Option<String>) {
        let Some((mut client, second)) = self.begin("BACKSTITCH_ABORT_AT", &crash.to_string()) else {
            return (None, true, None);
        };
        self.mark_start();
        let answer = self.call(&mut client, second.as_deref());
        let code = client.leave().code;
        assert!(code.is_none() || code == Some(0), "{crash}: {code:?}");
        (answer, code.is_none(), second)
    }

    pub(super) fn connect(&self) -> Client {
        let mut client = Client::start_with(&self.stage, AGENT, self.kind.arguments());
        assert!(client.shake_hands(&json!({})), "the next server starts");
        client
    }

    /// Makes the call, and approves it if it waits. Returns nothing if the server dies.
    pub(super) fn call(&self, client: &mut Client, second: Option<&str>) -> Option<Value> {
        let (name, arguments) = self.kind.call(&self.stage, second);
        let id = client.post_call(Some(ID), name, arguments);
        if self.kind != Kind::Approved {
            return client.answer_of_mortal(id);
        }
        for _ in 0..1000 {
            if let Ok(answer) = client.answer_within(id, Duration::from_millis(100)) {
                return answer;
            }
            let listed = self.stage.run(&["ls", "--json", "--limit", "1"]).output;
            if listed.contains("\"reason\":\"approval\"") {
                // The server may have died in between.
                let session = crate::stage::last_line(&listed)["session"].as_str().unwrap().to_owned();
                self.stage.run(&["approve", &session, "--all"]);
            }
        }
        panic!("the server neither answers nor ends");
    }

    fn check_result(&self, crash: &Crash, undisturbed: &Undisturbed, answer: &Value, client: &mut Client) {
        let (told, is_error) = text(answer);
        let marks = std::fs::read_to_string(self.stage.path("mark")).unwrap_or_default().lines().count();
        assert!(marks <= 1, "{crash}: it ran {marks} times");
        let now = (files(&self.stage), plan(client));
        if !is_error {
            assert!(self.kind.succeeds(), "{crash}: {told}");
            assert_eq!(now, undisturbed.after, "{crash}");
            assert_eq!(marks, usize::from(self.kind.leaves_marks()), "{crash}");
            self.kind.check_success(&self.stage, client);
            return;
        }
        if self.kind == Kind::State {
            assert!(!now.1.contains("Sew it"), "{crash}: {now:?}");
        } else {
            assert_eq!(now, undisturbed.before, "{crash}: {told}");
        }
        if !self.kind.succeeds() && told == undisturbed.result.0 {
            assert_eq!(marks, 1, "{crash}");
            return;
        }
        assert!(told.contains("interrupted") && !self.kind.is_always_completed(), "{crash}: {told}");
    }

    fn check_store(&self, crash: &Crash, session: &str) {
        let verified = self.stage.run(&["verify"]);
        assert_eq!(verified.code, Some(0), "{crash}: {}{}", verified.output, verified.errors);
        let replies: Vec<_> = (0..30).map(|_| json!({"text": "Well."})).collect();
        let model = scripted(&self.stage, &json!(replies));
        let asked = self.stage.run(&["ask", session, "How is it?", "--model", &model]);
        assert_eq!(asked.code, Some(0), "{crash}: {}", asked.errors);
    }
}

/// Returns the plan of the session, as its tool returns it.
fn plan(client: &mut Client) -> String {
    text(&client.call("read_plan", json!({}))).0
}

/// Reads all files of the workspace.
pub(super) fn files(stage: &Stage) -> Files {
    fn read(directory: &Path, below: &str, files: &mut Files) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                files.insert(format!("{name}/"), String::new());
                read(&entry.path(), &format!("{name}/"), files);
            } else {
                files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    let mut found = Files::new();
    read(&stage.path("files"), "", &mut found);
    found
}
