//! Options that some providers support: sampling, the choice of tools, and verbosity.
//!
//! A provider that does not support an option refuses it, so that it is neither dropped nor changed silently.

use serde_json::{Map, Value};

use super::options::{OptionProblem, RequestOptions};

/// Options of sampling. Absent ones are left to the provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingOptions {
    /// The randomness of the answer, from 0.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens that are considered, up to 1.
    pub top_p: Option<f64>,
    /// The seed of the randomness.
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// Which tools a model may or must call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the provider decides.
    #[default]
    Default,
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one tool. This holds for the first answer of an evaluation, which would never end otherwise.
    Required,
    /// This tool, for the first answer of an evaluation.
    Named(String),
}

impl ToolChoice {
    /// Whether the model has to call a tool.
    pub fn is_forced(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

/// Fields of a body that are not options.
const RESERVED: [&str; 8] = ["model", "messages", "input", "contents", "system", "tools", "stream", "store"];

impl RequestOptions {
    /// Refuses values that no provider supports.
    pub(crate) fn refuse_impossible(&self) -> Option<OptionProblem> {
        let SamplingOptions { temperature, top_p, stop, .. } = &self.sampling;
        if temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            return Some(("temperature", "it is a number from 0 to 2".to_owned()));
        }
        if top_p.is_some_and(|value| !(0.0..=1.0).contains(&value)) {
            return Some(("top_p", "it is a number from 0 to 1".to_owned()));
        }
        if stop.iter().any(String::is_empty) {
            return Some(("stop", "a text is empty".to_owned()));
        }
        let reserved = self.body.keys().find(|name| RESERVED.contains(&name.as_str()))?;
        Some(("body", format!("`{reserved}` is not an option")))
    }

    /// Refuses an effort that is not one of these words.
    pub(crate) fn refuse_effort_except(&self, words: &[&str]) -> Option<OptionProblem> {
        let effort = self.effort.as_deref().filter(|effort| !words.contains(effort))?;
        let words = words.join(", ");
        Some(("effort", format!("`{effort}` is not one of {words}")))
    }

    /// Refuses the first option of these names that is set.
    pub(crate) fn refuse_set(&self, options: &[&'static str]) -> Option<OptionProblem> {
        let is_set = |option: &str| match option {
            "temperature" => self.sampling.temperature.is_some(),
            "top_p" => self.sampling.top_p.is_some(),
            "seed" => self.sampling.seed.is_some(),
            "stop" => !self.sampling.stop.is_empty(),
            "parallel_tool_calls" => self.parallel_tool_calls.is_some(),
            "verbosity" => self.verbosity.is_some(),
            _ => false,
        };
        let option = options.iter().copied().find(|option| is_set(option))?;
        Some((option, "it has no such option".to_owned()))
    }
}

/// Adds fields to a rendered body. Objects are merged.
pub(crate) fn add_fields(to: &mut Value, fields: &Map<String, Value>) {
    let Some(known) = to.as_object_mut() else { return };
    for (name, value) in fields {
        match (known.get_mut(name), value) {
            (Some(inner @ Value::Object(_)), Value::Object(more)) => add_fields(inner, more),
            _ => {
                known.insert(name.clone(), value.clone());
            }
        }
    }
}
