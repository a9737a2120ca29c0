//! The handler of requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_runtime::{Approver, OutsideCall};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, ContentBlock,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, RequestMetaObject,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::approval::{ApprovalSettings, ClientApprover, client_name};
use super::content::{failed, object, refusal, result_of};
use super::history::HistoryTool;
use super::host::{HostError, OpenCalls, ServerHost};
use super::offered::{OfferedTools, information};
use super::plain::STRUCTURED;
use super::progress::ProgressReports;
use super::questions::{OpenQuestions, QuestionSender};
use super::requests::RunningRequests;

/// Keys of `_meta` in which clients send their own id of a call.
const CALL_ID_KEYS: [&str; 2] = ["claudecode/toolUseId", "callId"];

/// The longest id of a call, in bytes.
const LONGEST_ID: usize = 512;

/// Time that a handshake waits for the tools, whose names are part of its answer.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// The tool of a server that has no others, because something is wrong.
const UNAVAILABLE: &str = "why_unavailable";

/// Serves the requests of one client.
#[derive(Clone)]
pub(super) struct SessionHandler {
    host: Arc<dyn ServerHost>,
    pub(super) has_history: bool,
    offered: Arc<OnceLock<Arc<OfferedTools>>>,
    /// How calls that need approval are decided about; `None` leaves them to the inbox, without a time limit.
    pub(super) approvals: Option<ApprovalSettings>,
    questions: OpenQuestions,
    /// The running requests of the connection.
    requests: RunningRequests,
}

impl SessionHandler {
    pub(super) fn new(host: Arc<dyn ServerHost>) -> Self {
        Self {
            host,
            has_history: true,
            offered: Arc::default(),
            approvals: Some(ApprovalSettings::default()),
            questions: OpenQuestions::default(),
            requests: RunningRequests::default(),
        }
    }

    /// Returns the handler of a new connection.
    pub(super) fn of_connection(&self, requests: RunningRequests) -> Self {
        Self { requests, ..self.clone() }
    }

    /// Waits for the tools.
    async fn offered_tools(&self) -> Result<Arc<OfferedTools>, HostError> {
        if let Some(known) = self.offered.get() {
            return Ok(known.clone());
        }
        let offered = Arc::new(OfferedTools::new(&self.host.offer().await?, self.has_history));
        Ok(self.offered.get_or_init(|| offered).clone())
    }

