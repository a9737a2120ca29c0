//! A message: who says it, in which step, and what it is.
//!
//! A [`Message`] is the immutable unit that flows between policies, options and people. It is of exactly one of three
//! kinds: *parts* (text and media), a *call* of an option, or the *result* of one. What it means follows from its kind and
//! its `policy`; `role_hint_for_llm` is for adapters alone. `step_num` groups what belongs to one cycle of deciding: what
//! a policy saw, chose and got back.
//!
//! A message says nothing about its place in a conversation; that is for the envelope which the journal puts around it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::large::Source;
use super::word::words;
use super::{MessageError, OptionCall, OptionResult, Part, PolicyName, RoleHint, tagged};
use crate::extra::Extra;
use crate::object::{Object, ObjectId, ObjectRef};

words! {
    /// Which of its three kinds a message is of.
    MessageKind = "message kind" {
        /// Text and media.
        Parts = "parts",
        /// An option that a policy chose.
        OptionCall = "option_call",
        /// What came of a call.
        OptionResult = "option_result",
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it: the policy that decided; for a result, the option that was invoked.
    pub policy: PolicyName,
    /// What an adapter may show it as. Never a reason for anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_hint_for_llm: Option<RoleHint>,
    /// The cycle of deciding that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_num: Option<u64>,
    /// What it says.
    pub content: Content,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Text and media: an observation or a prompt.
    Parts(Parts),
    /// An option that a policy chose.
    OptionCall(OptionCall),
    /// What came of a call.
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

/// Text and media, in the order in which they are to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// The parts.
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
    /// A message without a hint and outside of any step.
    pub fn new(policy: PolicyName, content: Content) -> Self {
        Self { policy, role_hint_for_llm: None, step_num: None, content, extra: Extra::default() }
    }

    /// Which kind it is of.
    pub fn kind(&self) -> MessageKind {
        match self.content {
            Content::Parts(_) => MessageKind::Parts,
            Content::OptionCall(_) => MessageKind::OptionCall,
            Content::OptionResult(_) => MessageKind::OptionResult,
        }
    }

    /// The parts, when it is a message of parts. Those of a result are reached through the result.
    pub fn parts(&self) -> Option<&[Part]> {
        match &self.content {
            Content::Parts(content) => Some(&content.parts),
            _ => None,
        }
    }

    /// The call, when it is one.
    pub fn option_call(&self) -> Option<&OptionCall> {
        match &self.content {
            Content::OptionCall(call) => Some(call),
            _ => None,
        }
    }

    /// The result, when it is one.
    pub fn option_result(&self) -> Option<&OptionResult> {
        match &self.content {
            Content::OptionResult(result) => Some(result),
            _ => None,
        }
    }

    /// The texts of a message of parts, one per line; empty for the other kinds. Texts that lie in objects are not in it.
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

    /// Moves every text, result and arguments text that is too large for a record out of the message. The objects are
    /// added to `objects`, and are to be stored before the message is.
    pub fn spill(&mut self, objects: &mut Vec<Object>) {
        match &mut self.content {
            Content::Parts(content) => content.parts.iter_mut().for_each(|part| part.spill(objects)),
            Content::OptionCall(call) => call.arguments.spill(objects),
            Content::OptionResult(result) => result.spill(objects),
        }
    }

    /// Puts back everything that was moved out. On an error, what was put back before stays.
    pub fn hydrate(
        &mut self,
        mut fetch: impl FnMut(ObjectRef) -> Option<Arc<[u8]>>,
    ) -> Result<(), MessageError> {
        let source = &mut Source(&mut fetch);
        match &mut self.content {
            Content::Parts(content) => content.parts.iter_mut().try_for_each(|part| part.hydrate(source)),
            Content::OptionCall(call) => call.arguments.hydrate(source),
            Content::OptionResult(result) => result.hydrate(source),
        }
    }

    /// The objects that the message cannot do without: those that hold what was moved out, and those of its media.
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
