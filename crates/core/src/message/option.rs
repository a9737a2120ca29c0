//! Calls of options, and their results.
//!
//! A policy *calls* an option; the option, or the runtime in its stead, gives a *result*. The two are paired by
//! `invocation_id`, which is ours and unique in the session. The id by which a provider knows the call is kept beside it
//! and means something to that provider alone.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::large::{self, Large, Source};
use super::{Arguments, MessageError, Part};
use crate::extra::Extra;
use crate::id::CallId;
use crate::object::{Object, ObjectId};
use crate::storable;

/// An option that a policy chose, and what it chose it with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionCall {
    /// The call's id, which its result repeats.
    pub invocation_id: CallId,
    /// The option's name, as the policy gave it. It need not be the name of any option.
    pub option_name: String,
    /// What the option is called with.
    #[serde(flatten)]
    pub arguments: Arguments,
    /// The id by which the provider knows this call, if a provider made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_call_id: Option<String>,
    /// Where in a program the call is made, if a program makes it and not the answer itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether the token limit cut the call off before its arguments were complete. Such a call never runs, even if its
    /// arguments can be read; its result is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl OptionCall {
    /// A call of `option_name`.
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

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionResult {
    /// The id of the call that this answers.
    pub invocation_id: CallId,
    /// The name of the option that was called.
    pub option_name: String,
    /// What the option gave back; `null` when it gave nothing, or failed.
    #[serde(flatten, serialize_with = "large::result::serialize", deserialize_with = "storable_result")]
    pub result: Large<Value>,
    /// Media that the option gave back, with words where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// Which kind of failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// What went wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether the same call may succeed later; unknown when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl OptionResult {
    /// What came of a call: this value, and no failure.
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

    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
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

    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
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
