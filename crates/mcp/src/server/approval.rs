//! Approval of calls by the client.
//!
//! A client that has elicitation is asked: by a request of the server, or since revision 2026-07-28 by the result of its
//! own request. Otherwise, and if its answer decides nothing, the decision comes from the inbox of the session, and a
//! progress notification says where. A call that nobody decides about in time is denied, so that its client does not
//! wait for ever.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::Decision;
use backstitch_runtime::{ApprovalQuestion, Approver, ApproverDecision};
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitResult, ProgressNotificationParam, ProgressToken, RequestId,
    ServerRequest,
};
use rmcp::service::{OriginatingRequestId, Peer, RequestContext};

use super::form::{FormAnswer, answer_of, question};
use super::host::ServerHost;
use super::progress::progress_now;
use super::questions::QuestionSender;
use super::requests::is_newest;

/// Interval of the notifications that a call still waits.
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// Time limit of a decision from the inbox.
const INBOX_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Time limit of an answer of the client. It shows the question to a person, who sees that it is open.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// How calls that need approval are decided about.
#[derive(Debug, Clone, Default)]
pub struct ApprovalSettings {
    /// Where the decisions come from.
    pub by: ApprovalBy,
    /// Time limit of a decision, after which the call is denied. `None` means an hour for a client that shows the
    /// question, and five minutes for the inbox.
    pub timeout: Option<Duration>,
}

/// Where decisions about calls come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalBy {
    /// From the client, if it can show a form, else from the inbox. The inbox counts in both cases.
    #[default]
    Client,
    /// From the inbox alone. The client, which may be a program that answers by itself, is never asked.
    Inbox,
}

/// Asks the client of a request.
pub(super) struct ClientApprover {
    host: Arc<dyn ServerHost>,
    session: SessionId,
    peer: Peer<RoleServer>,
    /// The request, over whose response the question has to go.
    request: RequestId,
    token: Option<ProgressToken>,
    way: Way,
    /// Names the client in the journal.
    client: String,
    timeout: Option<Duration>,
}

/// The way to ask the client.
enum Way {
    /// By a request of the server.
    Request,
    /// By the result of the request, which the client then repeats.
    Result(QuestionSender),
    /// The client is not asked.
    Nowhere,
}

impl ClientApprover {
    pub(super) fn new(
        (host, session): (Arc<dyn ServerHost>, SessionId),
        context: &RequestContext<RoleServer>,
        sender: QuestionSender,
        settings: &ApprovalSettings,
    ) -> Self {
        let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        let has_forms = capability.is_some_and(|known| known.form.is_some() || known.url.is_none());
        let way = match settings.by {
            ApprovalBy::Client if has_forms && is_newest(context) => Way::Result(sender),
            ApprovalBy::Client if has_forms => Way::Request,
            _ => Way::Nowhere,
        };
        Self {
            host,
            session,
            peer: context.peer.clone(),
            request: context.id.clone(),
            token: context.meta.get_progress_token(),
            way,
            client: client_name(context),
            timeout: settings.timeout,
        }
    }

    /// Asks the client. Returns `None` if it is not asked, or gives no answer.
    async fn ask(&self, asked: &ApprovalQuestion) -> Option<ElicitResult> {
        let mut request = ElicitRequest::new(question(asked));
        match &self.way {
            Way::Nowhere => None,
            Way::Result(sender) => sender.ask(asked.call, request).await,
            Way::Request => {
                // The call runs on a task of its own, where the SDK does not know the request.
                request.extensions.insert(OriginatingRequestId(self.request.clone()));
                match self.peer.send_request(ServerRequest::ElicitRequest(request)).await {
                    Ok(ClientResult::ElicitResult(answer)) => Some(answer),
                    _ => None,
                }
            }
        }
    }

    /// Repeats a text as the progress of the call, until this is dropped.
    async fn remind(&self, text: &str) {
        loop {
            if let Some(token) = &self.token {
                let report = ProgressNotificationParam::new(token.clone(), progress_now()).with_message(text);
                let _ = self.peer.notify_progress(report).await;
            }
            tokio::time::sleep(REMIND_EVERY).await;
        }
    }

    /// Returns the refusal of a call that nobody decided about in time.
    fn too_late(&self, limit: Duration) -> ApproverDecision {
        let reason = format!(
            "nobody decided about it within {} s, and nothing was run; ask again if it is still needed",
            limit.as_secs()
        );
        let by = "the time limit for approvals".to_owned();
        ApproverDecision { decision: Decision::Deny { reason: Some(reason) }, by }
    }
}

impl Approver for ClientApprover {
    fn decide(
        &self,
        question: ApprovalQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<ApproverDecision>> + Send + '_>> {
        Box::pin(async move {
            let limit = self.timeout.unwrap_or(CLIENT_TIMEOUT);
            let Ok(answer) = tokio::time::timeout(limit, self.ask(&question)).await else {
                return Some(self.too_late(limit));
            };
            let mut unfilled = String::new();
            match answer.map(|answer| answer_of(&answer, &self.client)) {
                Some(FormAnswer::Decided(decision)) => {
                    return Some(ApproverDecision { decision, by: self.client.clone() });
                }
                Some(FormAnswer::Unfilled) => {
                    unfilled =
                        format!("{} accepted without a decision, so it was not approved; ", self.client);
                }
                None => {}
            }
            let text = format!("{unfilled}{}", self.host.waits(self.session, question.call, &question.name));
            let limit = self.timeout.unwrap_or(INBOX_TIMEOUT);
            let _ = tokio::time::timeout(limit, self.remind(&text)).await;
            Some(self.too_late(limit))
        })
    }
}

/// Names the client of a request.
pub(super) fn client_name(context: &RequestContext<RoleServer>) -> String {
    match context.client_info() {
        Some(client) => format!("the MCP client {} {}", client.name, client.version),
        None => "the MCP client".to_owned(),
    }
}
