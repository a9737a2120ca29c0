//! Operations that show sessions and stores. They change nothing but the index, which is a cache.
//!
//! A session is shown by its [view](backstitch_runtime::Runtime::view), which takes long to load in a long session; so these
//! operations are given the view at its head, and one view serves several of them.

mod blame;
mod call;
mod call_span;
mod changed_file;
mod changes;
mod files;
mod list;
mod log;
mod pages;
mod pending;
mod query;
mod request;
mod session;
mod waiting;
mod writers;

use backstitch_runtime::{PointSpec, RuntimeError, load_view, locate_with_view};

use crate::journal::WorkspaceRevision;
use crate::ports::Store;
use crate::view::JournalView;

pub(super) use changes::{CallEnd, ends_of_calls, listed_ends, roots_around};
pub use list::SessionIndex;
pub use log::{LogEntry, LogFilter, SessionLog, cost, is_failure, money};
pub use pages::{LogPageOptions, SessionsPageOptions, TranscriptStart};
pub use session::{EvaluationTurns, OpenProgram, SessionAt};
pub use waiting::pending_decisions;

/// Returns the view at a point of the session whose view at its head is given, and the files there, as far as they are known.
/// Loading a view takes long in a long session, so none is loaded twice.
async fn view_at(
    store: &dyn Store,
    head: &JournalView,
    spec: &PointSpec,
) -> Result<(JournalView, Option<WorkspaceRevision>), RuntimeError> {
    let (point, view) = locate_with_view(store, head, spec).await?;
    let view = match view {
        Some(view) => view,
        None if point.session == head.session_id() && point.cut == head.head() => head.clone(),
        None => load_view(store, point.session, Some(point.cut)).await?,
    };
    Ok((view, point.files))
}
