//! Messages: their author, step and content.
//!
//! A [`Message`] is the immutable unit of communication between policies, options and people. It has exactly
//! one of three kinds: *parts* (text and media), a *call* of an option, or the *result* of one. Its meaning
//! follows from its kind and its `policy`; `role_hint_for_llm` is for adapters alone. `step_num` groups the
//! messages of one decision cycle: what a policy saw, chose and received.
//!
//! A message does not hold its place in a conversation; the envelope in the journal does.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::large::Source;
use super::{MessageError, OptionCall, OptionResult, Part, PolicyName, RoleHint, tagged};
use crate::extra::Extra;
use crate::object::{Object, ObjectContent, ObjectId, ObjectRef};
use crate::text_form::words;

words! {
    /// Kind of a message.
    MessageKind = "message kind" {
        /// Text and media.
        Parts = "parts",
        /// A call of an option by a policy.
        OptionCall = "option_call",
        /// The result of a call.
        OptionResult = "option_result",
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Author: the policy that decided; for a result, the invoked option.
    pub policy: PolicyName,
    /// Role that an adapter may show it as. It has no other effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_hint_for_llm: Option<RoleHint>,
    /// Decision cycle of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_num: Option<u64>,
    /// Kind and content.
    pub content: Content,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Text and media: an observation or a prompt.
    Parts(Parts),
    /// A call of an option by a policy.
    OptionCall(OptionCall),
    /// The result of a call.
    OptionResult(OptionResult),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::read::<MessageKind, _>(deserializer)
    }
}

impl tagged::Kind for MessageKind {
    type Object = Content;

    fn read<'de, D: Deserializer<'de>>(self, fields: D) -> Result<Content, D::Error> {
        match self {
            Self::Parts => Parts::deserialize(fields).map(Content::Parts),
            Self::OptionCall => OptionCall::deserialize(fields).map(Content::OptionCall),
            Self::OptionResult => OptionResult::deserialize(fields).map(Content::OptionResult),
        }
    }
}

/// Text and media, in reading order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The parts.
    #[serde(deserialize_with = "fitting")]
    pub parts: Vec<Part>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        Self { parts, extra: Extra::default() }
    }
}

impl Message {
    /// Creates a message without a hint and outside of any step.
    pub fn new(policy: PolicyName, content: Content) -> Self {
        Self { policy, role_hint_for_llm: None, step_num: None, content, extra: Extra::default() }
    }

    /// Kind of the message.
    pub fn kind(&self) -> MessageKind {
        match self.content {
            Content::Parts(_) => MessageKind::Parts,
            Content::OptionCall(_) => MessageKind::OptionCall,
            Content::OptionResult(_) => MessageKind::OptionResult,
        }
    }

    /// Returns the parts of a message of parts. Those of a result are part of the result.
    pub fn parts(&self) -> Option<&[Part]> {
        match &self.content {
            Content::Parts(content) => Some(&content.parts),
            _ => None,
        }
    }

    /// Returns the call, if it is one.
    pub fn option_call(&self) -> Option<&OptionCall> {
        match &self.content {
            Content::OptionCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the result, if it is one.
    pub fn option_result(&self) -> Option<&OptionResult> {
        match &self.content {
            Content::OptionResult(result) => Some(result),
            _ => None,
        }
    }

    /// Returns the texts of a message of parts, one per line; empty for the other kinds. Texts in objects are
    /// not included.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.parts().unwrap_or_default().iter().filter_map(inline_text);
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        texts.fold(Cow::Borrowed(first), |mut all, text| {
            let joined = all.to_mut();
            joined.push('\n');
            joined.push_str(text);
            all
        })
    }

    /// Moves every text, result and arguments text that is too large for a record into objects. They are
    /// added to `objects`, and have to be stored before the message.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        match &mut self.content {
            Content::Parts(content) => content.parts.iter_mut().for_each(|part| part.spill(objects)),
            Content::OptionCall(call) => call.arguments.spill(objects),
            Content::OptionResult(result) => result.spill(objects),
        }
    }

    /// Restores everything that was moved into objects. On an error, what was restored before stays restored.
    pub fn hydrate(
        &mut self,
        mut fetch: impl FnMut(ObjectRef) -> Option<Arc<[u8]>>,
    ) -> Result<(), MessageError> {
        self.hydrate_content(|reference| fetch(reference).map(ObjectContent::Bytes))
    }

    /// The same, where a marker stands for content that a redaction removed.
    pub fn hydrate_content(
        &mut self,
        mut fetch: impl FnMut(ObjectRef) -> Option<ObjectContent>,
    ) -> Result<(), MessageError> {
        let source = &mut Source(&mut fetch);
        match &mut self.content {
            Content::Parts(content) => content.parts.iter_mut().try_for_each(|part| part.hydrate(source)),
            Content::OptionCall(call) => call.arguments.hydrate(source),
            Content::OptionResult(result) => result.hydrate(source),
        }
    }

    /// Returns the objects that the message needs: those with moved content, and those of its media.
    pub fn object_refs(&self) -> Vec<ObjectId> {
        match &self.content {
            Content::Parts(content) => content.parts.iter().filter_map(Part::object).collect(),
            Content::OptionCall(call) => {
                call.arguments.stored().map(|reference| reference.object).into_iter().collect()
            }
            Content::OptionResult(result) => result.objects().collect(),
        }
    }
}

/// Decodes parts into as much memory as they need. A list that grows has room for four, and most messages have one part.
fn fitting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    let mut parts = Vec::deserialize(deserializer)?;
    parts.shrink_to_fit();
    Ok(parts)
}

fn inline_text(part: &Part) -> Option<&str> {
    part.as_text()?.text.inline().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Large, TextPart};

    fn parts(parts: Vec<Part>) -> Message {
        Message::new(PolicyName::new("planner").unwrap(), Content::Parts(parts.into()))
    }

    #[test]
    fn text_is_what_lies_in_the_message_itself() {
        assert_eq!(parts(vec![]).text(), "");
        assert!(matches!(parts(vec![Part::text("one")]).text(), Cow::Borrowed("one")));
        let elsewhere = Large::Object(Object::blob(*b"far").to_ref());
        let far = TextPart { text: elsewhere, extra: Extra::default() };
        let message = parts(vec![Part::text("one"), far.into(), Part::text(""), Part::text("two")]);
        assert_eq!(message.text(), "one\n\ntwo");
    }
}
