//! Stores in each situation, and the commands that are run on them.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::command::Ran;
use crate::pty::Pty;
use crate::stage::{Stage, scripted, text_of};

/// A stage, and the names of what is in its store.
pub(super) struct Situation {
    pub(super) stage: Stage,
    model: String,
    pub(super) done: String,
    pub(super) waiting: String,
    call: String,
}

impl Situation {
    /// A store without sessions.
    pub(super) fn empty() -> Self {
        let stage = Stage::new();
        let replies = json!([
            {"text": "I write.", "calls": [{"name": "write_file", "arguments": {"path": "note.txt", "text": "needles: 7\n"}}]},
            {"text": "Done."}, {"text": "Done."}, {"text": "Done."},
        ]);
        let model = scripted(&stage, &replies);
        stage.run(&["run", "Take stock", "--model", &model]).worked_quietly();
        let session = stage.session();
        stage.run(&["rm", &session, "--yes"]).worked_quietly();
        std::fs::remove_file(stage.path("files/note.txt")).unwrap();
        let nothing = "01980000-0000-7000-8000-000000000000".to_owned();
        Self { stage, model, done: nothing.clone(), waiting: nothing.clone(), call: nothing }
    }

    /// A store with a finished session and one that waits.
    pub(super) fn full() -> Self {
        let mut situation = Self::empty();
        let (stage, model) = (&situation.stage, &situation.model);
        let asked = ["run", "Ask first", "--approve", "ask", "--model", model];
        assert_eq!(stage.run(&asked).code, Some(3));
        let shown = stage.json(&["show"]);
        stage.run(&["run", "Take stock", "--model", model]).worked_quietly();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        situation.waiting = text(&shown["session"]);
        situation.call = text(&shown["calls"][0]["call"]);
        situation.done = situation.stage.session();
        situation
    }

    pub(super) fn arguments(&self, text: &str) -> Vec<String> {
        let new = text_of(&self.stage.path("new"));
        let known = [
            ("{done}", &self.done),
            ("{waiting}", &self.waiting),
            ("{call}", &self.call),
            ("{model}", &self.model),
            ("{new}", &new),
        ];
        let filled =
            |word: &str| known.iter().fold(word.to_owned(), |word, (name, value)| word.replace(name, value));
        text.split_whitespace().map(filled).collect()
    }

    /// Runs a command with pipes.
    pub(super) fn pipe(&self, arguments: &[String], input: &str) -> Ran {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = self.stage.command(&words);
        let file = self.stage.write("input", input);
        command.stdin(Stdio::from(std::fs::File::open(file).unwrap()));
        let output = command.output().unwrap();
        Ran {
            code: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command with its output on a terminal.
    pub(super) fn terminal(&self, arguments: &[String], input: &str, columns: u16) -> (Option<i32>, String) {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let file = self.stage.write("input", input);
        Pty::start_reading(&self.stage, &words, columns, 30, Path::new(&file)).finish()
    }
}

/// The files of a stage that commands change, as they were.
pub(super) struct Original(Vec<(std::path::PathBuf, Vec<u8>)>);

impl Original {
    pub(super) fn of(stage: &Stage) -> Self {
        let files = ["store", "files"].map(|name| stage.path(name));
        let inside = files.iter().flat_map(|directory| std::fs::read_dir(directory).unwrap());
        let paths = inside.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        Self(paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect())
    }

    pub(super) fn restore(&self, stage: &Stage) {
        for directory in ["store", "files"].map(|name| stage.path(name)) {
            for entry in std::fs::read_dir(directory).unwrap() {
                remove(&entry.unwrap().path());
            }
        }
        remove(&stage.path("new"));
        self.0.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    }
}

pub(super) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_dir_all(path);
}
