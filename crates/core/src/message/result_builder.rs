//! Builds the result of a call.
//!
//! An [`OptionResultBuilder`] can only be created from a call, and copies the id, the name and the step from
//! it. Setting another id or another option fails, so a result cannot belong to the wrong call.
//!
//! The policy of a result is the invoked option. If the runtime creates it, because the arguments were
//! refused or the call was interrupted, the policy is [the runtime](OptionResultBuilder::as_runtime). It also
//! is for an option whose name cannot be the name of a policy, such as one that a model invented.

use serde_json::Value;

use super::{Content, Large, Message, MessageError, OptionResult, Part, PolicyName, RoleHint};
use crate::id::CallId;
use crate::storable;

/// Whether a failed call may be repeated unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same call may succeed later.
    Allowed,
    /// The same call will fail again. This is the default.
    #[default]
    Refused,
}

/// Builds the result message of a call.
#[derive(Debug, Clone)]
pub struct OptionResultBuilder {
    invocation_id: CallId,
    option_name: String,
    step: Option<u64>,
    policy: PolicyName,
    parts: Vec<Part>,
}

impl OptionResultBuilder {
    /// Creates a builder for the result of this call. Fails for a message that is not a call.
    pub fn response_to(call: &Message) -> Result<Self, MessageError> {
        let payload =
            call.option_call().ok_or_else(|| MessageError::NotAnOptionCall { kind: call.kind() })?;
        let policy = PolicyName::new(&payload.option_name).unwrap_or_else(|_| PolicyName::runtime());
        Ok(Self {
            invocation_id: payload.invocation_id,
            option_name: payload.option_name.clone(),
            step: call.step_num,
            policy,
            parts: Vec::new(),
        })
    }

    /// Makes the runtime the author of the result.
    pub fn as_runtime(&mut self) -> &mut Self {
        self.policy = PolicyName::runtime();
        self
    }

    /// Checks the id of the call. Fails for any other call than that of the builder.
    pub fn invocation_id(&mut self, given: CallId) -> Result<&mut Self, MessageError> {
        let expected = self.invocation_id;
        if given == expected { Ok(self) } else { Err(MessageError::MismatchedInvocation { expected, given }) }
    }

    /// Checks the name of the option. Fails for any other option than that of the builder.
    pub fn option_name(&mut self, given: &str) -> Result<&mut Self, MessageError> {
        if given == self.option_name {
            return Ok(self);
        }
        let (expected, given) = (self.option_name.clone(), given.chars().take(256).collect());
        Err(MessageError::MismatchedOption { expected, given })
    }

    /// Sets the media of the result. Media without an id gets its stable one.
    pub fn with_parts(&mut self, parts: Vec<Part>) -> &mut Self {
        self.parts = parts.into_iter().map(Part::with_stable_id).collect();
        self
    }

    /// Builds a success with this value.
    ///
    /// A value that could not be read from the journal again (see [`crate::storable`]) is kept as the text of
    /// its JSON.
    pub fn success(&self, result: impl Into<Value>) -> Message {
        let mut result = result.into();
        if storable::check(&result).is_err() {
            result = Value::String(result.to_string());
        }
        self.message(|payload| payload.result = Large::Inline(result))
    }

    /// Builds a failure of a call that ran or was refused, and that would fail again: [`Self::error`] without
    /// the hint to retry.
    pub fn failure(&self, error_type: impl Into<String>, error_message: impl Into<String>) -> Message {
        self.error(error_type, error_message, Retry::default())
    }

    /// Builds a failure of a call that ran or was refused.
    pub fn error(
        &self,
        error_type: impl Into<String>,
        error_message: impl Into<String>,
        retry: Retry,
    ) -> Message {
        self.message(|payload| {
            payload.is_error = true;
            payload.error_type = Some(error_type.into());
            payload.error_message = Some(error_message.into());
            payload.retryable = Some(retry == Retry::Allowed);
        })
    }

    fn message(&self, fill: impl FnOnce(&mut OptionResult)) -> Message {
        let mut payload = OptionResult::new(self.invocation_id, &self.option_name, Value::Null);
        payload.parts.clone_from(&self.parts);
        fill(&mut payload);
        Message {
            role_hint_for_llm: Some(RoleHint::Tool),
            step_num: self.step,
            ..Message::new(self.policy.clone(), Content::OptionResult(payload))
        }
    }
}
