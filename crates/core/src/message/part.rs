//! Parts of a message: text and media, in reading order.
//!
//! Media has an address and a *modality*, which is required and determines how a model perceives it. The MIME
//! type is optional, and nothing depends on it. A `prompt_hint` is a label that an adapter may show with the
//! media; it has no other meaning. An `id` names the media within a session and is the same after a replay.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::large::{self, Large, Source};
use super::{MediaUrl, MessageError, tagged};
use crate::digest::Digest;
use crate::extra::Extra;
use crate::object::{Object, ObjectId};
use crate::secrets::REDACTED;
use crate::text_form::words;

words! {
    /// How a model perceives media.
    Modality = "modality" {
        /// A still picture.
        Image = "image",
        /// A sound.
        Audio = "audio",
        /// A film.
        Video = "video",
        /// A text document.
        Document = "document",
    }
}

words! {
    /// Kind of a part.
    PartKind = "kind of part" {
        /// Text.
        Text = "text",
        /// An image, audio, a video or a document.
        Media = "media",
    }
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(TextPart),
    /// An image, audio, a video or a document.
    Media(MediaPart),
}

impl Part {
    /// Creates a part with this text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// Kind of the part.
    pub fn kind(&self) -> PartKind {
        match self {
            Self::Text(_) => PartKind::Text,
            Self::Media(_) => PartKind::Media,
        }
    }

    /// Returns the text, if this is a text part.
    pub fn as_text(&self) -> Option<&TextPart> {
        match self {
            Self::Text(text) => Some(text),
            Self::Media(_) => None,
        }
    }

    /// Returns the media, if this is a media part.
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
            Self::Media(part) => {
                if part.url.object_id().is_some_and(|object| source.is_redacted(object)) {
                    *self = Self::text(REDACTED);
                }
                Ok(())
            }
        }
    }

    pub(super) fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Text(part) => part.text.object().map(|reference| reference.object),
            Self::Media(part) => part.url.object_id(),
        }
    }

    /// Adds a stable id to media without an id.
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

/// A text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text itself, or the object that holds it.
    #[serde(flatten, with = "large::text")]
    pub text: Large<Arc<str>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl TextPart {
    /// Creates a part with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: Large::Inline(text.into()), extra: Extra::default() }
    }
}

/// A reference to a media item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaPart {
    /// How a model perceives the media.
    pub modality: Modality,
    /// Address of the media.
    pub url: MediaUrl,
    /// MIME type, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// A label for prompts, such as "the first sketch".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hint: Option<String>,
    /// Name of the media in its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Digest of the media's bytes, if they were available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl MediaPart {
    /// Creates a reference to the media at `url`.
    pub fn new(modality: Modality, url: MediaUrl) -> Self {
        let extra = Extra::default();
        Self { modality, url, mime: None, prompt_hint: None, id: None, digest: None, extra }
    }

    /// Creates a reference to these bytes, and the object that holds them. The object has to be stored
    /// together with the referring record.
    pub fn held(modality: Modality, bytes: impl Into<Arc<[u8]>>) -> (Self, Object) {
        let object = Object::blob(bytes);
        let digest = Some(Digest::of(object.bytes()));
        (Self { digest, ..Self::new(modality, MediaUrl::blob(object.id())) }, object)
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Sets a label for prompts.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.prompt_hint = Some(hint.into());
        self
    }

    /// Describes the media in words, for places that cannot show it.
    ///
    /// ```
    /// use backstitch_core::message::{MediaPart, MediaUrl, Modality};
    ///
    /// let hat = MediaPart::new(Modality::Image, MediaUrl::new("https://example.org/hat.png")?);
    /// assert_eq!(hat.in_words(), "[image at https://example.org/hat.png]");
    /// assert_eq!(hat.with_hint("a hat").in_words(), "[image: a hat, at https://example.org/hat.png]");
    /// # Ok::<(), backstitch_core::message::MessageError>(())
    /// ```
    pub fn in_words(&self) -> String {
        match &self.prompt_hint {
            Some(hint) => format!("[{}: {hint}, at {}]", self.modality, self.url),
            None => format!("[{} at {}]", self.modality, self.url),
        }
    }

    /// Returns the default id of the media, derived from modality and address, so that the same media has the
    /// same id in each replay.
    pub fn stable_id(&self) -> String {
        let digest = Digest::of(format!("{} {}", self.modality, self.url).as_bytes());
        let hex: String = digest.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("media-{hex}")
    }

    /// Sets the stable id, unless there is an id already.
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
