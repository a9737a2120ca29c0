//! Replay of requests: they are rendered again from the journal.
//!
//! The journal has the digest, the length and the renderer of a request, but not the request itself, which
//! follows from the earlier records. This module renders it again, and sends nothing.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, RecordBody, RequestStarted};
use backstitch_core::ports::{RequestInfo, Store};
use backstitch_core::prompt::BoundPrompt;

use super::Evaluator;
use crate::clock::SystemClock;
use crate::driver::question_before;
use crate::error::RuntimeError;
use crate::live::{load_view, read_records};

/// A request as it was recorded, and as it is rendered now.
#[derive(Debug, Clone)]
pub struct RequestReplay {
    /// The record of the request.
    pub recorded: Arc<RequestStarted>,
    /// The request that the journal before the record renders to.
    pub rendered: RequestInfo,
}

impl RequestReplay {
    /// True if both are equal byte for byte. `None` if the policy has no digests.
    pub fn agrees(&self) -> Option<bool> {
        self.recorded.digest.map(|digest| Some(digest) == self.rendered.digest)
    }
}

impl Evaluator {
    /// Renders a request of a session again. Its record is at this position.
    pub async fn request_again(
        &self,
        prompt: &BoundPrompt,
        store: &dyn Store,
        session: SessionId,
        at: Position,
    ) -> Result<RequestReplay, RuntimeError> {
        let record = read_records(store, session, at, Some(at.next())).await?.into_iter().next();
        let recorded = match record.map(|record| record.body) {
            Some(RecordBody::RequestStarted(started)) => started,
            _ => {
                let (point, reason) = (at.to_string(), "no request was recorded there".to_owned());
                return Err(RuntimeError::NoSuchPoint { point, reason });
            }
        };
        let clock = Arc::new(SystemClock::new());
        let view = load_view(store, session, Some(at)).await?;
        let evaluation = recorded.evaluation_id;
        let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let rendered = match known.started.position {
            // It came with a snapshot, and was rendered in another session.
            Position::START => prompt.render(&view.session(clock.clone()))?,
            _ => self.rendered_at(prompt, store, known.started, clock.clone()).await?,
        };
        let agent = self.agent.clone().with_prompt(prompt, rendered)?;
        let question = question_before(&agent, store, &view, evaluation, clock).await?;
        Ok(RequestReplay { recorded, rendered: agent.policy.describe(&question) })
    }
}
