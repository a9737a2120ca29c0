//! Changes of the list of sessions, read once for all streams.
//!
//! The store is compared with what it was a moment ago as long as a stream is open, so changes of other processes are seen too: of the newest
//! sessions, of those that are driven, and of those with records since the first stream was opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backstitch::Runtime;
use backstitch::code::ErrorCode;
use backstitch::host::SessionsPageOptions;
use backstitch::id::SessionId;
use backstitch::ports::{IndexedStatus, OriginKind, SessionQuery, TimeRange};
use backstitch::report::ListedSession;
use backstitch::time::Timestamp;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::feeds::event_text;
use crate::problem::Problem;
use crate::work::Work;

/// The number of events that are kept for slow streams.
const KEPT: usize = 256;

/// Interval at which the store is compared.
const INTERVAL: Duration = Duration::from_millis(500);

/// The most sessions of each kind that are compared.
const MOST: usize = 500;

/// Sessions as they were seen last.
type Rows = BTreeMap<SessionId, ListedSession>;

/// The changes of the list. Clones share them.
#[derive(Clone)]
pub(crate) struct ListFeed {
    runtime: Runtime,
    reading: Work,
    open: Arc<Mutex<Option<Sender<Bytes>>>>,
}

impl ListFeed {
    pub(crate) fn new(runtime: Runtime, reading: Work) -> Self {
        Self { runtime, reading, open: Arc::default() }
    }

    /// Follows the list from now on: what a client reads after this has everything before the first event.
    pub(crate) async fn follow(&self) -> Result<Receiver<Bytes>, Problem> {
        let mut open = self.open.lock().await;
        if let Some(sender) = &*open {
            return Ok(sender.subscribe());
        }
        let since = self.runtime.clock().now();
        let rows = self.read(since).await?;
        let (sender, receiver) = channel(KEPT);
        *open = Some(sender.clone());
        tokio::spawn(self.clone().publish(sender, since, rows));
        Ok(receiver)
    }

    async fn publish(self, sender: Sender<Bytes>, since: Timestamp, mut known: Rows) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            {
                let mut open = self.open.lock().await;
                if sender.receiver_count() == 0 {
                    *open = None;
                    return;
                }
            }
            // A store that is busy is compared the next time.
            let Ok(rows) = self.read(since).await else { continue };
            for (session, row) in &rows {
                if known.get(session) != Some(row) {
                    let _ = sender.send(event_text("session", &json!(row)));
                }
            }
            for session in known.keys().filter(|session| !rows.contains_key(session)) {
                let head = self.runtime.head(*session).await;
                if head.is_err_and(|error| error.code() == ErrorCode::SessionNotFound) {
                    let _ = sender.send(event_text("removed", &json!({ "v": 1, "session": session })));
                }
            }
            known = rows;
        }
    }

    async fn read(&self, since: Timestamp) -> Result<Rows, Problem> {
        let runtime = self.runtime.clone();
        let of = || SessionQuery {
            origins: vec![OriginKind::Root, OriginKind::Fork],
            limit: MOST,
            ..SessionQuery::new()
        };
        let queries = [
            of(),
            SessionQuery { statuses: vec![IndexedStatus::Running], ..of() },
            SessionQuery { updated: TimeRange { since: Some(since), until: None }, ..of() },
        ];
        let read = async move {
            let mut rows = Rows::new();
            for query in queries {
                let page = runtime.sessions_page(SessionsPageOptions { query, search: None }).await?;
                rows.extend(page.sessions.into_iter().map(|row| (row.session, row)));
            }
            Ok(rows)
        };
        self.reading.run(read).await
    }
}
