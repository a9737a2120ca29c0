//! Compaction: a summary of the conversation that a person asks for.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::ports::PolicyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Driver;
use super::fit::limit;
use super::summarize::SummaryOutcome;
use crate::error::{Result, RuntimeError};
use crate::live::Durable;
use crate::report::Version;

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CompactReport {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of answers that are not shown any more, with their calls and results.
    pub answers: usize,
    /// The estimated number of tokens that requests showed before.
    pub tokens_before: u64,
    /// The estimated number of tokens that requests show now.
    pub tokens_after: u64,
    /// The summary.
    pub summary: String,
}

impl Driver {
    /// Replaces all but the last answers of the conversation with a summary, in requests. The evaluation has to have ended.
    pub(crate) async fn compact(&self, focus: Option<String>) -> Result<CompactReport> {
        let session = self.live.id();
        let nothing = |reason: &str| RuntimeError::NothingToCompact { session, reason: reason.to_owned() };
        let view = self.live.view().await;
        let latest = view.latest_evaluation().ok_or(RuntimeError::ConversationNotFound { session })?;
        let evaluation = latest.evaluation_id;
        if latest.finished.is_none() {
            return Err(RuntimeError::EvaluationOpen { evaluation });
        }
        if self.engine.is_some() || self.agent.engine.is_some() {
            return Err(nothing("the program that does its work keeps the conversation"));
        }
        let machine = self.agent.machines().rebuild(&self.content.past(evaluation).await?)?;
        if machine.show(None).is_some() || self.agent.elides().is_some() {
            return Err(nothing("its agent has a strategy that shortens each request"));
        }
        let state = self.asker.question_state(evaluation).await?;
        let agent = self.agent.answering(&state.view, evaluation);
        let limit = limit(&agent, &state.view);
        let room = state.room(&agent, evaluation, &self.content.hydrated, limit)?;
        let Some(cut) = room.requested_cut(focus) else {
            return Err(nothing("its requests show no earlier answers that a summary could replace"));
        };
        self.asker.record_cut(cut.clone(), Durable::Now).await?;
        let room = self.asker.question_state(evaluation).await?;
        let room = room.room(&agent, evaluation, &self.content.hydrated, limit)?;
        let error = match self.asker.summarize(&agent, evaluation, &room, &Arc::new(cut.clone())).await {
            Ok(SummaryOutcome::Written(cut)) => {
                let (head, tokens_after) = room.with_cut(&cut);
                let summary = cut.summary.and_then(|summary| summary.text).unwrap_or_default();
                let (answers, tokens_before) = (head.answers, room.tokens());
                return Ok(CompactReport {
                    v: Version,
                    session,
                    answers,
                    tokens_before,
                    tokens_after,
                    summary,
                });
            }
            Ok(SummaryOutcome::Failed(error)) => error,
            Ok(SummaryOutcome::Stopped(_) | SummaryOutcome::Pauses(..)) => {
                let name = agent.policy.name().clone();
                PolicyError::new(name, ErrorCode::Cancelled, "the summary was stopped").into()
            }
            Err(error) => return Err(error),
        };
        self.asker.record_cut(room.without_summary(&cut), Durable::Now).await?;
        Err(error)
    }
}
