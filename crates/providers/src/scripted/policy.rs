//! The policy that gives the replies of a script.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{ProviderSidecar, Role};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Answer, BoxFuture, Delta, Deltas, Policy, PolicyError, Question, RequestInfo};
use serde_json::json;

use super::{Failure, Reply, Script};

/// The name under which it stands in journals and on the command line.
const SCRIPTED: &str = "scripted";

/// A policy that reads its answers from a script. Clones count failures together.
#[derive(Clone)]
pub struct ScriptedPolicy {
    name: PolicyName,
    model: String,
    script: Arc<Script>,
    /// How often replies that fail were asked for, by session and place.
    attempts: Arc<Mutex<HashMap<(SessionId, usize), u64>>>,
}

impl ScriptedPolicy {
    /// A policy that gives these replies.
    pub fn new(name: PolicyName, script: Script) -> Self {
        let model = name.to_string();
        Self { name, model, script: Arc::new(script), attempts: Arc::default() }
    }

    /// The same policy under another name of a model; without this, it has that of the policy.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// How often the reply of a place was asked for before.
    fn attempts_before(&self, session: SessionId, place: usize) -> u64 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = attempts.entry((session, place)).or_default();
        *count += 1;
        *count - 1
    }

    async fn failed(&self, failure: &Failure, deltas: &Deltas) -> PolicyError {
        pass(failure.delay_ms).await;
        tell(failure.said.as_deref(), deltas, Delta::Text);
        let message = failure.message.clone();
        PolicyError {
            policy: self.name.clone(),
            kind: failure.kind.to_string(),
            message: message.unwrap_or_else(|| "the script has it fail here".to_owned()),
            retryable: failure.retryable.unwrap_or(failure.kind.is_retryable()),
            retry_after: failure.retry_after_ms.map(Duration::from_millis),
            source: None,
        }
    }

    async fn given(&self, reply: &Reply, deltas: &Deltas) -> Answer {
        pass(reply.delay_ms).await;
        tell(reply.reasoning.as_deref(), deltas, Delta::Reasoning);
        tell(reply.text.as_deref(), deltas, Delta::Text);
        Answer {
            parts: reply.parts(),
            calls: reply.calls.iter().map(super::ScriptedCall::answered).collect(),
            provider: self.sidecar(reply),
            usage: reply.usage.unwrap_or_default(),
            output: reply.output.clone(),
        }
    }

    /// What only a provider would have known of the reply; none where the script says nothing of it.
    fn sidecar(&self, reply: &Reply) -> Option<ProviderSidecar> {
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
        PolicyError {
            policy: self.name.clone(),
            kind: "script_ended".to_owned(),
            message: format!("the script has {count} replies, and all of them were given"),
            retryable: false,
            retry_after: None,
            source: None,
        }
    }
}

impl Policy for ScriptedPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &Question) -> RequestInfo {
        RequestInfo { provider: SCRIPTED.to_owned(), model: self.model.clone(), ..RequestInfo::default() }
    }

    fn decide(&self, question: Question, _: RequestInfo) -> BoxFuture<'_, Result<Answer, PolicyError>> {
        Box::pin(async move {
            let place = answers_so_far(&question);
            let reply = self.script.replies.get(place).ok_or_else(|| self.ended())?;
            if !reply.failures.is_empty() {
                let attempts = self.attempts_before(question.session_id, place);
                if let Some(failure) = reply.failure(attempts) {
                    return Err(self.failed(failure, &question.deltas).await);
                }
            }
            Ok(self.given(reply, &question.deltas).await)
        })
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

/// Tells a text word by word.
fn tell(text: Option<&str>, deltas: &Deltas, piece: fn(String) -> Delta) {
    for word in text.unwrap_or_default().split_inclusive(' ') {
        deltas.tell(piece(word.to_owned()));
    }
}

/// How many answers the session shows, in all of its evaluations.
fn answers_so_far(question: &Question) -> usize {
    let mut answers = 0;
    let mut last = None;
    for message in question.transcript.all().iter().filter(|message| message.role() == Role::Assistant) {
        let place = (message.evaluation_id, message.turn);
        if last.replace(place) != Some(place) {
            answers += 1;
        }
    }
    answers
}
