//! Fallbacks of agent files, which are other models for requests that the model does not answer, and retries of requests.
//!
//! Options of requests that the provider of a fallback does not support are left out, as at a switch. A fallback has
//! the address of its provider; a `[[provider]]` names another one.

use serde::{Deserialize, Serialize};

use super::build::BuildOptions;
use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use super::model::{ModelName, ModelProvider};
use super::offered::below;
use super::values::Span;
use crate::host::FallbackReason;
use crate::{Backoff, Fallback};

/// Another model that answers if the one before it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FallbackDefinition {
    /// The reasons for which it is asked.
    pub on: Vec<FallbackReason>,
    /// The model.
    pub model: ModelName,
    /// Context window of the model, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

impl AgentDefinition {
    /// Refuses fallbacks that cannot be used.
    pub(super) fn check_fallbacks(&self) -> Result<(), Problem> {
        for (index, fallback) in self.fallbacks.iter().enumerate() {
            let is_script = fallback.model.provider == ModelProvider::Scripted;
            Problem::check([
                ("on", fallback.on.is_empty(), "name a reason: overload, credit, length or refusal"),
                ("model", is_script, "a script cannot be a fallback"),
            ])
            .map_err(|problem| problem.below(&below(&[], "fallback", index)))?;
        }
        Ok(())
    }

    /// Returns the definition with the model of a fallback in place of its own.
    pub(super) fn with_fallback(&self, fallback: &FallbackDefinition) -> Result<Self, AgentFileError> {
        let mut other = Self { fallbacks: Vec::new(), window: fallback.window, ..self.clone() };
        if self.model.as_ref().is_none_or(|model| model.provider != fallback.model.provider) {
            other.base_url = None;
        }
        other.switch_model(fallback.model.clone())?;
        Ok(other)
    }

    pub(super) fn build_fallbacks(
        &self,
        options: &BuildOptions<'_>,
    ) -> Result<Vec<Fallback>, AgentFileError> {
        let built = self.fallbacks.iter().map(|fallback| {
            let policy = self.with_fallback(fallback)?.policy_with(options)?;
            Ok(Fallback::policy(fallback.on.clone(), policy).with_window(fallback.window))
        });
        built.collect()
    }
}

/// Retries of a request that failed, and the delays between them. Absent values are the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryDefinition {
    /// Maximum number of retries of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Delay before the first retry. It doubles with each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Span>,
    /// Longest delay, unless the server asks for a certain one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Span>,
}

impl RetryDefinition {
    pub(super) fn backoff(&self) -> Backoff {
        let usual = Backoff::default();
        Backoff {
            retries: self.retries.unwrap_or(usual.retries),
            first: self.first.map_or(usual.first, |first| first.0),
            longest: self.longest.map_or(usual.longest, |longest| longest.0),
        }
    }

    /// Refuses values that are not useful.
    pub fn check(&self) -> Result<(), Problem> {
        if self.retries.is_some_and(|retries| retries > 100) {
            return Err(Problem::new(["retry", "retries"], "set at most 100"));
        }
        Ok(())
    }
}
