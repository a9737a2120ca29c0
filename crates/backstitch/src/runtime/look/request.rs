//! Requests to models, rendered again from the journal.
//!
//! The journal holds the digest, the length and the renderer of a request. The request itself follows from the rest of the
//! journal, so it can be rendered again. If the digests are equal, it is the same, byte for byte.

use std::sync::Arc;

use backstitch_providers::{HttpRequest, HttpResponse, Transport, TransportError};
use backstitch_runtime::{Evaluator, RequestReplay, read_records};

use crate::agent_file::{
    AgentDefinition, AgentFileError, BuildOptions, BuiltAgent, ModelName, recorded_definition,
};
use crate::journal::{Position, RecordBody};
use crate::ports::BoxFuture;
use crate::report::{RenderedRequest, RequestError, RequestForm, RequestReport, Version};
use crate::runtime::Runtime;
use crate::view::JournalView;

impl Runtime {
    /// Renders a request of the latest evaluation again: that of a turn, or the latest. Nothing is sent. With a model, the request is
    /// rendered for that one.
    pub async fn request(
        &self,
        view: &JournalView,
        turn: Option<u64>,
        model: Option<&ModelName>,
    ) -> Result<RenderedRequest, RequestError> {
        let at = self.find_request(view, turn).await?;
        self.request_at(view, at, model).await
    }

    /// Renders the request that a record of the session starts again. Nothing is sent. With a model, the request is rendered for that
    /// one.
    pub async fn request_at(
        &self,
        view: &JournalView,
        at: Position,
        model: Option<&ModelName>,
    ) -> Result<RenderedRequest, RequestError> {
        let store = &*self.store.store;
        let mut definition = recorded_definition(store, view, Some(at)).await?;
        if let Some(model) = model {
            (definition.model, definition.script) = (Some(model.clone()), None);
        }
        let BuiltAgent { agent, prompt, .. } = build_to_look(&definition)?;
        let evaluator = Evaluator::of(agent);
        let replay = evaluator.request_again(&prompt, store, view.session_id(), at).await?;
        let (agrees, verdict) = match model {
            Some(model) => (true, format!("rendered for {model}; it was not sent like this")),
            None => verdict(&replay),
        };
        let RequestReplay { recorded, rendered, is_redacted } = replay;
        let body = rendered.body.map(|body| body.text());
        let form = |digest, length, renderer: &Option<String>| RequestForm {
            digest,
            length,
            renderer: renderer.clone(),
        };
        let report = RequestReport {
            v: Version,
            evaluation: recorded.evaluation_id,
            turn: recorded.turn,
            provider: recorded.provider.clone(),
            model: recorded.model.clone(),
            recorded: form(recorded.digest, recorded.length, &recorded.renderer),
            rendered: form(rendered.digest, rendered.length, &rendered.renderer),
            agrees,
            redacted: is_redacted,
            verdict,
            request: body.as_deref().and_then(|body| serde_json::from_str(body).ok()),
        };
        Ok(RenderedRequest { report, body })
    }

    /// Finds the position of a request. One that was repeated after a crash is recorded again: the last one is used.
    async fn find_request(&self, view: &JournalView, turn: Option<u64>) -> Result<Position, RequestError> {
        let evaluation = view.latest_evaluation().ok_or(RequestError::NoMessages)?.evaluation_id;
        let visible = view.lineage().visible(view.head());
        let mut found = None;
        for record in read_records(&*self.store.store, view.session_id(), Position::START, None).await? {
            if let RecordBody::RequestStarted(started) = &record.body
                && started.evaluation_id == evaluation
                && turn.is_none_or(|turn| turn == started.turn)
                && visible.iter().any(|range| range.contains(&record.position))
            {
                found = Some(record.position);
            }
        }
        found.ok_or(RequestError::NotFound { turn })
    }
}

/// Builds an agent that renders requests and sends none.
pub(super) fn build_to_look(definition: &AgentDefinition) -> Result<BuiltAgent, AgentFileError> {
    definition.build_with(BuildOptions {
        // Keys are not part of the rendered request, and nothing is sent.
        key: Box::new(|_| Some("unused".to_owned())),
        transport: Some(Arc::new(NoTransport)),
    })
}

/// Returns whether a rendered request equals the recorded one, and the comparison for people.
fn verdict(replay: &RequestReplay) -> (bool, String) {
    let (recorded, rendered) = (&replay.recorded, &replay.rendered);
    let renderer = |of: &Option<String>| of.clone().unwrap_or_else(|| "nothing".to_owned());
    let is_same = replay.agrees() == Some(true);
    let is_unsent = recorded.digest.is_none() && rendered.digest.is_none();
    let verdict = match (replay.agrees(), recorded.digest) {
        (_, Some(digest)) if is_same => {
            format!("it is the request that was sent: {} bytes, digest {digest}", recorded.length)
        }
        _ if is_unsent => "nothing was sent: this policy is not a model, and has no requests".to_owned(),
        (None, Some(digest)) if replay.is_redacted => format!(
            "the digest cannot match: records that the request depends on were redacted since then (recorded {digest})"
        ),
        _ if recorded.renderer != rendered.renderer => {
            let (then, now) = (renderer(&recorded.renderer), renderer(&rendered.renderer));
            format!("it was rendered by {then}, and this version renders as {now}: the bytes may differ")
        }
        (Some(_), Some(digest)) => {
            let now = rendered.digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
            format!(
                "it is NOT the request that was sent: recorded {digest} ({} bytes), rendered {now} ({} bytes)",
                recorded.length, rendered.length
            )
        }
        _ => "one of the two digests is unknown, so the requests cannot be compared".to_owned(),
    };
    (is_same || is_unsent, verdict)
}

/// A transport that refuses every request.
struct NoTransport;

impl Transport for NoTransport {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("a request that is rendered again is not sent")) })
    }
}
