//! Approval of calls by the person at the client.
//!
//! A client that has elicitation is asked: by a request of the server, or since revision 2026-07-28 by the result of its
//! own request. Otherwise, and if its person dismisses the question, the decision comes
//! from the inbox of the session, and a progress notification says where.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::CallId;
use backstitch_core::journal::Decision;
use backstitch_runtime::Approver;
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, RequestId, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};
use serde_json::{Map, Value};

use super::ServerHost;
use super::progress::progress_now;
use super::questions::{QuestionSender, decision_of};

/// Interval of the notifications that a call still waits.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// Asks the client of a request.
pub(super) struct ClientApprover {
    host: Arc<dyn ServerHost>,
    peer: Peer<RoleServer>,
    /// The request, over whose response the question has to go.
    request: RequestId,
    token: Option<ProgressToken>,
    way: Way,
}

/// The way to ask the client.
enum Way {
    /// By a request of the server.
    Request,
    /// By the result of the request, which the client then repeats.
    Result(QuestionSender),
    /// The client has no elicitation.
    Nowhere,
}

impl ClientApprover {
    pub(super) fn new(
        host: Arc<dyn ServerHost>,
        context: &RequestContext<RoleServer>,
        sender: QuestionSender,
    ) -> Self {
        // Later revisions have no requests of the server.
        let has_requests = context
            .protocol_version()
            .is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str());
        let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        let has_forms = capability.is_some_and(|known| known.form.is_some() || known.url.is_none());
        let way = match (has_forms, has_requests) {
            (false, _) => Way::Nowhere,
            (true, true) => Way::Request,
            (true, false) => Way::Result(sender),
        };
        Self {
            host,
            peer: context.peer.clone(),
            request: context.id.clone(),
            token: context.meta.get_progress_token(),
            way,
        }
    }

    async fn ask(&self, call: CallId, name: &str, arguments: &Map<String, Value>) -> Option<Decision> {
        let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
        let asked = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: format!("Run {name} with these arguments?\n{shown}"),
            requested_schema: ElicitationSchema::new(std::collections::BTreeMap::new()),
        };
        let mut question = ElicitRequest::new(asked);
        match &self.way {
            Way::Nowhere => None,
            Way::Result(sender) => sender.ask(call, name, arguments, question).await,
            Way::Request => {
                // The call runs on a task of its own, where the SDK does not know the request.
                question.extensions.insert(OriginatingRequestId(self.request.clone()));
                let answer = self.peer.send_request(ServerRequest::ElicitRequest(question)).await.ok()?;
                let ClientResult::ElicitResult(answer) = answer else { return None };
                decision_of(&answer)
            }
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
            if let Some(decision) = self.ask(call, &name, &arguments).await {
                return Some(decision);
            }
            let text = self.host.waits(call, &name);
            self.remind(&text).await;
            None
        })
    }
}
