//! Hints that the queue has something new, so that workers need not wait for their next look at it.
//!
//! A hint is a notification of the server without content. It is sent after a change is committed, in a statement of its own: a notification inside of the transaction
//! takes a lock of the whole server at its commit. A store sends at most one in ten milliseconds, whatever changes.
//!
//! Workers listen on a connection of their own. Nothing depends on it: behind a pooler that gives each transaction another connection no hint arrives, and one that is lost
//! costs the time until the next look.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstitch_core::id::SessionId;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::AsyncMessage;

use super::address::PostgresAddress;
use super::error::Failure;
use super::server::parameters;
use super::store::SharedStore;
use super::tls;

/// Shortest time between two hints of a store.
const INTERVAL: Duration = Duration::from_millis(10);
/// First and longest time until a listener that lost its connection opens another one.
const RECONNECT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The hints of a store.
#[derive(Default)]
pub(super) struct Hints {
    /// Whether a hint will be sent.
    is_due: AtomicBool,
    last: Mutex<Option<Instant>>,
    sending: Mutex<Option<JoinHandle<()>>>,
    /// Sessions that this store has added to the queue and still holds: nobody can take them before it releases them.
    queued: Mutex<HashSet<SessionId>>,
    is_listening: AtomicBool,
    /// Whether the connection that listens has heard of a hint since it was opened.
    has_received: AtomicBool,
    received: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hints {
    /// Notes that a session was added to the queue by its holder.
    pub(super) fn note_queued(&self, session: SessionId) {
        lock(&self.queued).insert(session);
    }

    /// Returns whether the session was added to the queue by its holder, which has released it now.
    pub(super) fn take_queued(&self, session: SessionId) -> bool {
        lock(&self.queued).remove(&session)
    }

    /// Whether hints of others arrive. Behind a pooler none does, though the connection listens.
    pub(super) fn has_received(&self) -> bool {
        self.has_received.load(Ordering::SeqCst)
    }

    /// Waits until the last hint is sent.
    pub(super) async fn flush(&self) {
        let sending = lock(&self.sending).take();
        if let Some(sending) = sending {
            let _ = sending.await;
        }
    }
}

/// The channel of a store: two stores of one database do not hear each other.
fn channel(shared: &SharedStore) -> String {
    format!("{}_queue", shared.server.names.schema())
}

/// Sends a hint soon, after a change that is committed. Runs on the threads of the store.
pub(super) fn send(shared: &Arc<SharedStore>) {
    if shared.hints.is_due.swap(true, Ordering::SeqCst) {
        return;
    }
    let store = Arc::clone(shared);
    let sending = tokio::spawn(async move {
        let hints = &store.hints;
        let last = *lock(&hints.last);
        if let Some(last) = last {
            sleep(INTERVAL.saturating_sub(last.elapsed())).await;
        }
        *lock(&hints.last) = Some(Instant::now());
        // A change that is committed from now on needs another hint.
        hints.is_due.store(false, Ordering::SeqCst);
        notify(&store).await;
    });
    *lock(&shared.hints.sending) = Some(sending);
}

async fn notify(shared: &SharedStore) {
    let channel = channel(shared);
    let _ = shared.server.query("SELECT pg_catalog.pg_notify($1, '')", parameters![channel => TEXT]).await;
}

/// Waits for a hint, which may have come since the last one was waited for.
pub(super) async fn receive(shared: &Arc<SharedStore>, address: &PostgresAddress, handle: &Handle) {
    if !shared.hints.is_listening.swap(true, Ordering::SeqCst) {
        handle.spawn(keep_listening(Arc::clone(shared), address.clone()));
    }
    shared.hints.received.notified().await;
}

async fn keep_listening(shared: Arc<SharedStore>, address: PostgresAddress) {
    let (first, longest) = RECONNECT;
    let mut pause = first;
    loop {
        let began = Instant::now();
        let _ = listen(&shared, &address).await;
        shared.hints.has_received.store(false, Ordering::SeqCst);
        pause = if began.elapsed() > longest { first } else { (pause * 2).min(longest) };
        sleep(pause).await;
    }
}

/// Listens until the connection ends.
async fn listen(shared: &SharedStore, address: &PostgresAddress) -> Result<(), Failure> {
    let tls = tls::connector(address.encryption())?;
    let (client, mut connection) = address.config(true).connect(tls).await?;
    let receive = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message? {
                shared.hints.has_received.store(true, Ordering::SeqCst);
                shared.hints.received.notify_one();
            }
        }
        Ok::<(), Failure>(())
    };
    let begin = async {
        client.batch_execute(&format!("LISTEN \"{}\"", channel(shared))).await?;
        // What changed before is not announced.
        shared.hints.received.notify_one();
        // A hint from another connection shows whether hints arrive.
        notify(shared).await;
        std::future::pending::<Result<(), Failure>>().await
    };
    tokio::select! {
        ended = receive => ended,
        refused = begin => refused,
    }
}
