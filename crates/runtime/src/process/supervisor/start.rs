//! The runtime's side of a supervisor.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use backstitch_core::ports::{ProcessError, ProcessExit};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::oneshot;

use super::super::family::{self, Member, end_descendants};
use super::super::group::{Pipes, await_gone};
use super::super::identity::{self, MARK};
use super::super::prepare::PreparedProcess;
use super::launch::StartError;
use super::protocol::{BUSY, GO, IDLE, Order, Report, send_all};
use super::{NAME, WORD, program_path};

/// How long a supervisor may take to kill everything. Only a process that stops it can delay it for that long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables that a supervisor needs to start.
const KEPT_VARIABLES: [&str; 1] = ["LD_LIBRARY_PATH"];

/// What a supervisor has reported.
#[derive(Default)]
struct Reports {
    /// The process, with its start time. It leads a group.
    process: Option<(Pid, String)>,
    end: Option<Result<ProcessExit, StartError>>,
    /// When the last process was dead.
    gone: Option<SystemTime>,
}

/// A start with a supervisor, or without one.
pub(in super::super) enum Started {
    Supervised(Child, Supervision, Pipes),
    /// This program has no supervisor. The sender is the one that was passed.
    Unsupervised(oneshot::Sender<()>),
}

/// A supervisor that runs, and what it has reported.
pub(in super::super) struct Supervision {
    program: PathBuf,
    control: UnixStream,
    reports: Arc<Mutex<Reports>>,
    /// Disconnected when the supervisor is gone.
    is_gone: Receiver<()>,
}

impl Supervision {
    /// Starts the supervisor of a process, which waits for [`release`](Self::release). `exited` is notified when the process has ended.
    pub(in super::super) fn start(
        prepared: &PreparedProcess,
        exited: oneshot::Sender<()>,
    ) -> Result<Started, ProcessError> {
        let Some(supervisor) = program_path() else { return Ok(Started::Unsupervised(exited)) };
        let failed = |source: io::Error| ProcessError::Start {
            program: prepared.program.display().to_string(),
            source: source.into(),
        };
        let order = order(prepared);
        let (mut leader, control, pipes) =
            spawn(&supervisor, prepared.mark(), &order).map_err(|error| failed(named(&supervisor, error)))?;
        let reports = Arc::<Mutex<Reports>>::default();
        let reading = control.try_clone().and_then(|control| read_reports(control, reports.clone(), exited));
        match reading {
            Ok(is_gone) => {
                let program = prepared.program.clone();
                Ok(Started::Supervised(leader, Self { program, control, reports, is_gone }, pipes))
            }
            Err(error) => {
                let _ = leader.kill();
                let _ = leader.wait();
                Err(failed(error))
            }
        }
    }

    /// Lets the supervisor start the process.
    pub(in super::super) fn release(&self) {
        // A supervisor that is gone has reported nothing, which is seen at the end.
        let _ = send_all(&self.control, &GO);
    }

    /// Lets the supervisor kill everything, waits until it has, and reaps it. Whatever became of the supervisor,
    /// the process and its descendants are killed.
    pub(in super::super) fn end(&self, leader: &mut Child) -> Option<std::process::ExitStatus> {
        let id = Pid::from_child(leader);
        let _ = self.control.shutdown(Shutdown::Write);
        // A process outside of a sandbox can have stopped it.
        let _ = kill_process(id, Signal::CONT);
        if self.is_gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            end_descendants(id);
            let _ = leader.kill();
        }
        let status = leader.wait().ok();
        if let Some((process, _)) = self.abandoned() {
            let descendants = family::descendants(process);
            let _ = kill_process_group(process, Signal::KILL);
            descendants.iter().for_each(Member::kill);
        }
        status
    }

    /// Returns the exit status of the process, after [`end`](Self::end).
    pub(in super::super) fn exit(&self) -> Result<Option<ProcessExit>, ProcessError> {
        if let Some((process, _)) = self.abandoned() {
            await_gone(process)?;
        }
        let end = self.reports().end.take();
        end.transpose().map_err(|error| match error {
            StartError::Confinement(reason) => ProcessError::Sandbox { reason },
            StartError::System(source) => {
                ProcessError::Start { program: self.program.display().to_string(), source: source.into() }
            }
        })
    }

    /// Returns the process if its supervisor died before all were dead, and the number was not reused.
    fn abandoned(&self) -> Option<(Pid, String)> {
        let reports = self.reports();
        let abandoned = reports.process.clone().filter(|_| reports.gone.is_none())?;
        (identity::started(abandoned.0).as_ref() == Some(&abandoned.1)).then_some(abandoned)
    }

    fn reports(&self) -> std::sync::MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A supervisor without a process. It records when this program ends, also if it is killed.
pub(crate) struct RuntimeWatch {
    running: Mutex<Option<(Child, UnixStream)>>,
}

