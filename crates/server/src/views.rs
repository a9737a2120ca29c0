//! Views of the sessions that were shown last.
//!
//! Loading the view of a long session takes a while, and a client asks for many parts of one session. A view that is kept is brought up to
//! date at the cost of the records that are new.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch::id::SessionId;
use backstitch::view::JournalView;
use backstitch::{Runtime, RuntimeError};

/// The most views that are kept.
const MOST_VIEWS: usize = 16;

/// Views that are kept, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct Views(Mutex<VecDeque<Arc<JournalView>>>);

impl Views {
    /// Returns the view of a session at its head.
    pub(crate) async fn load(
        &self,
        runtime: &Runtime,
        session: SessionId,
    ) -> Result<Arc<JournalView>, RuntimeError> {
        let kept = self.find(session);
        let view = match &kept {
            // Without one that is newer it is the same.
            Some(kept) => runtime.newer_view(kept).await?.map_or_else(|| kept.clone(), Arc::new),
            None => Arc::new(runtime.view(session).await?),
        };
        self.keep(view.clone());
        Ok(view)
    }

    /// Finds a view that is kept.
    fn find(&self, session: SessionId) -> Option<Arc<JournalView>> {
        let views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        views.iter().find(|view| view.session_id() == session).cloned()
    }

    fn keep(&self, view: Arc<JournalView>) {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        views.retain(|kept| kept.session_id() != view.session_id());
        views.push_back(view);
        if views.len() > MOST_VIEWS {
            views.pop_front();
        }
    }

    /// Forgets all sessions, because records were changed or removed.
    pub(crate) fn forget_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
