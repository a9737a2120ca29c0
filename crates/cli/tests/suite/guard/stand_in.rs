//! A program that reports to hooks as Claude Code does, and works on the files itself.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, ended, text_of};

/// Kind, mode and content of each path.
pub(super) type Picture = BTreeMap<String, (u32, Vec<u8>)>;

/// Describes all files of a directory.
pub(super) fn picture(directory: &Path) -> Picture {
    let mut all = Picture::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            all.insert(name, (found.permissions().mode(), content));
            if found.is_dir() {
                open.push(path);
            }
        }
    }
    all
}

/// A conversation of the stand-in.
pub(super) struct StandIn<'a> {
    pub(super) stage: &'a Stage,
    pub(super) id: String,
    strict: bool,
    /// The directory that it was started in, inside of the files.
    inner: String,
    next: Cell<u32>,
}

impl<'a> StandIn<'a> {
    pub(super) fn new(stage: &'a Stage, id: &str) -> Self {
        Self { stage, id: id.to_owned(), strict: false, inner: String::new(), next: Cell::new(0) }
    }

    pub(super) fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// Starts the program in a directory inside of the files.
    pub(super) fn within(self, inner: &str) -> Self {
        Self { inner: inner.to_owned(), ..self }
    }

    pub(super) fn files(&self) -> PathBuf {
        self.stage.path("files")
    }

    pub(super) fn picture(&self) -> Picture {
        picture(&self.files())
    }

    pub(super) fn transcript(&self) -> PathBuf {
        self.stage.path(&format!("{}.jsonl", self.id))
    }

    /// Starts a hook with this input.
    pub(super) fn spawn(&self, input: &[u8]) -> Child {
        self.spawn_with(if self.strict { &["--strict"] } else { &[] }, input)
    }

    /// Runs a hook with these options and this input.
    pub(super) fn run_with(&self, options: &[&str], input: &[u8]) -> Ran {
        ended(self.spawn_with(options, input))
    }

    fn spawn_with(&self, options: &[&str], input: &[u8]) -> Child {
        let arguments = [&["guard", "hook", "claude-code"], options].concat();
        let mut command = self.stage.command(&arguments);
        let mut child = command.env_remove("CLAUDE_PROJECT_DIR").stdin(Stdio::piped()).spawn().unwrap();
        // A hook that was killed does not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        child
    }

    pub(super) fn event(&self, name: &str, more: Value) -> Vec<u8> {
        let mut event = json!({
            "session_id": self.id, "transcript_path": text_of(&self.transcript()), "cwd": text_of(&self.files().join(&self.inner)),
            "hook_event_name": name, "permission_mode": "default", "new_field": {"of": ["a", "later", "version"]},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event.to_string().into_bytes()
    }

    /// Reports an event, and returns what the hook did.
    pub(super) fn try_report(&self, name: &str, more: Value) -> Ran {
        ended(self.spawn(&self.event(name, more)))
    }

    /// Reports an event that is recorded.
    #[track_caller]
    pub(super) fn report(&self, name: &str, more: Value) {
        assert_eq!(self.try_report(name, more).worked(), "");
    }

    pub(super) fn start(&self) {
        self.report("SessionStart", json!({"source": "startup"}));
    }

    pub(super) fn prompt(&self, text: &str) {
        self.report("UserPromptSubmit", json!({"prompt": text, "prompt_id": format!("prompt {text}")}));
    }

    pub(super) fn stop(&self, text: &str) {
        self.report("Stop", json!({"last_assistant_message": text, "stop_hook_active": false}));
    }

    pub(super) fn new_call(&self) -> String {
        self.next.set(self.next.get() + 1);
        format!("toolu_{:02}", self.next.get())
    }

    pub(super) fn before(&self, call: &str, name: &str, more: Value) {
        self.report("PreToolUse", fields(call, name, more));
    }

    pub(super) fn after(&self, call: &str, name: &str, more: Value) {
        self.report("PostToolUse", fields(call, name, more));
    }

    /// Makes a call of the shell, and returns its id. It fails if the command does.
    pub(super) fn shell(&self, script: &str) -> String {
        let call = self.new_call();
        let input = json!({"tool_input": {"command": script}});
        self.before(&call, "Bash", input.clone());
        self.run(script, &call, &input);
        call
    }

    /// Runs a command, and reports its end.
    pub(super) fn run(&self, script: &str, call: &str, more: &Value) {
        let output = Command::new("sh").args(["-c", script]).current_dir(self.files()).output().unwrap();
        let mut more = more.clone();
        let fields = more.as_object_mut().unwrap();
        if output.status.success() {
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            fields.insert(
                "tool_response".to_owned(),
                json!({"stdout": stdout, "stderr": "", "interrupted": false}),
            );
            self.after(call, "Bash", more);
        } else {
            fields.insert("error".to_owned(), json!(format!("Exit code {}", output.status.code().unwrap())));
            self.report("PostToolUseFailure", self::fields(call, "Bash", more));
        }
    }

    /// Returns all records of the latest session.
    pub(super) fn records(&self) -> Vec<Value> {
        let session = self.stage.session();
        let text = self.stage.run(&["log", &session, "--json", "--all"]).worked_quietly();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the id of the session's call that the program knows by this id.
    pub(super) fn call(&self, id: &str) -> String {
        let records = self.records();
        let content = |record: &Value| record["data"]["message"]["content"].clone();
        let found = records.iter().map(content).find(|content| content["provider_call_id"] == id);
        found.unwrap_or_else(|| panic!("{id} is not recorded"))["invocation_id"].as_str().unwrap().to_owned()
    }

    /// Returns the texts of the notes about what was not seen.
    pub(super) fn gaps(&self) -> Vec<String> {
        let notes = self.records().into_iter().filter(|record| record["data"]["topic"] == "gap");
        notes.map(|note| note["data"]["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Rewinds to a point, compares the files, and undoes it.
    #[track_caller]
    pub(super) fn check_point(&self, point: &str, expected: &Picture) {
        let (now, session) = (self.picture(), self.stage.session());
        let ran = self.stage.run(&["rewind", &session, point, "--all-files", "--json"]);
        if ran.code == Some(1) && ran.errors.contains("nothing_to_rewind") {
            assert_eq!(now, *expected, "{point}");
            return;
        }
        ran.worked_quietly();
        assert_eq!(self.picture(), *expected, "{point}");
        self.stage.run(&["undo", &session, "--json"]).worked_quietly();
        assert_eq!(self.picture(), now, "undo of {point}");
    }
}

fn fields(call: &str, name: &str, more: Value) -> Value {
    let mut fields = json!({"tool_use_id": call, "tool_name": name});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}
