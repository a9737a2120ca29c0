//! A directory with files and a store, in which the command is run.

use std::cell::Cell;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::Ran;
use crate::model::{MODEL, Model};

/// Time limit of [`wait_until`].
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    directory: std::sync::Arc<tempfile::TempDir>,
    variables: Vec<(String, String)>,
    is_confined: bool,
    is_of_ordinary_user: bool,
}

/// An ordinary user.
const NOBODY: u32 = 65_534;

thread_local! {
    /// Whether confined stages belong to an ordinary user.
    static ARE_ORDINARY: Cell<bool> = const { Cell::new(false) };
}

/// Runs tests again, whose confined stages belong to an ordinary user. Only the superuser can do that.
pub(crate) fn run_as_ordinary_user(tests: &[fn()]) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    ARE_ORDINARY.set(true);
    tests.iter().for_each(|test| test());
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("files")).unwrap();
        Self {
            directory: directory.into(),
            variables: Vec::new(),
            is_confined: false,
            is_of_ordinary_user: false,
        }
    }

    /// A stage whose agents run commands in the default sandbox. On others the sandbox is off, so that
    /// commands can leave marks beside the workspace.
    pub(crate) fn confined() -> Self {
        let stage = Self { is_confined: true, ..Self::new() };
        if ARE_ORDINARY.get() { stage.of_ordinary_user() } else { stage }
    }

    /// A stage in the same directory, with other variables.
    #[cfg(feature = "crash-points")]
    pub(crate) fn beside(other: &Self) -> Self {
        Self {
            directory: other.directory.clone(),
            variables: Vec::new(),
            is_confined: other.is_confined,
            is_of_ordinary_user: other.is_of_ordinary_user,
        }
    }

    /// Sets an environment variable of the command.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Gives the stage to an ordinary user, who runs a copy of the command. Only the superuser can do that.
    pub(crate) fn of_ordinary_user(mut self) -> Self {
        // Not by this process: one that another thread starts would inherit the file while it is written, and could not be replaced
        // before it is executed.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_backstitch")).arg(self.path("backstitch"));
        assert!(copy.status().unwrap().success());
        let owner = format!("{NOBODY}:{NOBODY}");
        let given = Command::new("chown").args(["-R", &owner]).arg(self.directory.path()).status().unwrap();
        assert!(given.success());
        self.is_of_ordinary_user = true;
        self
    }

    /// Sets the variables of the stage for a command, which its user runs.
    pub(crate) fn as_its_user(&self, mut command: Command) -> Command {
        command.envs(self.variables.iter().cloned());
        if self.is_of_ordinary_user {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file beside the workspace, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        text_of(&self.path(name))
    }

    /// Reads a file of the workspace.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path("files").join(name)).ok()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = match self.is_of_ordinary_user {
            true => self.path("backstitch"),
            false => PathBuf::from(env!("CARGO_BIN_EXE_backstitch")),
        };
        let mut command = Command::new(program);
        command.current_dir(self.path("files")).arg("--store").arg(self.path("store/store.db"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.ends_with("_API_KEY")) {
            command.env_remove(name);
        }
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("BACKSTITCH_") || name.starts_with("OTEL_"))
        {
            command.env_remove(name);
        }
        // The settings of the person who runs the tests do not apply.
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_STATE_HOME", self.path("state"));
        // Nor do commands and skills of other programs that this person has.
        if !self.variables.iter().any(|(name, _)| name == "HOME") {
            command.env("CLAUDE_CONFIG_DIR", self.path("claude")).env("CODEX_HOME", self.path("codex"));
        }
        let mut command = self.as_its_user(command);
        match arguments {
            [first @ ("run" | "chat"), rest @ ..] if !self.is_confined && !rest.contains(&"--help") => {
                command.args([first, "--sandbox", "off"]).args(rest)
            }
            _ => command.args(arguments),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        Ran {
            code: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the arguments that start a session with a model on loopback.
    pub(crate) fn asking<'a>(provider: &str, model: &'a Model, more: &[&'a str]) -> Vec<String> {
        let name = format!("{provider}:{MODEL}");
        let first = ["run", "Mend it", "--model", &name, "--base-url", &model.url];
        first.iter().chain(more).map(|text| (*text).to_owned()).collect()
    }

    /// Runs the command with `--json`, and returns the last line.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        last_line(&self.run(&all).worked_quietly())
    }

    /// Returns the id of the latest session.
    pub(crate) fn session(&self) -> String {
        self.json(&["ls", "--limit", "1"])["session"].as_str().unwrap().to_owned()
    }

    /// Reads all files of the store.
    pub(crate) fn stored_bytes(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.path("store")).unwrap();
        files.filter_map(|file| std::fs::read(file.unwrap().path()).ok()).flatten().collect()
    }
}

/// Parses the last line of an output as JSON.
pub(crate) fn last_line(output: &str) -> Value {
    serde_json::from_str(output.lines().last().unwrap()).unwrap()
}

pub(crate) fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends SIGINT, and waits for the end.
pub(crate) fn interrupt(child: Child) -> Ran {
    signal(&child, "INT");
    ended(child)
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for the end of a command.
pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Writes a script of replies beside the workspace, and returns the name of its model.
pub(crate) fn scripted(stage: &Stage, replies: &Value) -> String {
    format!("scripted:{}", stage.write("script.json", &serde_json::json!({"reply": replies}).to_string()))
}

pub(crate) fn as_slices(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
