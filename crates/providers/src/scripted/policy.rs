//! The policy that answers with the replies of a script.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::ProviderSidecar;
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    BoxFuture, Delta, Deltas, FailedRequest, Finish, ModelIdentity, Policy, PolicyAnswer, PolicyError,
    PolicyRequest, RequestInfo,
};
use serde_json::json;

use super::{Script, ScriptError, ScriptFormat, ScriptedFailure, ScriptedReply};
use crate::answer::{FinishMeaning, finished, of_meaning};
use crate::policy::ModelPolicy;
use crate::provider::{ModelTarget, Provider};
use crate::request::RequestOptions;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::wire::finish_reasons;

/// The provider's name in journals and on the command line.
const SCRIPTED: &str = "scripted";

/// A policy that reads its answers from a script. Clones share their counts of failures.
#[derive(Clone)]
pub struct ScriptedPolicy {
    name: PolicyName,
    model: String,
    script: Arc<Script>,
    /// Renders the requests that would have been sent.
    wire: Option<Arc<ModelPolicy>>,
    /// The number of attempts for replies with failures, by session and index.
    attempts: Arc<Mutex<HashMap<(SessionId, usize), u64>>>,
}

impl ScriptedPolicy {
    /// Creates a policy with the replies of a script in TOML, named `scripted`: a stand-in for a model, so that
    /// an agent runs offline.
    ///
    /// ```
    /// use backstitch_providers::ScriptedPolicy;
    ///
    /// let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = 'Mended.'")?;
    /// # let _ = policy;
    /// # Ok::<(), backstitch_providers::ScriptError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        Ok(Self::from_replies(Script::parse(text, ScriptFormat::Toml, SCRIPTED)?.replies))
    }

    /// Creates a policy with these replies, named `scripted`.
    ///
    /// ```
    /// use backstitch_providers::{ScriptedPolicy, ScriptedReply};
    ///
    /// let policy = ScriptedPolicy::from_replies(["Mended.", "Pressed."].map(ScriptedReply::text));
    /// # let _ = policy;
    /// ```
    pub fn from_replies(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let name = PolicyName::new(SCRIPTED).expect("invariant: a plain word is a name");
        Self::new(name, Script { replies: replies.into_iter().collect() })
    }

    /// Creates a policy of this name with the replies of a script.
    pub fn new(name: PolicyName, script: Script) -> Self {
        let model = name.to_string();
        Self { name, model, script: Arc::new(script), wire: None, attempts: Arc::default() }
    }

    /// Sets the name of the model; by default, it is the name of the policy.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Renders each request as if it was sent to a model of this provider: its digest is recorded, and an
    /// invalid request fails. Nothing is sent.
    #[must_use]
    pub fn rendered_for(mut self, provider: Provider, options: RequestOptions) -> Self {
        let target = ModelTarget::new(provider, SCRIPTED);
        let wire = ModelPolicy::new(self.name.clone(), target, None, Arc::new(NoTransport));
        self.wire = Some(Arc::new(wire.with_options(options)));
        self
    }

    /// Counts an attempt, and returns the number of earlier ones.
    fn attempts_before(&self, session: SessionId, place: usize) -> u64 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = attempts.entry((session, place)).or_default();
        *count += 1;
        *count - 1
    }

    async fn emit_failure(&self, failure: &ScriptedFailure, deltas: &Deltas) -> PolicyError {
        pass(failure.delay_ms).await;
        emit(failure.said.as_deref(), None, deltas, Delta::Text).await;
        let message = failure.message.as_deref().unwrap_or("the script fails here");
        PolicyError {
            retryable: failure.retryable.unwrap_or(failure.kind.is_retryable()),
            retry_after: failure.retry_after_ms.map(Duration::from_millis),
            request: Box::new(FailedRequest {
                usage: failure.usage.unwrap_or_default(),
                ..FailedRequest::default()
            }),
            ..PolicyError::new(self.name.clone(), failure.kind.code(), message)
        }
    }

    async fn emit_reply(&self, reply: &ScriptedReply, deltas: &Deltas) -> PolicyAnswer {
        pass(reply.delay_ms).await;
        emit(reply.reasoning.as_deref(), None, deltas, Delta::Reasoning).await;
        emit(reply.text.as_deref(), reply.word_ms, deltas, Delta::Text).await;
        let finish = reply.finish_reason.as_deref().map(of_any).unwrap_or_default();
        let answer = PolicyAnswer {
            parts: reply.parts(),
            calls: reply.answered_calls(finish == Finish::Length),
            provider: self.sidecar(reply),
            usage: reply.usage.unwrap_or_default(),
            output: reply.output.clone(),
            ..PolicyAnswer::default()
        };
        finished(answer, finish)
    }

    /// The sidecar of a reply; `None` where the script has no data for it.
    fn sidecar(&self, reply: &ScriptedReply) -> Option<ProviderSidecar> {
        if reply.reasoning.is_none() && reply.finish_reason.is_none() {
            return None;
        }
        let payload = reply.reasoning.as_ref().map(|thoughts| json!({ "reasoning": thoughts }));
        Some(ProviderSidecar {
            provider: SCRIPTED.to_owned(),
            model: self.model.clone(),
            payload: payload.map(|payload| payload.to_string().into()),
            finish_reason: reply.finish_reason.clone(),
            ..ProviderSidecar::default()
        })
    }

    fn ended(&self) -> PolicyError {
        let count = self.script.replies.len();
        let message = format!("the script has {count} replies, and all of them were used");
        PolicyError::new(self.name.clone(), ErrorCode::ScriptEnded, message)
    }
}

impl Policy for ScriptedPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn model(&self) -> Option<ModelIdentity> {
        Some(ModelIdentity { provider: SCRIPTED.to_owned(), model: self.model.clone() })
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        let described = self.wire.as_ref().map(|wire| wire.describe(question)).unwrap_or_default();
        RequestInfo { provider: SCRIPTED.to_owned(), model: self.model.clone(), ..described }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            if let Some(wire) = self.wire.as_ref().filter(|_| described.body.is_none()) {
                wire.encode(&question).map_err(|unsent| wire.unsent(unsent))?;
            }
            let place = question.transcript.answers();
            let reply = self.script.replies.get(place).ok_or_else(|| self.ended())?;
            if !reply.failures.is_empty() {
                let attempts = self.attempts_before(question.session_id, place);
                if let Some(failure) = reply.failure(attempts) {
                    return Err(self.emit_failure(failure, &question.deltas).await);
                }
            }
            Ok(self.emit_reply(reply, &question.deltas).await)
        })
    }
}

/// The transport of the renderer, which is never used.
struct NoTransport;

impl Transport for NoTransport {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("a script sends no requests")) })
    }
}

impl fmt::Debug for ScriptedPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScriptedPolicy")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("replies", &self.script.replies.len())
            .finish_non_exhaustive()
    }
}

async fn pass(millis: Option<u64>) {
    if let Some(millis) = millis {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// The finish for a word of any provider.
fn of_any(word: &str) -> Finish {
    let known = Provider::ALL.into_iter().flat_map(finish_reasons).find(|(known, _)| *known == word);
    of_meaning(word, known.map_or(FinishMeaning::Other, |(_, meaning)| *meaning))
}

/// Emits a text word by word, each after a delay.
async fn emit(text: Option<&str>, word_ms: Option<u64>, deltas: &Deltas, piece: fn(String) -> Delta) {
    for word in text.unwrap_or_default().split_inclusive(' ') {
        pass(word_ms).await;
        deltas.emit(piece(word.to_owned()));
    }
}
