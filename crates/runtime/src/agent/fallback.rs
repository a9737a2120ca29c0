//! Fallbacks: other models for requests that the model of an agent does not answer.
//!
//! A fallback applies after the last retry, if the kind of the error is one of its reasons. The rest of the
//! evaluation is then answered by it; the next evaluation begins with the agent's own model again. Which model is in
//! charge follows from the recorded failures of the evaluation, so a session that is resumed continues with the same
//! one, and a request can be rendered again.

use std::borrow::Cow;
use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::AfterFailure;
use backstitch_core::ports::Policy;
use backstitch_core::view::{JournalView, Request};
use serde::{Deserialize, Serialize};

use super::{Agent, prompt_path};
use crate::adapters::Adapters;
use crate::error::{Result, RuntimeError};

/// A reason to ask another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// The server is overloaded, limits requests, fails, or cannot be reached, also after the last retry.
    Overload,
    /// The account has no credit left.
    Credit,
    /// The conversation is too long for the model. The other one gets it before it is shortened.
    Length,
    /// A filter of the provider withholds the answer.
    Refusal,
}

impl FallbackReason {
    /// Returns the reason that an error of this kind is.
    fn of_kind(kind: &str) -> Option<Self> {
        let is = |codes: &[ErrorCode]| codes.iter().any(|code| code.as_str() == kind);
        if is(&[
            ErrorCode::Overloaded,
            ErrorCode::RateLimited,
            ErrorCode::Server,
            ErrorCode::Network,
            ErrorCode::CutStream,
            ErrorCode::Malformed,
        ]) {
            Some(Self::Overload)
        } else if is(&[ErrorCode::OutOfCredit]) {
            Some(Self::Credit)
        } else if is(&[ErrorCode::ContextTooLong, ErrorCode::RequestTooLarge]) {
            Some(Self::Length)
        } else if is(&[ErrorCode::ContentFilter]) {
            Some(Self::Refusal)
        } else {
            None
        }
    }
}

/// Another model that answers if the one before it does not.
#[derive(Clone)]
pub struct Fallback {
    /// The reasons for which it is asked.
    pub on: Vec<FallbackReason>,
    /// The context window of its model, in tokens.
    pub window: Option<u64>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// The name of a model, which a runtime opens.
    Model(String),
    Policy(Arc<dyn Policy>),
}

impl Fallback {
    /// Asks a model by its name, such as `openai:MODEL`.
    pub fn model(on: impl IntoIterator<Item = FallbackReason>, name: impl Into<String>) -> Self {
        Self { on: on.into_iter().collect(), window: None, source: Source::Model(name.into()) }
    }

    /// Asks a policy.
    pub fn policy(on: impl IntoIterator<Item = FallbackReason>, policy: impl Policy + 'static) -> Self {
        Self { on: on.into_iter().collect(), window: None, source: Source::Policy(Arc::new(policy)) }
    }

    /// Sets the context window of its model, in tokens.
    #[must_use]
    pub fn with_window(self, tokens: impl Into<Option<u64>>) -> Self {
        Self { window: tokens.into(), ..self }
    }

    /// Returns the policy; `None` before a runtime has opened the model.
    pub(crate) fn opened(&self) -> Option<&Arc<dyn Policy>> {
        match &self.source {
            Source::Policy(policy) => Some(policy),
            Source::Model(_) => None,
        }
    }
}

debug_fields!(Fallback { on });

impl Agent {
    /// Opens the models of the fallbacks.
    pub(super) fn open_fallbacks(&mut self, adapters: &Arc<dyn Adapters>) -> Result<()> {
        for fallback in &mut self.fallbacks {
            let Source::Model(model) = &fallback.source else { continue };
            let opened = adapters.model(model).map_err(|error| RuntimeError::Model {
                agent: prompt_path(&self.ns, &self.key),
                model: model.clone(),
                cause: Arc::from(error),
            })?;
            fallback.source = Source::Policy(opened);
        }
        Ok(())
    }

    /// Returns the agent with the model that answers this evaluation now.
    pub(crate) fn answering(&self, view: &JournalView, evaluation: EvaluationId) -> Cow<'_, Self> {
        let mut agent = Cow::Borrowed(self);
        let known = view.evaluation(evaluation).filter(|_| !self.fallbacks.is_empty());
        for request in known.into_iter().flat_map(|evaluation| &evaluation.requests) {
            let failed = request.last_failure().filter(|failed| failed.then == AfterFailure::Stop);
            let next =
                failed.filter(|_| agent.is_asked_by(request)).and_then(|failed| agent.after(&failed.kind));
            if let Some(next) = next {
                agent = Cow::Owned(next);
            }
        }
        agent
    }

    fn is_asked_by(&self, request: &Request) -> bool {
        let started = &request.started.record;
        self.policy
            .model()
            .is_none_or(|model| (&started.provider, &started.model) == (&model.provider, &model.model))
    }

    /// Returns the agent with the model that answers after an error of this kind; `None` if no fallback applies.
    pub(crate) fn after(&self, kind: &str) -> Option<Self> {
        let reason = FallbackReason::of_kind(kind)?;
        let place = self.fallbacks.iter().position(|fallback| fallback.on.contains(&reason))?;
        let fallback = &self.fallbacks[place];
        let policy = fallback.opened()?.clone();
        let rest = self.fallbacks[place + 1..].to_vec();
        Some(Self { policy, window: fallback.window, fallbacks: rest, ..self.clone() })
    }

    /// Names the model for people.
    pub(crate) fn model_name(&self) -> String {
        let model = self.policy.model();
        model.map_or_else(
            || self.policy.name().to_string(),
            |model| format!("{}:{}", model.provider, model.model),
        )
    }
}
