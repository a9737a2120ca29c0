//! Policies: whoever decides what happens next.
//!
//! A model with a prompt, a person, a script, any async function: each is a [`Policy`]. It is asked a [`PolicyRequest`], which
//! holds everything that was said, and gives an [`PolicyAnswer`]: words, and the options that it invokes. A policy keeps no memory of
//! its own that a resume would need; whatever it has to know stands in the question.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::BoxFuture;
use crate::budget::Amounts;
use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::id::{EvaluationId, IdStream, SessionId};
use crate::journal::{Finish, InnerMessage, ProviderSidecar};
use crate::message::{Arguments, Message, MessageBuilder, MessageError, Part, PolicyName, RoleHint};
use crate::object::ObjectId;
use crate::secrets::Secrets;
use crate::session::{BoxError, Items, Session};
use crate::tool_spec::ToolSpec;
use crate::view::Transcript;

/// What a policy is asked.
#[derive(Debug, Clone)]
pub struct PolicyRequest {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The number that the answer will have in its evaluation, from 1.
    pub turn: u64,
    /// What whoever decides is shown of the conversation, in order: what was said in the evaluation and in those that it follows,
    /// or what is left of that where the agent renders it in another way. While nothing is left out, the list of a later question
    /// begins with the very messages of the one before.
    pub shown: Items<InnerMessage>,
    /// What rendered it, with its version; none when all is shown as it was said.
    pub renderer: Option<String>,
    /// Everything that was said in the session, with nothing left out.
    pub transcript: Transcript,
    /// The bytes of media that is shown and that the store holds.
    pub media: MediaBytes,
    /// What may be invoked.
    pub options: Arc<[Arc<ToolSpec>]>,
    /// What the answer has to look like once it calls nothing, as a JSON Schema of an object; none when words will do. Whoever
    /// can hold a model to it does so; the answer is checked in any case.
    pub output: Option<Arc<Value>>,
    /// Where pieces of the answer may be told while it is still coming.
    pub deltas: Deltas,
    /// The state of the session. It is a copy: changing it changes nothing.
    pub session: Session,
}

/// The bytes of media that the store holds, by their names there. A clone is cheap.
pub type MediaBytes = Arc<HashMap<ObjectId, Arc<[u8]>>>;

/// A piece of an answer that is still coming. Pieces are for display: what counts is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// A piece of what is said.
    Text(String),
    /// A piece of what is shown of the thoughts behind it.
    Reasoning(String),
}

/// Where pieces of an answer are told; by default, nowhere.
#[derive(Clone, Default)]
pub struct Deltas(Option<Arc<dyn Fn(Delta) + Send + Sync>>);

impl Deltas {
    /// Tells pieces to this function. It must not wait for anything.
    pub fn new(tell: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    /// Tells a piece.
    pub fn tell(&self, delta: Delta) {
        if let Some(tell) = &self.0 {
            tell(delta);
        }
    }
}

impl fmt::Debug for Deltas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Deltas").field(&self.0.is_some()).finish()
    }
}

/// What is known of a request before it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The provider, or the kind of policy.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The digest of the rendered request.
    pub digest: Option<Digest>,
    /// The length of the rendered request, in bytes.
    pub length: u64,
    /// The version of what rendered it.
    pub renderer: Option<String>,
    /// What it will cost at most, to be held back.
    pub estimate: Amounts,
    /// In what it departs from what was said, a line each. This is recorded.
    pub departures: Vec<String>,
    /// The rendered request itself, where there is one, so that it need not be rendered again. This is not recorded.
    pub body: Option<Arc<str>>,
}

/// An option that a policy invokes.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredCall {
    /// The option.
    pub name: String,
    /// What it is invoked with.
    pub arguments: Arguments,
    /// The id by which the provider knows the call.
    pub provider_call_id: Option<String>,
    /// Whether the token limit cut it off before its arguments were complete. It is recorded, does not run, and gets an error
    /// for its result.
    pub cut_off: bool,
}

