//! A message with its place in the conversation.
//!
//! An [`InnerMessage`] is the envelope around a [`Message`]: which evaluation it belongs to, where in it, in which turn. It
//! is what the journal records and what the transcript slice holds. Of an assistant's answer, its text and each of its calls
//! are messages of their own with one `turn`; views and adapters group them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::finish::Finish;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, IdStream, MessageId};
use crate::message::large::Source;
use crate::message::{Content, Large, Message, MessageError, PolicyName, RoleHint, large};
use crate::object::{Object, ObjectId, ObjectRef};
use crate::time::Timestamp;

/// A message with its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InnerMessage {
    /// Names the message.
    pub message_id: MessageId,
    /// The evaluation that it belongs to.
    pub evaluation_id: EvaluationId,
    /// Its place in the evaluation: 0, 1, 2 and so on, without a gap on any branch.
    pub sequence: u64,
    /// The number of the provider's response that it belongs to; of a system or user message, the number of responses before it.
    pub turn: u64,
    /// The namespace of the prompt.
    pub prompt_ns: String,
    /// The key of the prompt.
    pub prompt_key: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// What was said.
    pub message: Message,
    /// Who speaks in parts: it follows from the policy that speaks and the one that decides when the message is recorded
    /// ([`Role::of_parts`]). Messages of older journals have none, and are read by their hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What only the provider that made it understands; on the first message of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderSidecar>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The part of an answer that only its provider understands, and what the provider said about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderSidecar {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The endpoint, where one provider has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The raw payload, byte for byte: reasoning and signatures stand in it.
    #[serde(flatten, with = "large::payload")]
    pub payload: Option<Large<Arc<str>>>,
    /// Whether the raw payload was not kept because it held a secret: without it, signatures in it would be wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_redacted: bool,
    /// Why the answer ended, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Why the answer ended, with one meaning for all providers. Absent in journals of versions that did not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Finish>,
    /// What the answer cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<crate::budget::Amounts>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The name under which the rendered prompt speaks.
const PROMPT: &str = "prompt";

/// Who speaks, in the words of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The prompt.
    System,
    /// The one who decides.
    Assistant,
    /// A person.
    User,
    /// An option that was invoked.
    Tool,
}

impl Role {
    /// Who speaks in a message of an evaluation in which `decider` decides; `None` for calls and results, whose kind says it. The
    /// prompt speaks first or not at all. What anybody else says is an observation, in the role of a user. Hints mean nothing here.
    pub fn of_parts(message: &Message, decider: &PolicyName, sequence: u64) -> Option<Self> {
        message.parts()?;
        let is_prompt = sequence == 0 && message.policy.as_str() == PROMPT;
        Some(match () {
            () if is_prompt => Self::System,
            () if message.policy == *decider => Self::Assistant,
            () => Self::User,
        })
    }

    /// Who speaks in parts by their hint alone, which is all that older journals have. Parts without a hint were made by a policy.
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
    /// The first message of an evaluation that no prompt drives, with a fresh id and the time of now. Place it with
    /// [`InnerMessage::at`] and [`InnerMessage::of_prompt`]. In a live session, `LiveSession::say` does all of this.
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

    /// The message at this place of its evaluation, in this turn.
    #[must_use]
    pub fn at(self, sequence: u64, turn: u64) -> Self {
        Self { sequence, turn, ..self }
    }

    /// The message as one of an evaluation that this prompt drives.
    #[must_use]
    pub fn of_prompt(self, ns: impl Into<String>, key: impl Into<String>) -> Self {
        Self { prompt_ns: ns.into(), prompt_key: key.into(), ..self }
    }

    /// Who speaks: the assistant in calls, the tool in results, and in parts whoever was recorded.
    pub fn role(&self) -> Role {
        match &self.message.content {
            Content::OptionCall(_) => Role::Assistant,
            Content::OptionResult(_) => Role::Tool,
            Content::Parts(_) => self.role.unwrap_or_else(|| Role::hinted(self.message.role_hint_for_llm)),
        }
    }

    /// The text of the message: its text parts, or a result as text (an error's message, a text as it is, anything else as
    /// JSON). A call has none. What lies in objects has to be hydrated first.
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

    /// Moves what is too large for a record out into objects.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        self.message.spill(objects);
        if let Some(payload) = self.payload_mut() {
            payload.spill(objects);
        }
    }

    /// Puts back what was moved out.
    pub fn hydrate(
        &mut self,
        mut source: impl FnMut(ObjectRef) -> Option<Arc<[u8]>>,
    ) -> Result<(), MessageError> {
        self.message.hydrate(&mut source)?;
        match self.payload_mut() {
            Some(payload) => payload.hydrate("payload", &mut Source(&mut source)),
            None => Ok(()),
        }
    }

    fn payload_mut(&mut self) -> Option<&mut Large<Arc<str>>> {
        self.provider.as_mut()?.payload.as_mut()
    }

    /// Whether both say the same, wherever what they say lies.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let spilled = |message: &Self| {
            let mut message = message.clone();
            message.spill(&mut Vec::new());
            message
        };
        self == other || spilled(self) == spilled(other)
    }

    /// The objects that the message refers to.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        let payload = self.provider.as_ref().and_then(|sidecar| sidecar.payload.as_ref()?.object());
        let mut objects = self.message.object_refs();
        objects.extend(payload.map(|reference| reference.object));
        objects
    }
}
