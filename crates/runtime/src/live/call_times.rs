//! When calls of a session ran, for the recovery of those that were interrupted: its processes, and the runtime.

use std::path::PathBuf;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::CallStarted;
use backstitch_core::time::Timestamp;
use backstitch_core::view::Call;

use super::{LiveSession, blocking};
use crate::error::Result;
use crate::process::{
    AttemptRun, CallTimes, CallTimesDirectory, FileTime, RuntimeWatch, await_supervisors, has_supervisor,
};

/// A call that may write files, until it is dropped.
pub(crate) struct WatchedCall(Arc<LiveSession>);

impl Drop for WatchedCall {
    fn drop(&mut self) {
        self.0.own_watch().into_iter().for_each(RuntimeWatch::end_call);
    }
}

impl LiveSession {
    /// Returns the directory of the files, if they are on a disk.
    pub(crate) fn host_directory(&self) -> Option<PathBuf> {
        self.workspace()?.host_directory()
    }

    /// Returns the times of this session's calls, if its files are on a disk.
    fn call_times(&self) -> Option<CallTimesDirectory> {
        let own = self.workspace()?.own_directory()?;
        Some(CallTimesDirectory::of(&own, self.id()))
    }

    /// Returns the beginning of the paths for the times of an attempt, if it may write files.
    pub(crate) fn times_of_attempt(&self, intent: &CallStarted) -> Option<PathBuf> {
        intent.root?;
        Some(self.call_times()?.attempt(intent.call_id, intent.attempt))
    }

    /// Lets a supervisor record when this process ends, also if it is killed: what changes after that is not the work of its calls.
    /// To be called before a call that may write files. Only the first one waits.
    pub(crate) async fn watch_call(&self) -> WatchedCall {
        let start = || async {
            let times = self.call_times().filter(|_| has_supervisor())?.runtime();
            let root = self.host_directory()?;
            let started = tokio::task::spawn_blocking(move || RuntimeWatch::start(times, root)).await;
            started.ok().flatten()
        };
        if let Some(watch) = self.watch.get_or_init(start).await {
            watch.begin_call();
        }
        WatchedCall(self.this())
    }

    /// Records that this process changes no files any more.
    pub(super) async fn end_watch(&self) {
        if self.own_watch().is_some() {
            let live = self.this();
            run_off_thread(move || live.own_watch().into_iter().for_each(RuntimeWatch::end)).await;
        }
    }

    fn own_watch(&self) -> Option<&RuntimeWatch> {
        self.watch.get()?.as_ref()
    }

    /// Removes the times of calls whose end is durable.
    pub(crate) async fn remove_call_times(&self) {
        let Some(times) = self.call_times() else { return };
        let (view, own) = (self.view().await, self.own_watch().and_then(RuntimeWatch::process));
        let is_open = move |call: Option<CallId>| match call {
            Some(call) => view.call(call).is_some_and(Call::is_open),
            None => view.calls().any(Call::is_open),
        };
        run_off_thread(move || times.remove_ended(is_open, own)).await;
    }

    /// Returns when an interrupted call ran, and when the system was started again since, if it was. `None` if neither is known.
    pub(super) async fn times_of(&self, call: &Call) -> Result<Option<(CallTimes, Option<FileTime>)>> {
        let Some(intent) = &call.intent else { return Ok(None) };
        let (began, booted) = (file_time_of(intent.at), self.clock().booted_at().map(file_time_of));
        let ran = AttemptRun {
            call: call.call_id,
            attempt: intent.record.attempt,
            elsewhere_since: self.own_watch().is_none().then_some(began),
        };
        let times = match self.call_times() {
            Some(times) => {
                let recorded = times.clone();
                await_supervisors(blocking(move || Ok(recorded.supervisors(ran))).await?).await?;
                blocking(move || Ok(times.read(ran))).await?
            }
            None => None,
        };
        // Nothing of the call has run since the system was started.
        let restarted = booted.filter(|booted| *booted > began);
        let times = times.or(restarted.map(CallTimes::before_start));
        Ok(times.map(|times| (times, booted.filter(|_| times.is_rebooted))))
    }
}

/// Runs work with files on a thread where it may block, if there are such threads.
async fn run_off_thread(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(handle) => drop(handle.spawn_blocking(work).await),
        Err(_) => work(),
    }
}

fn file_time_of(time: Timestamp) -> FileTime {
    time.unix_micros().saturating_mul(1_000)
}
