//! Transcripts of every command, on a pipe and on a pseudo-terminal.
//!
//! [`rows`] lists the commands and what is expected of each: success, an empty store, wrong arguments, a damaged store, a session that another
//! process holds, and a terminal of 40 columns. What holds for all output is checked here.

mod rows;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use self::rows::{Expected, ROWS, Row};
use crate::command::{Ran, backstitch};
use crate::pty::Pty;
use crate::stage::{Stage, scripted, text_of};

/// A stage, and the names of what is in its store.
struct Situation {
    stage: Stage,
    model: String,
    done: String,
    waiting: String,
    call: String,
}

impl Situation {
    /// A store without sessions.
    fn empty() -> Self {
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
    fn full() -> Self {
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

    fn arguments(&self, text: &str) -> Vec<String> {
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
    fn pipe(&self, arguments: &[String], input: &str) -> Ran {
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
    fn terminal(&self, arguments: &[String], input: &str, columns: u16) -> (Option<i32>, String) {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let file = self.stage.write("input", input);
        Pty::start_reading(&self.stage, &words, columns, 30, Path::new(&file)).finish()
    }
}

/// The files of a stage that commands change, as they were.
struct Original(Vec<(std::path::PathBuf, Vec<u8>)>);

impl Original {
    fn of(stage: &Stage) -> Self {
        let files = ["store", "files"].map(|name| stage.path(name));
        let inside = files.iter().flat_map(|directory| std::fs::read_dir(directory).unwrap());
        let paths = inside.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        Self(paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect())
    }

    fn restore(&self, stage: &Stage) {
        for directory in ["store", "files"].map(|name| stage.path(name)) {
            for entry in std::fs::read_dir(directory).unwrap() {
                remove(&entry.unwrap().path());
            }
        }
        remove(&stage.path("new"));
        self.0.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_dir_all(path);
}

/// What is wrong with the output of commands.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn check(&mut self, row: &Row, holds: bool, what: &str, printed: &str) {
        if !holds {
            self.0.push(format!("`{}` {what}:\n{printed}", row.command));
        }
    }

    /// Checks what a command has printed to pipes.
    fn check_pipe(&mut self, row: &Row, expected: Expected, ran: &Ran) {
        let all = format!("{}{}", ran.output, ran.errors);
        self.check(
            row,
            ran.code == Some(expected.code),
            &format!("exits with {:?} instead of {}", ran.code, expected.code),
            &all,
        );
        self.check(row, all.contains(expected.words), &format!("does not print {:?}", expected.words), &all);
        self.check(row, !all.contains('\u{1b}'), "prints control sequences to a pipe", &all);
        if ran.code != Some(0) && ran.errors.contains("error: ") {
            let last = ran.errors.lines().last().unwrap_or_default();
            self.check(row, last.starts_with("code: ") && !last.contains("internal"), "names no code", &all);
            let message = ran.errors.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
            let parts: Vec<&str> = message.split(": ").collect();
            let different: BTreeSet<&str> = parts.iter().copied().collect();
            self.check(row, parts.len() == different.len(), "repeats itself", message);
        }
        self.check_words(row, &all);
    }

    /// Checks what holds for the text of every command, on every output.
    fn check_words(&mut self, row: &Row, text: &str) {
        self.check(row, !text.contains("panicked at"), "panics", text);
        for line in text.lines() {
            self.check(row, times_have_zones(line), "prints a time without a zone", line);
            // JSON, programs and commands are not words of the command.
            if line.contains(['{', '"', '$', '`']) || line.contains("_clap_") || line.contains("COMP") {
                continue;
            }
            let found =
                line.split(|one: char| !one.is_alphanumeric() && one != '_').find(|word| is_identifier(word));
            self.check(row, found.is_none(), "prints a name of the program", line);
            let counted =
                ["line", "turn", "call", "record", "file", "message", "session", "object", "item", "byte"];
            let is_wrong = |what: &&str| {
                format!("{line} ").contains(&format!(" 1 {what}s")) || line.starts_with(&format!("1 {what}s"))
            };
            self.check(
                row,
                !line.contains("(s)") && !counted.iter().any(|what| is_wrong(&what)),
                "counts one thing as many",
                line,
            );
        }
    }

    #[track_caller]
    fn report(self) {
        assert!(self.0.is_empty(), "{} findings:\n\n{}", self.0.len(), self.0.join("\n\n"));
    }
}

/// Whether a word looks like the name of a type.
fn is_identifier(word: &str) -> bool {
    let capitals = word.chars().filter(|one| one.is_uppercase()).count();
    let has_form =
        word.starts_with(|one: char| one.is_uppercase()) && word.contains(|one: char| one.is_lowercase());
    has_form && capitals > 1 && !["OpenAI", "KiB", "MiB", "GiB"].contains(&word)
}

/// Whether every time in a line carries a zone.
fn times_have_zones(line: &str) -> bool {
    let form = b"0000-00-00T00:00";
    let is_time = |bytes: &[u8]| {
        form.iter().zip(bytes).all(|(form, byte)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b' '),
            other => other == byte,
        })
    };
    let times = line.as_bytes().windows(form.len()).enumerate().filter(|(_, bytes)| is_time(bytes));
    times
        .map(|(at, _)| {
            line[at + form.len()..]
                .trim_start_matches(|one: char| one.is_ascii_digit() || ":. ".contains(one))
        })
        .all(|rest| rest.starts_with(['Z', '+', '-']))
}

#[test]
fn every_command_has_a_row() {
    let commands = |help: &str| -> Vec<String> {
        let listed = help.split_once("Commands:\n").map(|(_, after)| after).unwrap_or_default();
        let listed = listed.lines().take_while(|line| line.starts_with("  "));
        let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
    };
    let mut all = BTreeSet::new();
    for name in commands(&backstitch(&["--help"]).worked()) {
        let below = commands(&backstitch(&[&name, "--help"]).worked());
        if below.is_empty() {
            all.insert(name.clone());
        }
        all.extend(below.iter().map(|below| format!("{name} {below}")));
    }
    let known: BTreeSet<String> = ROWS.iter().map(|row| row.command.to_owned()).collect();
    assert_eq!(all, known, "transcripts/rows.rs needs one line for each command");
}

#[test]
fn success_on_a_pipe() {
    let situation = Situation::full();
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, row.success, &ran);
        original.restore(&situation.stage);
    }
    findings.report();
}

