//! Child processes: this test binary, started again.
//!
//! A child runs the one test below, which does nothing unless the environment names a role. It reports
//! through a file, because its standard output belongs to the test runner.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "BACKSTITCH_STORE_TEST_ROLE";
const PLACE: &str = "BACKSTITCH_STORE_TEST_PLACE";
const REPORT: &str = "BACKSTITCH_STORE_TEST_REPORT";

/// Instructions of a child.
pub(crate) struct Task {
    /// Working directory.
    pub(crate) place: PathBuf,
    report: File,
}

impl Task {
    /// Reports a line. It is in the file when this returns, even if the process is killed right after.
    pub(crate) fn report(&mut self, line: impl AsRef<str>) {
        let line = format!("{}\n", line.as_ref());
        self.report.write_all(line.as_bytes()).expect("a child can write its report");
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.place.join("store.db")
    }
}

#[test]
fn a_child_does_what_it_is_told() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let variable =
        |name| PathBuf::from(std::env::var_os(name).expect("a child's environment names its directory"));
    let report = OpenOptions::new().append(true).create(true).open(variable(REPORT));
    let mut task = Task { place: variable(PLACE), report: report.expect("a child can write its report") };
    match role.as_str() {
        "import" => super::bundle::kills::import(&mut task),
        "create" => super::creation::create(&mut task),
        "hold" => super::claims::hold(&mut task),
        "take" => super::queue::take(&mut task),
        "limited" => super::full::limited(&mut task),
        "unprivileged" => super::opening::unprivileged(&mut task),
        "hammer" => super::hammer::strike(&mut task),
        other => panic!("there is no role {other:?}"),
    }
}

/// Command that starts a child.
pub(crate) fn command(role: &str, place: &Path, report: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own binary"));
    command
        .args(["--exact", "sqlite::child::a_child_does_what_it_is_told", "--nocapture"])
        .env(ROLE, role)
        .env(PLACE, place)
        .env(REPORT, report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The same, but a write beyond the file size limit fails instead of killing the process.
pub(crate) fn command_ignoring_file_size_signal(role: &str, place: &Path, report: &Path) -> Command {
    let plain = command(role, place, report);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A child that is killed on drop.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.spawn().expect("a child can be started"))
    }

    /// Kills the process at once, like `kill -9`.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a killed child ends");
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).expect("a child can be signalled");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a line with this prefix in a report, and returns the rest of the line.
pub(crate) fn wait_for(report: &Path, start: &str) -> String {
    let patience = Instant::now();
    loop {
        let text = std::fs::read_to_string(report).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        if let Some(rest) = whole.lines().find_map(|line| line.strip_prefix(start)) {
            return rest.trim().to_owned();
        }
        assert!(patience.elapsed() < Duration::from_secs(60), "the child never said {start:?}: {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
