//! The store itself: what it holds, and how it is opened. All other modules add to it.
//!
//! The store has threads of its own for its connections, so its futures depend on no runtime, and what was begun is completed even if the caller drops its
//! future.

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use backstitch_core::ports::{AnyValue, BoxFuture, OpenError, StoreError};
use tokio::runtime::{Builder, Handle, Runtime};

use super::address::PostgresAddress;
use super::claims::HeldClaims;
use super::error::Failure;
use super::hint::{self, Hints};
use super::lease::Lease;
use super::link::Link;
use super::options::PostgresOptions;
use super::schema;
use super::server::Server;
use crate::packed::Packer;

/// The longest time that closing a store waits for the server.
const CLOSING: Duration = Duration::from_secs(3);

/// What all operations of a store share.
pub(super) struct SharedStore {
    pub(super) server: Server,
    pub(super) packer: Packer,
    pub(super) claims: HeldClaims,
    pub(super) lease: Lease,
    pub(super) hints: Hints,
    is_read_only: bool,
}

impl SharedStore {
    /// Fails if the store was opened for reading.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        match self.is_read_only {
            true => Err(StoreError::ReadOnly { reason: "it was opened for reading".to_owned() }),
            false => Ok(()),
        }
    }
}

/// A [`Store`](backstitch_core::ports::Store) in a PostgreSQL server.
pub struct PostgresStore {
    address: PostgresAddress,
    shared: Arc<SharedStore>,
    handle: Handle,
    /// `None` once the store is being dropped.
    runtime: Option<Runtime>,
}

impl PostgresStore {
    /// Opens the store at an address, and creates its tables if there are none. Blocks the thread.
    pub fn open(address: &PostgresAddress) -> Result<Self, OpenError> {
        Self::open_with(address, PostgresOptions::default())
    }

    /// The same with these options.
    pub fn open_with(address: &PostgresAddress, options: PostgresOptions) -> Result<Self, OpenError> {
        let store = Self::unopened(address, options, false)?;
        store.in_thread(schema::migrate)?;
        Ok(store)
    }

    /// Opens an existing store for reading. Nothing is changed, and every write is refused.
    pub fn open_read_only(address: &PostgresAddress) -> Result<Self, OpenError> {
        let store = Self::unopened(address, PostgresOptions::default(), true)?;
        store.in_thread(schema::check)?;
        Ok(store)
    }

    fn unopened(
        address: &PostgresAddress,
        options: PostgresOptions,
        is_read_only: bool,
    ) -> Result<Self, OpenError> {
        let unstarted = |error: std::io::Error| StoreError::Backend(error.into());
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("backstitch-postgres")
            .enable_all()
            .build()
            .map_err(unstarted)?;
        let lease = Lease::new(address.clone(), options.clone());
        let server = Server::new(address, options, !is_read_only)?;
        let (packer, claims) = (Packer::default(), HeldClaims::default());
        let hints = Hints::default();
        let shared = Arc::new(SharedStore { server, packer, claims, lease, hints, is_read_only });
        Ok(Self {
            address: address.clone(),
            shared,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// The address, which shows no password.
    pub fn address(&self) -> &PostgresAddress {
        &self.address
    }

    pub(super) fn shared(&self) -> &Arc<SharedStore> {
        &self.shared
    }

    /// Runs an operation on the threads of the store. It begins when the future is first polled.
    pub(super) fn run<'a, T, F>(
        &'a self,
        work: impl FnOnce(Arc<SharedStore>) -> F + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        Box::pin(async move {
            let work = AnyValue::of_future(work(Arc::clone(&self.shared)));
            match self.handle.spawn(work).await {
                Ok(done) => done.into_value::<Result<T, Failure>>().map_err(StoreError::from),
                Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
                Err(_) => {
                    let reason = "the store is being closed".to_owned();
                    Err(StoreError::Unavailable { reason, source: None })
                }
            }
        })
    }

    /// Does the same with an operation after which the queue may have something new.
    pub(super) fn run_hinting<'a, T, F>(
        &'a self,
        work: impl FnOnce(Arc<SharedStore>) -> F + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.run(move |shared| {
            let working = work(Arc::clone(&shared));
            async move {
                let done = working.await?;
                hint::send(&shared);
                Ok(done)
            }
        })
    }

    /// Waits for a hint that the queue has something new.
    pub(super) async fn receive_hint(&self) {
        hint::receive(&self.shared, &self.address, &self.handle).await;
    }

    /// The same for callers that block their thread.
    pub(super) fn wait_for<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let (done, answer) = mpsc::sync_channel(1);
        let task: BoxFuture<'static, ()> = Box::pin(async move {
            let _ = done.send(work.await);
        });
        self.handle.spawn(task);
        let reason =
            || StoreError::Unavailable { reason: "the store is being closed".to_owned(), source: None };
        Ok(answer.recv().map_err(|_| reason())??)
    }

    /// Runs an operation of many steps in a thread of its own, and blocks this one: another runtime may own it, whose threads cannot wait for the connections of the
    /// store.
    pub(super) fn in_thread<T: Send>(&self, work: impl FnOnce(&Link<'_>) -> T + Send) -> T {
        let run = || work(&Link::new(&self.shared.server, &self.handle));
        std::thread::scope(|scope| match scope.spawn(run).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for PostgresStore {
    /// Frees the sessions that the store holds, if the server answers soon. A runtime must not be dropped by a thread of another one, so a thread of its own does
    /// it.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let shared = Arc::clone(&self.shared);
        let close = move || {
            let worker = shared.lease.end();
            runtime.block_on(async {
                let freed = async {
                    // First, over a connection that is free now.
                    shared.hints.flush().await;
                    if let Some(worker) = worker {
                        let _ = super::lease::retire(&shared.server, worker).await;
                    }
                };
                let _ = tokio::time::timeout(CLOSING, freed).await;
            });
            runtime.shutdown_background();
        };
        let _ = std::thread::spawn(close).join();
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PostgresStore").field("address", &self.address).finish_non_exhaustive()
    }
}