impl RuntimeWatch {
    /// Starts one, with the beginning of the path of its file, and the directory of the files that calls may write. The file exists by
    /// then. `None` if this program has no supervisor, or it cannot keep such a file.
    pub(crate) fn start(times: PathBuf, root: PathBuf) -> Option<Self> {
        let supervisor = program_path()?;
        let order = Order { times, root, ..Order::default() };
        let (leader, control, _) = spawn(&supervisor, None, &order).ok()?;
        let mut reading = control.try_clone().ok();
        let watch = Self { running: Mutex::new(Some((leader, control))) };
        let reading = reading.as_mut()?;
        send_all(reading, &GO).ok()?;
        reading.set_read_timeout(Some(PATIENCE)).ok()?;
        let is_watched = reading.read(&mut [0]).is_ok_and(|count| count > 0);
        is_watched.then_some(watch)
    }

    /// Returns the number of the supervisor, until it is ended.
    pub(crate) fn process(&self) -> Option<u32> {
        self.running().as_ref().map(|(leader, _)| leader.id())
    }

    /// Says that a call may write files from now on: the file about this program is renewed.
    pub(crate) fn begin_call(&self) {
        self.send(&BUSY);
    }

    /// Says that the call has ended.
    pub(crate) fn end_call(&self) {
        self.send(&IDLE);
    }

    fn send(&self, word: &[u8]) {
        if let Some((_, control)) = &*self.running() {
            // One that is gone renews nothing, which shows in its file.
            let _ = send_all(control, word);
        }
    }

    /// Ends it, and waits until it has recorded that.
    pub(crate) fn end(&self) {
        self.running().take().into_iter().for_each(end_watch);
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<(Child, UnixStream)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RuntimeWatch {
    /// Ends it, and does not wait.
    fn drop(&mut self) {
        if let Some(running) = self.running().take() {
            let end = std::thread::Builder::new().name("backstitch-watch".to_owned());
            let _ = end.spawn(move || end_watch(running));
        }
    }
}

fn end_watch((mut leader, control): (Child, UnixStream)) {
    let _ = control.shutdown(Shutdown::Write);
    let began = Instant::now();
    while matches!(leader.try_wait(), Ok(None)) {
        if began.elapsed() > PATIENCE {
            let _ = leader.kill();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn named(supervisor: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("its supervisor {}: {error}", supervisor.display()))
}

fn order(prepared: &PreparedProcess) -> Order {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in &prepared.environment {
        match value {
            Some(value) => environment.insert(name.into(), value.into()),
            None => environment.remove(std::ffi::OsStr::new(name)),
        };
    }
    let (times, root) = prepared.times.clone().unwrap_or_default();
    Order {
        times,
        root,
        program: prepared.program.clone(),
        directory: prepared.directory.clone(),
        limits: prepared.confinement.as_ref().map(super::super::sandbox::Confinement::limits),
        arguments: prepared.arguments.iter().map(OsString::from).collect(),
        environment: environment.into_iter().collect(),
    }
}

/// Starts a supervisor. No descriptor of this process reaches it but its own end of the control socket, and the
/// streams, which are sent.
fn spawn(supervisor: &Path, mark: Option<&str>, order: &Order) -> io::Result<(Child, UnixStream, Pipes)> {
    let (control, far) = UnixStream::pair()?;
    let (stdin, near_stdin) = io::pipe()?;
    let (near_stdout, stdout) = io::pipe()?;
    let (near_stderr, stderr) = io::pipe()?;
    let mut command = Command::new(supervisor);
    command.arg0(NAME).arg(WORD).env_clear();
    command.envs(KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(mark.map(|mark| (MARK, mark)));
    command.stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut leader = command.spawn()?;
    // The far end of the socket is closed here, so that the end of the supervisor is noticed.
    drop(command);
    if let Err(error) = order.send(&control, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]) {
        let _ = leader.kill();
        let _ = leader.wait();
        return Err(error);
    }
    let pipes = Pipes {
        stdin: OwnedFd::from(near_stdin).into(),
        stdout: OwnedFd::from(near_stdout).into(),
        stderr: OwnedFd::from(near_stderr).into(),
    };
    Ok((leader, control, pipes))
}

/// Reads reports on a thread, until the supervisor is gone.
fn read_reports(
    control: UnixStream,
    reports: Arc<Mutex<Reports>>,
    exited: oneshot::Sender<()>,
) -> io::Result<Receiver<()>> {
    let (sender, is_gone) = mpsc::channel();
    let mut exited = Some(exited);
    let read = move || {
        let lines = BufReader::new(control).lines().map_while(Result::ok);
        for report in lines.map_while(|line| serde_json::from_str(&line).ok()) {
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            match report {
                Report::Started { process, started } => {
                    reports.process = Pid::from_raw(process).map(|process| (process, started));
                }
                Report::NotConfined { .. } | Report::NotStarted { .. } => {
                    reports.end = Some(Err(StartError::of(report)));
                }
                Report::Ended { code, signal } => {
                    let exit = signal.map_or(ProcessExit::Code(code.unwrap_or(-1)), ProcessExit::Signal);
                    reports.end = Some(Ok(exit));
                }
                Report::Gone { at } => reports.gone = Some(at),
                Report::Watching => {}
            }
            if reports.end.is_some()
                && let Some(exited) = exited.take()
            {
                let _ = exited.send(());
            }
        }
        drop((exited, sender));
    };
    std::thread::Builder::new().name("backstitch-child".to_owned()).stack_size(64 * 1024).spawn(read)?;
    Ok(is_gone)
}
