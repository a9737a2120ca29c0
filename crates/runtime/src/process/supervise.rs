//! One process, from its start to the end of its group.

use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{AnyValue, ProcessError, ProcessOutcome, ProcessSpec};
use backstitch_core::session::BoxError;
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

use super::Directories;
use super::group::{Group, Pipes};
use super::lines::Sink;
use super::output::Stream;
use super::prepare::PreparedProcess;
use super::sandbox::SharedDirectory;
use super::times::mark_returned;
use crate::clock::after;
use crate::fence::{joined, off_thread};

/// How long the descendants of a leader may keep writing to its output after it has ended: some shells end
/// before their last filter does, and on a busy machine the filter is late.
const LINGER: Duration = Duration::from_millis(500);

/// How long output is read once every process of the group has ended. Only a process that left the group can
/// still hold it open.
const DRAIN: Duration = Duration::from_millis(500);

pub(super) async fn supervise<R, F>(
    call: CallId,
    spec: ProcessSpec,
    (directories, temporary): (Directories, SharedDirectory),
    record: R,
    (live, stop): (Sink, CancellationToken),
) -> Result<ProcessOutcome, ProcessError>
where
    R: FnOnce(ProcessStarted) -> F + Send + 'static,
    F: Future<Output = Result<(), BoxError>> + Send,
{
    let (program, caps, timeout) = (spec.program.clone(), spec.caps, spec.timeout);
    let (mut group, pipes, prepared) = blocking(move || {
        let prepared = PreparedProcess::new(call, spec, &directories, &temporary)?;
        let (group, pipes) = Group::start(&prepared)?;
        Ok::<_, ProcessError>((group, pipes, prepared))
    })
    .await?;
    let PreparedProcess { input, confinement, directory, times, .. } = prepared;
    let Pipes { stdin, stdout, stderr } = pipes;
    crash_point!("process.before_record");
    if let Err(source) = record(group.identity(call, &program)).await {
        return Err(ProcessError::NotRecorded { program, source });
    }
    crash_point!("process.recorded");
    let failed =
        |source: std::io::Error| ProcessError::Start { program: program.clone(), source: source.into() };
    let mut stdin = tokio::process::ChildStdin::from_std(stdin).map_err(&failed)?;
    let stdout = tokio::process::ChildStdout::from_std(stdout).map_err(&failed)?;
    let stderr = tokio::process::ChildStderr::from_std(stderr).map_err(&failed)?;
    let (stdout, stderr) = (Stream::of(stdout, caps, live.clone()), Stream::of(stderr, caps, live));

    let first = group.release();
    let feeding = async move {
        // It is not an error if a program does not read all of its input.
        if stdin.write_all(first).await.is_ok() {
            let _ = stdin.write_all(&input).await;
        }
        drop(stdin);
        std::future::pending::<()>().await;
    };
    let stopped = tokio::select! {
        biased;
        () = stop.cancelled() => Some(ProcessError::Ended),
        () = group.wait_for_exit() => None,
        () = after(timeout) => { group.timed_out = true; None }
        () = feeding => None,
    };
    if stopped.is_none() && !group.timed_out {
        let both = async { tokio::join!(stdout.wait_for_end(), stderr.wait_for_end()) };
        tokio::select! { _ = tokio::time::timeout(LINGER, both) => {}, () = stop.cancelled() => {} }
    }
    let number = group.number();
    let exit = blocking(move || {
        let ended = group.end();
        if let Some((times, _)) = &times {
            mark_returned(times, number);
        }
        ended
    })
    .await?;
    let both = async { tokio::join!(stdout.wait_for_end(), stderr.wait_for_end()) };
    let _ = tokio::time::timeout(DRAIN, both).await;
    if let Some(error) = stopped {
        return Err(error);
    }
    let (stdout, stderr) = (stdout.take(), stderr.take());
    let mut outcome = ProcessOutcome { exit, stdout, stderr, refused: Vec::new() };
    let Some(confinement) = confinement else { return Ok(outcome) };
    blocking(move || {
        confinement.explain(&mut outcome, &directory);
        Ok(outcome)
    })
    .await
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProcessError> + Send + 'static,
) -> Result<T, ProcessError> {
    joined(off_thread(AnyValue::of_work(work)).await).map_or(Err(ProcessError::Ended), AnyValue::into_value)
}
