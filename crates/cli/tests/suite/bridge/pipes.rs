//! A program whose part the test plays, over two pipes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::stage::{Stage, text_of, wait_until};

/// The command: connects standard input and output with the pipes.
const COMMAND: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "@VERSION@"; exit; fi
cd @PIPES@ || exit 9
env > environment
echo $$ > pid
for word in "$@"; do printf '%s\0' "$word"; done > arguments.new
mv arguments.new arguments
exec 3<&0
cat <&3 > to &
cat from
wait
"#;

/// A stage with such a program, which prints this version, and with an agent file.
pub(super) fn stage_with(program: &str, version: &str, agent: &str) -> Stage {
    let stage = Stage::new();
    let (programs, pipes) = (stage.path("programs"), stage.path("pipes"));
    for directory in [&programs, &pipes, &stage.path("home")] {
        fs::create_dir(directory).unwrap();
    }
    for name in ["to", "from"] {
        assert!(Command::new("mkfifo").arg(pipes.join(name)).status().unwrap().success());
    }
    let text = COMMAND.replace("@PIPES@", &text_of(&pipes)).replace("@VERSION@", version);
    fs::write(programs.join(program), text).unwrap();
    fs::set_permissions(programs.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    stage.write("tailor.toml", agent);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let home = text_of(&stage.path("home"));
    stage.with_variable("PATH", &path).with_variable("HOME", &home)
}

/// Tries a stop by a deadline that may come too early on a slow machine, with longer and longer ones.
pub(super) fn with_deadline<T>(attempt: impl Fn(&str) -> Option<T>) -> T {
    let tried = ["3s", "6s", "12s", "24s", "48s"].into_iter().find_map(attempt);
    tried.expect("no deadline left enough time for the call to begin")
}

/// Ends a command whose deadline came too early.
pub(super) fn give_up<T>(mut child: Child) -> Option<T> {
    let _ = child.kill();
    child.wait().unwrap();
    None
}

/// The pipes of a program that was started.
pub(super) struct Pipes {
    pub(super) arguments: Vec<String>,
    input: BufReader<File>,
    output: Option<File>,
}

impl Pipes {
    /// Waits until the program is started.
    pub(super) fn accept(stage: &Stage) -> Self {
        let pipes = stage.path("pipes");
        wait_until("the start of the program", || pipes.join("arguments").exists());
        Self::connect(&pipes)
    }

    /// Waits until the program is started. Returns `None` if the command ends before: opening a pipe waits for its other end, for
    /// ever if the program is killed then, so that is left to a thread.
    pub(super) fn try_accept(stage: &Stage, child: &mut Child) -> Option<Self> {
        let (directory, (connected, connection)) = (stage.path("pipes"), mpsc::channel());
        std::thread::spawn(move || {
            while !directory.join("arguments").exists() {
                if !directory.exists() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = connected.send(Self::connect(&directory));
        });
        let mut pipes = None;
        wait_until("the start of the program", || {
            pipes = connection.try_recv().ok();
            pipes.is_some() || child.try_wait().unwrap().is_some()
        });
        pipes
    }

    fn connect(pipes: &Path) -> Self {
        let words = fs::read_to_string(pipes.join("arguments")).unwrap();
        fs::remove_file(pipes.join("arguments")).unwrap();
        let arguments = words.split_terminator('\0').map(str::to_owned).collect();
        let input = BufReader::new(File::open(pipes.join("to")).unwrap());
        let output = Some(File::options().write(true).open(pipes.join("from")).unwrap());
        Self { arguments, input, output }
    }

    /// Reads a line. Fails the test at the end of the input.
    pub(super) fn read(&mut self) -> Value {
        self.try_read().expect("a line")
    }

    pub(super) fn try_read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).ok()?;
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Reads until the input ends.
    pub(super) fn read_rest(&mut self) {
        while self.try_read().is_some() {}
    }

    pub(super) fn send(&mut self, line: &Value) {
        self.write(&format!("{line}\n"));
    }

    /// Writes anything.
    pub(super) fn write(&mut self, text: &str) {
        // The other side may be gone.
        let _ = self.output.as_mut().unwrap().write_all(text.as_bytes());
    }

    /// Closes the output.
    pub(super) fn close(&mut self) {
        self.output = None;
    }
}
