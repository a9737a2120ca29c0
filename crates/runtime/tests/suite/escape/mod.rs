//! Attempts of processes to get out of reach of their supervisor: to live longer than their call or server, and to use
//! the terminal of the person.
//!
//! They run without and with a sandbox, as the user of the tests, and, if that is the superuser, as an ordinary user too.

mod confined;
mod processes;
mod servers;
mod terminals;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_core::journal::Effect;
use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_core::tool::{Tool, ToolContext, ToolResult};
use backstitch_runtime::set_supervisor;
use schemars::JsonSchema;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::Deserialize;

/// The variable with the path of the supervisor, for a user who cannot read that of the build. If it is empty there is none,
/// which shows that the tests fail without one.
pub(crate) const SUPERVISOR: &str = "BACKSTITCH_TEST_SUPERVISOR";

/// An ordinary user.
const NOBODY: u32 = 65_534;

pub(crate) fn name_supervisor() {
    let copy = std::env::var_os(SUPERVISOR);
    let path = copy.unwrap_or_else(|| OsString::from(env!("CARGO_BIN_EXE_backstitch-supervisor")));
    if !path.is_empty() {
        set_supervisor(path);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Shell {
    command: String,
}

/// A tool that runs a shell command.
fn shell(sandbox: Sandbox, limit: Duration) -> Tool {
    let builder = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::Workspace);
    builder.timeout(Duration::from_secs(300)).handler(move |context: ToolContext, shell: Shell| {
        let spec = ProcessSpec::shell(shell.command).sandbox(sandbox.clone()).timeout(limit);
        async move {
            let outcome = context.run_process(spec).await?;
            let text = format!("{}|{}|{}", outcome.exit, outcome.stdout.text(), outcome.stderr.text());
            if outcome.success() { Ok(ToolResult::ok(text)) } else { Ok(ToolResult::failed(text)) }
        }
    })
}

/// A named pipe. A process that has it open for writing, under whatever name, environment, session or parent, is noticed.
struct Hold {
    path: PathBuf,
    reader: File,
}

impl Hold {
    fn new(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let reader = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).unwrap();
        Self { path, reader }
    }

    /// Reads what the holders have written. Returns whether there is a holder.
    fn read(&self, into: &mut Vec<u8>) -> bool {
        match (&self.reader).read_to_end(into) {
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => panic!("{error}"),
        }
    }

    fn is_held(&self) -> bool {
        self.read(&mut Vec::new())
    }

    /// Waits until so many holders have written a line, for up to a minute on a busy machine.
    fn await_holders(&self, count: usize) {
        let mut text = Vec::new();
        await_that("the holders", || {
            self.read(&mut text);
            text.iter().filter(|byte| **byte == b'\n').count() >= count
        });
    }

    /// Waits until no process holds it.
    fn await_release(&self, what: &str) {
        await_that(what, || !self.is_held());
    }
}

/// Waits for a condition, for up to a minute on a busy machine.
#[track_caller]
fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits on a thread of its own, so that the runtime works meanwhile.
async fn aside<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(wait).await.unwrap()
}

/// A directory that an ordinary user can write, with copies of this program and the supervisor that the user can execute.
pub(crate) struct OrdinaryUser {
    directory: tempfile::TempDir,
}

impl OrdinaryUser {
    /// Returns `None` if this process is not that of the superuser.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let directory =
            tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let programs = [
            ("tests", std::env::current_exe().unwrap()),
            ("supervisor", env!("CARGO_BIN_EXE_backstitch-supervisor").into()),
        ];
        for (name, path) in programs {
            // By a program: a process that another thread starts would hold a file that this process writes, and a file that is written cannot be run.
            let copied = Command::new("cp").arg(path).arg(directory.path().join(name)).status().unwrap();
            assert!(copied.success(), "{name}");
            fs::set_permissions(directory.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        let home = directory.path().join("home");
        fs::create_dir(&home).unwrap();
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        Some(Self { directory })
    }

    /// The program with the tests.
    pub(crate) fn tests(&self) -> PathBuf {
        self.directory.path().join("tests")
    }

    /// Lets this user run a command.
    pub(crate) fn run(&self, command: &mut Command) {
        let home = self.directory.path().join("home");
        command.uid(NOBODY).gid(NOBODY).env(SUPERVISOR, self.directory.path().join("supervisor"));
        command.env("TMPDIR", &home).env("HOME", &home).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.current_dir(home);
    }
}

/// `clone3`, with which namespaces are made.
const NAMESPACES: i64 = 435;

/// Runs a test of this program as an ordinary user. Skipped if this process has one already.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn run_as_ordinary_user(test: &str) {
    let Some(user) = OrdinaryUser::new() else {
        eprintln!("SKIPPED: only the superuser can become another user");
        return;
    };
    run_test(test, Some(&user), &[]);
}

/// Runs a test of this program as on a system without namespaces, as this user and as an ordinary one.
fn run_without_namespaces(test: &str) {
    run_test(test, None, &[NAMESPACES]);
    if let Some(user) = OrdinaryUser::new() {
        run_test(test, Some(&user), &[NAMESPACES]);
    }
}

/// Runs a test of this program, as on a system that lacks these calls.
fn run_test(test: &str, user: Option<&OrdinaryUser>, absent: &[i64]) {
    let tests = user.map_or_else(|| std::env::current_exe().unwrap(), OrdinaryUser::tests);
    let mut command = Command::new(tests);
    command.args(["--exact", test, "--nocapture", "--include-ignored"]).stdin(Stdio::null());
    if let Some(user) = user {
        user.run(&mut command);
    }
    let rules = absent.iter().map(|number| (*number, Vec::new())).collect();
    let (allow, refuse) = (SeccompAction::Allow, SeccompAction::Errno(38));
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter: BpfProgram =
        SeccompFilter::new(rules, allow, refuse, architecture).unwrap().try_into().unwrap();
    // The filter applies to a thread and to what it starts.
    let started = std::thread::spawn(move || {
        seccompiler::apply_filter(&filter).unwrap();
        command.output().unwrap()
    });
    let ran = started.join().unwrap();
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && output.contains("1 passed"), "{output}");
}
