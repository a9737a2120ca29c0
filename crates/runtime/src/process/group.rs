//! One process group: its leader, what guards it, and its end.
//!
//! The leader is a supervisor if the program has one. Otherwise it is a shell that becomes the program, and another
//! shell watches it.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use backstitch_core::extra::Extra;
use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{ProcessError, ProcessExit};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::sync::oneshot;

use super::family::{self, Member};
use super::identity::{self, MARK};
use super::prepare::PreparedProcess;
#[cfg(target_os = "linux")]
use super::supervisor::{Started, Supervision};

/// Programs that execute another one in a session of its own. They keep the number of the process, because it does not
/// lead a group yet.
const SETSID: [&str; 2] = ["/usr/bin/setsid", "/bin/setsid"];

/// The input on which a waiting shell executes the program.
const GO: &[u8] = b"go\n";

/// Waits for [`GO`]. It closes the descriptors that a shell can name, and exits at the end of its input, which
/// comes when this process dies. Its number is that of the group, and all its descendants inherit it.
const WAITING: &str = r#"exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
IFS= read -r word && [ "$word" = go ] && export BACKSTITCH_GROUP=$$ && exec "$@"; exit 125"#;

/// Waits for the end of its input, which comes when this process dies, and kills the group, and then the processes that
/// left it and carry its mark. Nothing is ever written to it.
const WATCHING: &str = r#"read -r _ || {
kill -s KILL -- "-$1"
[ -n "$2" ] && for found in $(grep -laF "$2" /proc/[0-9]*/environ 2>/dev/null); do
  found=${found#/proc/}
  kill -s KILL "${found%/environ}" 2>/dev/null
done
}"#;

/// How long a killed group may take to disappear. Only the kernel can delay it.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// This process's ends of a leader's pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A process group. Dropping it kills it.
pub(super) struct Group {
    /// The supervisor, or the process itself. Not waited for until the group is killed, so that its number cannot be
    /// reused.
    leader: Child,
    guard: Guard,
    id: Pid,
    /// The start time of its leader.
    pub(super) started: String,
    exited: oneshot::Receiver<()>,
    /// Whether that was received.
    has_exited: bool,
    pub(super) timed_out: bool,
    ended: bool,
}

/// What ends the group if this process dies.
enum Guard {
    #[cfg(target_os = "linux")]
    Supervisor(Supervision),
    Watchdog(Option<Child>),
}

impl Group {
    /// Starts a process that waits for [`release`](Self::release).
    pub(super) fn start(prepared: &PreparedProcess) -> Result<(Self, Pipes), ProcessError> {
        let (sender, exited) = oneshot::channel();
        #[cfg(target_os = "linux")]
        let sender = match Supervision::start(prepared, sender)? {
            Started::Supervised(leader, supervision, pipes) => {
                let group = Self::new(prepared, leader, Guard::Supervisor(supervision), exited)?;
                return Ok((group, pipes));
            }
            Started::Unsupervised(sender) => sender,
        };
        let failed = |source: io::Error| ProcessError::Start {
            program: prepared.program.display().to_string(),
            source: source.into(),
        };
        let mut leader = start_waiting(prepared)?.map_err(failed)?;
        let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
        let mut group = Self::new(prepared, leader, Guard::Watchdog(None), exited)?;
        // From here on a failure drops the group, which kills it.
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let id = group.id;
        group.guard = Guard::Watchdog(Some(watchdog(id, prepared.mark()).map_err(failed)?));
        let wait = move || {
            await_exit(id);
            let _ = sender.send(());
        };
        std::thread::Builder::new()
            .name("backstitch-child".to_owned())
            .stack_size(64 * 1024)
            .spawn(wait)
            .map_err(failed)?;
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    fn new(
        prepared: &PreparedProcess,
        leader: Child,
        guard: Guard,
        exited: oneshot::Receiver<()>,
    ) -> Result<Self, ProcessError> {
        let id = Pid::from_child(&leader);
        let started = identity::started(id);
        let is_known = started.is_some();
        let group = Self {
            leader,
            guard,
            id,
            started: started.unwrap_or_default(),
            exited,
            has_exited: false,
            timed_out: false,
            ended: false,
        };
        if is_known {
            return Ok(group);
        }
        let source = io::Error::other("its start time is not available").into();
        Err(ProcessError::Start { program: prepared.program.display().to_string(), source })
    }

    /// Lets the program run, once its group is recorded. Returns what has to be written to its input before
    /// anything else.
    pub(super) fn release(&self) -> &'static [u8] {
        match &self.guard {
            #[cfg(target_os = "linux")]
            Guard::Supervisor(supervision) => {
                supervision.release();
                b""
            }
            Guard::Watchdog(_) => GO,
        }
    }

