//! Commands and servers that try to use the terminal of the person.
//!
//! The runtime runs on a real terminal. A command that could open it, take it over, type into it or change it would show
//! that in its output, and the terminal would show what was painted.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::ports::{ProcessSpec, Sandbox};
use backstitch_runtime::{ServerProcess, SystemClock, fresh_ids};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::{OrdinaryUser, name_supervisor, shell};
use crate::disk::Disk;

/// Prints each attempt that succeeds. `TIOCSTI` is 0x5412, `TIOCSCTTY` is 0x540e, `TIOCSPGRP` is 0x5410. The terminal of the person is the
/// one argument.
const ATTACKS: &str = r#"
use POSIX;
$SIG{TTOU} = 'IGNORE'; $SIG{TTIN} = 'IGNORE';
sub attempt { my ($name, $done) = @_; print "$name WORKED\n" if $done; }
sub abuse {
    my ($name, $fd) = @_;
    attempt("$name: typing", ioctl($fd, 0x5412, $_)) for split //, "touch pwned\n";
    attempt("$name: foreground", POSIX::tcsetpgrp(fileno($fd), getpgrp()));
    attempt("$name: foreground by number", ioctl($fd, 0x5410, pack("i", getpgrp())));
}
sub attack {
    my ($who) = @_;
    if (open(my $tty, "+<", "/dev/tty")) {
        print "$who: /dev/tty WORKED\n";
        syswrite($tty, "\e]0;painted\a\e]52;c;cGFpbnRlZA==\apainted");
        abuse("$who: /dev/tty", $tty);
        system("stty -echo < /dev/tty");
    }
    abuse("$who: standard input", \*STDIN);
    abuse("$who: standard output", \*STDOUT);
    abuse("$who: standard error", \*STDERR);
    if (open(my $tty, "+<", $ARGV[0])) {
        attempt("$who: made it the own terminal", ioctl($tty, 0x540e, 0) || ioctl($tty, 0x540e, 1));
        abuse("$who: terminal by path", $tty);
    }
    for my $number (3 .. 30) {
        attempt("$who: inherited $number", 1) if open(my $held, ">&=", $number) && -t $held;
    }
}
attack("process");
if (my $child = fork) { waitpid($child, 0) } else { setsid(); attack("session"); exit }
print "done\n";
"#;

/// Not a test: the runtime that the next tests start on a terminal.
#[tokio::test]
#[ignore = "started by another test"]
async fn a_runtime_on_a_terminal() {
    let Some(report) = std::env::var_os("BACKSTITCH_TEST_REPORT") else { return };
    name_supervisor();
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("attacks.pl");
    fs::write(&script, ATTACKS).unwrap();
    let terminal = fs::read_link("/proc/self/fd/0").unwrap();
    assert!(fs::File::open("/dev/tty").is_ok(), "this process has a terminal");
    let command = format!("perl {} {}", script.display(), terminal.display());
    let mut text = String::new();
    let mut sandboxes = vec![Sandbox::workspace(), Sandbox::read_only().without_network()];
    if !rustix::process::geteuid().is_root() {
        // The superuser can do everything with every terminal.
        sandboxes.push(Sandbox::off());
    }
    for sandbox in sandboxes {
        let disk = Disk::new();
        let harness = disk.harness(vec![shell(sandbox.clone(), Duration::from_secs(100))]).await;
        text += &format!("{:?}\n", harness.run("shell", json!({"command": command})).await);
        let server = ProcessSpec::shell(&command).without_files().sandbox(sandbox);
        let mark = fresh_ids(Arc::new(SystemClock::default())).unwrap().next();
        let (server, mut streams) = ServerProcess::start(server, None, mark).await.unwrap();
        streams.stdout.read_to_string(&mut text).await.unwrap();
        server.end().await.unwrap();
    }
    fs::write(report, text).unwrap();
}

/// Runs the runtime on a terminal, and returns its report, what the terminal showed, and what is left in its input.
fn run_on_terminal(user: Option<&OrdinaryUser>) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let report = directory.path().join("report");
    let (mut terminal, side) = pty_process::blocking::open().unwrap();
    let tests = user.map_or_else(|| std::env::current_exe().unwrap(), OrdinaryUser::tests);
    // What was typed into the terminal is read by the shell afterwards, as that of a person would.
    let mut command = std::process::Command::new("/bin/sh");
    let script = "stty -echo; \"$@\" > /dev/null 2>&1; stty -icanon min 0 time 0; echo \"left:$(cat):$(stty -g | wc -w)\"; echo over";
    command.args(["-c", script, "sh"]).arg(tests);
    command.args(["--exact", "escape::terminals::a_runtime_on_a_terminal", "--ignored"]);
    command.env("BACKSTITCH_TEST_REPORT", &report).env("TMPDIR", directory.path());
    if let Some(user) = user {
        let path: PathBuf = fs::read_link(Path::new("/proc/self/fd").join(fd_of(&side))).unwrap();
        std::os::unix::fs::chown(path, Some(super::NOBODY), None).unwrap();
        user.run(&mut command);
    }
    let mut child = pty_process::blocking::Command::from(command).spawn(side).unwrap();
    let mut shown = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..count]);
    }
    child.wait().unwrap();
    (fs::read_to_string(report).unwrap_or_default(), String::from_utf8_lossy(&shown).into_owned())
}

fn fd_of(side: &impl std::os::fd::AsRawFd) -> String {
    side.as_raw_fd().to_string()
}

fn assert_untouched((report, shown): (String, String), times: usize) {
    assert_eq!(report.matches("done").count(), times, "{report}");
    assert!(!report.contains("WORKED"), "{report}");
    assert!(shown.contains("left::") && shown.contains("over"), "{shown:?}");
    assert!(!shown.contains("painted") && !shown.contains("touch"), "{shown:?}");
}

#[test]
fn no_command_and_no_server_reaches_the_terminal() {
    let sandboxes = if rustix::process::geteuid().is_root() { 2 } else { 3 };
    assert_untouched(run_on_terminal(None), 2 * sandboxes);
    if let Some(user) = OrdinaryUser::new() {
        assert_untouched(run_on_terminal(Some(&user)), 6);
    }
}
