//! Reports of a program that this process drives, and that says more than hooks do.

use std::sync::atomic::Ordering;

use backstitch_core::id::CallId;
use backstitch_core::journal::{CallFinished, CallVerdict, PauseReason, SessionPaused};
use backstitch_core::message::{MessageBuilder, RoleHint};
use serde_json::{Map, Value};

use super::close::payload;
use super::{ObservedCall, ObservedResult, ObservedSession};
use crate::content::result_message;
use crate::error::Result;

impl ObservedSession {
    /// Names the conversation that requests belong to from now on, in the program's own words.
    pub fn set_conversation(&mut self, conversation: Map<String, Value>) {
        self.conversation = conversation;
    }

    /// Begins a turn: texts and calls belong to it until the next.
    pub async fn next_turn(&self) {
        let state = self.live.state().await;
        let latest = state.view.latest_evaluation().filter(|latest| latest.finished.is_none());
        let known = latest.map_or(0, |latest| latest.turns);
        self.turn.store(known + 1, Ordering::SeqCst);
    }

    /// Returns the turn that reports belong to, and begins one if there is none.
    async fn current_turn(&self) -> u64 {
        if self.turn.load(Ordering::SeqCst) == 0 {
            self.next_turn().await;
        }
        self.turn()
    }

    /// Returns the turn that reports belong to.
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::SeqCst).max(1)
    }

    /// Records a text of the program. It may not be its last one.
    pub async fn record_text(&self, text: &str) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let evaluation = self.open_evaluation().await?;
        let turn = self.current_turn().await;
        let ids = self.live.state().await.session.ids().clone();
        let mut builder = MessageBuilder::continue_step(turn, &ids);
        builder.policy(self.program.clone()).role_hint(RoleHint::Assistant).add_text(text);
        let message = builder.to_message()?;
        self.hold(|commit| commit.say(evaluation, turn, message).map(drop)).await
    }

    /// Records that a call waits for the approval of a person.
    pub async fn call_waits(&self, call: &ObservedCall) -> Result<CallId> {
        let evaluation = self.open_evaluation().await?;
        let (id, turn) = (self.new_call_id(&call.id).await, self.current_turn().await);
        self.live
            .commit(|commit| {
                if commit.view().call(id).is_none() {
                    self.say_call(commit, evaluation, turn, id, call)?;
                }
                let detail = format!("{} needs approval", call.name);
                commit.push(SessionPaused::new(PauseReason::Approval).of_call(id).with_detail(detail));
                Ok(id)
            })
            .await
    }

    /// Records a call that was never run, with the error that the program received.
    pub async fn record_refusal(&self, call: ObservedCall, result: ObservedResult) -> Result<()> {
        let evaluation = self.open_evaluation().await?;
        let (id, turn) = (self.new_call_id(&call.id).await, self.current_turn().await);
        self.live
            .commit(|commit| {
                self.push_start(commit, evaluation, id, &call, None)?;
                let (payload, summary) = payload(id, &call.name, Some(result.outcome));
                commit.say(evaluation, turn, result_message(payload, Some(turn)))?;
                commit.push(CallFinished {
                    summary: Some(summary),
                    ..CallFinished::new(id, CallVerdict::Failed)
                });
                Ok(())
            })
            .await
    }
}
