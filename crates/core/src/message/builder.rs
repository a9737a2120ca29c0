//! Builds the messages of a policy in one step.
//!
//! A [`MessageBuilder`] stands for one author in one step. It collects text and media into at most one
//! message of parts, and calls of options into messages of their own, each with a unique id. Nothing that is
//! added is ever dropped or merged.
//!
//! Defaults: the policy is that of the anchor message; the role hint is `assistant` for calls, `user` for
//! parts of a person, and none for other parts. A builder that is anchored to a person's parts continues as
//! that person. A name that is reserved for the runtime is not inherited from an anchor: the author after a
//! message of the runtime has to be set.

use std::sync::Arc;

use super::{
    Arguments, Content, MediaPart, MediaUrl, Message, MessageError, MessageKind, Modality, OptionCall, Part,
    PolicyName, RoleHint,
};
use crate::id::IdStream;

/// The message or step that a builder continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    step: Option<u64>,
    policy: Option<PolicyName>,
    speaker: Speaker,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Speaker {
    Person,
    #[default]
    Other,
}

impl Anchor {
    /// Creates an empty anchor: the next step is the first one, and its policy has to be set.
    pub fn start() -> Self {
        Self::default()
    }
}

impl From<u64> for Anchor {
    /// Creates an anchor from the number of a step.
    fn from(step: u64) -> Self {
        Self { step: Some(step), ..Self::default() }
    }
}

impl From<&Message> for Anchor {
    /// Creates an anchor from a message: its step, and its policy unless that is reserved.
    fn from(message: &Message) -> Self {
        let person = message.kind() == MessageKind::Parts
            && message.role_hint_for_llm == Some(RoleHint::User)
            && !message.policy.is_reserved();
        Self {
            step: message.step_num,
            policy: Some(message.policy.clone()).filter(|policy| !policy.is_reserved()),
            speaker: if person { Speaker::Person } else { Speaker::Other },
        }
    }
}

/// Collects the messages of one policy in one step.
///
/// ```
/// # use std::sync::Arc;
/// # use backstitch_core::{id::{IdStream, SessionId}, time::FixedClock};
/// # use backstitch_core::message::{Anchor, MessageBuilder, MessageError, PolicyName};
/// # let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
/// let mut builder = MessageBuilder::next_step(Anchor::start(), &ids);
/// builder.policy(PolicyName::new("tailor")?).add_text("Which thread goes with this cloth?");
/// builder.add_image("the cloth", "https://example.org/cloth.png")?;
/// let message = builder.to_message()?;
/// assert_eq!(message.step_num, Some(0));
/// assert_eq!(message.parts().map(<[_]>::len), Some(2));
/// # Ok::<(), MessageError>(())
/// ```
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    ids: IdStream,
    step: Option<u64>,
    policy: Option<PolicyName>,
    speaker: Speaker,
    hint: Option<RoleHint>,
    parts: Vec<Part>,
    calls: Vec<Message>,
}

impl MessageBuilder {
    /// Creates a builder for the step after that of the anchor; step 0 if the anchor has none.
    pub fn next_step(anchor: impl Into<Anchor>, ids: &IdStream) -> Self {
        let anchor = anchor.into();
        let step = anchor.step.map_or(0, |step| step.saturating_add(1));
        Self::anchored(Anchor { step: Some(step), ..anchor }, ids)
    }

    /// Creates a builder that adds to the step of the anchor.
    pub fn continue_step(anchor: impl Into<Anchor>, ids: &IdStream) -> Self {
        Self::anchored(anchor.into(), ids)
    }

    fn anchored(anchor: Anchor, ids: &IdStream) -> Self {
        let Anchor { step, policy, speaker } = anchor;
        Self { ids: ids.clone(), step, policy, speaker, hint: None, parts: Vec::new(), calls: Vec::new() }
    }

    /// Sets the policy of all messages, including earlier ones of this builder.
    pub fn policy(&mut self, policy: PolicyName) -> &mut Self {
        self.set_speaker(policy, Speaker::Other)
    }

    /// Sets the person as the policy, with the role hint `user` for parts.
    pub fn person(&mut self, person: PolicyName) -> &mut Self {
        self.set_speaker(person, Speaker::Person)
    }

    fn set_speaker(&mut self, policy: PolicyName, speaker: Speaker) -> &mut Self {
        for call in &mut self.calls {
            call.policy = policy.clone();
        }
        (self.policy, self.speaker) = (Some(policy), speaker);
        self
    }

    /// Sets a role hint for all messages, including earlier ones of this builder.
    pub fn role_hint(&mut self, hint: RoleHint) -> &mut Self {
        for call in &mut self.calls {
            call.role_hint_for_llm = Some(hint);
        }
        self.hint = Some(hint);
        self
    }

    /// Adds text.
    pub fn add_text(&mut self, text: impl Into<Arc<str>>) -> &mut Self {
        self.parts.push(Part::text(text));
        self
    }

