//! Encoding of media: by URL, by bytes, or refused.
//!
//! Each dialect has a table of the media that its provider accepts. Other media is a typed error, or is
//! described in words if the options say so; it is never left out silently. Limits are checked before a
//! request is sent.
//!
//! Media of results and of answers is always described where it is not accepted. No user chose to send it, and an
//! error would come again with each later request.

use backstitch_core::message::{MediaPart, MediaType, Modality};
use backstitch_core::object::ObjectId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::RequestInput;
use super::options::{MediaMode, RequestOptions, UnsupportedMediaPolicy};
use super::refused::RefusedPart;
use super::report::{Departure, RenderReport};
use crate::provider::Provider;

/// The media that a provider accepts.
pub(crate) struct MediaRules {
    /// The accepted forms of each modality. A missing modality is not supported.
    pub(crate) support: &'static [MediaSupport],
    /// Whether media that is sent by URL needs a MIME type.
    pub(crate) needs_type_of_url: bool,
}

/// The accepted forms of one modality.
pub(crate) struct MediaSupport {
    pub(crate) modality: Modality,
    pub(crate) by_url: bool,
    /// The MIME types that may be sent as bytes; empty for all.
    pub(crate) mimes: &'static [&'static str],
    /// The maximum size of one item in bytes.
    pub(crate) limit: usize,
}

impl MediaSupport {
    /// A modality that is accepted by URL and by bytes.
    pub(crate) const fn any(modality: Modality, mimes: &'static [&'static str], limit: usize) -> Self {
        Self { modality, by_url: true, mimes, limit }
    }

    /// A modality that is accepted by bytes only.
    pub(crate) const fn bytes(modality: Modality, mimes: &'static [&'static str], limit: usize) -> Self {
        Self { modality, by_url: false, mimes, limit }
    }
}

pub(crate) const MIB: usize = 1024 * 1024;

/// The images that every provider accepts.
pub(crate) const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The documents that every provider accepts.
pub(crate) const PDF: &[&str] = &["application/pdf"];

/// A provider does not accept this media.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} does not accept the {modality} {url}: {problem}")]
pub struct UnsupportedMedia {
    /// The provider.
    pub provider: Provider,
    /// The kind of the media.
    pub modality: Modality,
    /// The address of the media.
    pub url: String,
    /// The problem, and what would help.
    pub problem: MediaProblem,
}

/// Why media cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaProblem {
    /// The provider does not support the modality.
    #[error("media of this kind is not supported; describe it in words, or use another provider")]
    Modality,
    /// The provider does not load URLs, and the bytes are not available.
    #[error("its bytes are required and are not available; store it as an object first")]
    NoBytes,
    /// The provider requires a MIME type.
    #[error("its MIME type is not known; set it in the media part")]
    UnknownMime,
    /// The provider does not accept bytes of this type.
    #[error("{mime} is not an accepted type ({allowed})")]
    Mime {
        /// The type.
        mime: String,
        /// The accepted types.
        allowed: String,
    },
    /// The media is too large.
    #[error("{bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// The size of the media.
        bytes: usize,
        /// The maximum size.
        limit: usize,
    },
}

/// A part of the content, before it has the form of a provider.
pub(crate) enum Piece {
    /// A text, or media that is described in words.
    Text(String),
    /// Media by URL. The type is set if it is known.
    Url { url: String, mime: Option<String>, modality: Modality },
    /// Media by bytes, in Base64.
    Bytes { mime: String, data: String, modality: Modality },
}

/// A stored object that media refers to, and whether its bytes were available.
#[derive(Clone, Copy)]
pub(crate) struct UsedObject {
    pub(crate) id: ObjectId,
    pub(crate) has_bytes: bool,
}

/// Encodes the media of a request, in order.
pub(crate) struct Media<'a> {
    provider: Provider,
    rules: &'static MediaRules,
    options: &'a RequestOptions,
    /// How the request departs from the conversation so far.
    pub(crate) report: &'a mut RenderReport,
    count: &'a mut usize,
    objects: &'a mut imbl::Vector<UsedObject>,
    /// Whether the media is of results or answers.
    is_lenient: bool,
}

