//! Running the command and looking at what it did.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run of the command gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ran {
    /// The output of a run that worked and complained about nothing.
    #[track_caller]
    pub(crate) fn worked(self) -> String {
        assert_eq!((self.code, self.errors.as_str()), (Some(0), ""), "{}", self.output);
        self.output
    }

    /// The output of a run that worked, whatever it said beside it.
    #[track_caller]
    pub(crate) fn worked_quietly(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.output, self.errors);
        self.output
    }

    /// What a run said that did not work, after it printed nothing.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!((self.code, self.output.as_str()), (Some(1), ""), "{}", self.errors);
        self.errors
    }
}

impl Ran {
    /// What a run said that was called wrongly, after it printed nothing.
    #[track_caller]
    pub(crate) fn called_wrongly(self) -> String {
        assert_eq!((self.code, self.output.as_str()), (Some(2), ""), "{}", self.errors);
        self.errors
    }
}

/// Runs the command with nothing to read.
pub(crate) fn backstitch(arguments: &[&str]) -> Ran {
    backstitch_reading("", arguments)
}

/// Runs the command and gives it something to read.
pub(crate) fn backstitch_reading(input: &str, arguments: &[&str]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstitch"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // What is not read must not keep the other side from writing.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A command that fails at once closes its end: that is no failure of the test.
    let _ = writer.join().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file that is gone with the value.
pub(crate) struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Writes a file whose name ends so. Names are unique by process and by name, so a test uses each name once.
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
        // Whoever cleans the directory may have been faster.
        let _ = std::fs::remove_file(&self.0);
    }
}
