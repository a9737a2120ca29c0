//! Media on its way to a provider: by address, by bytes, or refused.
//!
//! What a provider takes is a table in its dialect. Media that it does not take is a typed error, or is described in words where that was
//! asked for; it is never left out silently. Limits are checked before anything is sent.

use backstitch_core::message::{MediaPart, Modality};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::options::{MediaMode, RequestOptions, UnsupportedMediaPolicy};
use super::report::{Departure, RenderReport};
use crate::provider::Provider;

/// Which media a provider takes.
pub(crate) struct MediaRules {
    /// What it takes of each modality. It takes nothing of one that is not listed.
    pub(crate) support: &'static [MediaSupport],
    /// Whether it has to be told the type of media that is sent by address.
    pub(crate) needs_type_of_url: bool,
}

/// What a provider takes of one modality.
pub(crate) struct MediaSupport {
    pub(crate) modality: Modality,
    pub(crate) by_url: bool,
    /// The MIME types that may be sent as bytes; empty when any may.
    pub(crate) mimes: &'static [&'static str],
    /// The most bytes of one item.
    pub(crate) limit: usize,
}

impl MediaSupport {
    /// A modality that is taken by address and by bytes.
    pub(crate) const fn any(modality: Modality, mimes: &'static [&'static str], limit: usize) -> Self {
        Self { modality, by_url: true, mimes, limit }
    }

    /// A modality that is taken by bytes alone.
    pub(crate) const fn bytes(modality: Modality, mimes: &'static [&'static str], limit: usize) -> Self {
        Self { modality, by_url: false, mimes, limit }
    }
}

pub(crate) const MIB: usize = 1024 * 1024;

/// The images that every provider takes.
pub(crate) const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The documents that every provider takes.
pub(crate) const PDF: &[&str] = &["application/pdf"];

/// A provider does not take this media.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} cannot be given the {modality} {url}: {problem}")]
pub struct UnsupportedMedia {
    /// The provider.
    pub provider: Provider,
    /// What the media is.
    pub modality: Modality,
    /// Where it lies.
    pub url: String,
    /// What stands in the way, and what would help.
    pub problem: MediaProblem,
}

/// Why media cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaProblem {
    /// The provider does not take media of this kind.
    #[error("it does not take media of this kind; describe it in words, or ask another provider")]
    Modality,
    /// The provider does not follow addresses, and the bytes are not at hand.
    #[error("its bytes are needed and are not at hand; store it as an object first")]
    NoBytes,
    /// The provider wants to know what the bytes are.
    #[error("its MIME type is not known; give it with the media")]
    UnknownMime,
    /// The provider does not take bytes of this type.
    #[error("{mime} is not among the types that it takes ({allowed})")]
    Mime {
        /// The type.
        mime: String,
        /// The types that may be sent.
        allowed: String,
    },
    /// The media is too large.
    #[error("{bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
}

/// Media as it is sent.
pub(crate) enum MediaEncoding {
    /// By its address; the type is known for some providers only.
    Url { url: String, mime: Option<String> },
    /// By its bytes, in Base64.
    Bytes { mime: String, data: String },
    /// In words.
    Words(String),
}

/// The media of a request, in order.
pub(crate) struct Media<'a> {
    provider: Provider,
    rules: &'static MediaRules,
    options: &'a RequestOptions,
    count: usize,
}

impl<'a> Media<'a> {
    pub(crate) fn new(provider: Provider, rules: &'static MediaRules, options: &'a RequestOptions) -> Self {
        Self { provider, rules, options, count: 0 }
    }

    /// The label of the next media item, unless labels are off.
    pub(crate) fn label(&mut self, media: &MediaPart) -> Option<String> {
        self.count += 1;
        self.options.labels.then(|| match &media.prompt_hint {
            Some(hint) if !hint.trim().is_empty() => format!("Media {}: {hint}", self.count),
            _ => format!("Media {}:", self.count),
        })
    }

    /// How a media item is sent.
    pub(crate) fn send(
        &self,
        media: &MediaPart,
        report: &mut RenderReport,
    ) -> Result<MediaEncoding, UnsupportedMedia> {
        match (self.resolve(media), self.options.unsupported) {
            (Ok(sent), _) => {
                report.media += 1;
                Ok(sent)
            }
            (Err(_), UnsupportedMediaPolicy::Describe) => Ok(MediaEncoding::Words(described(media, report))),
            (Err(problem), UnsupportedMediaPolicy::Refuse) => Err(UnsupportedMedia {
                provider: self.provider,
                modality: media.modality,
                url: media.url.to_string(),
                problem,
            }),
        }
    }

    fn resolve(&self, media: &MediaPart) -> Result<MediaEncoding, MediaProblem> {
        let mut supported = self.rules.support.iter();
        let support =
            supported.find(|support| support.modality == media.modality).ok_or(MediaProblem::Modality)?;
        let by_url = support.by_url && media.url.object_id().is_none();
        if by_url && self.options.media == MediaMode::PreferUrl {
            return self.by_url(media);
        }
        match (self.options.bytes)(media) {
            Some(bytes) => {
                if bytes.len() > support.limit {
                    return Err(MediaProblem::TooLarge { bytes: bytes.len(), limit: support.limit });
                }
                let mime = known_mime(media).or_else(|| sniffed(&bytes).map(str::to_owned));
                let mime = mime.ok_or(MediaProblem::UnknownMime)?;
                if !support.mimes.is_empty() && !support.mimes.contains(&mime.as_str()) {
                    return Err(MediaProblem::Mime { mime, allowed: support.mimes.join(", ") });
                }
                Ok(MediaEncoding::Bytes { mime, data: STANDARD.encode(&bytes) })
            }
            _ if by_url => self.by_url(media),
            _ => Err(MediaProblem::NoBytes),
        }
    }

    fn by_url(&self, media: &MediaPart) -> Result<MediaEncoding, MediaProblem> {
        let mime = known_mime(media);
        if self.rules.needs_type_of_url && mime.is_none() {
            return Err(MediaProblem::UnknownMime);
        }
        Ok(MediaEncoding::Url { url: media.url.to_string(), mime })
    }
}

/// Media in words.
pub(crate) fn described(media: &MediaPart, report: &mut RenderReport) -> String {
    report.note(Departure::Described { url: media.url.to_string() });
    match &media.prompt_hint {
        Some(hint) => format!("[{}: {hint}, at {}]", media.modality, media.url),
        None => format!("[{} at {}]", media.modality, media.url),
    }
}

/// The type that the media says it has, or that its address ends with.
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

/// The type that the first bytes tell.
fn sniffed(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(usize, &[u8], &str)] = &[
        (0, b"\x89PNG\r\n\x1a\n", "image/png"),
        (0, b"\xff\xd8\xff", "image/jpeg"),
        (0, b"GIF8", "image/gif"),
        (8, b"WEBP", "image/webp"),
        (0, b"%PDF-", "application/pdf"),
        (8, b"WAVE", "audio/wav"),
        (0, b"ID3", "audio/mpeg"),
        (4, b"ftyp", "video/mp4"),
    ];
    let starts =
        |(at, magic, _): &&(usize, &[u8], &str)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    MAGIC.iter().find(starts).map(|(_, _, mime)| *mime)
}
