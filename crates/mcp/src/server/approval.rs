//! Approval of calls by the person at the client.
//!
//! A client that has elicitation is asked. Otherwise, and if its person dismisses the question, the decision comes
//! from the inbox of the session, and a progress notification says where.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::CallId;
use backstitch_core::journal::Decision;
use backstitch_runtime::Approver;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};
use serde_json::{Map, Value};

use super::ServerHost;
use super::progress::progress_now;

/// Interval of the notifications that a call still waits.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// Asks the client of a request.
pub(super) struct ClientApprover {
    host: Arc<dyn ServerHost>,
    peer: Peer<RoleServer>,
    /// The request, over whose response the question has to go.
    request: RequestId,
    token: Option<ProgressToken>,
    can_ask: bool,
}

impl ClientApprover {
    pub(super) fn new(host: Arc<dyn ServerHost>, context: &RequestContext<RoleServer>) -> Self {
        // Later revisions have no requests of the server.
        let has_requests = context
            .protocol_version()
            .is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str());
        let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        let has_forms = capability.is_some_and(|known| known.form.is_some() || known.url.is_none());
        Self {
            host,
            peer: context.peer.clone(),
            request: context.id.clone(),
            token: context.meta.get_progress_token(),
            can_ask: has_requests && has_forms,
        }
    }

    async fn ask(&self, name: &str, arguments: &Map<String, Value>) -> Option<Decision> {
        let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
        let asked = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Run {name} with these arguments?\n{shown}"),
            requested_schema: ElicitationSchema::new(std::collections::BTreeMap::new()),
        };
        let mut question = ElicitRequest::new(asked);
        // The call runs on a task of its own, where the SDK does not know the request.
        question.extensions.insert(OriginatingRequestId(self.request.clone()));
        let answer = self.peer.send_request(ServerRequest::ElicitRequest(question)).await.ok()?;
        let ClientResult::ElicitResult(answer) = answer else { return None };
        match answer.action {
            ElicitationAction::Accept => Some(Decision::Approve),
            ElicitationAction::Decline => {
                Some(Decision::Deny { reason: Some("the person at the client declined the call".to_owned()) })
            }
            // Dismissed without a choice.
            _ => None,
        }
    }

    async fn remind(&self, text: &str) {
        loop {
            if let Some(token) = &self.token {
                let report = ProgressNotificationParam::new(token.clone(), progress_now()).with_message(text);
                if self.peer.notify_progress(report).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(REMIND_EVERY).await;
        }
    }
}

impl Approver for ClientApprover {
    fn decide(
        &self,
        call: CallId,
        name: String,
        arguments: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Option<Decision>> + Send + '_>> {
        Box::pin(async move {
            if self.can_ask
                && let Some(decision) = self.ask(&name, &arguments).await
            {
                return Some(decision);
            }
            let text = self.host.waits(call, &name);
            self.remind(&text).await;
            None
        })
    }
}
