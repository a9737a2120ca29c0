//! Operations on a whole store.
//!
//! Each returns a [report](crate::report). What a store cannot do, fails with
//! [`StoreError::Unsupported`](crate::ports::StoreError::Unsupported), and nothing is changed. An operation that was interrupted is
//! completed by running it again.
//!
//! | module | responsibility |
//! |---|---|
//! | `changes` | the index of changed paths, compared with the journals and repaired |
//! | `check` | verification and repair; backup and salvage, also of stores that cannot be opened |
//! | `erase` | removal of values and of sessions; collection of garbage, expiry, sizes, remainders of killed processes |
//! | `git` | the files of a session as a git repository |
//! | `markdown` | conversations as documents |
//! | `transfer` | copies and bundles of sessions, and sessions of bundles |

mod changes;
mod check;
mod erase;
mod git;
mod markdown;
mod transfer;

pub use erase::{CollectOptions, RemoveOptions};
pub use transfer::{ImportOptions, SessionBundle};

use crate::RuntimeError;
use crate::ports::AnyValue;

/// Runs work that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    match tokio::task::spawn_blocking(AnyValue::of_work(work)).await {
        Ok(done) => done.into_value(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(RuntimeError::ShuttingDown),
        },
    }
}
