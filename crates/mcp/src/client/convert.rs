//! Results of servers, as results of tools.

use backstitch_core::message::{MediaPart, Modality};
use backstitch_core::tool::{ToolError, ToolOutcome, ToolResult};
use base64::Engine as _;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Converts the result of a call.
pub(super) fn outcome_of(result: CallToolResult) -> ToolOutcome {
    let mut texts: Vec<String> = Vec::new();
    let mut media = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => {
                hold_media(&mut texts, &mut media, Modality::Image, &image.data, &image.mime_type)
            }
            ContentBlock::Audio(audio) => {
                hold_media(&mut texts, &mut media, Modality::Audio, &audio.data, &audio.mime_type)
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    texts.push(format!("{uri}:\n{text}"))
                }
                ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                    let kind = mime_type.unwrap_or_else(|| "binary content".to_owned());
                    texts.push(format!("{uri}: {kind}, which is not shown"));
                }
                _ => texts.push("a resource of an unknown kind".to_owned()),
            },
            ContentBlock::ResourceLink(link) => texts.push(format!("{}: {}", link.name, link.uri)),
            _ => texts.push("content of an unknown kind".to_owned()),
        }
    }
    let text = texts.join("\n");
    if result.is_error == Some(true) {
        let message = if text.is_empty() { "the server reports an error".to_owned() } else { text };
        return Err(ToolError::retryable("mcp_error", message));
    }
    let mut outcome = ToolResult::ok(text);
    // The text is the same content, for models that read it; the value is for those that have no text.
    if let Some(value) = result.structured_content.filter(|_| outcome.message.is_empty()) {
        outcome = outcome.with_value(value)?;
    }
    for one in media {
        outcome = outcome.with_media(one);
    }
    Ok(outcome)
}

type HeldMedia = (MediaPart, backstitch_core::object::Object);

fn hold_media(
    texts: &mut Vec<String>,
    media: &mut Vec<HeldMedia>,
    modality: Modality,
    data: &str,
    mime: &str,
) {
    match base64::engine::general_purpose::STANDARD.decode(data.trim()) {
        Ok(bytes) => {
            let (part, object) = MediaPart::held(modality, bytes);
            media.push((part.with_mime(mime), object));
        }
        Err(_) => texts.push(format!("{mime} that is not valid base64, and is left out")),
    }
}
