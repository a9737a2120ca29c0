//! Child processes that never outlive the call that started them.
//!
//! Each process is the child of a [`supervisor`], if this program has one: it kills all descendants when the
//! process ends, when the call ends or is stopped, and when the runtime is killed. The supervisor is in the
//! journal before the program runs: it waits for a word, and starts nothing if the word never comes.
//!
//! Without a supervisor the process leads a group of its own, which its descendants belong to. The group is
//! killed, and waited for, at the same moments; if the runtime is killed, by a watchdog: a plain shell in another
//! group, whose pipe to the runtime closes then. Here a shell waits for the word and becomes the program.
//!
//! A runtime and its guards could die at once. So after a crash, the next process ends the recorded groups that
//! still run with [`end_survivors`]. A process that left its group (`setsid`, `setpgid`) is then identified by the
//! mark of its call, which it has inherited in its environment, and so it is when the call ends: all processes of
//! this user that carry the mark are killed, with all their descendants. Without a supervisor, a process that erased
//! its environment (`env -i`) and whose parent has ended cannot be found. On systems that do not show the
//! environment of a process, none of those that left their group can.

#[cfg(unix)]
mod family;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod identity;
mod lines;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod prepare;
mod sandbox;
#[cfg(unix)]
mod served;
#[cfg(unix)]
mod supervise;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(unix)]
mod survivors;
mod times;
#[cfg(not(target_os = "linux"))]
mod unsupervised;
#[cfg(not(unix))]
mod unsupported;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{ProcessError, ProcessOutcome, ProcessSpec};
use backstitch_core::session::BoxError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[cfg(unix)]
pub use prepare::ProgramPlace;
#[cfg(unix)]
use sandbox::SharedDirectory;
pub(crate) use sandbox::unprotected;
#[cfg(unix)]
pub use sandbox::{PrivateDirectory, left_temporaries, remove_left_temporaries};
pub use sandbox::{SandboxSupport, hide_secrets, probe, resolve_writable};
#[cfg(unix)]
pub use served::{ServerProcess, ServerStreams};
#[cfg(unix)]
use supervise::supervise;
#[cfg(target_os = "linux")]
pub(crate) use supervisor::RuntimeWatch;
#[cfg(target_os = "linux")]
pub use supervisor::{has_namespaces, has_supervisor, set_supervisor, supervise_if_asked};
#[cfg(unix)]
pub(crate) use survivors::await_supervisors;
#[cfg(unix)]
use survivors::end_call;
#[cfg(unix)]
pub use survivors::end_survivors;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupervised::RuntimeWatch;
#[cfg(not(target_os = "linux"))]
pub use unsupervised::{has_namespaces, has_supervisor, set_supervisor, supervise_if_asked};
#[cfg(not(unix))]
pub(crate) use unsupported::await_supervisors;
#[cfg(not(unix))]
pub use unsupported::end_survivors;
#[cfg(not(unix))]
use unsupported::{SharedDirectory, end_call, supervise};

pub(crate) use lines::Sink;
pub use times::CALL_TIMES;
#[cfg(unix)]
pub(crate) use times::file_time;
pub(crate) use times::{AttemptRun, CallTimes, CallTimesDirectory, FileTime};

use crate::fence::joined;

/// The directories of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directories {
    /// The workspace, if it is on the disk.
    pub(crate) root: Option<PathBuf>,
    /// The runtime's own directory, which no process may write.
    pub(crate) own: Option<PathBuf>,
    /// The beginning of the paths of files about when its processes ran, if they may write the workspace.
    pub(crate) times: Option<PathBuf>,
}

struct StartedBy {
    call: CallId,
    /// The start time of its first process.
    since: String,
    groups: Vec<u32>,
}

/// The processes of one call.
#[derive(Default)]
pub(crate) struct Processes {
    stop: CancellationToken,
    running: TaskTracker,
    /// A group that was killed and is still there.
    survivor: Arc<Mutex<Option<u32>>>,
    started: Arc<Mutex<Option<StartedBy>>>,
    temporary: SharedDirectory,
}

impl Processes {
    /// Runs a program to its end, below the workspace if there is one. `record` makes its group durable before
    /// the program starts. Its output is published as it is written.
    pub(crate) async fn run<R, F>(
        &self,
        call: CallId,
        spec: ProcessSpec,
        directories: Directories,
        record: R,
        live: Sink,
    ) -> Result<ProcessOutcome, ProcessError>
    where
        R: FnOnce(ProcessStarted) -> F + Send + 'static,
        F: Future<Output = Result<(), BoxError>> + Send,
    {
        // Counted before the check, so that `end` either waits for this process or prevents it.
        let counted = self.running.token();
        if self.stop.is_cancelled() {
            return Err(ProcessError::Ended);
        }
        let stop = self.stop.child_token();
        let (own_stop, survivor) = (stop.clone(), self.survivor.clone());
        let known = self.started.clone();
        let record = move |started: ProcessStarted| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || StartedBy { call, since: started.started.clone(), groups: Vec::new() };
            known.get_or_insert_with(new).groups.push(started.group);
            drop(known);
            record(started)
        };
        let temporary = self.temporary.clone();
        // In a task of its own: the caller may be dropped at any moment, and the group must end all the same.
        let task = tokio::spawn(async move {
            let outcome = supervise(call, spec, (directories, temporary), record, (live, own_stop)).await;
            if let Err(ProcessError::Survives { group }) = &outcome {
                *survivor.lock().unwrap_or_else(PoisonError::into_inner) = Some(*group);
            }
            drop(counted);
            outcome
        });
        let _stop = stop.drop_guard();
        joined(task.await).unwrap_or(Err(ProcessError::Ended))
    }

    /// Runs work that has to be finished even if the handler that requested it is stopped.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let counted = self.running.token();
        let task = tokio::spawn(async move {
            let done = work.await;
            drop(counted);
            done
        });
        task.await.ok()
    }

    /// Prevents further processes, and kills all groups. It does not wait.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Kills all groups and the processes that left them, and waits until they are gone.
    pub(crate) async fn end(&self) -> Result<(), ProcessError> {
        self.stop();
        self.running.close();
        self.running.wait().await;
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(StartedBy { call, since, groups }) = started {
            end_call(call, groups, since).await?;
        }
        self.temporary.remove();
        let survivor = *self.survivor.lock().unwrap_or_else(PoisonError::into_inner);
        survivor.map_or(Ok(()), |group| Err(ProcessError::Survives { group }))
    }
}
