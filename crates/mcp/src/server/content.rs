//! Results of calls, as content for clients.

use backstitch_core::message::{MediaPart, Modality, OptionResult, Part};
use backstitch_runtime::{LiveSession, OutsideError, OutsideResult};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::{Value, json};

use super::host::HostError;
use super::plain::plain;

/// Key of `_meta` that names the call and its session.
const META_KEY: &str = "backstitch/call";

/// Returns the result of a call for the client.
/// `is_structured` adds the value of a result that is sent as plain text.
pub(super) async fn result_of(
    live: &LiveSession,
    done: &OutsideResult,
    is_structured: bool,
) -> CallToolResult {
    let mut result = match done.message.message.option_result() {
        Some(recorded) => convert(live, recorded, is_structured).await,
        None => error_result("the result cannot be read"),
    };
    let named = json!({ "session": live.id(), "call": done.call, "repeated": done.is_repeated });
    result.meta = Some(meta(META_KEY, named));
    result
}

fn meta(key: &str, value: Value) -> MetaObject {
    MetaObject(JsonObject::from_iter([(key.to_owned(), value)]))
}

async fn convert(live: &LiveSession, recorded: &OptionResult, is_structured: bool) -> CallToolResult {
    if recorded.is_error {
        return error_result(recorded.error_message.as_deref().unwrap_or("the call failed"));
    }
    let mut content = Vec::new();
    let mut structured = None;
    match recorded.result.inline() {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => content.push(ContentBlock::text(text.as_str())),
        Some(value) => {
            let plain = value.as_object().and_then(plain);
            structured = (value.is_object() && (plain.is_none() || is_structured)).then(|| value.clone());
            content.push(ContentBlock::text(plain.unwrap_or_else(|| value.to_string())));
        }
    }
    for part in &recorded.parts {
        match part {
            Part::Text(text) => {
                if let Some(text) = text.text.inline() {
                    content.push(ContentBlock::text(&**text));
                }
            }
            Part::Media(media) => content.push(media_of(live, media).await),
        }
    }
    if content.is_empty() {
        content.push(ContentBlock::text("done"));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = structured;
    result
}

async fn media_of(live: &LiveSession, media: &MediaPart) -> ContentBlock {
    let stored = match media.url.object_id() {
        Some(object) => live.object(object).await.ok().flatten(),
        None => None,
    };
    let Some(object) = stored else { return ContentBlock::text(media.url.as_str()) };
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &**object.bytes());
    let mime = |default: &str| media.mime.clone().unwrap_or_else(|| default.to_owned());
    match media.modality {
        Modality::Image => ContentBlock::image(data, mime("image/png")),
        Modality::Audio => ContentBlock::audio(data, mime("audio/wav")),
        _ => ContentBlock::resource(rmcp::model::ResourceContents::BlobResourceContents {
            uri: media.url.as_str().to_owned(),
            mime_type: media.mime.clone(),
            blob: data,
            meta: None,
        }),
    }
}

/// Converts an error that left no result. Errors that a model can act on are results.
pub(super) fn failed(error: &OutsideError) -> Result<CallToolResult, ErrorData> {
    match error {
        OutsideError::Reused { .. } => Err(ErrorData::invalid_params(error.to_string(), None)),
        OutsideError::Runtime(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        other => Ok(error_result(other.to_string())),
    }
}

/// Returns a result that is an error with this text.
pub(super) fn error_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Key of `_meta` with the code of an error.
const ERROR_KEY: &str = "backstitch/error";

/// Returns the result of a call that has no session.
pub(super) fn refusal(error: &HostError) -> CallToolResult {
    let mut result = error_result(error.message.as_str());
    result.meta = Some(meta(ERROR_KEY, json!({ "code": error.code })));
    result
}

/// Returns a schema as the SDK takes it.
pub(super) fn object(schema: &Value) -> JsonObject {
    schema.as_object().cloned().unwrap_or_default()
}
