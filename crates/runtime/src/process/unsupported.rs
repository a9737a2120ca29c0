//! Systems without process groups, on which no processes are started.

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::{ProcessError, ProcessOutcome, ProcessSpec};
use tokio_util::sync::CancellationToken;

use super::Directories;
use super::lines::Sink;

/// Nothing, since nothing was started here.
#[derive(Clone, Default)]
pub(super) struct SharedDirectory;

impl SharedDirectory {
    pub(super) fn remove(&self) {}
}

pub(super) async fn supervise<R>(
    _: CallId,
    _: ProcessSpec,
    _: (Directories, SharedDirectory),
    _: R,
    _: (Sink, CancellationToken),
) -> Result<ProcessOutcome, ProcessError> {
    Err(ProcessError::Unsupported)
}

/// Returns 0, since nothing was started here.
pub async fn end_survivors<'a>(
    _: impl IntoIterator<Item = &'a ProcessStarted>,
) -> Result<usize, ProcessError> {
    Ok(0)
}

/// Returns at once, since nothing was started here.
pub(super) async fn end_call(_: CallId, _: Vec<u32>, _: String) -> Result<(), ProcessError> {
    Ok(())
}

/// Returns at once, since nothing was started here.
pub(crate) async fn await_supervisors(_: Vec<i32>) -> Result<(), ProcessError> {
    Ok(())
}