    async fn run(
        &self,
        offered: &OfferedTools,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let id = call_id(&context.meta)?;
        let (name, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let tool = offered.history.get(&name).copied();
        if let Some(tool) = tool.filter(|tool| tool.reads_only()) {
            return tool.read(&self.host, &arguments).await.map(CallToolResponse::from);
        }
        let state = request.request_state.as_deref();
        let question = state.and_then(|state| self.questions.take(state, &name, &arguments));
        if question.is_none() && state.is_some() && id.is_none() {
            let message = "requestState names no call with these arguments that waits for an answer";
            return Err(ErrorData::invalid_params(message, None));
        }
        let running = self.requests.enter(context);
        let opened = tokio::select! {
            opened = self.host.open(id.clone()) => opened,
            () = running.cancelled() => {
                let message = "the call was cancelled before it began".to_owned();
                Err(HostError { code: ErrorCode::SessionHeld, message })
            }
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(refusal(&error).into()),
        };
        let calls = opened.calls().clone();
        if context.client_info().is_some() {
            calls.set_caller(client_name(context));
        }
        let (results, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let call = match question {
            // The call waits already: the request joins it.
            Some(question) => {
                let (call_id, cancel) = (question.call, question.cancel.clone());
                question.answer(request.input_responses.as_ref(), results);
                OutsideCall { call_id, id, name, arguments, cancel, approver: None }
            }
            None => {
                let cancel = CancellationToken::new();
                let asked = (name.as_str(), &arguments);
                let sender = QuestionSender::new(self.questions.clone(), asked, results, cancel.clone());
                let session = calls.session().id();
                let approver = self.approvals.as_ref().map(|settings| {
                    let approver =
                        ClientApprover::new((self.host.clone(), session), context, sender, settings);
                    Arc::new(approver) as Arc<dyn Approver>
                });
                let call_id = calls.identify(id.as_deref()).await;
                OutsideCall { call_id, id, name, arguments, cancel, approver }
            }
        };
        let reports = ProgressReports::start(calls.session(), call.call_id, context);
        drop(calls);
        let cancel = call.cancel.clone();
        let is_structured = context.meta.get(STRUCTURED) == Some(&Value::Bool(true));
        // A task, because the session is released after the call, even if the client is gone.
        let mut ended = tokio::spawn(finish_call(opened, call, (tool, is_structured), self.host.clone()));
        let ended = tokio::select! {
            biased;
            ended = &mut ended => ended,
            Some(question) = asked.recv() => return Ok(question.into()),
            () = running.cancelled() => {
                cancel.cancel();
                ended.await
            }
        };
        drop(reports);
        match ended {
            Ok(result) => result.map(CallToolResponse::from),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}

/// Runs a call to its end, and releases its session.
async fn finish_call(
    opened: OpenCalls,
    call: OutsideCall,
    (tool, is_structured): (Option<HistoryTool>, bool),
    host: Arc<dyn ServerHost>,
) -> Result<CallToolResult, ErrorData> {
    let result = match tool {
        Some(tool) => tool.change(opened.calls(), &host, call).await,
        None => match opened.calls().call(call).await {
            Ok(done) => Ok(result_of(opened.calls().session(), &done, is_structured).await),
            Err(error) => failed(&error),
        },
    };
    opened.close().await;
    result
}

impl ServerHandler for SessionHandler {
    fn get_info(&self) -> ServerConfig {
        self.offered.get().map_or_else(|| information("backstitch"), |offered| offered.info.clone())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.offered.get()?.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let offered = tokio::time::timeout(HANDSHAKE, self.offered_tools()).await;
        let mut answer = self.negotiate_initialize(&request)?;
        if let Ok(Err(error)) = offered {
            answer.instructions = Some(format!("The tools of this server are not available: {error}"));
        }
        Ok(answer)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = match self.offered_tools().await {
            Ok(offered) => offered.tools.clone(),
            Err(error) => vec![unavailable(&error)],
        };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        if let Some(id) = &cancelled.request_id {
            self.requests.cancel(id);
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offered = match self.offered_tools().await {
            Ok(offered) => offered,
            Err(error) => return Ok(refusal(&error).into()),
        };
        if request.name == UNAVAILABLE && !offered.has(UNAVAILABLE) {
            let text = "the tools of this server are available now: list them again";
            return Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into());
        }
        if !offered.has(&request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        }
        self.run(&offered, request, &context).await
    }
}

/// Returns the tool of a server that has no others.
fn unavailable(error: &HostError) -> Tool {
    let description = format!("Says why the tools of this server are not available: {error}");
    Tool::new(UNAVAILABLE, description, object(&json!({ "type": "object", "properties": {} })))
        .with_annotations(ToolAnnotations::new().read_only(true))
}

/// Returns the client's own id of a call.
fn call_id(meta: &RequestMetaObject) -> Result<Option<String>, ErrorData> {
    let Some((key, id)) = CALL_ID_KEYS.iter().find_map(|key| Some((key, meta.get(*key)?))) else {
        return Ok(None);
    };
    match id {
        Value::String(id) if !id.is_empty() && id.len() <= LONGEST_ID => Ok(Some(id.clone())),
        Value::Null => Ok(None),
        _ => Err(ErrorData::invalid_params(
            format!("_meta: {key} has to be a text of 1 to {LONGEST_ID} bytes"),
            None,
        )),
    }
}
