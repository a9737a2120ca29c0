//! SQL that reads, over the views of `docs/query.md`.
//!
//! The statement runs on a thread of its own. SQLite looks at the clock between its steps, but a single step can take very long; so
//! the operation also watches the clock itself, and ends without the thread.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::ports::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue};
use crate::runtime::Runtime;

/// How long the thread may need to end after its time is over.
const GRACE: Duration = Duration::from_secs(2);

/// A message of the thread that reads.
enum Message {
    Columns(Vec<String>),
    Row(Vec<SqlValue>),
    End(Result<SelectedRows, SelectError>),
}

/// Sends rows to the task that waits for them.
struct ToChannel(UnboundedSender<Message>);

impl RowSink for ToChannel {
    fn columns(&mut self, names: Vec<String>) {
        let _ = self.0.send(Message::Columns(names));
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.0.send(Message::Row(values)).is_ok()
    }
}

impl Runtime {
    /// Executes one SQL statement that reads, and passes its rows on as they are read. The view of sessions reads the index, so
    /// sessions that are not [indexed](Self::session_index) are missing in it.
    pub async fn query(
        &self,
        sql: &str,
        limits: SelectLimits,
        sink: &mut (dyn RowSink + Send),
    ) -> Result<SelectedRows, SelectError> {
        let (sender, mut receiver) = unbounded_channel();
        let (admin, runtime, sql) = (self.store.admin.clone(), Handle::current(), sql.to_owned());
        let end = Instant::now().checked_add(limits.time.saturating_add(GRACE));
        // The thread is not joined: it may be inside of a step that never ends, and it only reads.
        std::thread::spawn(move || {
            let mut rows = ToChannel(sender.clone());
            let done = runtime.block_on(admin.select(&sql, &[], limits, &mut rows));
            let _ = sender.send(Message::End(done));
        });
        let mut passed = 0;
        loop {
            let message = match end {
                Some(end) => timeout_at(end, receiver.recv()).await.unwrap_or_default(),
                None => receiver.recv().await,
            };
            match message {
                Some(Message::Columns(names)) => sink.columns(names),
                Some(Message::Row(values)) => {
                    passed += 1;
                    if !sink.row(values) {
                        return Ok(SelectedRows { rows: passed, is_cut: false });
                    }
                }
                Some(Message::End(done)) => return done,
                None => return Err(SelectError::TooLong { limit: limits.time }),
            }
        }
    }
}
