//! What is told while it happens, and not recorded: pieces of answers, and waits before asking again.

use std::sync::Arc;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::ports::{Delta, Deltas};

use super::Driver;
use crate::live::LiveSession;
use crate::watch::{Told, Watch};

pub(crate) type OnDelta = dyn Fn(&Piece) + Send + Sync;

/// A piece of an answer that is still coming, and of which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The session. It may be one that works for a call of the one that is driven.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number that the answer will have.
    pub turn: u64,
    /// The piece.
    pub delta: Delta,
}

/// Tells what happens in a session to whoever listens to it, and to whoever listens to the session that it works for.
#[derive(Clone)]
pub(crate) struct Teller {
    live: Arc<LiveSession>,
    on_delta: Option<Arc<OnDelta>>,
    caller: Option<Arc<Teller>>,
}

impl Teller {
    pub(crate) fn new(live: Arc<LiveSession>) -> Self {
        Self { live, on_delta: None, caller: None }
    }

    pub(crate) fn tell(&self, told: &Told) {
        self.live.tell(told);
        if let (Some(on_delta), Told::Piece(piece)) = (&self.on_delta, told) {
            on_delta(piece);
        }
        if let Some(caller) = &self.caller {
            caller.tell(told);
        }
    }
}

impl Driver {
    /// Tells pieces of answers while they come, those of sessions that work for calls among them. What is told must not wait for
    /// anything, and is gone once the process ends: what counts is the answer as it is recorded.
    #[must_use]
    pub fn on_delta(self, tell: impl Fn(&Piece) + Send + Sync + 'static) -> Self {
        self.telling(Some(Arc::new(tell)))
    }

    /// Tells pieces to one who listens already, if there is one.
    pub(crate) fn telling(mut self, on_delta: Option<Arc<OnDelta>>) -> Self {
        self.teller.on_delta = on_delta;
        self.with_teller()
    }

    /// Tells a caller as well.
    pub(crate) fn told_to(mut self, caller: Option<Teller>) -> Self {
        self.teller.caller = caller.map(Arc::new);
        self.with_teller()
    }

    fn with_teller(mut self) -> Self {
        self.runner = self.runner.telling(self.teller.clone());
        self
    }

    /// What happens in the session from now on, while it is driven.
    pub fn watch(&self) -> Watch {
        self.live.watch()
    }

    pub(super) fn deltas(&self, evaluation_id: EvaluationId, turn: u64) -> Deltas {
        let teller = self.teller.clone();
        let session_id = self.live.id();
        Deltas::new(move |delta| {
            teller.tell(&Told::Piece(Piece { session_id, evaluation_id, turn, delta }));
        })
    }
}
