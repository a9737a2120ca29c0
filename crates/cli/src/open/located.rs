//! A point of a session that a command shows or compares.

use backstitch::PointSpec;
use backstitch::host::{ResolvedPoint, load_view, locate_with_view};
use backstitch::journal::WorkspaceRevision;
use backstitch::view::JournalView;

use super::place::OpenStore;

/// A point, and its view if that was needed to find it. Loading a view takes long in a long session, so none is loaded
/// twice.
pub(crate) struct LocatedPoint {
    point: ResolvedPoint,
    view: Option<JournalView>,
}

impl LocatedPoint {
    /// Finds a point of the session whose view at its head is given.
    pub(crate) async fn find(
        place: &OpenStore,
        head: &JournalView,
        spec: &PointSpec,
    ) -> anyhow::Result<Self> {
        let (point, view) = locate_with_view(&*place.store, head, spec).await?;
        Ok(Self { point, view })
    }

    /// The files at the point, as far as they are known.
    pub(crate) fn files(&self) -> Option<WorkspaceRevision> {
        self.point.files
    }

    /// Returns the view at the point.
    pub(crate) async fn into_view(
        self,
        place: &OpenStore,
        head: &JournalView,
    ) -> anyhow::Result<JournalView> {
        let Self { point, view } = self;
        match view {
            Some(view) => Ok(view),
            None if point.session == head.session_id() && point.cut == head.head() => Ok(head.clone()),
            None => Ok(load_view(&*place.store, point.session, Some(point.cut)).await?),
        }
    }
}
