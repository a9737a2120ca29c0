//! Records as they come.
//!
//! A reader follows a session by its position: whoever lost the connection goes on from the last position that they saw, and
//! misses nothing. The records of a session that another process drives are found by looking again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::Store;

use crate::error::RuntimeError;

/// How many records are read at a time.
const READ_LIMIT: usize = 256;

/// How long to wait before looking again.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The records of a session, from a position on.
pub struct Events {
    store: Arc<dyn Store>,
    session: SessionId,
    next: Position,
    ahead: VecDeque<Record>,
}

impl Events {
    /// All records of a session, from its first on.
    pub fn new(store: Arc<dyn Store>, session: SessionId) -> Self {
        Self { store, session, next: Position::START, ahead: VecDeque::new() }
    }

    /// Goes on from a position.
    #[must_use]
    pub fn from(mut self, position: Position) -> Self {
        (self.next, self.ahead) = (position, VecDeque::new());
        self
    }

    /// The position of the next record: where to go on from.
    pub fn cursor(&self) -> Position {
        self.next
    }

    /// The next record, if it is there already.
    pub async fn try_next(&mut self) -> Result<Option<Record>, RuntimeError> {
        if self.ahead.is_empty() {
            let more =
                self.store.read(self.session, self.next, READ_LIMIT).await.map_err(RuntimeError::Store)?;
            self.ahead = more.into();
        }
        let record = self.ahead.pop_front();
        if let Some(record) = &record {
            self.next = record.position.next();
        }
        Ok(record)
    }

    /// The next record, as soon as it is there. Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Result<Record, RuntimeError> {
        loop {
            if let Some(record) = self.try_next().await? {
                return Ok(record);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Events").field("session", &self.session).field("next", &self.next).finish()
    }
}
