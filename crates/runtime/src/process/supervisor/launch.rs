//! The start of a process, in its limits.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use super::super::identity::GROUP_MARK;
use super::super::sandbox;
use super::protocol::{Order, Report};

/// `ENOEXEC`: a script without a first line that names its interpreter.
const NOT_EXECUTABLE: i32 = 8;

/// Why a process was not started.
pub(super) enum StartError {
    Confinement(String),
    System(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl StartError {
    /// Returns the error of a report that another process has sent.
    pub(super) fn of(report: Report) -> Self {
        match report {
            Report::NotConfined { reason } => Self::Confinement(reason),
            Report::NotStarted { code: Some(code), .. } => Self::System(io::Error::from_raw_os_error(code)),
            Report::NotStarted { code: None, reason } => Self::System(io::Error::other(reason)),
            _ => Self::System(io::Error::other("the start was not reported")),
        }
    }

    /// Returns the report of this error.
    pub(super) fn report(self) -> Report {
        match self {
            Self::Confinement(reason) => Report::NotConfined { reason },
            Self::System(error) => {
                Report::NotStarted { code: error.raw_os_error(), reason: error.to_string() }
            }
        }
    }
}

/// Starts the process, in a group of its own: a signal that it sends to its group does not reach this process.
/// Its limits are those of the thread that starts it, which ends with that. `supervisor` becomes the mark of its group.
pub(super) fn start(order: &Order, streams: [OwnedFd; 3], supervisor: u32) -> Result<Pid, StartError> {
    let work = move || {
        if let Some(limits) = &order.limits {
            sandbox::enter(limits).map_err(StartError::Confinement)?;
        }
        let command = |program| command(order, program, &streams, supervisor);
        let started = match command(Command::new(&order.program))?.spawn() {
            Err(error) if error.raw_os_error() == Some(NOT_EXECUTABLE) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg(&order.program);
                command(shell)?.spawn()
            }
            started => started,
        };
        // Everything is reaped by the caller, so its handle is not needed.
        Ok(Pid::from_child(&started?))
    };
    std::thread::scope(|scope| {
        let starting = std::thread::Builder::new().name("sandbox".to_owned()).spawn_scoped(scope, work)?;
        starting.join().unwrap_or_else(|_| Err(StartError::System(io::Error::other("the start panicked"))))
    })
}

fn command(
    order: &Order,
    mut command: Command,
    [stdin, stdout, stderr]: &[OwnedFd; 3],
    supervisor: u32,
) -> io::Result<Command> {
    command.args(&order.arguments).current_dir(&order.directory).process_group(0);
    command.env_clear().envs(order.environment.iter().map(|(name, value)| (name, value)));
    command.env(GROUP_MARK, supervisor.to_string());
    let stream = |stream: &OwnedFd| stream.try_clone().map(Stdio::from);
    command.stdin(stream(stdin)?).stdout(stream(stdout)?).stderr(stream(stderr)?);
    Ok(command)
}