    /// Adds a part unchanged. Media without an id gets its stable one.
    pub fn add_part(&mut self, part: Part) -> &mut Self {
        self.parts.push(part.with_stable_id());
        self
    }

    /// Adds an image with a label for prompts.
    pub fn add_image(&mut self, hint: &str, url: &str) -> Result<&mut Self, MessageError> {
        self.add_labelled(Modality::Image, hint, url)
    }

    /// Adds audio with a label for prompts.
    pub fn add_audio(&mut self, hint: &str, url: &str) -> Result<&mut Self, MessageError> {
        self.add_labelled(Modality::Audio, hint, url)
    }

    /// Adds a video with a label for prompts.
    pub fn add_video(&mut self, hint: &str, url: &str) -> Result<&mut Self, MessageError> {
        self.add_labelled(Modality::Video, hint, url)
    }

    /// Adds a document with a label for prompts.
    pub fn add_document(&mut self, hint: &str, url: &str) -> Result<&mut Self, MessageError> {
        self.add_labelled(Modality::Document, hint, url)
    }

    fn add_labelled(&mut self, modality: Modality, hint: &str, url: &str) -> Result<&mut Self, MessageError> {
        let mut media = MediaPart::new(modality, MediaUrl::new(url)?);
        media.prompt_hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
        Ok(self.add_media(media))
    }

    /// Adds media with all of its fields. Without an id it gets its stable one.
    pub fn add_media(&mut self, media: MediaPart) -> &mut Self {
        self.parts.push(media.with_stable_id().into());
        self
    }

    /// Adds a call of an option. The arguments are [`Arguments`], a JSON object, or a JSON value that is one.
    pub fn add_option_call<A>(
        &mut self,
        option_name: impl Into<String>,
        arguments: A,
    ) -> Result<&mut Self, MessageError>
    where
        A: TryInto<Arguments>,
        A::Error: Into<MessageError>,
    {
        let arguments = arguments.try_into().map_err(Into::into)?;
        let policy = self.known_policy()?;
        let call = OptionCall::new(self.ids.next(), option_name, arguments);
        let hint = self.hint.unwrap_or(RoleHint::Assistant);
        self.calls.push(self.message(policy, Some(hint), Content::OptionCall(call)));
        Ok(self)
    }

    /// Sets the id by which the provider knows the last call.
    pub fn provider_call_id(&mut self, id: impl Into<String>) -> Result<&mut Self, MessageError> {
        match self.calls.last_mut().map(|call| &mut call.content) {
            Some(Content::OptionCall(call)) => call.provider_call_id = Some(id.into()),
            _ => return Err(MessageError::NoOptionCall),
        }
        Ok(self)
    }

    /// Marks the last call as cut off by the token limit.
    pub fn cut_off(&mut self) -> Result<&mut Self, MessageError> {
        match self.calls.last_mut().map(|call| &mut call.content) {
            Some(Content::OptionCall(call)) => call.cut_off = true,
            _ => return Err(MessageError::NoOptionCall),
        }
        Ok(self)
    }

    /// Returns the call that was added last.
    pub fn last_option_call(&self) -> Option<&Message> {
        self.calls.last()
    }

    /// The calls, in the order in which they were added.
    pub fn option_calls(&self) -> &[Message] {
        &self.calls
    }

    /// Returns one message of all parts, without the calls.
    pub fn to_message(&self) -> Result<Message, MessageError> {
        self.clone().into_parts_message()
    }

    /// Returns the message of parts, if there are any, and then the calls in order.
    pub fn into_messages(mut self) -> Result<Vec<Message>, MessageError> {
        let calls = std::mem::take(&mut self.calls);
        let mut messages = match self.into_parts_message() {
            Ok(message) => vec![message],
            Err(MessageError::NoParts) if calls.is_empty() => return Err(MessageError::NoContent),
            Err(MessageError::NoParts) => Vec::new(),
            Err(error) => return Err(error),
        };
        messages.extend(calls);
        Ok(messages)
    }

    fn into_parts_message(mut self) -> Result<Message, MessageError> {
        if self.parts.is_empty() {
            return Err(MessageError::NoParts);
        }
        let policy = self.known_policy()?;
        let hint = self.hint.or((self.speaker == Speaker::Person).then_some(RoleHint::User));
        let parts = std::mem::take(&mut self.parts);
        Ok(self.message(policy, hint, Content::Parts(parts.into())))
    }

    fn known_policy(&self) -> Result<PolicyName, MessageError> {
        self.policy.clone().ok_or(MessageError::NoPolicy)
    }

    fn message(&self, policy: PolicyName, hint: Option<RoleHint>, content: Content) -> Message {
        Message { role_hint_for_llm: hint, step_num: self.step, ..Message::new(policy, content) }
    }
}