impl<'a> Media<'a> {
    pub(super) fn new(
        input: &RequestInput<'a>,
        rules: &'static MediaRules,
        report: &'a mut RenderReport,
        count: &'a mut usize,
        objects: &'a mut imbl::Vector<UsedObject>,
    ) -> Self {
        let (provider, options) = (input.target.provider, input.options);
        Self { provider, rules, options, report, count, objects, is_lenient: false }
    }

    /// Encodes media of results and answers: it is described in words if the provider does not accept it, or if
    /// the server refused such media before.
    pub(crate) fn leniently<T>(&mut self, encode: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_lenient, true);
        let encoded = encode(self);
        self.is_lenient = before;
        encoded
    }

    /// The label of the next media item, unless labels are off.
    pub(crate) fn label(&mut self, media: &MediaPart) -> Option<String> {
        *self.count += 1;
        (!self.options.without_labels).then(|| match &media.prompt_hint {
            Some(hint) if !hint.trim().is_empty() => format!("Media {}: {hint}", self.count),
            _ => format!("Media {}:", self.count),
        })
    }

    /// Encodes a media item.
    pub(crate) fn send(&mut self, media: &MediaPart) -> Result<Piece, UnsupportedMedia> {
        if self.is_lenient && self.options.refused.contains(&RefusedPart::Media) {
            let refused = Departure::Refused(RefusedPart::Media);
            if !self.report.departures.contains(&refused) {
                self.report.note(refused);
            }
            return Ok(Piece::Text(described(media, self.report)));
        }
        let describes = self.is_lenient || self.options.unsupported == UnsupportedMediaPolicy::Describe;
        let resolved = self.resolve(media);
        let has_bytes = !matches!(resolved, Err(MediaProblem::NoBytes));
        self.objects.extend(media.url.object_id().map(|id| UsedObject { id, has_bytes }));
        match resolved {
            Ok(sent) => {
                match &sent {
                    Piece::Bytes { data, .. } => self.report.count_bytes(Some(data)),
                    _ => self.report.media += 1,
                }
                Ok(sent)
            }
            Err(_) if describes => Ok(Piece::Text(described(media, self.report))),
            Err(problem) => Err(UnsupportedMedia {
                provider: self.provider,
                modality: media.modality,
                url: media.url.to_string(),
                problem,
            }),
        }
    }

    fn resolve(&self, media: &MediaPart) -> Result<Piece, MediaProblem> {
        let mut supported = self.rules.support.iter();
        let support =
            supported.find(|support| support.modality == media.modality).ok_or(MediaProblem::Modality)?;
        let by_url = support.by_url && media.url.object_id().is_none();
        if by_url && self.options.media == MediaMode::PreferUrl {
            return self.by_url(media);
        }
        match self.options.bytes.as_ref().and_then(|bytes| bytes(media)) {
            Some(bytes) if bytes.len() > support.limit => {
                Err(MediaProblem::TooLarge { bytes: bytes.len(), limit: support.limit })
            }
            Some(bytes) => {
                let mime = known_mime(media)
                    .or_else(|| MediaType::of_bytes(&bytes).map(|known| known.mime.to_owned()));
                let mime = mime.ok_or(MediaProblem::UnknownMime)?;
                if !support.mimes.is_empty() && !support.mimes.contains(&mime.as_str()) {
                    return Err(MediaProblem::Mime { mime, allowed: support.mimes.join(", ") });
                }
                Ok(Piece::Bytes { mime, data: STANDARD.encode(&bytes), modality: media.modality })
            }
            _ if by_url => self.by_url(media),
            _ => Err(MediaProblem::NoBytes),
        }
    }

    fn by_url(&self, media: &MediaPart) -> Result<Piece, MediaProblem> {
        let mime = known_mime(media);
        if self.rules.needs_type_of_url && mime.is_none() {
            return Err(MediaProblem::UnknownMime);
        }
        Ok(Piece::Url { url: media.url.to_string(), mime, modality: media.modality })
    }
}

/// Describes media in words.
pub(crate) fn described(media: &MediaPart, report: &mut RenderReport) -> String {
    report.note(Departure::Described { url: media.url.to_string() });
    media.in_words()
}

/// The type of a media part, or of the extension of its address.
fn known_mime(media: &MediaPart) -> Option<String> {
    if let Some(mime) = &media.mime {
        return Some(mime.clone());
    }
    let path = media.url.as_str().split(['?', '#']).next()?;
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    let mime = match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "txt" => "text/plain",
        _ => return None,
    };
    Some(mime.to_owned())
}
