//! The form of a request to Messages.

use serde_json::Value;

use super::form::Form::{Any, Boolean, By, Count, List, Map, Object, Text, TextOr, Word};
use super::form::{Field, Shape, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape::of(
    "a request",
    &[
        needed("model", Text),
        needed("max_tokens", Count(1)),
        needed("messages", List(&By(message))),
        maybe("system", TextOr(&Object(&TEXT))),
        maybe("tools", List(&Object(&TOOL))),
        maybe("tool_choice", Map),
        maybe("thinking", By(thinking)),
        maybe("output_config", Object(&OUTPUT_CONFIG)),
        maybe("stream", Boolean),
        maybe("stop_sequences", List(&Text)),
        maybe("service_tier", Word(&["auto", "standard_only"])),
        CACHE,
        maybe("metadata", Map),
        maybe("container", Any),
        maybe("diagnostics", Any),
        maybe("inference_geo", Any),
        maybe("speed", Any),
        maybe("user_profile_id", Any),
        maybe("workspace_id", Any),
    ],
);

const CACHE: Field = maybe("cache_control", Object(&CACHE_CONTROL));

const CACHE_CONTROL: Shape =
    Shape::of("a cache mark", &[needed("type", Word(&["ephemeral"])), maybe("ttl", Word(&["5m", "1h"]))]);

fn message(value: &Value) -> Option<&'static Shape> {
    Some(match value["role"].as_str()? {
        "user" => &USER,
        "assistant" => &ASSISTANT,
        _ => return None,
    })
}

const USER: Shape = Shape::of(
    "a user message",
    &[needed("role", Word(&["user"])), needed("content", TextOr(&By(user_block)))],
);

const ASSISTANT: Shape = Shape::of(
    "an assistant message",
    &[needed("role", Word(&["assistant"])), needed("content", TextOr(&By(assistant_block)))],
);

fn user_block(value: &Value) -> Option<&'static Shape> {
    match value["type"].as_str()? {
        "tool_result" => Some(&RESULT),
        _ => shown_block(value),
    }
}

/// Blocks that may stand in user messages and in results.
fn shown_block(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" => &TEXT,
        "image" => &IMAGE,
        "document" => &DOCUMENT,
        _ => return None,
    })
}

fn assistant_block(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" => &TEXT,
        "thinking" => &THINKING,
        "redacted_thinking" => &REDACTED_THINKING,
        "tool_use" => &CALL,
        _ => return None,
    })
}

const TEXT: Shape = Shape::of(
    "a text block",
    &[needed("type", Word(&["text"])), needed("text", Text), maybe("citations", List(&Map)), CACHE],
);

const THINKING: Shape = Shape::of(
    "a thought",
    &[needed("type", Word(&["thinking"])), needed("thinking", Text), needed("signature", Text)],
);

const REDACTED_THINKING: Shape =
    Shape::of("a hidden thought", &[needed("type", Word(&["redacted_thinking"])), needed("data", Text)]);

const CALL: Shape = Shape::of(
    "a call",
    &[
        needed("type", Word(&["tool_use"])),
        needed("id", Text),
        needed("name", Text),
        needed("input", Map),
        maybe("caller", Map),
        maybe("toolset_name", Text),
        CACHE,
    ],
);

const RESULT: Shape = Shape::of(
    "a result",
    &[
        needed("type", Word(&["tool_result"])),
        needed("tool_use_id", Text),
        maybe("content", TextOr(&By(shown_block))),
        maybe("is_error", Boolean),
        maybe("toolset_name", Text),
        CACHE,
    ],
);

const IMAGE: Shape = Shape::of(
    "an image",
    &[
        needed("type", Word(&["image"])),
        needed("source", By(image_source)),
        maybe("transformations", Map),
        CACHE,
    ],
);

const DOCUMENT: Shape = Shape::of(
    "a document",
    &[
        needed("type", Word(&["document"])),
        needed("source", By(document_source)),
        maybe("title", Text),
        maybe("context", Text),
        maybe("citations", Map),
        CACHE,
    ],
);

fn image_source(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "base64" => &IMAGE_BYTES,
        "url" => &ADDRESS,
        "file" => &STORED_FILE,
        _ => return None,
    })
}

fn document_source(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "base64" => &DOCUMENT_BYTES,
        "url" => &ADDRESS,
        "file" => &STORED_FILE,
        _ => return None,
    })
}

const IMAGE_BYTES: Shape = Shape::of(
    "the bytes of an image",
    &[
        needed("type", Word(&["base64"])),
        needed("media_type", Word(&["image/jpeg", "image/png", "image/gif", "image/webp"])),
        needed("data", Text),
    ],
);

const DOCUMENT_BYTES: Shape = Shape::of(
    "the bytes of a document",
    &[
        needed("type", Word(&["base64"])),
        needed("media_type", Word(&["application/pdf"])),
        needed("data", Text),
    ],
);

const ADDRESS: Shape = Shape::of("an address", &[needed("type", Word(&["url"])), needed("url", Text)]);

const STORED_FILE: Shape =
    Shape::of("a stored file", &[needed("type", Word(&["file"])), needed("file_id", Text)]);

const TOOL: Shape = Shape::of(
    "a tool",
    &[
        needed("name", Text),
        needed("input_schema", Map),
        maybe("description", Text),
        maybe("type", Word(&["custom"])),
        maybe("strict", Boolean),
        maybe("allowed_callers", List(&Text)),
        maybe("defer_loading", Boolean),
        maybe("eager_input_streaming", Boolean),
        maybe("input_examples", List(&Map)),
        CACHE,
    ],
);

fn thinking(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "enabled" => &THINKING_ENABLED,
        "adaptive" => &THINKING_ADAPTIVE,
        "disabled" => &THINKING_DISABLED,
        _ => return None,
    })
}

const DISPLAY: Field = maybe("display", Word(&["summarized", "omitted"]));

const THINKING_ENABLED: Shape = Shape::of(
    "thinking with a budget",
    &[needed("type", Word(&["enabled"])), needed("budget_tokens", Count(1024)), DISPLAY],
);

const THINKING_ADAPTIVE: Shape = Shape::of("thinking", &[needed("type", Word(&["adaptive"])), DISPLAY]);

const THINKING_DISABLED: Shape = Shape::of("no thinking", &[needed("type", Word(&["disabled"]))]);

const OUTPUT_CONFIG: Shape = Shape::of(
    "the form of the answer",
    &[
        maybe("effort", Word(&["low", "medium", "high", "xhigh", "max"])),
        maybe("format", Object(&SCHEMA_FORMAT)),
    ],
);

const SCHEMA_FORMAT: Shape =
    Shape::of("a format with a schema", &[needed("type", Word(&["json_schema"])), needed("schema", Map)]);
