//! A run of Codex: its messages become events, and its requests are answered.

use std::collections::{HashMap, HashSet, VecDeque};

use backstitch_core::budget::Amounts;
use backstitch_core::journal::ProcessStarted;
use backstitch_runtime::{
    CallAnswer, CallReply, EngineEnd, EngineError, EngineEvent, EngineFuture, EngineRun, EngineStart,
    ObservedRequest, ProgramHold,
};
use serde_json::{Value, json};

use super::approval::Ask;
use super::item::{call_of, id_of, is_ours, result_of};
use super::start::{OpenThread, open_thread, specification};
use crate::codex::TITLE;
use crate::codex::server::{AppServer, incomplete};
use crate::codex::thread::ThreadId;
use crate::codex::wire::{RequestId, ServerMessage, answer, request};
use crate::fields::text;
use crate::installed::{InstalledProgram, Version};
use crate::program::Program;
use crate::relay::{SERVER, ToolSocket};

/// What requests are answered with that only a person could answer.
const NOBODY: &str = "No person can answer here. Decide yourself, and say what you assumed.";

/// Codex at work.
pub(crate) struct CodexRun {
    server: AppServer,
    thread: ThreadId,
    turn: String,
    model: String,
    events: VecDeque<EngineEvent>,
    /// Items of calls that have begun, by their ids.
    open: HashMap<String, Value>,
    /// Calls that were reported as starting.
    reported: HashSet<String>,
    /// Totals of requests that were counted.
    counted: HashSet<(String, u64)>,
    /// Turns of this run, its sub-agents included.
    turns: HashSet<String>,
    is_answering: bool,
    text: Option<String>,
    is_interrupted: bool,
    has_ended: bool,
    /// The tools are served as long as it runs.
    _tools: Option<ToolSocket>,
}

impl CodexRun {
    pub(crate) async fn start(engine: &InstalledProgram, start: EngineStart) -> Result<Self, EngineError> {
        let (tools, relay) = ToolSocket::offer(TITLE, start.tools.clone(), engine.relay)?.unzip();
        let mut specification = specification(&engine.path, &start, relay);
        for (name, key) in &engine.keys {
            specification.environment.insert((*name).to_owned(), Some(key.clone()));
        }
        let mut server = AppServer::start(specification).await?;
        let OpenThread { id: thread, transcript, model } = open_thread(&mut server, &start).await?;
        let input = json!([{"type": "text", "text": start.prompt}]);
        let params =
            json!({"threadId": thread.as_str(), "clientUserMessageId": start.prompt_id, "input": input});
        let begun = server.request("turn/start", params).await?;
        let turn = begun.pointer("/turn/id").and_then(Value::as_str);
        let turn = turn.ok_or_else(|| incomplete("turn/start", "turn.id"))?.to_owned();
        let started = EngineEvent::Started {
            session: thread.as_str().to_owned(),
            transcript,
            model: model.clone(),
            version: server.agent.as_deref().and_then(Version::in_text).map(|version| version.to_string()),
        };
        Ok(Self {
            server,
            thread,
            turns: HashSet::from([turn.clone()]),
            turn,
            model: model.unwrap_or_else(|| "unknown".to_owned()),
            events: VecDeque::from([started]),
            open: HashMap::new(),
            reported: HashSet::new(),
            counted: HashSet::new(),
            is_answering: false,
            text: None,
            is_interrupted: false,
            has_ended: false,
            _tools: tools,
        })
    }

