//! Checks of the machine: programs, the kernel and the terminal.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use backstitch::mode::RightsChoice;
use backstitch::ports::Sandbox;

use super::Finding;
use crate::setup::version;
use crate::terminal;

pub(super) fn version() -> Finding {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let (number, commit) = (env!("CARGO_PKG_VERSION"), version::COMMIT);
    let text =
        format!("backstitch {number} (commit {commit}) on {system} {machine}, with {}", version::FEATURES);
    Finding::fine("version", text)
}

/// Places of the root certificates that HTTPS needs, in the usual distributions.
const CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Reports whether servers can be trusted over HTTPS. Other systems than Linux have certificates of their own.
pub(super) fn certificates() -> Option<Finding> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let found = named.chain(CERTIFICATES.iter().map(PathBuf::from)).find(|path| path.exists());
    Some(match found {
        Some(path) => Finding::fine("certs", format!("root certificates in {}", path.display())),
        None => Finding::notice(
            "certs",
            "there are no root certificates, so HTTPS fails: no model of a provider can be asked",
            "install `ca-certificates`, or name a file in SSL_CERT_FILE",
        ),
    })
}

/// Reports whether schedules can use time zones. `None` if they can.
pub(super) fn time_zones() -> Option<Finding> {
    let is_known = jiff::tz::TimeZone::get("Europe/Berlin").is_ok();
    let advice = "schedules in a time zone need them: install `tzdata`";
    (!is_known).then(|| Finding::notice("time zones", "there is no database of time zones", advice))
}

pub(super) fn git() -> Finding {
    match output_of("git", &["--version"]) {
        Ok(text) => Finding::fine("git", text),
        Err(error) => Finding::notice(
            "git",
            format!("git cannot be run: {error}"),
            "sessions need no git, but agents often use it: install it",
        ),
    }
}

pub(super) fn shell() -> Finding {
    match output_of("/bin/sh", &["-c", "echo works"]) {
        Ok(_) => Finding::fine("shell", "/bin/sh"),
        Err(error) => Finding::broken(
            "shell",
            format!("/bin/sh cannot be run: {error}"),
            "the tool `shell` needs it; `--tools` offers others",
        ),
    }
}

/// Runs a program, and returns the first line of its output.
fn output_of(program: &str, arguments: &[&str]) -> io::Result<String> {
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if !ran.status.success() {
        return Err(io::Error::other(format!("it ended with {}", ran.status)));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).lines().next().unwrap_or_default().to_owned())
}

/// Reports whether the kernel can confine commands to the workspace.
pub(super) fn sandbox() -> Finding {
    let support = backstitch::host::probe();
    let missing = support.missing(&Sandbox::workspace());
    if missing.is_none() {
        let sockets = if support.distinguishes_sockets() {
            "sockets inside of the workspace are told from others"
        } else {
            "sockets of other programs are refused, also inside of the workspace (Landlock 9 tells them apart)"
        };
        return Finding::fine("sandbox", format!("{support}; {sockets}; {}", default_line(true)));
    }
    let missing = missing.unwrap_or_default();
    if support.confines() {
        return Finding::notice("sandbox", support.to_string(), missing);
    }
    let advice = format!(
        "{missing}; so new sessions ask you before each change and each command, and `--approve auto` does not ask"
    );
    Finding::notice("sandbox", support.to_string(), advice)
}

/// Describes the mode of new sessions.
fn default_line(confines: bool) -> String {
    format!("new sessions by default: {}", RightsChoice::default().resolve(confines))
}

/// Reports whether commands run in namespaces of their own.
pub(super) fn namespaces() -> Finding {
    if backstitch::host::has_namespaces() {
        let text = "commands in the sandbox have PID, IPC and mount namespaces of their own";
        return Finding::fine("namespaces", text);
    }
    let advice = "commands can change the priority of other processes of yours, and use their shared memory: the system allows \
                  no namespaces (as an ordinary user, `user.max_user_namespaces` and AppArmor decide)";
    Finding::notice("namespaces", "commands have no PID, IPC and mount namespaces of their own", advice)
}

/// Reports whether every process of a call ends with it.
pub(super) fn processes() -> Finding {
    if backstitch::host::has_supervisor() {
        return Finding::fine("processes", "each command has a supervisor, which ends all that it started");
    }
    let advice = "a command that erases its environment can leave a process: look for them yourself";
    Finding::notice("processes", "commands have no supervisor on this system", advice)
}

pub(super) fn terminal() -> Finding {
    let is = |is_terminal: bool| if is_terminal { "a terminal" } else { "not a terminal" };
    let name = std::env::var("TERM").unwrap_or_else(|_| "unset".to_owned());
    let colors = if terminal::style::stdout_has_colors() { "with colours" } else { "without colours" };
    let text = format!(
        "standard input is {}, standard output is {} ({} columns, {colors}), TERM is {name}",
        is(io::stdin().is_terminal()),
        is(io::stdout().is_terminal()),
        terminal::columns(),
    );
    Finding::fine("terminal", text)
}

/// Returns the engines that are installed, with their versions.
#[cfg(feature = "bridge")]
pub(super) fn engines() -> Vec<Finding> {
    let found = backstitch_bridge::installations().into_iter().filter_map(|engine| {
        let path = engine.path?;
        let version = engine.version.unwrap_or_else(|| "in an unknown version".to_owned());
        let text = format!("{} {version} at {}", engine.title, path.display());
        Some(match engine.problem {
            Some(problem) => Finding::notice("engine", text, problem),
            None => Finding::fine("engine", text),
        })
    });
    found.collect()
}
