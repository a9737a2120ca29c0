//! The supervisor itself.
//!
//! It does little, so that it cannot fail in many ways: it starts one process and waits. While the process runs
//! it reaps the orphans that it adopts. A second thread only waits for the end of the control socket, and a third one
//! renews the file about the process.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process,
    kill_process_group, set_child_subreaper, set_dumpable_behavior, setsid, waitid,
};

use super::super::family::{self, Member};
use super::super::identity;
use super::super::survivors::is_supervisor;
use super::first::{Entry, FirstProcess, ProcessEnd, can_enter};
use super::launch::{StartError, start};
use super::protocol::{BUSY, GO, Order, Report};
use super::times::{RenewedFile, TimesFile};
use super::{NAME, PROBE, WORD, offer_own};

/// How long descendants may run after their process has ended, if the runtime does not end them before: some
/// shells end before their last filter does.
const LINGER: Duration = Duration::from_secs(1);

/// How long other supervisors among the descendants may run longer than all others: a runtime inside of this one has started
/// them, and they record when its calls ended. One that only says that it is a supervisor is killed then.
const SUPERVISORS_LAST: Duration = Duration::from_millis(500);

/// Makes this program the supervisor of the processes that it starts as tools, commands and servers. To be
/// called first in `main`, before threads are started and arguments are read.
///
/// The runtime starts the program again, with a command line that nothing else has. In that process this
/// function supervises one process and does not return. Otherwise it returns at once.
pub fn supervise_if_asked() {
    let mut words = std::env::args_os();
    if words.next().is_some_and(|word| word == NAME) {
        match words.next().as_deref().and_then(OsStr::to_str) {
            Some(WORD) => std::process::exit(i32::from(supervise().is_err())),
            Some(PROBE) => std::process::exit(i32::from(!can_enter())),
            _ => {}
        }
    }
    offer_own();
}

fn supervise() -> io::Result<()> {
    let _ = rustix::thread::set_name(c"call-supervisor");
    // No process of this user can read its memory or trace it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let isolated = isolate();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (order, streams) = Order::receive(&control)?;
    let mut go = GO;
    (&control).read_exact(&mut go)?;
    if go != GO {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let times = TimesFile::create(&order);
    if order.program.as_os_str().is_empty() {
        return watch_runtime(control, times);
    }
    let running = match isolated.map_err(StartError::from).and_then(|()| begin(&order, streams)) {
        Ok(running) => running,
        Err(error) => {
            times.into_iter().for_each(TimesFile::finish);
            error.report().send(&control);
            return Ok(());
        }
    };
    // Without the thread, the file has the time of the start.
    let times = times.and_then(|times| times.renew().ok());
    let process = running.id();
    let started = identity::started(process).unwrap_or_default();
    Report::Started { process: process.as_raw_nonzero().get(), started }.send(&control);
    let unreaped = Arc::new(Mutex::new(Some(process)));
    let watched = watch(&control, running, &unreaped);
    // Whatever has failed, nothing is left.
    end_all(&unreaped);
    times.into_iter().for_each(RenewedFile::finish);
    Report::Gone { at: SystemTime::now() }.send(&control);
    watched
}

/// Keeps the file about the runtime itself, until the runtime asks for its end or dies.
fn watch_runtime(mut control: UnixStream, times: Option<TimesFile>) -> io::Result<()> {
    let Some(times) = times else { return Ok(()) };
    let times = times.renew()?;
    times.set_active(false);
    Report::Watching.send(&control);
    let mut word = [0];
    while control.read(&mut word).is_ok_and(|count| count > 0) {
        times.set_active(word == BUSY);
    }
    times.finish();
    Ok(())
}

/// The child of this process, which leads a group.
enum Running {
    /// The process itself.
    Process(Pid),
    /// The first process of the namespaces in which the process runs.
    First(FirstProcess),
}

impl Running {
    fn id(&self) -> Pid {
        match self {
            Self::Process(id) => *id,
            Self::First(first) => first.id,
        }
    }
}

/// Starts the process, in namespaces if it is to have them and the system allows it.
fn begin(order: &Order, streams: [OwnedFd; 3]) -> Result<Running, StartError> {
    let streams = if order.limits.as_ref().is_some_and(|limits| limits.namespaces) {
        match FirstProcess::start(order, streams)? {
            Entry::Entered(first) => return Ok(Running::First(first)),
            Entry::NotAllowed(streams) => streams,
        }
    } else {
        streams
    };
    start(order, streams, std::process::id()).map(Running::Process)
}

/// Waits for the end of the process, and then for its descendants, as long as they may run.
fn watch(control: &UnixStream, running: Running, unreaped: &Unreaped) -> io::Result<()> {
    let (sender, ended) = mpsc::channel();
    watch_control(control.try_clone()?, unreaped.clone(), sender.clone())?;
    let report = |ProcessEnd { code, signal }| Report::Ended { code, signal }.send(control);
    match running {
        Running::Process(process) => {
            let status = await_end(process)?;
            report(ProcessEnd { code: status.exit_status(), signal: status.terminating_signal() });
            if !has_others(process) {
                return Ok(());
            }
        }
        Running::First(mut first) => {
            report(first.await_end());
            first.notify_end(sender)?;
        }
    }
    let _ = ended.recv_timeout(LINGER);
    Ok(())
}

/// Separates this process, and so everything that it starts, from the person's terminal, from the descriptors
/// of the program that started it, and from every other parent.
fn isolate() -> io::Result<()> {
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    std::env::set_current_dir("/")?;
    for entry in fs::read_dir("/proc/self/fd")?.flatten() {
        let number: Option<i32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > 2) else { continue };
        #[expect(unsafe_code, reason = "an inherited descriptor has no owner")]
        // SAFETY: the descriptor is open, or is the one of this directory. It is neither read nor closed.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        // The one of the directory itself is closed by then.
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}

/// The process, until it is reaped: as long as it is not, its number and that of its group are not reused.
type Unreaped = Arc<Mutex<Option<Pid>>>;

/// Kills the group of the process, and notifies a receiver, when the runtime closes its side of the control socket, or dies.
fn watch_control(mut control: UnixStream, process: Unreaped, ended: Sender<()>) -> io::Result<()> {
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        let mut byte = [0];
        while control.read(&mut byte).is_ok_and(|count| count > 0) {}
        kill_group(&process);
        let _ = ended.send(());
    })?;
    Ok(())
}

