//! What all requests share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use backstitch::Runtime;
use backstitch::report::Version;
use backstitch::time::Timestamp;
use backstitch_mcp::HttpAccess;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::agents::{Agents, NoAgents};
use crate::feeds::Feeds;
use crate::limits::ServerLimits;
use crate::lists::ListFeed;
use crate::metrics::Metrics;
use crate::pages::Pages;
use crate::rate::Rate;
use crate::rights::Rights;
use crate::runs::Runs;
use crate::views::Views;
use crate::work::Work;

/// The most requests in a second that need no token, or have a wrong one.
const STRANGERS_PER_SECOND: u32 = 50;

/// The most queries at a time: the memory that they may use is shared by the whole process.
const MOST_QUERIES: usize = 1;

/// What a server may do, and for whom.
pub struct ServerOptions {
    /// Who may use it.
    pub access: HttpAccess,
    /// Whether clients may change anything.
    pub write: bool,
    /// Directories in which sessions may work, without links.
    pub roots: Vec<PathBuf>,
    /// Limits.
    pub limits: ServerLimits,
    /// The agents that clients may start.
    pub agents: Arc<dyn Agents>,
    /// Pages for browsers.
    pub pages: Option<Arc<dyn Pages>>,
}

impl ServerOptions {
    /// A server that only reads, without pages.
    pub fn new(access: HttpAccess) -> Self {
        Self {
            access,
            write: false,
            roots: Vec::new(),
            limits: ServerLimits::default(),
            agents: Arc::new(NoAgents),
            pages: None,
        }
    }
}

/// What clients may know about a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerReport {
    /// Version of the form.
    pub v: Version,
    /// Version of the program.
    pub version: String,
    /// Address of the store.
    pub store: String,
    /// Whether clients may change anything.
    pub write: bool,
    /// Directories in which sessions may work.
    pub roots: Vec<PathBuf>,
    /// When it was started.
    pub started_at: Timestamp,
    /// Its limits.
    pub limits: ServerLimits,
}

/// What all requests share.
pub(crate) struct ServerState {
    pub(crate) runtime: Runtime,
    pub(crate) options: ServerOptions,
    pub(crate) rights: Rights,
    pub(crate) started_at: Timestamp,
    pub(crate) reading: Work,
    pub(crate) writing: Work,
    pub(crate) querying: Work,
    pub(crate) rate: Rate,
    pub(crate) strangers: Rate,
    pub(crate) views: Views,
    pub(crate) runs: Runs,
    pub(crate) feeds: Feeds,
    pub(crate) list: ListFeed,
    pub(crate) metrics: Arc<Metrics>,
    /// The description of the API.
    pub(crate) description: OnceLock<Bytes>,
    /// The number of open streams.
    pub(crate) streams: Arc<AtomicUsize>,
    /// Set once the server ends: nothing new is started.
    pub(crate) ending: CancellationToken,
    /// Set once everything that was driven has paused: streams end.
    pub(crate) ended: CancellationToken,
}

impl ServerState {
    pub(crate) fn new(runtime: Runtime, options: ServerOptions) -> Self {
        let limits = &options.limits;
        let reading = Work::new(limits.readers, limits.wait_seconds);
        Self {
            rights: Rights::new(options.roots.clone()),
            started_at: runtime.clock().now(),
            writing: Work::new(limits.writers, limits.wait_seconds),
            querying: Work::new(MOST_QUERIES, limits.wait_seconds),
            rate: Rate::new(limits.requests_per_second),
            strangers: Rate::new(STRANGERS_PER_SECOND),
            views: Views::default(),
            runs: Runs::default(),
            feeds: Feeds::new(runtime.clone()),
            list: ListFeed::new(runtime.clone(), reading.clone()),
            reading,
            metrics: Arc::default(),
            description: OnceLock::new(),
            streams: Arc::default(),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            runtime,
            options,
        }
    }

    pub(crate) fn report(&self) -> ServerReport {
        ServerReport {
            v: Version,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: self.runtime.opened_store().address.to_string(),
            write: self.options.write,
            roots: self.options.roots.clone(),
            started_at: self.started_at,
            limits: self.options.limits.clone(),
        }
    }

    /// Takes a place for a stream. `None` if there is none.
    pub(crate) fn open_stream(&self) -> Option<OpenStream> {
        let most = self.options.limits.streams;
        let add = |open: usize| (open < most).then_some(open + 1);
        self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(OpenStream(self.streams.clone()))
    }
}

/// A place of a stream, until it is dropped.
pub(crate) struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
