//! A policy that reads its answers from a script: for tests, for examples, and for use without a key.
//!
//! A [`Script`] is a list of [`ScriptedReply`]s, in TOML or JSON. A reply holds what a model would have
//! answered: text, thoughts, media, calls with ids and with arguments that need not parse, usage and finish
//! reason. It may have a delay, and it may [fail](ScriptedFailure) in every way in which a provider fails, a
//! given number of times before it succeeds.
//!
//! **The next reply is determined by the question.** Its index is the number of answers in the session. A
//! process that resumes after a crash therefore gives the same answers as its predecessor, and a session that
//! was rewound gets them again. Failures are the exception: they are counted in memory, so a new process
//! fails as often again. A reply with failures and without content fails on every attempt.

mod file;
mod policy;

use backstitch_core::budget::Amounts;
use backstitch_core::message::{Arguments, MediaPart, Part};
use backstitch_core::ports::AnsweredCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use file::{ScriptError, ScriptFormat};
pub use policy::ScriptedPolicy;

use crate::error::ErrorKind;

/// A list of replies, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The replies, one for each answer.
    #[serde(default, alias = "reply")]
    pub replies: Vec<ScriptedReply>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedReply {
    /// The text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The visible thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Media after the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaPart>,
    /// The calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "call")]
    pub calls: Vec<ScriptedCall>,
    /// The structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The finish reason, in a word of any provider, such as `length` or `max_tokens`. At the token limit,
    /// the last call is cut off if its arguments are a text that is not a complete object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// The usage of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// The delay before the answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The delay before each word of the text, in milliseconds, as if it were streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word_ms: Option<u64>,
    /// The failures before the reply succeeds, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "fail")]
    pub failures: Vec<ScriptedFailure>,
}

impl ScriptedReply {
    /// A reply with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Adds a call.
    #[must_use]
    pub fn call(mut self, call: ScriptedCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Adds a failure before the reply.
    #[must_use]
    pub fn fail(mut self, failure: ScriptedFailure) -> Self {
        self.failures.push(failure);
        self
    }

    /// Whether the reply has no content.
    fn is_silent(&self) -> bool {
        self.text.is_none()
            && self.reasoning.is_none()
            && self.output.is_none()
            && self.media.is_empty()
            && self.calls.is_empty()
    }

    /// The failure after this number of earlier attempts; `None` when the reply succeeds.
    fn failure(&self, attempts: u64) -> Option<&ScriptedFailure> {
        let mut before = 0_u64;
        for failure in &self.failures {
            before = before.saturating_add(u64::from(failure.times));
            if attempts < before {
                return Some(failure);
            }
        }
        self.failures.last().filter(|_| self.is_silent())
    }

    /// The calls of the answer. The last one before the token limit is cut off unless its arguments are
    /// complete.
    fn answered_calls(&self, ends_at_limit: bool) -> Vec<AnsweredCall> {
        let mut calls: Vec<AnsweredCall> = self.calls.iter().map(ScriptedCall::answered).collect();
        if let Some(last) = calls.last_mut().filter(|_| ends_at_limit) {
            last.cut_off = !last.arguments.is_parsable();
        }
        calls
    }

    fn parts(&self) -> Vec<Part> {
        let words = self.text.iter().map(|text| Part::text(text.as_str()));
        words.chain(self.media.iter().cloned().map(Part::Media)).collect()
    }
}

/// A call in a reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The option.
    pub name: String,
    /// The id that the provider would have given the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The arguments as a text that need not parse; instead of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
}

impl ScriptedCall {
    /// A call of an option.
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { name: name.into(), arguments, ..Self::default() }
    }

    fn answered(&self) -> AnsweredCall {
        let arguments = match &self.arguments_text {
            Some(text) => Arguments::from_text(text.as_str()),
            None => Arguments::from_object(self.arguments.clone()),
        };
        let mut call = AnsweredCall::new(self.name.clone(), arguments);
        call.provider_call_id = self.id.clone();
        call
    }
}

/// A failure before a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The message of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The number of failures in a row.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// The delay that the error asks for before a retry, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the error is retryable; by default, the kind decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The part of the answer that is streamed before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The delay before the failure, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The cost of the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
}

impl ScriptedFailure {
    /// Fails once.
    pub fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            message: None,
            times: 1,
            retry_after_ms: None,
            retryable: None,
            said: None,
            delay_ms: None,
            usage: None,
        }
    }

    /// Sets the number of failures in a row.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}
