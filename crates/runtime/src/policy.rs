//! Policies without a provider: functions and people.
//!
//! A function may be a person at a prompt, a rule, or a model behind another interface.
//!
//! A question to a person waits durably: the session pauses until it receives a message
//! ([`Runtime::send`](crate::Runtime::send)), which is the answer. It works across processes, since the
//! transcript alone determines which message answers which question: the first message of an evaluation is
//! the question, and each later one the next answer. So an agent can ask a person like any other agent, as a
//! [`SubAgent`](crate::SubAgent).

use std::future::Future;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::journal::Role;
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{BoxFuture, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo};
use backstitch_core::session::BoxError;
use serde::Deserialize;
use serde_json::{Map, Value};

type Decide = dyn Fn(PolicyRequest) -> BoxFuture<'static, Result<PolicyAnswer, BoxError>> + Send + Sync;

/// A policy that is a function.
pub struct FunctionPolicy {
    name: PolicyName,
    decide: Arc<Decide>,
}

impl FunctionPolicy {
    /// Creates a policy that calls this function.
    pub fn new<F, W>(name: PolicyName, decide: F) -> Self
    where
        F: Fn(PolicyRequest) -> W + Send + Sync + 'static,
        W: Future<Output = Result<PolicyAnswer, BoxError>> + Send + 'static,
    {
        Self { name, decide: Arc::new(move |question| Box::pin(decide(question))) }
    }
}

impl Policy for FunctionPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo {
            provider: "function".to_owned(),
            model: self.name.to_string(),
            ..RequestInfo::default()
        }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        _: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            (self.decide)(question).await.map_err(|source| {
                let message = source.to_string();
                PolicyError {
                    source: Some(source),
                    ..PolicyError::new(self.name.clone(), ErrorCode::FunctionFailed, message)
                }
            })
        })
    }
}

debug_fields!(FunctionPolicy { name });

/// The kind of the error for a person who has not answered yet. The driver pauses the session then.
pub(crate) const WAITS: &str = ErrorCode::WaitsForPerson.as_str();

/// A person as a policy. Text is an answer; `{"text": ..., "calls": [{"name": ..., "arguments": {...}}]}`
/// calls options.
#[derive(Debug, Clone)]
pub struct HumanPolicy {
    name: PolicyName,
}

/// An answer with calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HumanReply {
    #[serde(default)]
    text: String,
    calls: Vec<HumanCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HumanCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl HumanPolicy {
    /// Creates a policy with the name of a person.
    pub fn new(name: PolicyName) -> Self {
        Self { name }
    }
}

impl Policy for HumanPolicy {
    fn name(&self) -> &PolicyName {
        &self.name
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo { provider: "human".to_owned(), model: self.name.to_string(), ..RequestInfo::default() }
    }

    fn decide(
        &self,
        question: PolicyRequest,
        _: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async move {
            let messages = question.transcript.inner_messages(question.evaluation_id);
            let by_a_person = messages
                .iter()
                .filter(|message| message.role() == Role::User && !message.message.policy.is_reserved());
            let answers = by_a_person.skip(1);
            let next = usize::try_from(question.turn.saturating_sub(1)).unwrap_or(usize::MAX);
            match answers.map(|message| message.content()).nth(next) {
                Some(text) => Ok(answer_of(text)),
                None => {
                    let message = format!("{} has not answered yet: send the session a message", self.name);
                    Err(PolicyError::new(self.name.clone(), WAITS, message))
                }
            }
        })
    }
}

fn answer_of(text: String) -> PolicyAnswer {
    let Ok(calling) = serde_json::from_str::<HumanReply>(&text) else { return PolicyAnswer::text(text) };
    let mut answer =
        if calling.text.is_empty() { PolicyAnswer::default() } else { PolicyAnswer::text(calling.text) };
    for call in calling.calls {
        answer = answer.call(call.name, Arguments::from_object(call.arguments));
    }
    answer
}

/// Fails every request.
#[derive(Debug)]
pub(crate) struct NoPolicy(PolicyName);

impl NoPolicy {
    pub(crate) const NAME: &str = "no-policy";
}

impl NoPolicy {
    /// Creates a policy of this name.
    pub(crate) fn of(name: PolicyName) -> Self {
        Self(name)
    }
}

impl Default for NoPolicy {
    fn default() -> Self {
        Self(PolicyName::new(Self::NAME).expect("invariant: the name is one"))
    }
}

impl Policy for NoPolicy {
    fn name(&self) -> &PolicyName {
        &self.0
    }

    fn describe(&self, _: &PolicyRequest) -> RequestInfo {
        RequestInfo::default()
    }

    fn decide(&self, _: PolicyRequest, _: RequestInfo) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        Box::pin(async {
            let message = "the agent has neither a model nor a policy";
            Err(PolicyError::new(self.0.clone(), ErrorCode::NoModel, message))
        })
    }
}
