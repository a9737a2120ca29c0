//! The reports of an engine, as they are recorded.

use std::collections::HashSet;

use backstitch_core::budget::Amounts;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{BudgetCharged, Note};
use backstitch_core::secrets::Secrets;
use backstitch_core::view::CallStatus;

use super::calls::{ONE_CALL, WaitingCall, decision, exceeded, exceeded_by, money_left, need, unknown_price};
use super::origin::{REFUSED_AT_STOP, conversation_of};
use super::{CallAnswer, CallReply, Engine, EngineEvent, ProgramHold};
use crate::agent::AgentEngine;
use crate::driver::Driver;
use crate::error::Result;
use crate::events::{LiveKind, Retry};
use crate::live::Durable;
use crate::observed::{ObservedCall, ObservedResult, ObservedSession};
use crate::runner::ApprovalNeed;

/// The work of one run of a program.
pub(super) struct EngineWork<'a> {
    pub(super) driver: &'a Driver,
    pub(super) evaluation: EvaluationId,
    engine: &'a dyn Engine,
    settings: &'a AgentEngine,
    observed: ObservedSession,
    secrets: Secrets,
    pub(super) waiting: Vec<WaitingCall>,
    /// Calls that were not allowed, by the program's own ids.
    refused: HashSet<String>,
    /// The money that was charged for this run, in millionths.
    charged: u64,
    /// Whether the request whose answer is reported was charged already.
    is_counted: bool,
    /// The limit that was reached.
    exceeded: Option<String>,
    last_text: Option<String>,
    /// Holds the program until an event was handled completely.
    pub(super) held: Option<ProgramHold>,
}

impl<'a> EngineWork<'a> {
    pub(super) fn new(
        driver: &'a Driver,
        engine: &'a dyn Engine,
        settings: &'a AgentEngine,
        evaluation: EvaluationId,
    ) -> Self {
        let program = driver.agent().policy.name().clone();
        Self {
            driver,
            evaluation,
            engine,
            settings,
            observed: ObservedSession::new(driver.session().clone(), program),
            secrets: driver.agent().all_secrets(),
            waiting: Vec::new(),
            refused: HashSet::new(),
            charged: 0,
            is_counted: false,
            exceeded: None,
            last_text: None,
            held: None,
        }
    }

    /// Records an event. Returns the limit that was reached, once nothing runs any more that may not be interrupted.
    pub(super) async fn take(&mut self, event: EngineEvent, is_stopping: bool) -> Result<Option<String>> {
        match event {
            EngineEvent::Started { session, transcript, model, version } => {
                let words = [Some(self.engine.title().to_owned()), version, model].into_iter().flatten();
                let text = words.collect::<Vec<_>>().join(" ");
                self.note(format!("{text}, conversation {session}")).await?;
                let conversation = conversation_of(self.observed.id(), &session, transcript.as_ref());
                self.observed.set_conversation(conversation);
            }
            EngineEvent::Answering => {
                self.observed.next_turn().await;
                self.is_counted = false;
                // The calls of the turn that reached the limit have ended.
                return Ok(self.exceeded.clone());
            }
            EngineEvent::Piece(text) => {
                let turn = self.observed.turn();
                let text = self.secrets.redact(&text).into_owned();
                let kind = LiveKind::Text { evaluation: self.evaluation, turn, text };
                self.driver.session().channel.publish(kind);
            }
            EngineEvent::Text(text) => {
                let text = self.secrets.redact(&text).into_owned();
                self.observed.record_text(&text).await?;
                self.last_text = Some(text);
            }
            EngineEvent::CallStarting(call, reply) if reply.is_late() => {
                let call = self.clean(call);
                self.start_call(call).await?;
            }
            EngineEvent::CallStarting(call, reply) if is_stopping => {
                let reason = format!("{} {REFUSED_AT_STOP}", call.name);
                self.refuse(self.clean(call), reply, reason).await?;
            }
            EngineEvent::CallStarting(call, reply) => {
                if let Some(limit) = self.call_limit().await {
                    let reason = format!("{} {REFUSED_AT_STOP}: {limit}", call.name);
                    self.refuse(self.clean(call), reply, reason).await?;
                    return Ok(Some(limit));
                }
                let needed = need(self.driver, self.engine, self.settings, &call).await?;
                let call = self.clean(call);
                match needed {
                    ApprovalNeed::None => {
                        self.start_call(call).await?;
                        reply.answer(CallAnswer::Allow);
                    }
                    ApprovalNeed::Denied(reason) => self.refuse(call, reply, reason).await?,
                    ApprovalNeed::Person => {
                        let id = self.observed.call_waits(&call).await?;
                        self.waiting.push(WaitingCall { id, call, reply });
                    }
                }
            }
            // Some programs report the end of a call that was not allowed.
            EngineEvent::CallFinished(call, ..) if self.refused.contains(&call.id) => {}
            EngineEvent::CallFinished(call, result, held) => {
                self.held = Some(held);
                let (call, result) = (self.clean(call), self.clean_result(result));
                self.observed.record_call_end(call, result).await?;
                let is_quiet = self.driver.session().view().await.calls().all(|call| !call.is_open());
                return Ok(self.exceeded.clone().filter(|_| is_quiet));
            }
            // A program gives the calls that it interrupts a result of its own. They have not ended: they are rolled back.
            EngineEvent::CallResult(..) if is_stopping => {}
            EngineEvent::CallResult(call, result) => {
                let (call, result) = (self.clean(call), self.clean_result(result));
                self.result(call, result).await?;
            }
            EngineEvent::SubAgentEnded(agent, held) => {
                self.held = Some(held);
                if let Some(agent) = agent {
                    self.observed.barrier(Some(&agent)).await?;
                }
            }
            EngineEvent::Request(mut request) => {
                let prices = &self.driver.agent().prices;
                let is_counted =
                    self.engine.provider().is_none() || prices.has(&request.provider, &request.model);
                let unknown = (!is_counted).then(|| unknown_price(&request.provider, &request.model));
                request.usage = prices.priced(request.usage, &request.provider, &request.model);
                let money = request.usage.money_micros;
                self.is_counted = true;
                if self.observed.requests(vec![request]).await? > 0 {
                    self.charged = self.charged.saturating_add(money);
                }
                self.check_budget().await;
                if let Some(unknown) = unknown
                    && money_left(&*self.driver.session().view().await, self.evaluation).is_some()
                {
                    self.exceeded = Some(unknown);
                }
            }
            EngineEvent::Cost(total) => {
                let money_micros = total.saturating_sub(self.charged);
                if money_micros > 0 {
                    self.charged = total;
                    let charged = BudgetCharged::new(None, Amounts { money_micros, ..Amounts::ZERO });
                    let live = self.driver.session();
                    live.record_when(vec![charged.into()], Durable::WithNext).await?;
                    self.check_budget().await;
                }
            }
            EngineEvent::Retry { attempt, wait, kind, message } => {
                let (evaluation, turn) = (self.evaluation, self.observed.turn());
                let message = self.secrets.redact(&message).into_owned();
                let retry = Retry { evaluation, turn, attempt, wait, kind, message };
                self.driver.session().channel.publish(LiveKind::Retry(Box::new(retry)));
            }
            EngineEvent::Note(text) => self.note(text).await?,
            EngineEvent::Ended(_) => {}
        }
        Ok(None)
    }