    async fn next_event(&mut self) -> Result<EngineEvent, EngineError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if self.has_ended {
                std::future::pending::<()>().await;
            }
            match self.server.message().await {
                Ok(ServerMessage::Notification { method, params }) => {
                    self.handle_notification(&method, &params)
                }
                Ok(ServerMessage::Request { id, method, params }) => {
                    self.handle_request(id, &method, &params)
                }
                Err(EngineError::Ended { .. }) if self.is_interrupted => self.finish(EngineEnd::Interrupted),
                Err(error) => return Err(error),
            }
        }
    }

    fn finish(&mut self, end: EngineEnd) {
        self.has_ended = true;
        self.events.push_back(EngineEvent::Ended(end));
    }

    /// Returns the sub-agent that a message comes from; none for the conversation itself.
    fn agent<'a>(&self, params: &'a Value) -> Option<&'a str> {
        params.get("threadId")?.as_str().filter(|thread| *thread != self.thread.as_str())
    }

    fn handle_notification(&mut self, method: &str, params: &Value) {
        let agent = self.agent(params);
        let item = params.get("item").unwrap_or(&Value::Null);
        match method {
            "turn/started" => {
                self.turns.extend(params.pointer("/turn/id").and_then(Value::as_str).map(str::to_owned));
            }
            "item/started" => {
                if agent.is_none() && text(item, "type") != Some("userMessage") {
                    self.answering();
                }
                if let Some(id) = id_of(item).filter(|_| call_of(item, agent).is_some() && !is_ours(item)) {
                    self.open.insert(id.to_owned(), item.clone());
                }
            }
            "item/agentMessage/delta" if agent.is_none() => {
                self.answering();
                let delta = text(params, "delta").map(str::to_owned);
                self.events.extend(delta.map(EngineEvent::Piece));
            }
            "item/completed" => self.handle_completed(agent, item),
            "thread/tokenUsage/updated" => self.handle_usage(params),
            "error" => {
                let message = params.pointer("/error/message").and_then(Value::as_str).unwrap_or("it failed");
                self.events.push_back(EngineEvent::Note(format!("{TITLE} reports: {message}")));
            }
            "turn/completed" => match agent {
                Some(agent) => {
                    let held = ProgramHold::new().0;
                    self.events.push_back(EngineEvent::SubAgentEnded(Some(agent.to_owned()), held));
                }
                None => self.finish_turn(params.get("turn").unwrap_or(&Value::Null)),
            },
            _ => {}
        }
    }

    /// Reports that the model begins an answer, once for each.
    fn answering(&mut self) {
        if !std::mem::replace(&mut self.is_answering, true) {
            self.events.push_back(EngineEvent::Answering);
        }
    }

    fn handle_completed(&mut self, agent: Option<&str>, item: &Value) {
        if text(item, "type") == Some("agentMessage") && agent.is_none() {
            self.answering();
            if let Some(text) = text(item, "text") {
                self.text = Some(text.to_owned());
                self.events.push_back(EngineEvent::Text(text.to_owned()));
            }
            return;
        }
        let Some(call) = call_of(item, agent).filter(|_| !is_ours(item)) else { return };
        self.open.remove(&call.id);
        if self.reported.insert(call.id.clone()) {
            // It ran without a request for approval, so nothing can be decided about it any more.
            self.events.push_back(EngineEvent::CallStarting(call.clone(), CallReply::new().0));
        }
        self.events.push_back(EngineEvent::CallFinished(call, result_of(item), ProgramHold::new().0));
    }

    fn handle_request(&mut self, id: RequestId, method: &str, params: &Value) {
        let ask = Ask::of(method, params);
        let item = match &ask {
            Ask::ServerTool { server, .. } if server == SERVER => {
                return self.server.answer(&id, Ok(ask.answer(true)));
            }
            Ask::Item(item) => self.open.get(item),
            // The request does not name the call.
            Ask::ServerTool { server, arguments } => self.open.values().find(|item| {
                text(item, "server") == Some(server)
                    && item.get("arguments") == Some(arguments)
                    && id_of(item).is_some_and(|id| !self.reported.contains(id))
            }),
            Ask::Other => return self.server.answer(&id, Err(NOBODY)),
        };
        let call = item.and_then(|item| call_of(item, self.agent(params)));
        let (Some(call), Some(sender)) = (call, self.server.process.input.clone()) else {
            return self.server.answer(&id, Ok(ask.answer(false)));
        };
        self.reported.insert(call.id.clone());
        let (reply, decision) = CallReply::new();
        let place = ["threadId", "turnId"].map(|name| params.get(name).cloned().unwrap_or(Value::Null));
        let (name, remark) = (call.name.clone(), self.server.new_id());
        tokio::spawn(async move {
            let decision =
                decision.await.unwrap_or_else(|_| CallAnswer::Deny("the session has stopped".to_owned()));
            if let Some(text) = remark_about(&name, &decision) {
                // An answer to an approval has no room for a reason, so the model reads it after the refused call.
                let [thread, turn] = place;
                let input = json!([{"type": "text", "text": text}]);
                let params = json!({"threadId": thread, "expectedTurnId": turn, "input": input});
                sender.send(request(remark, "turn/steer", &params));
            }
            let allows = decision == CallAnswer::Allow;
            sender.send(answer(&id, Ok(ask.answer(allows))));
        });
        self.events.push_back(EngineEvent::CallStarting(call, reply));
    }

    fn handle_usage(&mut self, params: &Value) {
        let thread = text(params, "threadId").unwrap_or_default().to_owned();
        let is_of_run = text(params, "turnId").is_some_and(|turn| self.turns.contains(turn));
        let number = |path: &str| params.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let last = |name: &str| number(&format!("/tokenUsage/last/{name}"));
        let total = number("/tokenUsage/total/totalTokens");
        if thread == self.thread.as_str() {
            self.is_answering = false;
        }
        if !is_of_run || !self.counted.insert((thread.clone(), total)) {
            return;
        }
        let usage = Amounts {
            input_tokens: last("inputTokens"),
            cache_read_tokens: last("cachedInputTokens"),
            cache_write_tokens: last("cacheWriteInputTokens"),
            output_tokens: last("outputTokens"),
            reasoning_tokens: last("reasoningOutputTokens"),
            ..Amounts::ZERO
        };
        let (id, provider) = (format!("{thread}:{total}"), Program::Codex.provider().to_owned());
        let request = ObservedRequest { id, provider, model: self.model.clone(), usage };
        self.events.push_back(EngineEvent::Request(request));
    }

    fn finish_turn(&mut self, turn: &Value) {
        let message = turn.pointer("/error/message").and_then(Value::as_str);
        let status = text(turn, "status").unwrap_or("completed");
        let end = match if self.is_interrupted { "interrupted" } else { status } {
            "interrupted" => EngineEnd::Interrupted,
            "failed" => EngineEnd::Failed(message.unwrap_or("it gave no reason").to_owned()),
            _ => EngineEnd::Answered(self.text.take()),
        };
        self.finish(end);
    }
}

/// Returns what the model reads about a call that was not run as it wrote it.
fn remark_about(name: &str, decision: &CallAnswer) -> Option<String> {
    match decision {
        CallAnswer::Allow => None,
        CallAnswer::AllowWith(arguments) => {
            Some(format!("{name} was not run. Run it with these arguments instead: {arguments}"))
        }
        CallAnswer::Deny(reason) => Some(format!("{name} was not allowed: {reason}")),
    }
}

impl EngineRun for CodexRun {
    fn process(&self) -> Option<ProcessStarted> {
        Some(self.server.process.started.clone())
    }

    fn next(&mut self) -> EngineFuture<'_, Result<EngineEvent, EngineError>> {
        Box::pin(self.next_event())
    }

    fn interrupt(&mut self) -> EngineFuture<'_, Result<(), EngineError>> {
        self.is_interrupted = true;
        let params = json!({"threadId": self.thread.as_str(), "turnId": self.turn});
        self.server.send("turn/interrupt", &params);
        Box::pin(std::future::ready(Ok(())))
    }

    fn end(self: Box<Self>) -> EngineFuture<'static, ()> {
        Box::pin(self.server.close())
    }
}