fn success_on_a_terminal(columns: u16) {
    let situation = Situation::full();
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let (code, text) = situation.terminal(&situation.arguments(row.arguments), row.input, columns);
        let expected = row.success;
        findings.check(
            row,
            code == Some(expected.code),
            &format!("exits with {code:?} instead of {}", expected.code),
            &text,
        );
        // Words may be cut, or wrapped by the command.
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        let start = joined(expected.words).chars().take(5).collect::<String>();
        findings.check(
            row,
            joined(&text).contains(&start),
            &format!("does not print {:?}", expected.words),
            &text,
        );
        findings.check_words(row, &text);
        original.restore(&situation.stage);
    }
    findings.report();
}

#[test]
fn success_on_a_terminal_of_100_columns() {
    success_on_a_terminal(100);
}

#[test]
fn success_on_a_terminal_of_40_columns() {
    success_on_a_terminal(40);
}

#[test]
fn an_empty_store() {
    let situation = Situation::empty();
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, row.empty, &ran);
        original.restore(&situation.stage);
    }
    findings.report();
}

#[test]
fn wrong_arguments() {
    let situation = Situation::full();
    let mut findings = Findings::default();
    for row in ROWS {
        let arguments = situation.arguments(&format!("{} {}", row.command, row.wrong));
        let ran = situation.pipe(&arguments, "");
        findings.check_pipe(row, Expected { code: 2, words: "error: " }, &ran);
        findings.check(row, ran.output.is_empty(), "prints to standard output", &ran.output);
    }
    findings.report();
    // The same on a terminal, with colours.
    let mut pty = Pty::start(&situation.stage, &["show", "--nope"], 80, 24);
    assert_eq!(pty.exit_code(), Some(2));
    assert!(pty.raw().contains("\u{1b}[31merror:\u{1b}[0m unexpected argument"), "{:?}", pty.raw());
    assert!(pty.screen().ends_with("code: usage; `backstitch explain usage` says more"), "{}", pty.screen());
}

#[test]
fn a_damaged_store() {
    let situation = Situation::full();
    let store = situation.stage.path("store/store.db");
    let mut bytes = std::fs::read(&store).unwrap();
    // The header is sound, and nothing after it.
    bytes[4096..].fill(0xa5);
    std::fs::write(&store, &bytes).unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        remove(&situation.stage.path("store").join(name));
    }
    let original = Original::of(&situation.stage);
    let mut findings = Findings::default();
    for row in ROWS {
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, row.damaged, &ran);
        original.restore(&situation.stage);
    }
    findings.report();
}

#[test]
fn a_held_session() {
    let mut situation = Situation::empty();
    let slow = json!([{"text": "Late.", "delay_ms": 600_000}]);
    let slow = situation.stage.write("slow.json", &json!({"reply": slow}).to_string());
    let model = format!("scripted:{slow}");
    let holder = Pty::start_without_input(
        &situation.stage,
        &["run", "Take stock", "--model", &model, "--json"],
        300,
        24,
    );
    holder.wait_for("\"started\"");
    let session = situation.stage.session();
    (situation.done, situation.waiting) = (session.clone(), session);
    // A pause and the end of the evaluation would end the process, and a session with a fork is not removed.
    let (mut last, first): (Vec<&Row>, Vec<&Row>) =
        ROWS.iter().partition(|row| matches!(row.command, "pause" | "cancel" | "fork"));
    let mut findings = Findings::default();
    last.reverse();
    for row in first.into_iter().chain(last) {
        remove(&situation.stage.path("new"));
        let ran = situation.pipe(&situation.arguments(row.arguments), row.input);
        findings.check_pipe(row, row.held, &ran);
    }
    findings.report();
}
