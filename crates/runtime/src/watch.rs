//! What happens in a session while this process drives it: records, pieces of answers, waits.
//!
//! A [`Watch`] gives all of it in the order in which it happened. Records come from the store, so that none is lost however slow
//! the reader is; pieces of answers and the like come through a channel that holds only so many, and of those a slow reader
//! misses the oldest, and is told how many. Pieces and waits of sessions that work for calls of the watched one are among them, and
//! name their session; their records are in their own journals.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstitch_core::id::{EvaluationId, SessionId};
use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::Store;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use crate::driver::Piece;
use crate::error::RuntimeError;
use crate::events::Events;

/// How many pieces wait for a slow reader.
const MOST_WAITING: usize = 1_024;

/// Something that happens in a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Happening {
    /// Something is recorded, and durable.
    Record(Box<Record>),
    /// A piece of an answer that is still coming.
    Piece(Piece),
    /// Whoever decides did not answer, and is asked again.
    Retry(Retrying),
    /// The reader was too slow for so many pieces.
    Missed(u64),
}

/// Whoever decides did not answer, and is asked again after a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrying {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number that the answer will have.
    pub turn: u64,
    /// How often it was asked.
    pub attempt: u32,
    /// How long to wait.
    pub wait: Duration,
    /// A stable word for the kind of error.
    pub kind: String,
    /// What happened, for a person.
    pub message: String,
}

/// Something that is told and not recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    Piece(Piece),
    Retry(Retrying),
}

/// Where a session tells what it does not record. The channel is made when somebody listens.
#[derive(Default)]
pub(crate) struct Tellings {
    channel: OnceLock<broadcast::Sender<(Position, Told)>>,
}

impl Tellings {
    /// Tells whoever listens, that it happened after the records before this position.
    pub(crate) fn tell(&self, after: Position, told: &Told) {
        if let Some(channel) = self.channel.get() {
            // Nobody has to listen.
            let _ = channel.send((after, told.clone()));
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<(Position, Told)> {
        self.channel.get_or_init(|| broadcast::channel(MOST_WAITING).0).subscribe()
    }
}

/// What happens in a session, in order.
pub struct Watch {
    events: Events,
    durable: watch::Receiver<Position>,
    tellings: broadcast::Receiver<(Position, Told)>,
    /// What was told and comes after records that were not given yet.
    ahead: Option<(Position, Told)>,
}

impl Watch {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        session: SessionId,
        durable: watch::Receiver<Position>,
        tellings: broadcast::Receiver<(Position, Told)>,
    ) -> Self {
        let from = *durable.borrow();
        Self { events: Events::new(store, session).from(from), durable, tellings, ahead: None }
    }

    /// Gives the records from a position on as well.
    #[must_use]
    pub fn from(mut self, position: Position) -> Self {
        self.events = self.events.from(position);
        self
    }

    /// The next thing that happens; none once nobody holds the session any more. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Result<Option<Happening>, RuntimeError> {
        loop {
            if self.ahead.is_none() {
                match self.tellings.try_recv() {
                    Ok(told) => self.ahead = Some(told),
                    Err(TryRecvError::Lagged(missed)) => return Ok(Some(Happening::Missed(missed))),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => {}
                }
            }
            if let Some((_, told)) = self.ahead.take_if(|(after, _)| *after <= self.events.cursor()) {
                return Ok(Some(match told {
                    Told::Piece(piece) => Happening::Piece(piece),
                    Told::Retry(retrying) => Happening::Retry(retrying),
                }));
            }
            if self.events.cursor() < *self.durable.borrow()
                && let Some(record) = self.events.try_next().await?
            {
                return Ok(Some(Happening::Record(Box::new(record))));
            }
            tokio::select! {
                biased;
                told = self.tellings.recv() => match told {
                    Ok(told) => self.ahead = Some(told),
                    Err(RecvError::Lagged(missed)) => return Ok(Some(Happening::Missed(missed))),
                    // Whoever told has gone; all that it recorded was durable before, and so is given below.
                    Err(RecvError::Closed) if self.events.cursor() < *self.durable.borrow() => {}
                    Err(RecvError::Closed) => return Ok(None),
                },
                changed = self.durable.changed() => {
                    if changed.is_err() && self.events.cursor() >= *self.durable.borrow() {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watch").field("events", &self.events).finish_non_exhaustive()
    }
}
