//! A run of Claude Code: its lines become events, and its requests are answered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::journal::ProcessStarted;
use backstitch_runtime::{
    CallAnswer, CallReply, EngineEnd, EngineError, EngineEvent, EngineFuture, EngineRun, EngineStart,
    ObservedCall, ProgramHold,
};
use serde_json::{Value, json};

use super::command::specification;
use super::protocol::{Block, Line, TurnEnd, initialize, prompt, refusal, request, response};
use super::usage::Requests;
use super::{LOGIN, TITLE};
use crate::hooks::{HookDecision, HookReport, changed_input, decision};
use crate::installed::InstalledProgram;
use crate::process::EngineProcess;
use crate::program::Program;
use crate::relay::{SERVER, ToolSocket};

/// What the program prints if it does not know a conversation.
const UNKNOWN_SESSION: &str = "No conversation found";

/// A tool that asks a person, who is not there.
const QUESTION: &str = "AskUserQuestion";

/// Claude Code at work.
pub(crate) struct ClaudeRun {
    process: EngineProcess,
    events: VecDeque<EngineEvent>,
    requests: Requests,
    /// Calls that may run.
    allowed: Arc<Mutex<HashSet<String>>>,
    /// Names and arguments of the calls of the conversation.
    calls: HashMap<String, (String, Value)>,
    transcript: Option<PathBuf>,
    /// The conversation that it was to continue.
    resumed: Option<String>,
    is_started: bool,
    /// Background tasks that ran at the last stop.
    background: usize,
    is_interrupted: bool,
    has_ended: bool,
    /// The tools are served as long as it runs.
    _tools: Option<ToolSocket>,
}

