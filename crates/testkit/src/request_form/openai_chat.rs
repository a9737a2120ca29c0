//! The form of a request to Chat Completions.

use serde_json::Value;

use super::form::Form::{Any, Boolean, By, Count, List, Map, Number, Object, Text, TextOr, Word};
use super::form::{Field, Shape, Together, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape {
    name: "a request",
    fields: &[
        needed("model", Text),
        needed("messages", List(&By(message))),
        maybe("tools", List(&By(tool))),
        maybe("tool_choice", Any),
        maybe("parallel_tool_calls", Boolean),
        maybe("response_format", By(response_format)),
        maybe("max_completion_tokens", Count(1)),
        maybe("max_tokens", Count(1)),
        maybe("reasoning_effort", Word(&["none", "minimal", "low", "medium", "high", "xhigh", "max"])),
        maybe("verbosity", Word(&["low", "medium", "high"])),
        maybe("prompt_cache_key", Text),
        maybe("prompt_cache_options", Map),
        maybe("prompt_cache_retention", Word(&["in_memory", "24h"])),
        maybe("stream", Boolean),
        maybe("stream_options", Object(&STREAM_OPTIONS)),
        maybe("temperature", Number),
        maybe("top_p", Number),
        maybe("stop", TextOr(&Text)),
        maybe("seed", Number),
        maybe("store", Boolean),
        maybe("metadata", Map),
        maybe("user", Text),
        maybe("safety_identifier", Text),
        maybe("service_tier", Word(&["auto", "default", "flex", "scale", "priority"])),
        maybe("audio", Any),
        maybe("frequency_penalty", Any),
        maybe("function_call", Any),
        maybe("functions", Any),
        maybe("logit_bias", Any),
        maybe("logprobs", Any),
        maybe("modalities", Any),
        maybe("moderation", Any),
        maybe("n", Any),
        maybe("prediction", Any),
        maybe("presence_penalty", Any),
        maybe("top_logprobs", Any),
        maybe("web_search_options", Any),
    ],
    together: &[
        Together::With("stream_options", "stream"),
        Together::NotBoth("max_tokens", "max_completion_tokens"),
    ],
};

const STREAM_OPTIONS: Shape =
    Shape::of("stream options", &[maybe("include_usage", Boolean), maybe("include_obfuscation", Boolean)]);

fn message(value: &Value) -> Option<&'static Shape> {
    Some(match value["role"].as_str()? {
        "system" | "developer" => &INSTRUCTIONS,
        "user" => &USER,
        "assistant" => &ASSISTANT,
        "tool" => &TOOL_MESSAGE,
        _ => return None,
    })
}

const INSTRUCTIONS: Shape = Shape::of(
    "a system message",
    &[
        needed("role", Word(&["system", "developer"])),
        needed("content", TextOr(&Object(&TEXT))),
        maybe("name", Text),
    ],
);

const USER: Shape = Shape::of(
    "a user message",
    &[needed("role", Word(&["user"])), needed("content", TextOr(&By(user_part))), maybe("name", Text)],
);

/// The rules allow an empty `content` only beside calls. `null` is refused by some compatible servers. The
/// last three fields are sent by compatible servers, which require them back.
const ASSISTANT: Shape = Shape::of(
    "an assistant message",
    &[
        needed("role", Word(&["assistant"])),
        needed("content", TextOr(&By(assistant_part))),
        maybe("name", Text),
        maybe("refusal", Text),
        maybe("tool_calls", List(&By(call))),
        maybe("function_call", Any),
        maybe("audio", Any),
        maybe("reasoning_content", Text),
        maybe("reasoning", Text),
        maybe("reasoning_details", Any),
    ],
);

const TOOL_MESSAGE: Shape = Shape::of(
    "a tool message",
    &[
        needed("role", Word(&["tool"])),
        needed("content", TextOr(&Object(&TEXT))),
        needed("tool_call_id", Text),
    ],
);

fn user_part(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" => &TEXT,
        "image_url" => &IMAGE,
        "input_audio" => &AUDIO,
        "file" => &FILE,
        _ => return None,
    })
}

fn assistant_part(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" => &TEXT,
        "refusal" => &REFUSAL,
        _ => return None,
    })
}

const BREAKPOINT: Field = maybe("prompt_cache_breakpoint", Map);

const TEXT: Shape =
    Shape::of("a text part", &[needed("type", Word(&["text"])), needed("text", Text), BREAKPOINT]);

const REFUSAL: Shape = Shape::of("a refusal", &[needed("type", Word(&["refusal"])), needed("refusal", Text)]);

const IMAGE: Shape = Shape::of(
    "an image",
    &[needed("type", Word(&["image_url"])), needed("image_url", Object(&IMAGE_URL)), BREAKPOINT],
);

const IMAGE_URL: Shape = Shape::of(
    "the address of an image",
    &[needed("url", Text), maybe("detail", Word(&["auto", "low", "high"]))],
);

const AUDIO: Shape = Shape::of(
    "audio",
    &[needed("type", Word(&["input_audio"])), needed("input_audio", Object(&AUDIO_DATA)), BREAKPOINT],
);

const AUDIO_DATA: Shape =
    Shape::of("the bytes of audio", &[needed("data", Text), needed("format", Word(&["wav", "mp3"]))]);

const FILE: Shape =
    Shape::of("a file", &[needed("type", Word(&["file"])), needed("file", Object(&FILE_DATA)), BREAKPOINT]);

const FILE_DATA: Shape = Shape {
    name: "what a file holds",
    fields: &[maybe("file_data", Text), maybe("file_id", Text), maybe("filename", Text)],
    together: &[Together::OneOf(&["file_data", "file_id"]), Together::With("file_data", "filename")],
};

fn call(value: &Value) -> Option<&'static Shape> {
    (value["type"] == "function").then_some(&CALL)
}

const CALL: Shape = Shape::of(
    "a call",
    &[
        needed("type", Word(&["function"])),
        needed("id", Text),
        needed("function", Object(&CALLED_FUNCTION)),
        // Gemini's compatible server requires it back.
        maybe("extra_content", Map),
    ],
);

const CALLED_FUNCTION: Shape =
    Shape::of("the function of a call", &[needed("name", Text), needed("arguments", Text)]);

fn tool(value: &Value) -> Option<&'static Shape> {
    (value["type"] == "function").then_some(&TOOL)
}

const TOOL: Shape = Shape::of(
    "a tool",
    &[needed("type", Word(&["function"])), needed("function", Object(&DECLARED_FUNCTION))],
);

const DECLARED_FUNCTION: Shape = Shape::of(
    "the function of a tool",
    &[needed("name", Text), maybe("description", Text), maybe("parameters", Map), maybe("strict", Boolean)],
);

fn response_format(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" | "json_object" => &PLAIN_FORMAT,
        "json_schema" => &SCHEMA_FORMAT,
        _ => return None,
    })
}

const PLAIN_FORMAT: Shape = Shape::of("a format", &[needed("type", Word(&["text", "json_object"]))]);

const SCHEMA_FORMAT: Shape = Shape::of(
    "a format with a schema",
    &[needed("type", Word(&["json_schema"])), needed("json_schema", Object(&NAMED_SCHEMA))],
);

const NAMED_SCHEMA: Shape = Shape::of(
    "a schema with a name",
    &[needed("name", Text), maybe("description", Text), maybe("schema", Map), maybe("strict", Boolean)],
);
