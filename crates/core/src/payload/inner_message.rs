//! Messages with their place in a conversation.
//!
//! An [`InnerMessage`] is the envelope around a [`Message`]: its evaluation, its place there, and its turn.
//! The journal records it, and the transcript slice holds it. The text and each call of an assistant's answer
//! are separate messages with the same `turn`; views and adapters group them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::finish::Finish;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, IdStream, MessageId};
use crate::message::large::Source;
use crate::message::{Content, Large, Message, MessageError, PolicyName, RoleHint, large};
use crate::object::{Object, ObjectContent, ObjectId, ObjectRef};
use crate::time::Timestamp;

/// A message with its place in a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InnerMessage {
    /// Id of the message.
    pub message_id: MessageId,
    /// The evaluation of the message.
    pub evaluation_id: EvaluationId,
    /// Place in the evaluation: 0, 1, 2 and so on, without a gap on any branch.
    pub sequence: u64,
    /// The turn of the provider's response. For a system or user message, the number of responses before it.
    pub turn: u64,
    /// Namespace of the prompt.
    pub prompt_ns: String,
    /// Key of the prompt.
    pub prompt_key: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The message itself.
    pub message: Message,
    /// Role of the author of parts. It is derived from the author and the deciding policy when the message is
    /// recorded ([`Role::of_parts`]). Messages of older journals have none; their hint is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Data that only the provider of the answer understands; on the first message of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Box<ProviderSidecar>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The part of an answer that only its provider understands, and the provider's metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderSidecar {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The endpoint, if the provider has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The raw payload, byte for byte, including reasoning and signatures.
    #[serde(flatten, with = "large::payload")]
    pub payload: Option<Large<Arc<str>>>,
    /// Whether the raw payload was dropped because it held a secret. Its signatures would be invalid without
    /// the secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_redacted: bool,
    /// Reason for the end of the answer, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Reason for the end of the answer, with one meaning for all providers. Absent in journals of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// Cost of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<crate::budget::Amounts>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Policy name of the rendered prompt.
const PROMPT: &str = "prompt";

/// Role of a message's author, in the words of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The rendered prompt.
    System,
    /// The policy that decides.
    Assistant,
    /// Any other author, such as a person.
    User,
    /// An invoked option.
    Tool,
}

impl Role {
    /// Returns the author's role in a message of an evaluation in which `decider` decides; `None` for calls
    /// and results, whose kind defines it. Only the first message can be the prompt. A message of any other
    /// author is an observation, in the role of a user. Hints are ignored.
    pub fn of_parts(message: &Message, decider: &PolicyName, sequence: u64) -> Option<Self> {
        message.parts()?;
        let is_prompt = sequence == 0 && message.policy.as_str() == PROMPT;
        Some(match () {
            () if is_prompt => Self::System,
            () if message.policy == *decider => Self::Assistant,
            () => Self::User,
        })
    }

    /// Returns the role of parts by their hint alone, which is all that older journals have. A policy is the
    /// author of parts without a hint.
    fn hinted(hint: Option<RoleHint>) -> Self {
        match hint {
            Some(RoleHint::System) => Self::System,
            Some(RoleHint::User) => Self::User,
            Some(RoleHint::Tool) => Self::Tool,
            Some(RoleHint::Assistant) | None => Self::Assistant,
        }
    }
}