impl ClaudeRun {
    pub(crate) async fn start(engine: &InstalledProgram, start: EngineStart) -> Result<Self, EngineError> {
        let (tools, relay) = ToolSocket::offer(TITLE, start.tools.clone(), engine.relay)?.unzip();
        let mut spec = specification(&engine.path, &start, relay)?;
        for (name, key) in &engine.keys {
            spec = spec.env(*name, key);
        }
        let process = EngineProcess::start(TITLE, spec, start.directory.clone(), start.mark).await?;
        process.send(initialize());
        process.send(prompt(&start.prompt_id, &start.prompt));
        Ok(Self {
            process,
            events: VecDeque::new(),
            requests: Requests::default(),
            allowed: Arc::default(),
            calls: HashMap::new(),
            transcript: None,
            resumed: start.resume.map(|resume| resume.session),
            is_started: false,
            background: 0,
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
            match self.process.next().await? {
                Some(line) => self.take(Line::of(&line))?,
                None if self.is_interrupted => self.finish(EngineEnd::Interrupted),
                None => return Err(self.early_end_error().await),
            }
        }
    }

    async fn early_end_error(&mut self) -> EngineError {
        let error = self.process.early_end_error().await;
        match (&self.resumed, &error) {
            (Some(session), EngineError::Ended { stderr, .. }) if stderr.contains(UNKNOWN_SESSION) => {
                EngineError::SessionGone { title: TITLE.to_owned(), session: session.clone() }
            }
            _ => error,
        }
    }

    fn finish(&mut self, end: EngineEnd) {
        self.has_ended = true;
        self.events.push_back(EngineEvent::Ended(end));
    }

    fn take(&mut self, line: Line) -> Result<(), EngineError> {
        match line {
            Line::Init { session, model, version } => {
                if !std::mem::replace(&mut self.is_started, true) {
                    let transcript = self.transcript.clone();
                    self.events.push_back(EngineEvent::Started { session, transcript, model, version });
                }
            }
            Line::MessageStart { of, id, model, usage } => {
                if of.is_none() {
                    self.events.push_back(EngineEvent::Answering);
                }
                self.requests.start(of, id, model, usage);
            }
            Line::Piece { of: None, text } => self.events.push_back(EngineEvent::Piece(text)),
            Line::MessageUsage { of, usage } => self.requests.update(&of, usage),
            Line::MessageStop { of } => {
                let ended = self.requests.stop(&of);
                self.events.extend(ended.map(EngineEvent::Request));
            }
            Line::Answer { of, id, model, usage, blocks } => {
                if self.requests.message(&of, &id, &model, usage) && of.is_none() {
                    self.events.push_back(EngineEvent::Answering);
                }
                for block in blocks {
                    match block {
                        Block::Text(text) if of.is_none() => self.events.push_back(EngineEvent::Text(text)),
                        Block::Text(_) => {}
                        Block::Call { id, name, input } => drop(self.calls.insert(id, (name, input))),
                    }
                }
            }
            Line::Results(results) => {
                for (id, result) in results {
                    let Some((name, input)) = self.calls.remove(&id) else { continue };
                    if !is_ours(&name) {
                        let call = ObservedCall::new(id, &name, input);
                        self.events.push_back(EngineEvent::CallResult(call, result));
                    }
                }
            }
            Line::Hook { request, event } => {
                self.transcript = event.transcript().or(self.transcript.take());
                // An event that cannot be understood is answered, and records nothing.
                let report = event.report(Program::ClaudeCode).unwrap_or(HookReport::Nothing);
                self.hook(request, report);
            }
            Line::MayRun { request, call, name, input } => {
                let answer = self.may_run(call.as_deref(), &name, input);
                self.process.send(response(&request, &answer));
            }
            Line::OtherRequest { request, subtype } => {
                self.process.send(refusal(&request, &format!("{subtype} is not supported")));
            }
            Line::Response { request, error: Some(error) } if request == "initialize" => {
                let reason = format!("its hooks cannot be used: {error}");
                return Err(EngineError::Protocol { title: TITLE.to_owned(), reason });
            }
            // It may renew its login once. Then it would try for minutes.
            Line::Retry(failed) if failed.is_refused() && failed.attempt > 1 => {
                let reason = failed.message();
                let message = format!("the provider refuses its key or login: {reason}. {LOGIN}");
                self.finish(EngineEnd::Failed(message));
            }
            Line::Retry(failed) => {
                let (attempt, wait, message) = (failed.attempt, failed.wait, failed.message());
                self.events.push_back(EngineEvent::Retry { attempt, wait, kind: failed.error, message });
            }
            Line::Turn(end) => self.finish_turn(end)?,
            Line::Piece { .. } | Line::Response { .. } | Line::Other => {}
        }
        Ok(())
    }

    /// Answers a hook event now, or when its event was handled.
    fn hook(&mut self, request: String, report: HookReport) {
        let Some(input) = self.process.input.clone() else { return };
        match report {
            // The tools of the agent are recorded where they run.
            HookReport::Before(call) if is_ours(&call.name) => {
                self.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(call.id);
                input.send(response(&request, &json!({})));
            }
            HookReport::After(call, _) if is_ours(&call.name) => input.send(response(&request, &json!({}))),
            HookReport::Before(call) => {
                let (reply, answer) = CallReply::new();
                let (allowed, id) = (self.allowed.clone(), call.id.clone());
                tokio::spawn(async move {
                    let answer = answer
                        .await
                        .unwrap_or_else(|_| CallAnswer::Deny("the session has stopped".to_owned()));
                    let output = match &answer {
                        CallAnswer::Allow => json!({}),
                        CallAnswer::AllowWith(input) => changed_input(input),
                        CallAnswer::Deny(reason) => decision(HookDecision::Deny, reason),
                    };
                    if !matches!(answer, CallAnswer::Deny(_)) {
                        allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
                    }
                    input.send(response(&request, &output));
                });
                self.events.push_back(EngineEvent::CallStarting(call, reply));
            }
            HookReport::After(call, result) => {
                let held = hold_until_done(input, request);
                self.events.push_back(EngineEvent::CallFinished(call, result, held));
            }
            HookReport::SubAgentEnd(agent) => {
                let held = hold_until_done(input, request);
                self.events.push_back(EngineEvent::SubAgentEnded(agent, held));
            }
            HookReport::Answer { background, .. } => {
                self.background = background;
                input.send(response(&request, &json!({})));
            }
            // An interrupted call has not ended by itself.
            HookReport::Interrupted(..)
            | HookReport::Start
            | HookReport::Prompt(_)
            | HookReport::Interrupt
            | HookReport::End
            | HookReport::Nothing => input.send(response(&request, &json!({}))),
        }
    }

    /// Answers whether a call may run. It was decided before, at its hook.
    fn may_run(&self, call: Option<&str>, name: &str, input: Value) -> Value {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if name == QUESTION {
            json!({ "behavior": "deny", "message": "No person can answer here. Decide yourself, and say what you assumed." })
        } else if call.is_some_and(|call| allowed.contains(call)) {
            json!({ "behavior": "allow", "updatedInput": input })
        } else {
            json!({ "behavior": "deny", "message": "This call was not announced, so it is not run." })
        }
    }

    fn finish_turn(&mut self, end: TurnEnd) -> Result<(), EngineError> {
        let rest = self.requests.rest();
        self.events.extend(rest.into_iter().map(EngineEvent::Request));
        self.events.extend(end.cost_micros.map(EngineEvent::Cost));
        let is_failed = end.is_error || end.subtype.starts_with("error");
        let message = || {
            let texts = end.text.iter().chain(&end.errors).cloned().collect::<Vec<_>>().join("; ");
            if texts.is_empty() { end.subtype.clone() } else { texts }
        };
        if self.is_interrupted {
            self.finish(EngineEnd::Interrupted);
        } else if matches!(end.subtype.as_str(), "error_max_budget_usd" | "error_max_turns") {
            self.finish(EngineEnd::Limit(message()));
        } else if is_failed {
            let message = message();
            if let Some(session) = self.resumed.clone().filter(|_| message.contains(UNKNOWN_SESSION)) {
                return Err(EngineError::SessionGone { title: TITLE.to_owned(), session });
            }
            self.finish(EngineEnd::Failed(message));
        } else if self.background > 0 {
            // The program answers again when they have ended.
            let text = format!("{} background tasks of {TITLE} still run", self.background);
            self.background = 0;
            self.events.push_back(EngineEvent::Note(text));
        } else {
            self.finish(EngineEnd::Answered(end.text));
        }
        Ok(())
    }
}

/// Whether a tool is one of the agent's own, which are served here.
fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(SERVER));
    rest.is_some_and(|rest| rest.starts_with("__"))
}

/// Answers a request once the returned hold is dropped.
fn hold_until_done(input: crate::process::LineSender, request: String) -> ProgramHold {
    let (held, done) = ProgramHold::new();
    tokio::spawn(async move {
        let _ = done.await;
        input.send(response(&request, &json!({})));
    });
    held
}

impl EngineRun for ClaudeRun {
    fn process(&self) -> Option<ProcessStarted> {
        Some(self.process.started.clone())
    }

    fn next(&mut self) -> EngineFuture<'_, Result<EngineEvent, EngineError>> {
        Box::pin(self.next_event())
    }

    fn interrupt(&mut self) -> EngineFuture<'_, Result<(), EngineError>> {
        self.is_interrupted = true;
        self.process.send(request("interrupt", &json!({ "subtype": "interrupt" })));
        Box::pin(std::future::ready(Ok(())))
    }

    fn end(self: Box<Self>) -> EngineFuture<'static, ()> {
        Box::pin(self.process.end())
    }
}
