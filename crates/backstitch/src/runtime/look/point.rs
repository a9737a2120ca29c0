//! A point of a session that is shown or compared.

use backstitch_runtime::{PointSpec, ResolvedPoint, RuntimeError, load_view, locate_with_view};

use crate::journal::WorkspaceRevision;
use crate::ports::Store;
use crate::view::JournalView;

/// A point, and its view if that was needed to find it. Loading a view takes long in a long session, so none is loaded
/// twice.
pub(super) struct LocatedPoint {
    point: ResolvedPoint,
    view: Option<JournalView>,
}

impl LocatedPoint {
    /// Finds a point of the session whose view at its head is given.
    pub(super) async fn find(
        store: &dyn Store,
        head: &JournalView,
        spec: &PointSpec,
    ) -> Result<Self, RuntimeError> {
        let (point, view) = locate_with_view(store, head, spec).await?;
        Ok(Self { point, view })
    }

    /// The files at the point, as far as they are known.
    pub(super) fn files(&self) -> Option<WorkspaceRevision> {
        self.point.files
    }

    /// Returns the view at the point.
    pub(super) async fn into_view(
        self,
        store: &dyn Store,
        head: &JournalView,
    ) -> Result<JournalView, RuntimeError> {
        let Self { point, view } = self;
        match view {
            Some(view) => Ok(view),
            None if point.session == head.session_id() && point.cut == head.head() => Ok(head.clone()),
            None => load_view(store, point.session, Some(point.cut)).await,
        }
    }
}
