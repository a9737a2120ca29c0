//! Replay of requests: they are rendered again from the journal.
//!
//! The journal has the digest, the length and the renderer of a request, but not the request itself, which
//! follows from the earlier records. This module renders it again, and sends nothing.

use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, RecordBody, RequestStarted};
use backstitch_core::ports::{RequestInfo, Store};
use backstitch_core::prompt::BoundPrompt;

use super::Evaluator;
use crate::clock::SystemClock;
use crate::driver::question_before;
use crate::error::{Result, RuntimeError};
use crate::live::{load_view, read_records};

/// A request as it was recorded, and as it is rendered now.
#[derive(Debug, Clone)]
pub struct RequestReplay {
    /// The record of the request.
    pub recorded: Arc<RequestStarted>,
    /// The request that the journal before the record renders to.
    pub rendered: RequestInfo,
    /// True if a record that the request depends on was redacted since then. Then the digests cannot match.
    pub is_redacted: bool,
}

impl RequestReplay {
    /// True if both are equal byte for byte. `None` if the policy has no digests, and if they differ because
    /// of a redaction.
    pub fn agrees(&self) -> Option<bool> {
        let agrees = self.recorded.digest.map(|digest| Some(digest) == self.rendered.digest)?;
        (agrees || !self.is_redacted).then_some(agrees)
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
    ) -> Result<RequestReplay> {
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
            _ => self.render_prompt_at(prompt, store, known.started, clock.clone()).await?,
        };
        let agent = self.agent.clone().rendered_prompt(prompt, rendered)?;
        let question = question_before(&agent, store, &view, &recorded, clock).await?;
        let is_redacted = is_redacted(store, session, at).await?;
        let rendered = agent.answering(&view, evaluation).policy.describe(&question);
        Ok(RequestReplay { recorded, rendered, is_redacted })
    }
}

/// Returns whether a record before a cut was redacted, in the session or in those that it was forked from.
async fn is_redacted(store: &dyn Store, session: SessionId, cut: Position) -> Result<bool> {
    let mut next = Some((session, cut));
    while let Some((session, cut)) = next.take() {
        for record in read_records(store, session, Position::START, None).await? {
            match &record.body {
                RecordBody::SessionCreated(created) => {
                    if let Origin::Fork { session, position } = created.origin {
                        next = Some((session, position));
                    }
                }
                RecordBody::Redacted(redacted) if redacted.positions.iter().any(|one| *one < cut) => {
                    return Ok(true);
                }
                _ => {}
            }
        }
    }
    Ok(false)
}