fn kill_group(process: &Unreaped) {
    if let Some(process) = *process.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = kill_process_group(process, Signal::KILL);
        // It may have left its group.
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Waits for the end of the process, which is not reaped. Adopted orphans that end before it are.
fn await_end(process: Pid) -> io::Result<WaitIdStatus> {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::All, ended) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Ok(Some(status)) = waitid(WaitId::Pid(process), ended | WaitIdOptions::NOHANG) {
            return Ok(status);
        }
        if reap_orphans(process) == 0 {
            // The kernel does not list children, so the orphan stays until the end.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Reaps adopted orphans that have ended, and returns their number.
fn reap_orphans(process: Pid) -> usize {
    let others = children().unwrap_or_default().into_iter().filter(|child| *child != process);
    let reap = |child| waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    others.filter(|child| matches!(reap(*child), Ok(Some(_)))).count()
}

/// Whether a descendant of the process, which has ended, runs.
fn has_others(process: Pid) -> bool {
    reap_orphans(process);
    match children() {
        Some(children) => children.into_iter().any(|child| child != process),
        None => !family::descendants(getpid()).is_empty(),
    }
}

/// Reaps everything that has ended. Returns whether no child is left: then there is no descendant either,
/// because those whose parents have ended are children.
fn has_reaped_all() -> bool {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Kills all descendants, until there are none. A process that forks while it is searched is found the next time.
fn end_all(process: &Unreaped) {
    kill_group(process);
    *process.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let mut pause = Duration::from_micros(50);
    let began = Instant::now();
    while !has_reaped_all() {
        let is_spared = |process: Pid| began.elapsed() < SUPERVISORS_LAST && is_supervisor(process);
        // Children are listed fast, so that one that forks and ends at once is caught.
        for child in children().unwrap_or_default().into_iter().filter(|child| !is_spared(*child)) {
            let _ = kill_process(child, Signal::KILL);
        }
        let family = family::descendants(getpid());
        family.iter().filter(|member| !member.process().is_some_and(is_spared)).for_each(Member::kill);
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

/// Returns the children, which are not reaped. `None` if the kernel does not list them.
fn children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let list = match fs::read_to_string(task.path().join("children")) {
            Ok(list) => list,
            // The thread has ended; others have its children.
            Err(_) if !task.path().exists() => continue,
            Err(_) => return None,
        };
        children.extend(list.split_ascii_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)));
    }
    Some(children)
}
