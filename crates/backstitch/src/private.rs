//! Items that generated code refers to. They are not a public interface, and change without notice.

pub use backstitch_core::__private::*;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that may block. Other tasks run concurrently if the executor is multi-threaded.
///
/// The work stays on the thread of its task, so an aborted task has not ended while the work runs. No files
/// are restored before that.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
