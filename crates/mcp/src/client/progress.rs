//! This side of a connection, as the server sees it: its name, and where its reports of progress and its questions go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::ports::PersonAnswer;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

use super::questions::{QuestionRouter, capability, question_of, result_of};
use super::spec::ServerSpec;

/// The most calls whose progress is kept.
const MOST_CALLS: usize = 256;

type LatestProgress = watch::Sender<Option<ProgressNotificationParam>>;

/// The client of a server. Clones share the running calls.
#[derive(Clone)]
pub(super) struct ClientSide {
    progress: Arc<Mutex<HashMap<ProgressToken, LatestProgress>>>,
    pub(super) questions: QuestionRouter,
    /// The name of the server.
    server: String,
    /// Whether a person can be asked.
    has_person: bool,
}

/// The progress of one call, until it is dropped.
pub(super) struct CallProgress {
    receiver: watch::Receiver<Option<ProgressNotificationParam>>,
    of: ClientSide,
    token: ProgressToken,
}

impl ClientSide {
    pub(super) fn of(spec: &ServerSpec) -> Self {
        Self {
            progress: Arc::default(),
            questions: QuestionRouter::default(),
            server: spec.name.clone(),
            has_person: spec.person.has_person(),
        }
    }

    /// Receives the progress of a call.
    pub(super) fn of_call(&self, token: ProgressToken) -> CallProgress {
        let mut calls = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
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
        self.of.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        let information = Implementation::new("backstitch", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = self.has_person.then(capability);
        // The newest revision that begins with a handshake. Servers answer with the one that they know.
        ClientConfig::new(capabilities, information)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Passes a question to the call that it belongs to. One that cannot be asked is declined.
    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(question) = question_of(&self.server, asked) else {
            tracing::warn!(
                server = self.server,
                "a question of an MCP server cannot be asked, and is declined"
            );
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let wanted = question.wanted.clone();
        let answer = tokio::select! {
            answer = self.questions.ask(question) => answer,
            () = context.ct.cancelled() => PersonAnswer::Cancelled,
        };
        Ok(result_of(&wanted, answer))
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut calls = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // The first report of a call may come before it is expected. Those that nobody expects are limited.
        if calls.contains_key(&report.progress_token) || calls.len() < MOST_CALLS {
            let new = || watch::channel(None).0;
            calls.entry(report.progress_token.clone()).or_insert_with(new).send_replace(Some(report));
        }
    }
}
