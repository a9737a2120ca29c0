//! What generated code refers to. Nothing here is for people: it changes without notice.

pub use backstitch_core::__private::*;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs what may block. Other tasks go on meanwhile, where the executor has threads for them.
///
/// It stays on the task's own thread, so a task that is told to end has not ended while the work still runs: nobody puts
/// files back under its hands.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
