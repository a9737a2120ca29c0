//! Compaction of a conversation that is not driven.

use backstitch_core::ports::BoxFuture;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::driver::{CompactReport, DriverParts};
use crate::error::Result;
use crate::evaluate::Evaluator;
use crate::live::LiveSession;
use crate::runtime::Runtime;
use crate::workspace::OperationFiles;

/// Options of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactOptions {
    /// What the summary pays most attention to, in words.
    pub focus: Option<String>,
}

impl Runtime {
    /// Asks the model of a session for a summary of its conversation. Later requests show it in place of all but the last two
    /// answers; the journal keeps everything, and a rewind to a point before this shows the answers again. It is charged to
    /// the session. Dropping the future stops it.
    ///
    /// Fails with [`RuntimeError::EvaluationOpen`](crate::RuntimeError::EvaluationOpen) while an evaluation is open, and with
    /// [`RuntimeError::NothingToCompact`](crate::RuntimeError::NothingToCompact) if there is nothing to summarize. If the model
    /// does not answer, the conversation stays as it was.
    pub fn compact<'a>(
        &'a self,
        session: SessionId,
        agent: &'a Agent,
        options: CompactOptions,
    ) -> BoxFuture<'a, Result<CompactReport>> {
        Box::pin(async move {
            let agent = agent.resolved(&self.adapters)?;
            let stop = CancellationToken::new();
            let _stops_when_dropped = stop.clone().drop_guard();
            let focus = options.focus.map(|focus| focus.trim().to_owned()).filter(|focus| !focus.is_empty());
            let compact = move |live: Arc<LiveSession>| async move {
                let prompt = agent.bound.clone();
                let evaluator = Evaluator::with_parts(agent, DriverParts { stop, ..DriverParts::default() });
                evaluator.compact(prompt.as_deref(), &live, focus).await
            };
            self.operate_with(session, OperationFiles::Untouched, compact).await
        })
    }
}
