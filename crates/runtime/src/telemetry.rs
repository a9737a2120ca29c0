//! Telemetry: told after the fact, best effort.
//!
//! Subscribers hear of what was committed. They come after the commit and can undo nothing: one that panics leaves a warning
//! behind, and the others are told all the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use backstitch_core::id::CallId;
use backstitch_core::slices::{PromptExecuted, PromptRendered, ToolInvoked};
use backstitch_core::tool::Progress;

use crate::spans::Contents;

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TelemetryEvent {
    /// A tool was invoked, and what came of it is committed.
    ToolInvoked(Box<ToolInvoked>),
    /// A prompt was rendered for an evaluation that has started.
    PromptRendered(Box<PromptRendered>),
    /// A prompt was driven to its answer.
    PromptExecuted(Box<PromptExecuted>),
    /// A call says how far it is. This is the one event that is not about something committed.
    Progress {
        /// The call.
        call: CallId,
        /// How far it is.
        progress: Progress,
    },
}

type Subscriber = Arc<dyn Fn(&TelemetryEvent) + Send + Sync>;

/// The bus. Clones are the same bus.
#[derive(Clone, Default)]
pub struct Telemetry {
    subscribers: Arc<RwLock<Vec<Subscriber>>>,
    tells_contents: bool,
}

impl Telemetry {
    /// Tells this function of everything from now on, in the order in which it happens.
    pub fn subscribe(&self, subscriber: impl Fn(&TelemetryEvent) + Send + Sync + 'static) {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(subscriber));
    }

    /// Lets spans tell contents as well: what was said, arguments and results. Without it they tell names, numbers and kinds of errors.
    #[must_use]
    pub fn with_contents(mut self) -> Self {
        self.tells_contents = true;
        self
    }

    pub(crate) fn contents(&self) -> Contents {
        if self.tells_contents { Contents::Told } else { Contents::LeftOut }
    }

    pub(crate) fn publish(&self, invoked: ToolInvoked) {
        self.tell(&TelemetryEvent::ToolInvoked(Box::new(invoked)));
    }

    pub(crate) fn publish_progress(&self, call: CallId, progress: Progress) {
        self.tell(&TelemetryEvent::Progress { call, progress });
    }

    pub(crate) fn tell(&self, event: &TelemetryEvent) {
        let subscribers = self.subscribers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for subscriber in subscribers {
            if catch_unwind(AssertUnwindSafe(|| subscriber(event))).is_err() {
                tracing::warn!("a subscriber of telemetry panicked; what it was told of stands");
            }
        }
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
