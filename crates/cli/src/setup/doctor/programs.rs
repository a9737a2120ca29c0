//! Checks of the machine: programs, the kernel and the terminal.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};

use backstitch::mode::RightsChoice;
use backstitch::ports::Sandbox;

use super::Finding;
use crate::terminal;

pub(super) fn version() -> Finding {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    Finding::fine("version", format!("backstitch {} on {system} {machine}", env!("CARGO_PKG_VERSION")))
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
