//! A file that is attached: text, an image, a PDF document, or the listing of a directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use backstitch::agent_file::AgentDefinition;
use backstitch::message::{MediaType, Modality};

use super::found;
use crate::error::{CommandError, ErrorCode};
use crate::usage::Usage;

/// Maximum size of a text in bytes.
pub(super) const MOST_TEXT: u64 = 1024 * 1024;

/// Maximum size of an image or a document in bytes: 5 MiB in base64, which every provider accepts.
pub(super) const MOST_MEDIA: u64 = 5 * 1024 * 1024 / 4 * 3;

/// Maximum number of entries in the listing of a directory.
const MOST_ENTRIES: usize = 500;

/// Content that is attached.
#[derive(Debug)]
pub(super) enum AttachedContent {
    Text(String),
    Media {
        kind: MediaType,
        bytes: Vec<u8>,
    },
    /// The paths below a directory, a line for each.
    Listing(String),
}

/// Why something cannot be attached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error("{name} cannot be attached: {reason}")]
    Refused { name: String, reason: String },
    #[error("{count} files are attached; the maximum is {most}")]
    TooMany { count: usize, most: usize },
}

impl AttachError {
    pub(super) fn refusal(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Refused { name: name.into(), reason: reason.into() }
    }
}

impl From<AttachError> for Usage {
    fn from(error: AttachError) -> Self {
        Self(error.to_string())
    }
}

/// Reads what a path names, within the limits.
pub(super) fn read(name: &str, path: &Path) -> Result<AttachedContent, AttachError> {
    let unreadable = |error: std::io::Error| AttachError::refusal(name, error.to_string());
    // A pipe would block when it is opened.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Ok(AttachedContent::Listing(listing(path)));
    }
    if !metadata.is_file() {
        return Err(AttachError::refusal(name, "it is not an ordinary file"));
    }
    content_of(name, File::open(path).map_err(unreadable)?)
}

/// Reads an image. Everything else is refused.
pub(super) fn read_image(name: &str, path: &Path) -> Result<AttachedContent, AttachError> {
    let metadata = std::fs::metadata(path).map_err(|error| AttachError::refusal(name, error.to_string()))?;
    if metadata.is_file()
        && let content @ AttachedContent::Media { kind: MediaType { modality: Modality::Image, .. }, .. } =
            read(name, path)?
    {
        return Ok(content);
    }
    Err(AttachError::refusal(name, "it is not an image (PNG, JPEG, GIF, WebP)"))
}

/// Reads text, an image or a document to its end.
pub(super) fn content_of(name: &str, source: impl Read) -> Result<AttachedContent, AttachError> {
    let refusal = |reason: String| AttachError::refusal(name, reason);
    let mut bytes = Vec::new();
    let read = source.take(MOST_MEDIA + 1).read_to_end(&mut bytes);
    read.map_err(|error| refusal(error.to_string()))?;
    let kind = MediaType::of_bytes(&bytes);
    let kind = kind.filter(|kind| matches!(kind.modality, Modality::Image | Modality::Document));
    let size = bytes.len() as u64;
    if let Some(kind) = kind {
        if size > MOST_MEDIA {
            return Err(refusal("it is larger than 3.75 MiB; make a smaller copy".to_owned()));
        }
        return Ok(AttachedContent::Media { kind, bytes });
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let Some(text) = text.or_else(|| (size > MOST_TEXT).then(String::new)) else {
        let known = "UTF-8 text, an image (PNG, JPEG, GIF, WebP) or a PDF document";
        return Err(refusal(format!("it is not {known}")));
    };
    if size > MOST_TEXT {
        let advice = "name the file in the message, and the agent reads the parts that it needs";
        return Err(refusal(format!("it is larger than 1 MiB; {advice}")));
    }
    Ok(AttachedContent::Text(text))
}

/// Lists what is below a directory, without ignored files.
fn listing(directory: &Path) -> String {
    let found = found::below(directory, MOST_ENTRIES);
    let mut text = found.paths.join("\n");
    if found.is_cut {
        text.push_str(&format!("\n[There are more: only the first {MOST_ENTRIES} are listed.]"));
    }
    text
}

/// Returns the error of an agent that takes no images and documents.
pub(crate) fn media_refusal(definition: &AgentDefinition) -> Option<CommandError> {
    let engine = definition.engine.as_ref()?;
    let message = format!("images and documents cannot be sent to {}", engine.name);
    let hint = "name the path in the message: it reads the file with its own tools";
    Some(CommandError::new(ErrorCode::UnsupportedMedia, message).with_hint(hint))
}
