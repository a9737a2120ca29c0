//! A point of a session that is shown or compared.

use backstitch_runtime::{PointSpec, RuntimeError, load_view, locate_with_view};

use crate::journal::WorkspaceRevision;
use crate::ports::Store;
use crate::view::JournalView;

/// Returns the view at a point of the session whose view at its head is given, and the files there, as far as they are known.
/// Loading a view takes long in a long session, so none is loaded twice.
pub(super) async fn view_at(
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
