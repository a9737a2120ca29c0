//! Policies: models, people and programs that decide what happens next.
//!
//! A model with a prompt, a person, a script, any async function: each is a [`Policy`]. It receives a
//! [`PolicyRequest`] with the whole conversation, and returns a [`PolicyAnswer`]: text, and calls of options.
//! A policy has no memory of its own that a resume would need; the request contains everything.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{BoxFuture, RequestBody, RequestMemo};
use crate::budget::Amounts;
use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::id::{EvaluationId, IdStream, SessionId};
use crate::journal::{Finish, InnerMessage, ProviderSidecar};
use crate::message::{
    Arguments, MediaPart, Message, MessageBuilder, MessageError, Part, PolicyName, RoleHint,
};
use crate::object::{Object, ObjectId};
use crate::secrets::Secrets;
use crate::session::{BoxError, Items, Session};
use crate::tool_spec::ToolSpec;
use crate::view::Transcript;

/// A request for the next answer of a policy.
#[derive(Debug, Clone)]
pub struct PolicyRequest {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Turn of the answer in its evaluation, from 1.
    pub turn: u64,
    /// The part of the conversation that the policy sees, in order: the messages of the evaluation and of
    /// those that it follows, or a compressed form of them if the agent uses a renderer. While nothing is
    /// omitted, the list of a later request starts with the messages of the earlier one.
    pub shown: Items<InnerMessage>,
    /// Name and version of the renderer; `None` if the messages are unchanged.
    pub renderer: Option<String>,
    /// The whole transcript of the session, with nothing omitted.
    pub transcript: Transcript,
    /// Bytes of shown media that are in the store.
    pub media: MediaBytes,
    /// Options that the policy may call.
    pub options: Arc<[Arc<ToolSpec>]>,
    /// JSON Schema of a final answer, which is an object; none if the answer is text. Policies that can
    /// constrain a model to it do so; the answer is checked in any case.
    pub output: Option<Arc<Value>>,
    /// Texts with which the server refused earlier requests of the session to the same model, oldest first.
    /// Policies leave out what a server does not accept.
    pub refusals: Arc<[Arc<str>]>,
    /// Receives pieces of the answer while it is streamed.
    pub deltas: Deltas,
    /// A copy of the session's state. Changes of it have no effect.
    pub session: Session,
    /// What the policy keeps for the next request.
    pub memo: RequestMemo,
}

/// The bytes of media in the store, by object id. A clone is cheap.
pub type MediaBytes = Arc<HashMap<ObjectId, Arc<[u8]>>>;

/// A piece of an answer that is being streamed. Pieces are for display; only the whole answer counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// A piece of the text.
    Text(String),
    /// A piece of the visible reasoning.
    Reasoning(String),
    /// A piece of a call: a line break, the name of its tool and a space, or text of its arguments. It is not displayed; it is
    /// kept if the answer does not come to its end.
    Call(String),
}

/// A listener for pieces of an answer; by default there is none.
#[derive(Clone, Default)]
pub struct Deltas(Option<Arc<dyn Fn(Delta) + Send + Sync>>);

impl Deltas {
    /// Passes pieces to this function, which must not block.
    pub fn new(emit: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(emit)))
    }

    /// Passes a piece to the listener.
    pub fn emit(&self, delta: Delta) {
        if let Some(emit) = &self.0 {
            emit(delta);
        }
    }
}

impl fmt::Debug for Deltas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Deltas").field(&self.0.is_some()).finish()
    }
}

/// Description of a request before it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Name of the provider, or the kind of policy.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Digest of the rendered request.
    pub digest: Option<Digest>,
    /// Length of the rendered request, in bytes.
    pub length: u64,
    /// Version of the renderer.
    pub renderer: Option<String>,
    /// Largest possible cost, to be reserved.
    pub estimate: Amounts,
    /// Differences between the request and the transcript, a line each. They are recorded.
    pub departures: Vec<String>,
    /// The rendered request, if there is one, so that it need not be rendered again. It is not recorded.
    pub body: Option<RequestBody>,
}

/// A call in an answer of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredCall {
    /// Name of the option.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Arguments,
    /// The id by which the provider knows the call.
    pub provider_call_id: Option<String>,
    /// Whether the token limit cut it off before its arguments were complete. Such a call is recorded, does
    /// not run, and its result is an error.
    pub cut_off: bool,
}

