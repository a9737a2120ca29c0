//! The handler of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_core::tool::ToolSpec;
use backstitch_runtime::{Approver, OutsideCall, OutsideCalls};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, Implementation, ListToolsResult,
    PaginatedRequestParams, RequestMetaObject, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ServerHost;
use super::approval::ClientApprover;
use super::content::{failed, object, result_of};
use super::history::{HISTORY_TOOLS, HistoryTool};
use super::progress::ProgressReports;
use super::questions::{OpenQuestions, QuestionSender};
use super::requests::RunningRequests;

/// Keys of `_meta` in which clients send their own id of a call.
const CALL_ID_KEYS: [&str; 2] = ["claudecode/toolUseId", "callId"];

/// The longest id of a call, in bytes.
const LONGEST_ID: usize = 512;

/// Serves the requests of one client.
#[derive(Clone)]
pub(super) struct SessionHandler {
    calls: Arc<OutsideCalls>,
    host: Arc<dyn ServerHost>,
    info: Arc<ServerConfig>,
    tools: Arc<Vec<Tool>>,
    history: Arc<BTreeMap<String, HistoryTool>>,
    /// Whether the client is asked about calls that need approval.
    asks_client: bool,
    questions: OpenQuestions,
    /// The running requests of the connection.
    requests: RunningRequests,
}

impl SessionHandler {
    pub(super) fn new(
        calls: Arc<OutsideCalls>,
        host: Arc<dyn ServerHost>,
        name: &str,
        instructions: Option<String>,
    ) -> Self {
        let mut tools: Vec<Tool> =
            calls.driver().agent().tools.iter().map(|tool| offered(&tool.spec)).collect();
        let mut history = BTreeMap::new();
        for tool in HISTORY_TOOLS {
            // A tool of the agent keeps its name.
            let is_taken = tools.iter().any(|other| other.name == tool.name());
            let name = if is_taken { format!("history_{}", tool.name()) } else { tool.name().to_owned() };
            tools.push(tool.offered(&name));
            history.insert(name, tool);
        }
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(format!("backstitch/{name}"), env!("CARGO_PKG_VERSION")));
        info.instructions = instructions;
        Self {
            calls,
            host,
            info: Arc::new(info),
            tools: Arc::new(tools),
            history: Arc::new(history),
            asks_client: true,
            questions: OpenQuestions::default(),
            requests: RunningRequests::default(),
        }
    }

    /// Leaves out the history, and never asks the client about calls.
    pub(super) fn tools_only(mut self) -> Self {
        let own = self.tools.iter().filter(|tool| !self.history.contains_key(&*tool.name));
        self.tools = Arc::new(own.cloned().collect());
        self.history = Arc::default();
        self.asks_client = false;
        self
    }

    /// Returns the handler of a new connection.
    pub(super) fn of_connection(&self, requests: RunningRequests) -> Self {
        Self { requests, ..self.clone() }
    }

    pub(super) fn tool_names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    async fn run(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let id = call_id(&context.meta)?;
        if let Some(client) = context.client_info() {
            self.calls.set_caller(format!("the MCP client {} {}", client.name, client.version));
        }
        let (name, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let state = request.request_state.as_deref();
        let question = state.and_then(|state| self.questions.take(state, &name, &arguments));
        let (results, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let call = match question {
            // The call waits already: the request joins it.
            Some(question) => {
                let (call_id, cancel) = (question.call, question.cancel.clone());
                question.answer(request.input_responses.as_ref());
                OutsideCall { call_id, id, name, arguments, cancel, approver: None }
            }
            None if state.is_some() && id.is_none() => {
                let message = "requestState names no call with these arguments that waits for an answer";
                return Err(ErrorData::invalid_params(message, None));
            }
            None => {
                let cancel = CancellationToken::new();
                let sender =
                    QuestionSender { questions: self.questions.clone(), results, cancel: cancel.clone() };
                let approver = self.asks_client.then(|| {
                    Arc::new(ClientApprover::new(self.host.clone(), context, sender)) as Arc<dyn Approver>
                });
                let call_id = self.calls.identify(id.as_deref()).await;
                OutsideCall { call_id, id, name, arguments, cancel, approver }
            }
        };
        if let Some(tool) = self.history.get(&call.name) {
            return tool.run(&self.calls, &self.host, call).await.map(CallToolResponse::from);
        }
        let reports = ProgressReports::start(self.calls.session(), call.call_id, context);
        let request = self.requests.enter(context);
        let cancel = call.cancel.clone();
        let mut running = std::pin::pin!(self.calls.call(call));
        let ended = tokio::select! {
            biased;
            ended = &mut running => ended,
            Some(question) = asked.recv() => return Ok(question.into()),
            () = request.cancelled() => {
                cancel.cancel();
                running.await
            }
        };
        drop(reports);
        match ended {
            Ok(done) => Ok(result_of(self.calls.session(), &done).await.into()),
            Err(error) => failed(&error).map(CallToolResponse::from),
        }
    }
}

impl ServerHandler for SessionHandler {
    fn get_info(&self) -> ServerConfig {
        (*self.info).clone()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items((*self.tools).clone()))
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
        if !self.tools.iter().any(|tool| tool.name == request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        }
        self.run(request, &context).await
    }
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

/// Returns a tool as clients see it.
fn offered(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(spec.name.to_string(), spec.description.clone(), object(&spec.parameters));
    // The results are texts and values of any form; a schema would oblige the server to send them as declared.
    tool.output_schema = None;
    tool.with_annotations(annotations(spec.effect))
}

fn annotations(effect: Effect) -> ToolAnnotations {
    let hints = ToolAnnotations::new().read_only(effect == Effect::Pure);
    match effect {
        Effect::Pure => hints.idempotent(true).open_world(false),
        Effect::Workspace => hints.open_world(false),
        Effect::Idempotent => hints.idempotent(true).open_world(true),
        Effect::External => hints.open_world(true),
    }
}
