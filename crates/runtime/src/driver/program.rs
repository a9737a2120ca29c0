//! Calls of programs.
//!
//! A call of a program is an ordinary call with a message, which records its place in the program. A program
//! that runs again after a rewind makes its calls under the same ids. A call that had an effect outside
//! before is not repeated without a decision: the session waits, and offers the recorded result.

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Origin, RecordBody};
use backstitch_core::machine::PendingCall;
use backstitch_core::message::{Content, Message, OptionCall, RoleHint};

use super::calls::Calls;
use crate::error::Result;
use crate::history::pauses_of;
use crate::live::Durable;

pub(super) enum CallGate {
    May,
    /// The session waits for a decision about at least one of them.
    Waits,
}

impl Calls {
    /// Records messages for the calls that have none yet.
    pub(super) async fn make(&self, evaluation: EvaluationId, wanted: &[PendingCall]) -> Result<CallGate> {
        let new: Vec<&PendingCall> = wanted.iter().filter(|one| one.made_at.is_some()).collect();
        if new.is_empty() {
            return Ok(CallGate::May);
        }
        let view = self.live.view().await;
        let is_fork = matches!(view.created().origin, Origin::Fork { .. });
        let was_rewound = is_fork || !view.lineage().rewinds().is_empty();
        let pauses: Vec<RecordBody> = if was_rewound {
            pauses_of(&**self.live.store(), self.live.id(), new.iter().map(|one| one.call_id)).await?
        } else {
            Vec::new()
        };
        let made = if pauses.is_empty() { CallGate::May } else { CallGate::Waits };
        let when = if pauses.is_empty() { Durable::WithNext } else { Durable::Now };
        self.live
            .commit(|commit| {
                for one in new {
                    let mut call = OptionCall::new(one.call_id, &one.name, one.arguments.clone());
                    call.path = one.made_at.clone();
                    let policy = self.agent.policy.name().clone();
                    let mut message = Message::new(policy, Content::OptionCall(call));
                    message.role_hint_for_llm = Some(RoleHint::Assistant);
                    message.step_num = one.step_num;
                    commit.say(evaluation, one.turn, message)?;
                }
                commit.push_all(pauses).durable(when);
                Ok(made)
            })
            .await
    }
}
