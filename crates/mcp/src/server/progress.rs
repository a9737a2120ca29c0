//! Progress of a running call, as notifications for its client.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use backstitch_core::id::CallId;
use backstitch_runtime::{LiveKind, LiveSession, SessionEvent};
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest text of a notification, in characters.
const LONGEST: usize = 400;

/// Returns a value for a notification. The values of one request have to increase, from all of its senders.
pub(super) fn progress_now() -> f64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_secs_f64()
}

/// Reports the progress of a call until it is dropped. Without a token of the client nothing is reported.
pub(super) struct ProgressReports(Option<JoinHandle<()>>);

impl ProgressReports {
    pub(super) fn start(live: &Arc<LiveSession>, call: CallId, context: &RequestContext<RoleServer>) -> Self {
        let Some(token) = context.meta.get_progress_token() else { return Self(None) };
        let (mut events, peer) = (live.events(), context.peer.clone());
        Self(Some(tokio::spawn(async move {
            let mut last = None::<Instant>;
            while let Ok(Some(event)) = events.next().await {
                let SessionEvent::Live(event) = event else { continue };
                let text = match event.kind {
                    LiveKind::Progress { call: of, progress } if of == call => match progress.fraction {
                        Some(part) => format!("{} ({:.0} %)", progress.message, part * 100.0),
                        None => progress.message,
                    },
                    LiveKind::Output { call: of, text } if of == call => match text.trim().lines().last() {
                        Some(line) => line.to_owned(),
                        None => continue,
                    },
                    _ => continue,
                };
                if last.is_some_and(|last| last.elapsed() < PAUSE) {
                    continue;
                }
                last = Some(Instant::now());
                let text: String = text.chars().take(LONGEST).collect();
                let report = ProgressNotificationParam::new(token.clone(), progress_now()).with_message(text);
                if peer.notify_progress(report).await.is_err() {
                    return;
                }
            }
        })))
    }
}

impl Drop for ProgressReports {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
