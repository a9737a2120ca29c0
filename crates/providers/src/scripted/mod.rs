//! A policy that reads its answers from a script: for tests, for examples, and wherever there is no key.
//!
//! A [`Script`] is a list of [`ScriptedReply`]s, in TOML or JSON. A reply says what a model would have said: words, thoughts, media,
//! calls with ids of their own and arguments that need not parse, what it cost and why it ended. It may take its time, and it may
//! [fail](ScriptedFailure) in every way in which a provider fails, as often as it is told to, before it is given.
//!
//! **Which reply is next follows from the question.** It is the one behind as many replies as the session shows answers. A process
//! that resumes after a crash gives the same answers as the one before it would have, and a session that went back gives them
//! again. The exception are failures: how often a reply has failed is counted in the process, so that one that starts anew fails as
//! often again. A reply that fails and has nothing to say fails each time it is asked for.

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

/// Replies, in the order in which they are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The replies.
    #[serde(default, alias = "reply")]
    pub replies: Vec<ScriptedReply>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedReply {
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is shown of the thoughts behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What is shown after what is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaPart>,
    /// What is called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "call")]
    pub calls: Vec<ScriptedCall>,
    /// The structured answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why the answer ended, in a word of any provider, such as `length` or `max_tokens`. At the token limit, the last call is cut
    /// off if its arguments are a text that is not a whole object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// What the answer costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// How long the answer takes, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// What goes wrong before the reply is given, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "fail")]
    pub failures: Vec<ScriptedFailure>,
}

impl ScriptedReply {
    /// A reply of words alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Calls one more option.
    #[must_use]
    pub fn call(mut self, call: ScriptedCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Fails first.
    #[must_use]
    pub fn fail(mut self, failure: ScriptedFailure) -> Self {
        self.failures.push(failure);
        self
    }

    /// Whether it says, shows, calls and answers nothing.
    fn is_silent(&self) -> bool {
        self.text.is_none()
            && self.reasoning.is_none()
            && self.output.is_none()
            && self.media.is_empty()
            && self.calls.is_empty()
    }

    /// How it fails when it was asked for so many times before; none when it is given.
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

    /// The calls. The last one before the token limit is cut off unless its arguments are complete.
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
    /// The id by which the call is known to whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is called with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// What it is called with, as a text that need not parse; instead of `arguments`.
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

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// What goes wrong.
    pub kind: ErrorKind,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many times in a row.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
    /// How long to wait before asking again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether asking again may help; as the kind has it, where this is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// What was said of the answer before it broke off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// How long it takes to fail, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

impl ScriptedFailure {
    /// Goes wrong once.
    pub fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            message: None,
            times: 1,
            retry_after_ms: None,
            retryable: None,
            said: None,
            delay_ms: None,
        }
    }

    /// Goes wrong so many times in a row.
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
