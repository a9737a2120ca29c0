//! Runs the command, and checks its exit code and output.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Exit code and output of a run of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ran {
    /// Asserts success without any error output, and returns the output. On a busy machine, commands report their progress.
    #[track_caller]
    pub(crate) fn worked(self) -> String {
        let errors: String = self.errors.split_inclusive('\n').filter(|line| !is_progress(line)).collect();
        assert_eq!((self.code, errors.as_str()), (Some(0), ""), "{}", self.output);
        self.output
    }

    /// Asserts success, and returns the output. Standard error is ignored.
    #[track_caller]
    pub(crate) fn worked_quietly(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.output, self.errors);
        self.output
    }

    /// Asserts exit code 1 without output, and returns standard error.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!((self.code, self.output.as_str()), (Some(1), ""), "{}", self.errors);
        self.errors
    }
}

impl Ran {
    /// Asserts exit code 2 without output, and returns standard error.
    #[track_caller]
    pub(crate) fn called_wrongly(self) -> String {
        assert_eq!((self.code, self.output.as_str()), (Some(2), ""), "{}", self.errors);
        self.errors
    }
}

/// The verbs of reports about progress, each with what is counted.
const PROGRESS: [(&str, &str); 6] = [
    ("checked", "objects"),
    ("compared", "summaries"),
    ("indexed", "sessions"),
    ("wrote", "MiB"),
    ("wrote", "objects"),
    ("wrote", "sessions"),
];

/// Whether a line reports progress, as in `indexed 200 of 10000 sessions`.
fn is_progress(line: &str) -> bool {
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let [verb, done, "of", total, what] = words[..] else { return false };
    let are_numbers = [done, total].iter().all(|number| number.parse::<usize>().is_ok());
    are_numbers && PROGRESS.contains(&(verb, what))
}

/// Runs the command with empty standard input.
pub(crate) fn backstitch(arguments: &[&str]) -> Ran {
    backstitch_reading("", arguments)
}

/// Runs the command with a text as standard input.
pub(crate) fn backstitch_reading(input: &str, arguments: &[&str]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(arguments)
        // With this terminal, some libraries write to a pipe what belongs on a screen.
        .env("TERM", "dumb")
        .env("BACKSTITCH_CONFIG", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A separate thread writes, so that input that is not read does not block the output.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A command that fails at once closes the pipe. That is not a failure of the test.
    let _ = writer.join().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file that is removed on drop.
pub(crate) struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Writes a file whose name ends with `name`. It is unique per process and name, so a test uses each name
    /// once.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("backstitch-cli-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Another process may have cleaned the directory before.
        let _ = std::fs::remove_file(&self.0);
    }
}
