//! Limits of a server: what clients may send, how much they get at once, and how much work is done at a time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest headers of a request, in bytes.
pub(crate) const LARGEST_HEAD: usize = 32 * 1024;

/// The most bytes of a connection that are kept in memory. A head that is larger ends the connection.
pub(crate) const LARGEST_BUFFER: usize = 128 * 1024;

/// The longest target of a request, in bytes.
pub(crate) const LONGEST_TARGET: usize = 16 * 1024;

/// Time limit of the head of a request.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// Time limit of a body.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

/// Time that clients have to read their last answers when the server ends.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Interval of the comments that keep a stream of events open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Limits of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerLimits {
    /// The largest body with JSON, in bytes.
    pub body_bytes: usize,
    /// The most rows of a page.
    pub page_rows: usize,
    /// The most bytes of the rows of a page, unless a single row is larger.
    pub page_bytes: usize,
    /// The largest file that is returned, in bytes.
    pub file_bytes: usize,
    /// The most rows of a query.
    pub query_rows: usize,
    /// The longest time of a query, in seconds.
    pub query_seconds: u64,
    /// The longest SQL, in bytes.
    pub sql_bytes: usize,
    /// The longest text that is searched for, in bytes.
    pub search_bytes: usize,
    /// The most open streams of events.
    pub streams: usize,
    /// The most requests that read at a time. Others wait.
    pub readers: usize,
    /// The most requests that change something at a time. Others wait.
    pub writers: usize,
    /// The most seconds that a request waits for its turn.
    pub wait_seconds: u64,
    /// The most requests in a second.
    pub requests_per_second: u32,
    /// The most seconds that a client may take to read anything at all of an answer.
    pub write_seconds: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            page_rows: 1_000,
            page_bytes: 4 * 1024 * 1024,
            file_bytes: 4 * 1024 * 1024,
            query_rows: 10_000,
            query_seconds: 10,
            sql_bytes: 8 * 1024,
            search_bytes: 200,
            streams: 1_200,
            readers: 8,
            writers: 8,
            wait_seconds: 30,
            requests_per_second: 500,
            write_seconds: 30,
        }
    }
}