    /// Returns the group's number.
    pub(super) fn number(&self) -> u32 {
        self.leader.id()
    }

    /// Returns what is recorded of the group, so that it can be ended after a crash.
    pub(super) fn identity(&self, call: CallId, program: &str) -> ProcessStarted {
        ProcessStarted {
            call_id: call,
            program: program.to_owned(),
            group: self.number(),
            started: self.started.clone(),
            boot: identity::boot().to_owned(),
            extra: Extra::default(),
        }
    }

    /// Completes when the leader has ended.
    pub(super) async fn wait_for_exit(&mut self) {
        if !self.has_exited {
            let _ = (&mut self.exited).await;
            self.has_exited = true;
        }
    }

    /// Kills the rest of the group, and waits until it is gone.
    pub(super) fn end(mut self) -> Result<ProcessExit, ProcessError> {
        let status = self.kill();
        await_gone(self.id)?;
        #[cfg(target_os = "linux")]
        if let Guard::Supervisor(supervision) = &self.guard {
            let exit = supervision.exit()?.unwrap_or_else(|| exit_of(status));
            return Ok(if self.timed_out { ProcessExit::TimedOut } else { exit });
        }
        Ok(if self.timed_out { ProcessExit::TimedOut } else { exit_of(status) })
    }

    /// Kills the group, then its watchdog, and reaps the leader last: until then its number is not reused.
    fn kill(&mut self) -> Option<ExitStatus> {
        self.ended = true;
        let watchdog = match &mut self.guard {
            #[cfg(target_os = "linux")]
            Guard::Supervisor(supervision) => return supervision.end(&mut self.leader),
            Guard::Watchdog(watchdog) => watchdog,
        };
        // Processes that left the group are found as long as their parent runs.
        let family = if has_exited(self.id) { Vec::new() } else { family::descendants(self.id) };
        let _ = kill_process_group(self.id, Signal::KILL);
        // It may not have made its group yet.
        let _ = self.leader.kill();
        if let Some(watchdog) = watchdog {
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
        family.iter().for_each(Member::kill);
        self.leader.wait().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
    }
}

/// Starts a shell that waits for [`GO`], in a session of its own if the system has a program for that: then it has no
/// terminal. Otherwise it has a group of its own only.
fn start_waiting(prepared: &PreparedProcess) -> Result<io::Result<Child>, ProcessError> {
    let setsid = SETSID.into_iter().find(|path| Path::new(path).exists());
    let mut command = match setsid {
        Some(program) => {
            let mut command = Command::new(program);
            command.arg("/bin/sh");
            command
        }
        None => {
            let mut command = Command::new("/bin/sh");
            command.process_group(0);
            command
        }
    };
    command.args(["-c", WAITING, "sh"]).arg(&prepared.program).args(&prepared.arguments);
    for (name, value) in &prepared.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(&prepared.directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match &prepared.confinement {
        Some(confinement) => confinement.start(move || command.spawn()),
        None => Ok(command.spawn()),
    }
}

fn watchdog(group: Pid, mark: Option<&str>) -> io::Result<Child> {
    // An empty text would be found in every process.
    let mark = mark.map(|mark| format!("{MARK}={mark}")).unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCHING, "sh", &group.as_raw_nonzero().to_string(), &mark]);
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn()
}

/// Waits until a child has ended, without reaping it.
fn await_exit(child: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(child), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
}

/// True if a child has ended. Does not reap it.
fn has_exited(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)))
}

/// Waits until no process of a killed group runs any more. A zombie counts as gone.
pub(super) fn await_gone(group: Pid) -> Result<(), ProcessError> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if test_kill_process_group(group).is_err() {
            return Ok(());
        }
        if pause > Duration::from_millis(5) && identity::members(group).is_empty() {
            return Ok(());
        }
        if began.elapsed() > MOST_PATIENCE {
            return Err(ProcessError::Survives { group: group.as_raw_nonzero().get().unsigned_abs() });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Converts the exit status of the leader.
fn exit_of(status: Option<ExitStatus>) -> ProcessExit {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => ProcessExit::Code(code),
        Some((None, Some(signal))) => ProcessExit::Signal(signal),
        // Without a status, another part of this process reaped it.
        Some((None, None)) | None => ProcessExit::Code(-1),
    }
}
