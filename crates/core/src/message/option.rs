//! Calls of options, and their results.
//!
//! A policy *calls* an option; the option, or the runtime in its stead, returns a *result*. Both have the
//! same `invocation_id`, which Backstitch creates and which is unique in the session. The id of the provider
//! is kept separately and has a meaning only for that provider.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::large::{self, Large, Source};
use super::{Arguments, MessageError, Part};
use crate::extra::Extra;
use crate::id::CallId;
use crate::object::{Object, ObjectId};
use crate::storable;

/// A call of an option by a policy, with arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionCall {
    /// The call's id, which its result repeats.
    pub invocation_id: CallId,
    /// Name of the option, as the policy wrote it. There may be no such option.
    pub option_name: String,
    /// Arguments of the call.
    #[serde(flatten)]
    pub arguments: Arguments,
    /// The id by which the provider knows this call, if a provider made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_call_id: Option<String>,
    /// Place of the call in a program, if a program makes it and not the answer itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether the token limit cut the call off before its arguments were complete. Such a call never runs,
    /// even if its arguments can be parsed; its result is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl OptionCall {
    /// Creates a call of `option_name`.
    pub fn new(invocation_id: CallId, option_name: impl Into<String>, arguments: Arguments) -> Self {
        Self {
            invocation_id,
            option_name: option_name.into(),
            arguments,
            provider_call_id: None,
            path: None,
            cut_off: false,
            extra: Extra::default(),
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionResult {
    /// Id of the call.
    pub invocation_id: CallId,
    /// Name of the called option.
    pub option_name: String,
    /// Value of the option; `null` if there is none, or the call failed.
    #[serde(flatten, serialize_with = "large::result::serialize", deserialize_with = "storable_result")]
    pub result: Large<Value>,
    /// Media of the result, with text if there is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Kind of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether a retry may succeed; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl OptionResult {
    /// Creates a successful result with this value.
    pub fn new(invocation_id: CallId, option_name: impl Into<String>, result: Value) -> Self {
        Self {
            invocation_id,
            option_name: option_name.into(),
            result: Large::Inline(result),
            parts: Vec::new(),
            is_error: false,
            error_type: None,
            error_message: None,
            retryable: None,
            extra: Extra::default(),
        }
    }

    pub(crate) fn spill(&mut self, objects: &mut Vec<Object>) {
        self.result.spill(objects);
        self.parts.iter_mut().for_each(|part| part.spill(objects));
    }

    pub(super) fn hydrate(&mut self, source: &mut Source<'_>) -> Result<(), MessageError> {
        if self.result.object().is_some() {
            self.result.hydrate("result", source)?;
            check_result(&self.result)?;
        }
        self.parts.iter_mut().try_for_each(|part| part.hydrate(source))
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        let result = self.result.object().map(|reference| reference.object);
        result.into_iter().chain(self.parts.iter().filter_map(Part::object))
    }
}

fn storable_result<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Large<Value>, D::Error> {
    let result = large::result::deserialize(deserializer)?;
    check_result(&result).map_err(de::Error::custom)?;
    Ok(result)
}

fn check_result(result: &Large<Value>) -> Result<(), MessageError> {
    let checked = result.inline().map_or(Ok(()), storable::check);
    checked.map_err(|problem| MessageError::NotStorable { field: "result", problem })
}
