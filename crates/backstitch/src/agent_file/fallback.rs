//! Fallbacks of agent files: other models for requests that the model does not answer.
//!
//! Options of requests that the provider of a fallback does not support are left out, as at a switch. A fallback has
//! the address of its provider; a `[[provider]]` names another one.

use serde::{Deserialize, Serialize};

use super::build::BuildOptions;
use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use super::model::{ModelName, ModelProvider};
use super::offered::below;
use crate::Fallback;
use crate::host::FallbackReason;

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
