//! This side of a connection, as the server sees it: its name, and where its reports of progress go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

/// The most calls whose progress is kept.
const MOST_CALLS: usize = 256;

type LatestProgress = watch::Sender<Option<ProgressNotificationParam>>;

/// The client of a server. Clones share the running calls.
#[derive(Clone, Default)]
pub(super) struct ProgressReceiver(Arc<Mutex<HashMap<ProgressToken, LatestProgress>>>);

/// The progress of one call, until it is dropped.
pub(super) struct CallProgress {
    receiver: watch::Receiver<Option<ProgressNotificationParam>>,
    of: ProgressReceiver,
    token: ProgressToken,
}

impl ProgressReceiver {
    /// Receives the progress of a call.
    pub(super) fn of_call(&self, token: ProgressToken) -> CallProgress {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = calls.entry(token.clone()).or_insert_with(|| watch::channel(None).0);
        let mut receiver = sender.subscribe();
        // A report may have come before.
        receiver.mark_changed();
        CallProgress { receiver, of: self.clone(), token }
    }
}

impl CallProgress {
    /// Returns the next report, as a text and a fraction. Reports that nobody waits for are replaced by later ones.
    pub(super) async fn next(&mut self) -> (String, Option<f64>) {
        loop {
            if self.receiver.changed().await.is_err() {
                // The map keeps the sender as long as this exists.
                std::future::pending::<()>().await;
            }
            let latest = self.receiver.borrow_and_update().clone();
            if let Some(report) = latest {
                let fraction = report.total.filter(|total| *total > 0.0);
                let fraction = fraction.map(|total| (report.progress / total).clamp(0.0, 1.0));
                return (report.message.unwrap_or_default(), fraction.filter(|part| part.is_finite()));
            }
        }
    }
}

impl Drop for CallProgress {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for ProgressReceiver {
    fn get_info(&self) -> ClientConfig {
        let information = Implementation::new("backstitch", env!("CARGO_PKG_VERSION"));
        // The newest revision that begins with a handshake. Servers answer with the one that they know.
        ClientConfig::new(ClientCapabilities::default(), information)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The first report of a call may come before it is expected. Those that nobody expects are limited.
        if calls.contains_key(&report.progress_token) || calls.len() < MOST_CALLS {
            let new = || watch::channel(None).0;
            calls.entry(report.progress_token.clone()).or_insert_with(new).send_replace(Some(report));
        }
    }
}
