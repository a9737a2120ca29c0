//! The parts of a message: text and media, in the order in which they are to be read.
//!
//! Media has a *modality*, which is required and says what it is to a model, and an address. Its MIME type is known or it
//! is not; nothing depends on it. A `prompt_hint` is a label that an adapter may show beside the media, and carries no
//! meaning of its own. An `id` names the media inside of a session and is the same after a replay.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::large::{self, Large, Source};
use super::word::words;
use super::{MediaUrl, MessageError, tagged};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::object::{Object, ObjectId};

words! {
    /// What media is to whoever perceives it.
    Modality = "modality" {
        /// Something to be looked at.
        Image = "image",
        /// Something to be listened to.
        Audio = "audio",
        /// Something to be watched.
        Video = "video",
        /// Something to be read.
        Document = "document",
    }
}

words! {
    /// Which of its two kinds a part is of.
    PartKind = "kind of part" {
        /// Words.
        Text = "text",
        /// A picture, a sound, a film or a document.
        Media = "media",
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text(TextPart),
    /// A picture, a sound, a film or a document.
    Media(MediaPart),
}

impl Part {
    /// A part with this text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// Which kind it is of.
    pub fn kind(&self) -> PartKind {
        match self {
            Self::Text(_) => PartKind::Text,
            Self::Media(_) => PartKind::Media,
        }
    }

    /// The text, when this is a text part.
    pub fn as_text(&self) -> Option<&TextPart> {
        match self {
            Self::Text(text) => Some(text),
            Self::Media(_) => None,
        }
    }

    /// The media, when this is a media part.
    pub fn as_media(&self) -> Option<&MediaPart> {
        match self {
            Self::Text(_) => None,
            Self::Media(media) => Some(media),
        }
    }

    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        if let Self::Text(part) = self {
            part.text.spill(objects);
        }
    }

    pub(super) fn hydrate(&mut self, source: &mut Source<'_>) -> Result<(), MessageError> {
        match self {
            Self::Text(part) => part.text.hydrate("text", source),
            Self::Media(_) => Ok(()),
        }
    }

    pub(super) fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Text(part) => part.text.object().map(|reference| reference.object),
            Self::Media(part) => part.url.object_id(),
        }
    }

    /// The part with a stable id, when it is media that has none.
    pub(super) fn with_stable_id(self) -> Self {
        match self {
            Self::Text(_) => self,
            Self::Media(media) => Self::Media(media.with_stable_id()),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged::read::<PartKind, _>(deserializer)
    }
}

impl tagged::Kind for PartKind {
    type Object = Part;

    fn read<'de, D: Deserializer<'de>>(self, fields: D) -> Result<Part, D::Error> {
        match self {
            Self::Text => TextPart::deserialize(fields).map(Part::Text),
            Self::Media => MediaPart::deserialize(fields).map(Part::Media),
        }
    }
}

impl From<TextPart> for Part {
    fn from(part: TextPart) -> Self {
        Self::Text(part)
    }
}

impl From<MediaPart> for Part {
    fn from(part: MediaPart) -> Self {
        Self::Media(part)
    }
}

/// Words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text: inside of the message, or the object that holds it.
    #[serde(flatten, with = "large::text")]
    pub text: Large<Arc<str>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TextPart {
    /// A part with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: Large::Inline(text.into()), extra: Extra::default() }
    }
}

/// A reference to a media item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaPart {
    /// What the media is to whoever perceives it.
    pub modality: Modality,
    /// Where the media lies.
    pub url: MediaUrl,
    /// The media's MIME type, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// A label for prompts, such as "the first sketch".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hint: Option<String>,
    /// The name of the media in its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The digest of the media's bytes, when they were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl MediaPart {
    /// A reference to the media at `url`.
    pub fn new(modality: Modality, url: MediaUrl) -> Self {
        let extra = Extra::default();
        Self { modality, url, mime: None, prompt_hint: None, id: None, digest: None, extra }
    }

    /// Media whose bytes are at hand, and the object that holds them. The object has to be stored with whatever refers to it.
    pub fn held(modality: Modality, bytes: impl Into<Arc<[u8]>>) -> (Self, Object) {
        let object = Object::blob(bytes);
        let digest = Some(Digest::of(object.bytes()));
        (Self { digest, ..Self::new(modality, MediaUrl::blob(object.id())) }, object)
    }

    /// The same reference with a MIME type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// The same reference with a label for prompts.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.prompt_hint = Some(hint.into());
        self
    }

    /// The id that this media has unless it is given another: made from modality and address, so that the same media has
    /// the same id in each replay.
    pub fn stable_id(&self) -> String {
        let digest = Digest::of(format!("{} {}", self.modality, self.url).as_bytes());
        let hex: String = digest.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("media-{hex}")
    }

    /// The same reference with its stable id, unless it has an id already.
    #[must_use]
    pub fn with_stable_id(mut self) -> Self {
        if self.id.is_none() {
            self.id = Some(self.stable_id());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(url: &str) -> MediaPart {
        MediaPart::new(Modality::Image, MediaUrl::new(url).unwrap())
    }

    #[test]
    fn ids_depend_on_modality_and_address_alone() {
        let mut labelled = image("https://example.org/hat.png");
        labelled.prompt_hint = Some("a hat".into());
        let plain = image("https://example.org/hat.png").with_stable_id();
        assert_eq!(labelled.with_stable_id().id, plain.id);
        assert_eq!(plain.id.as_deref(), Some("media-aa63271912c5"));
        assert_ne!(image("https://example.org/hat.jpg").stable_id(), plain.stable_id());
        let video = MediaPart { modality: Modality::Video, ..plain.clone() };
        assert_ne!(video.stable_id(), plain.stable_id());
    }

    #[test]
    fn an_id_that_was_given_stays() {
        let mut part = image("https://example.org/hat.png");
        part.id = Some("hat".into());
        assert_eq!(part.with_stable_id().id.as_deref(), Some("hat"));
    }
}
