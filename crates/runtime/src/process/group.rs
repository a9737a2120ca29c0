//! One process group: its leader, its watchdog, and its end.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use backstitch_core::ports::{ProcessError, ProcessExit};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::sync::oneshot;

use super::family::{self, Member};
use super::identity::{self, MARK};
use super::prepare::PreparedProcess;

/// The input on which a waiting process executes the program.
pub(super) const GO: &[u8] = b"go\n";

/// Waits for [`GO`]. It exits at the end of its input, which comes when this process dies. Its number is that
/// of the group, and all its descendants inherit it.
const WAITING: &str =
    r#"IFS= read -r word && [ "$word" = go ] && export BACKSTITCH_GROUP=$$ && exec "$@"; exit 125"#;

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
    /// Not waited for until the group is killed, so that its number cannot be reused.
    leader: Child,
    watchdog: Option<Child>,
    id: Pid,
    started: String,
    exited: oneshot::Receiver<()>,
    /// Whether that was received.
    has_exited: bool,
    timed_out: bool,
    ended: bool,
}

impl Group {
    /// Starts a process that waits for [`GO`], and its watchdog.
    pub(super) fn start(prepared: &PreparedProcess) -> Result<(Self, Pipes), ProcessError> {
        let failed = |source: io::Error| ProcessError::Start {
            program: prepared.program.display().to_string(),
            source: source.into(),
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WAITING, "sh"]).arg(&prepared.program).args(&prepared.arguments);
        for (name, value) in &prepared.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(&prepared.directory).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let leader = match &prepared.confinement {
            Some(confinement) => confinement.start(move || command.spawn())?,
            None => command.spawn(),
        };
        let mut leader = leader.map_err(failed)?;
        let id = Pid::from_child(&leader);
        let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
        let (tell, exited) = oneshot::channel();
        let started = identity::started(id);
        let mut group = Self {
            leader,
            watchdog: None,
            id,
            started: started.clone().unwrap_or_default(),
            exited,
            has_exited: false,
            timed_out: false,
            ended: false,
        };
        // From here on a failure drops the group, which kills it.
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        if started.is_none() {
            return Err(failed(io::Error::other("its start time is not available")));
        }
        let mark = prepared.environment.iter().find(|(name, _)| name == MARK);
        let mark = mark.and_then(|(_, value)| value.as_deref()).filter(|mark| !mark.is_empty());
        group.watchdog = Some(watchdog(id, mark).map_err(failed)?);
        let wait = move || {
            await_exit(id);
            let _ = tell.send(());
        };
        std::thread::Builder::new()
            .name("backstitch-child".to_owned())
            .stack_size(64 * 1024)
            .spawn(wait)
            .map_err(failed)?;
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    /// Returns the group's number.
    pub(super) fn number(&self) -> u32 {
        self.leader.id()
    }

    /// Returns the start time of its leader.
    pub(super) fn started(&self) -> &str {
        &self.started
    }

    /// Completes when the leader has ended.
    pub(super) async fn exited(&mut self) {
        if !self.has_exited {
            let _ = (&mut self.exited).await;
            self.has_exited = true;
        }
    }

    pub(super) fn timed_out(&mut self) {
        self.timed_out = true;
    }

    pub(super) fn has_timed_out(&self) -> bool {
        self.timed_out
    }

    /// Kills the rest of the group, and waits until it is gone.
    pub(super) fn end(mut self) -> Result<ProcessExit, ProcessError> {
        let status = self.kill();
        await_gone(self.id)?;
        Ok(if self.timed_out { ProcessExit::TimedOut } else { exit_of(status) })
    }

    /// Kills the group, then its watchdog, and reaps the leader last: until then its number is not reused.
    fn kill(&mut self) -> Option<ExitStatus> {
        self.ended = true;
        // Processes that left the group are found as long as their parent runs.
        let family = if has_exited(self.id) { Vec::new() } else { family::descendants(self.id) };
        let _ = kill_process_group(self.id, Signal::KILL);
        if let Some(watchdog) = &mut self.watchdog {
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
    match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ProcessExit::Code(code),
            (None, Some(signal)) => ProcessExit::Signal(signal),
            (None, None) => ProcessExit::Code(-1),
        },
        // Another part of this process reaped it.
        None => ProcessExit::Code(-1),
    }
}