impl InnerMessage {
    /// Creates the first message of an evaluation without a prompt, with a new id and the current time. Place
    /// it with [`InnerMessage::at`] and [`InnerMessage::of_prompt`]. In a live session, `LiveSession::say`
    /// does all of this.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use backstitch_core::id::{EvaluationId, IdStream, SessionId};
    /// use backstitch_core::journal::{InnerMessage, inner_message_append};
    /// use backstitch_core::message::{MessageBuilder, PolicyName};
    /// use backstitch_core::{session::Session, time::FixedClock};
    ///
    /// let mut session = Session::new(SessionId::from_uuid(uuid::Uuid::from_u128(1)), Arc::new(FixedClock::default()));
    /// // Without this reducer a bare session appends a message again that it has already.
    /// session.register::<InnerMessage, InnerMessage>(inner_message_append);
    /// let (ids, evaluation) = (session.ids().clone(), session.ids().next::<EvaluationId>());
    /// let mut builder = MessageBuilder::continue_step(1, &ids);
    /// builder.policy(PolicyName::new("user")?).add_text("Mend the hem.");
    /// let said = InnerMessage::new(evaluation, builder.to_message()?, &ids).of_prompt("shop", "tailor").at(0, 0);
    /// session.append(said.clone())?;
    /// session.append(said)?;
    /// assert_eq!(session.all::<InnerMessage>()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(evaluation_id: EvaluationId, message: Message, ids: &IdStream) -> Self {
        Self {
            message_id: ids.next(),
            evaluation_id,
            sequence: 0,
            turn: 0,
            prompt_ns: String::new(),
            prompt_key: String::new(),
            created_at: ids.clock().now(),
            message,
            role: None,
            provider: None,
            extra: Extra::default(),
        }
    }

    /// Sets the place in the evaluation, and the turn.
    #[must_use]
    pub fn at(self, sequence: u64, turn: u64) -> Self {
        Self { sequence, turn, ..self }
    }

    /// Sets the prompt of the evaluation.
    #[must_use]
    pub fn of_prompt(self, ns: impl Into<String>, key: impl Into<String>) -> Self {
        Self { prompt_ns: ns.into(), prompt_key: key.into(), ..self }
    }

    /// Returns the author's role: the assistant in calls, the tool in results, and the recorded role in
    /// parts.
    pub fn role(&self) -> Role {
        match &self.message.content {
            Content::OptionCall(_) => Role::Assistant,
            Content::OptionResult(_) => Role::Tool,
            Content::Parts(_) => self.role.unwrap_or_else(|| Role::hinted(self.message.role_hint_for_llm)),
        }
    }

    /// Returns the text of the message: its text parts, or a result as text (an error's message, a text
    /// unchanged, any other value as JSON). A call has none. Content in objects has to be hydrated first.
    pub fn content(&self) -> String {
        let Some(result) = self.message.option_result() else { return self.message.text().into_owned() };
        if result.is_error
            && let Some(message) = &result.error_message
        {
            return message.to_string();
        }
        match result.result.inline() {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }

    /// The call that a result answers.
    pub fn tool_call_id(&self) -> Option<CallId> {
        self.message.option_result().map(|result| result.invocation_id)
    }

    /// The option that a result comes from.
    pub fn tool_name(&self) -> Option<&str> {
        self.message.option_result().map(|result| result.option_name.as_ref())
    }

    /// Moves content that is too large for a record into objects.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        self.message.spill(objects);
        if let Some(payload) = self.payload_mut() {
            payload.spill(objects);
        }
    }

    /// Restores content from its objects.
    pub fn hydrate(
        &mut self,
        mut source: impl FnMut(ObjectRef) -> Option<Arc<[u8]>>,
    ) -> Result<(), MessageError> {
        self.hydrate_content(|reference| source(reference).map(ObjectContent::Bytes))
    }

    /// The same, where a marker stands for content that a redaction removed. A payload of a provider is dropped instead.
    pub fn hydrate_content(
        &mut self,
        mut source: impl FnMut(ObjectRef) -> Option<ObjectContent>,
    ) -> Result<(), MessageError> {
        self.message.hydrate_content(&mut source)?;
        let Some(sidecar) = &mut self.provider else { return Ok(()) };
        let large = sidecar.payload.as_ref().and_then(Large::object);
        if large.is_some_and(|reference| source(reference) == Some(ObjectContent::Redacted)) {
            (sidecar.payload, sidecar.payload_redacted) = (None, true);
        }
        match &mut sidecar.payload {
            Some(payload) => payload.hydrate("payload", &mut Source(&mut source)),
            None => Ok(()),
        }
    }

    fn payload_mut(&mut self) -> Option<&mut Large<Arc<str>>> {
        self.provider.as_mut()?.payload.as_mut()
    }

    /// Returns whether both have the same content, inline or in objects.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let spilled = |message: &Self| {
            let mut message = message.clone();
            message.spill(&mut Vec::new());
            message
        };
        self == other || spilled(self) == spilled(other)
    }

    /// Returns the objects that the message refers to.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let payload = self.provider.as_ref().and_then(|sidecar| sidecar.payload.as_ref()?.object());
        let mut objects = self.message.object_refs();
        objects.extend(payload.map(|reference| reference.object));
        objects
    }
}