    /// Records the end of the work: calls that are still open have the files of now.
    pub(super) async fn record_end(&self, text: Option<String>) -> Result<()> {
        self.observed.barrier(None).await?;
        let text = text.map(|text| self.secrets.redact(&text).into_owned());
        if let Some(text) = text.filter(|text| self.last_text.as_deref() != Some(text)) {
            self.observed.record_text(&text).await?;
        }
        Ok(())
    }

    /// Answers the calls that a person has decided about.
    pub(super) async fn apply_decisions(&mut self) -> Result<()> {
        self.driver.receive_decisions().await?;
        for waiting in std::mem::take(&mut self.waiting) {
            let WaitingCall { id, mut call, reply } = waiting;
            match decision(self.driver, id).await {
                None => self.waiting.push(WaitingCall { id, call, reply }),
                Some(CallAnswer::Deny(reason)) => self.refuse(call, reply, reason).await?,
                Some(answer) => {
                    if let CallAnswer::AllowWith(input) = &answer {
                        call.input = input.clone();
                    }
                    self.start_call(call).await?;
                    reply.answer(answer);
                }
            }
        }
        Ok(())
    }

    /// Refuses a call, and records it with the reason.
    async fn refuse(&mut self, call: ObservedCall, reply: CallReply, reason: String) -> Result<()> {
        self.refused.insert(call.id.clone());
        let result = ObservedResult { outcome: Err(reason.clone()), elapsed_micros: None };
        self.observed.record_refusal(call, result).await?;
        reply.answer(CallAnswer::Deny(reason));
        Ok(())
    }

    /// Records the result of a call that had no report of its end.
    async fn result(&self, call: ObservedCall, result: ObservedResult) -> Result<()> {
        let id = self.observed.call_id(&call.id).await;
        let known = self.driver.session().view().await.call(id).map(|call| (call.is_open(), call.status()));
        match known {
            Some((true, _)) => self.observed.record_call_end(call, result).await,
            Some((false, CallStatus::Pending)) | None => self.observed.record_refusal(call, result).await,
            Some((false, _)) => Ok(()),
        }
    }

    /// Records that a call is about to run, with the files before it.
    async fn start_call(&mut self, call: ObservedCall) -> Result<()> {
        let charged = BudgetCharged::new(None, ONE_CALL);
        self.driver.session().record_when(vec![charged.into()], Durable::WithNext).await?;
        self.observed.record_call_start(call).await?;
        Ok(())
    }

    /// Returns the limit that another call would exceed. A program that is not held after a call sends its next request at
    /// once, so the calls of its last turn do not run.
    async fn call_limit(&self) -> Option<String> {
        let view = self.driver.session().view().await;
        let limit = |more| exceeded_by(&view, self.evaluation, more);
        // The request after the current one is limited here as well. The current one may not be counted yet.
        let next = Amounts { turns: if self.is_counted { 1 } else { 2 }, ..Amounts::ZERO };
        let turns = if self.engine.waits_after_calls() { None } else { limit(next) };
        turns.or_else(|| limit(ONE_CALL))
    }

    async fn check_budget(&mut self) {
        let view = self.driver.session().view().await;
        self.exceeded = exceeded(&view, self.evaluation);
    }

    async fn note(&self, text: String) -> Result<()> {
        let note = Note::new("engine", self.secrets.redact(&text).into_owned());
        self.driver.session().record_when(vec![note.into()], Durable::WithNext).await
    }

    fn clean(&self, call: ObservedCall) -> ObservedCall {
        ObservedCall { input: self.secrets.redact_value(call.input), ..call }
    }

    fn clean_result(&self, result: ObservedResult) -> ObservedResult {
        let outcome = match result.outcome {
            Ok(value) => Ok(self.secrets.redact_value(value)),
            Err(text) => Err(self.secrets.redact(&text).into_owned()),
        };
        ObservedResult { outcome, ..result }
    }
}