impl AnsweredCall {
    /// Creates a call of an option.
    pub fn new(name: impl Into<String>, arguments: Arguments) -> Self {
        Self { name: name.into(), arguments, provider_call_id: None, cut_off: false }
    }
}

/// The answer of a policy. Without calls, and if it is [whole](Finish::is_whole), it ends the evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicyAnswer {
    /// Text and media of the answer. Media is external, or its bytes are in `objects`.
    pub parts: Vec<Part>,
    /// Calls, in order.
    pub calls: Vec<AnsweredCall>,
    /// Data that only its provider understands.
    pub provider: Option<ProviderSidecar>,
    /// Cost of the answer.
    pub usage: Amounts,
    /// The structured answer, if there is one.
    pub output: Option<Value>,
    /// Reason for the end of the answer.
    pub finish: Finish,
    /// Objects with the bytes of its media. They are stored with the answer.
    pub objects: Vec<Object>,
}

impl PolicyAnswer {
    /// Creates an answer of text alone.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { parts: vec![Part::text(text)], ..Self::default() }
    }

    /// Adds a call.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: Arguments) -> Self {
        self.calls.push(AnsweredCall::new(name, arguments));
        if self.finish == Finish::Stop {
            self.finish = Finish::Calls;
        }
        self
    }

    /// Adds media with its bytes, which are stored with the answer. See [`MediaPart::held`].
    #[must_use]
    pub fn with_media(mut self, (media, object): (MediaPart, Object)) -> Self {
        self.parts.push(Part::Media(media));
        self.objects.push(object);
        self
    }

    /// Returns the messages that record the answer: its text, then each call. An empty answer is recorded as
    /// an empty text, since it is still an answer.
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

/// A policy did not answer. The request may be repeated; nothing was recorded.
///
/// [`PolicyError::new`] creates one; set the other fields afterwards.
#[derive(Debug, thiserror::Error)]
#[error("{policy} did not answer ({kind}): {message}{}", wait_text(*.retry_after))]
pub struct PolicyError {
    /// Name of the policy.
    pub policy: PolicyName,
    /// Stable word for the kind of error: an [`ErrorCode`], or a word of the policy's own.
    pub kind: String,
    /// Error message for a person.
    pub message: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
    /// Delay before a retry, if one was requested.
    pub retry_after: Option<Duration>,
    /// What the provider reported about the failed request.
    pub request: Box<FailedRequest>,
    /// Underlying error.
    #[source]
    pub source: Option<BoxError>,
}

impl PolicyError {
    /// Creates an error that no retry can resolve.
    pub fn new(policy: PolicyName, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            policy,
            kind: kind.into(),
            message: message.into(),
            retryable: false,
            retry_after: None,
            request: Box::default(),
            source: None,
        }
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the stable code of the error. Kinds of policies that this crate does not know share one.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::of_kind(&self.kind, ErrorCode::Policy)
    }
}

/// What a provider reported about a request that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailedRequest {
    /// Context window of the model in tokens, if the error names it.
    pub window: Option<u64>,
    /// Whether the request was refused for a reason that the policy does not know. Its length may be the
    /// reason.
    pub unexplained: bool,
    /// Cost of the failed request. It is charged.
    pub usage: Amounts,
}

/// Returns the end of an error's text that names the requested delay; empty if there is none.
pub fn wait_text(retry_after: Option<Duration>) -> String {
    let Some(wait) = retry_after else { return String::new() };
    let seconds = (wait.as_secs_f64() * 10.0).ceil() / 10.0;
    format!("; it asks to wait {seconds} s before a retry")
}

/// A model, as the records of its requests name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
}

/// Decides what happens next.
pub trait Policy: Send + Sync {
    /// Name of the policy, as the author of its messages.
    fn name(&self) -> &PolicyName;

    /// API keys of the policy. They are removed from everything that tools return.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// The model that decides, if it is the same for all requests. What a provider said about the length of requests
    /// applies to its model only.
    fn model(&self) -> Option<ModelIdentity> {
        None
    }

    /// Describes the request before it is sent.
    fn describe(&self, question: &PolicyRequest) -> RequestInfo;

    /// Returns the answer to a request. The caller passes the result of [`Policy::describe`].
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

    fn model(&self) -> Option<ModelIdentity> {
        (**self).model()
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