impl AnsweredCall {
    /// A call of an option.
    pub fn new(name: impl Into<String>, arguments: Arguments) -> Self {
        Self { name: name.into(), arguments, provider_call_id: None, cut_off: false }
    }
}

/// What a policy decided. Without calls, and if it is [whole](Finish::is_whole), it is the end of the evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyAnswer {
    /// What it says.
    pub parts: Vec<Part>,
    /// What it invokes, in order.
    pub calls: Vec<AnsweredCall>,
    /// What only its provider understands.
    pub provider: Option<ProviderSidecar>,
    /// What it cost.
    pub usage: Amounts,
    /// The structured answer, where there is one.
    pub output: Option<Value>,
    /// Why it ended.
    pub finish: Finish,
}

impl PolicyAnswer {
    /// An answer of words alone.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { parts: vec![Part::text(text)], ..Self::default() }
    }

    /// Invokes one more option.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: Arguments) -> Self {
        self.calls.push(AnsweredCall::new(name, arguments));
        if self.finish == Finish::Stop {
            self.finish = Finish::Calls;
        }
        self
    }

    /// The messages that record the answer: its words, then each call. An answer that says nothing at all is recorded as
    /// empty words, since it is an answer all the same.
    pub fn into_messages(
        self,
        policy: &PolicyName,
        step: u64,
        ids: &IdStream,
    ) -> Result<Vec<Message>, MessageError> {
        let mut builder = MessageBuilder::continue_step(step, ids);
        builder.policy(policy.clone()).role_hint(RoleHint::Assistant);
        if self.parts.is_empty() && self.calls.is_empty() {
            builder.add_text("");
        }
        for part in self.parts {
            builder.add_part(part);
        }
        for call in self.calls {
            builder.add_option_call(call.name, call.arguments)?;
            if let Some(id) = call.provider_call_id {
                builder.provider_call_id(id)?;
            }
            if call.cut_off {
                builder.cut_off()?;
            }
        }
        builder.into_messages()
    }
}

/// A policy did not answer. The question may be asked again; nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[error("{policy} did not answer ({kind}): {message}{}", wait_text(*.retry_after))]
pub struct PolicyError {
    /// Who was asked.
    pub policy: PolicyName,
    /// A stable word for the kind of error: an [`ErrorCode`], or a word of the policy's own.
    pub kind: String,
    /// What happened, for a person.
    pub message: String,
    /// Whether the same question may be answered later.
    pub retryable: bool,
    /// How long to wait before asking again, where that was said.
    pub retry_after: Option<Duration>,
    /// What lies below.
    #[source]
    pub source: Option<BoxError>,
}

impl PolicyError {
    /// The stable code of the error. The kinds of policies that this crate does not know share one.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::of_kind(&self.kind, ErrorCode::Policy)
    }
}

/// The end of an error's text that names the wait which was asked for; empty where none was.
pub fn wait_text(retry_after: Option<Duration>) -> String {
    let Some(wait) = retry_after else { return String::new() };
    let seconds = (wait.as_secs_f64() * 10.0).ceil() / 10.0;
    format!("; it asks to wait {seconds} s before it is asked again")
}

/// Whoever decides what happens next.
pub trait Policy: Send + Sync {
    /// The name that it speaks under.
    fn name(&self) -> &PolicyName;

    /// The keys that it asks with. They are kept out of everything that tools give back.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// What is known of the request that a question would make, before it is made.
    fn describe(&self, question: &PolicyRequest) -> RequestInfo;

    /// Decides. What the question was described as is handed back.
    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>>;
}

impl<P: Policy + ?Sized> Policy for Arc<P> {
    fn name(&self) -> &PolicyName {
        (**self).name()
    }

    fn secrets(&self) -> Secrets {
        (**self).secrets()
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        (**self).describe(question)
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        (**self).decide(question, described)
    }
}
