//! Signals: from the inbox into the session, where calls find them.
//!
//! A signal that arrives before a call waits for it is kept in the session. One that is received twice by concurrent calls is
//! recorded once.

use backstitch_core::extra::Extra;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxId, InboxItem, PauseReason, SessionPaused, Wait};
use backstitch_core::ports::Store;
use backstitch_core::slices::ReceivedSignal;
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;
use tokio::sync::MutexGuard;

use super::LiveSession;
use crate::error::Result;

impl LiveSession {
    /// Moves signals from the inbox into the session: those with this name, or all of them.
    pub(crate) async fn receive_signals(&self, name: Option<&str>) -> Result<()> {
        let _alone = self.alone_with_signals().await;
        for (id, item) in self.store().inbox(self.id()).await? {
            let is_own = item.to_sub_agent().is_none();
            let found = item.signal_name().filter(|found| is_own && name.is_none_or(|name| *found == name));
            let Some(found) = found.map(str::to_owned) else { continue };
            self.receive_signal(id, &found, &item).await?;
        }
        Ok(())
    }

    /// Keeps others of this process from receiving or taking signals, until it is dropped.
    pub(crate) async fn alone_with_signals(&self) -> MutexGuard<'_, ()> {
        self.receiving.lock().await
    }

    async fn receive_signal(&self, id: InboxId, name: &str, item: &InboxItem) -> Result<()> {
        let value = item.data.get("value").cloned().unwrap_or_default();
        let signal = ReceivedSignal { name: name.to_owned(), value, extra: Extra::default() };
        self.commit(|commit| {
            commit.dispatch(signal)?;
            commit.take([id]);
            Ok(())
        })
        .await
    }

    /// Whether what a call waits for has come.
    pub(crate) async fn has_come(&self, wait: &Wait) -> Result<bool> {
        let received = self.state().await.session.all::<ReceivedSignal>()?;
        let is_received = received.iter().any(|signal| wait.signal_name() == Some(&*signal.name));
        let is_for_nothing = wait.time().is_none() && wait.signal_name().is_none();
        Ok(is_received || is_for_nothing || wait.is_over(self.clock().now()))
    }
}

/// What a session waits for that no person has to decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenWaits {
    /// The times at which waits end by themselves.
    pub(crate) times: Vec<Timestamp>,
    /// The signals that waits without a time are for.
    pub(crate) signals: Vec<String>,
}

/// Lists the waits of a session that are not over, and those of its sub-agents. `None` if something else has to happen first.
pub(crate) fn open_waits<'a>(
    store: &'a dyn Store,
    view: &'a JournalView,
    now: Timestamp,
) -> backstitch_core::ports::BoxFuture<'a, Result<Option<OpenWaits>>> {
    Box::pin(async move {
        let (mut open, mut received) = (OpenWaits::default(), None);
        for pause in view.pauses() {
            if let Some(child) = child_that_waits(pause) {
                let Some(below) = super::find_view(store, child).await? else { continue };
                match open_waits(store, &below, now).await? {
                    Some(below) => {
                        open.times.extend(below.times);
                        open.signals.extend(below.signals);
                    }
                    None => return Ok(None),
                }
                continue;
            }
            let Some(wait) = &pause.wait else { return Ok(None) };
            if received.is_none() {
                received = Some(received_names(store, view).await?);
            }
            let is_received = wait
                .signal_name()
                .is_some_and(|name| received.iter().flatten().any(|received| received == name));
            match (wait.time(), wait.signal_name()) {
                _ if is_received || wait.is_over(now) => {}
                (Some(time), _) => open.times.push(time),
                (None, Some(signal)) => open.signals.push(signal.to_owned()),
                (None, None) => {}
            }
        }
        Ok(Some(open))
    })
}

/// Returns the child session that a call waits with, if it waits for a time or a signal.
fn child_that_waits(pause: &SessionPaused) -> Option<SessionId> {
    pause.session.filter(|_| pause.reason == PauseReason::Wait)
}

/// Returns the names of the signals of a session that no call has taken, and of those in its inbox.
async fn received_names(store: &dyn Store, view: &JournalView) -> Result<Vec<String>> {
    let waiting = store.inbox(view.session_id()).await?;
    let mut names: Vec<String> =
        waiting.iter().filter_map(|(_, item)| item.signal_name().map(str::to_owned)).collect();
    let clock = std::sync::Arc::new(crate::clock::SystemClock::new());
    let received = view.session(clock).all::<ReceivedSignal>()?;
    names.extend(received.iter().map(|signal| signal.name.clone()));
    Ok(names)
}
