//! The form of a request to Chat Completions.

use super::form::Form::{Any, Boolean, By, Count, List, Map, Number, Object, Text, TextOr, Word};
use super::form::{Field, Shape, Together, kind, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape {
    name: "a request",
    fields: &[
        needed("model", Text),
        needed("messages", List(&By("role", &[&INSTRUCTIONS, &USER, &ASSISTANT, &TOOL_MESSAGE]))),
        maybe("tools", List(&By("type", &[&TOOL]))),
        maybe("tool_choice", Any),
        maybe("parallel_tool_calls", Boolean),
        maybe("response_format", By("type", &[&PLAIN_FORMAT, &SCHEMA_FORMAT])),
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
        maybe("audio frequency_penalty function_call functions logit_bias logprobs modalities", Any),
        maybe("moderation n prediction presence_penalty top_logprobs web_search_options", Any),
    ],
    together: &[
        Together::With("stream_options", "stream"),
        Together::NotBoth("max_tokens", "max_completion_tokens"),
    ],
};

const STREAM_OPTIONS: Shape =
    Shape::of("stream options", &[maybe("include_usage", Boolean), maybe("include_obfuscation", Boolean)]);

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
    &[
        needed("role", Word(&["user"])),
        needed("content", TextOr(&By("type", &[&TEXT, &IMAGE, &AUDIO, &FILE]))),
        maybe("name", Text),
    ],
);

/// The rules allow an empty `content` only beside calls. `null` is refused by some compatible servers. The
/// last three fields are sent by compatible servers, which require them back.
const ASSISTANT: Shape = Shape::of(
    "an assistant message",
    &[
        needed("role", Word(&["assistant"])),
        needed("content", TextOr(&By("type", &[&TEXT, &REFUSAL]))),
        maybe("name", Text),
        maybe("refusal", Text),
        maybe("tool_calls", List(&By("type", &[&CALL]))),
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

const BREAKPOINT: Field = maybe("prompt_cache_breakpoint", Map);

const TEXT: Shape = Shape::of("a text part", &[kind(&["text"]), needed("text", Text), BREAKPOINT]);

const REFUSAL: Shape = Shape::of("a refusal", &[kind(&["refusal"]), needed("refusal", Text)]);

const IMAGE: Shape =
    Shape::of("an image", &[kind(&["image_url"]), needed("image_url", Object(&IMAGE_URL)), BREAKPOINT]);

const IMAGE_URL: Shape = Shape::of(
    "the address of an image",
    &[needed("url", Text), maybe("detail", Word(&["auto", "low", "high"]))],
);

const AUDIO: Shape =
    Shape::of("audio", &[kind(&["input_audio"]), needed("input_audio", Object(&AUDIO_DATA)), BREAKPOINT]);

const AUDIO_DATA: Shape =
    Shape::of("the bytes of audio", &[needed("data", Text), needed("format", Word(&["wav", "mp3"]))]);

const FILE: Shape = Shape::of("a file", &[kind(&["file"]), needed("file", Object(&FILE_DATA)), BREAKPOINT]);

const FILE_DATA: Shape = Shape {
    name: "what a file holds",
    fields: &[maybe("file_data", Text), maybe("file_id", Text), maybe("filename", Text)],
    together: &[Together::OneOf(&["file_data", "file_id"]), Together::With("file_data", "filename")],
};

const CALL: Shape = Shape::of(
    "a call",
    &[
        kind(&["function"]),
        needed("id", Text),
        needed("function", Object(&CALLED_FUNCTION)),
        // Gemini's compatible server requires it back.
        maybe("extra_content", Map),
    ],
);

const CALLED_FUNCTION: Shape =
    Shape::of("the function of a call", &[needed("name", Text), needed("arguments", Text)]);

const TOOL: Shape =
    Shape::of("a tool", &[kind(&["function"]), needed("function", Object(&DECLARED_FUNCTION))]);

const DECLARED_FUNCTION: Shape = Shape::of(
    "the function of a tool",
    &[needed("name", Text), maybe("description", Text), maybe("parameters", Map), maybe("strict", Boolean)],
);

const PLAIN_FORMAT: Shape = Shape::of("a format", &[kind(&["text", "json_object"])]);

const SCHEMA_FORMAT: Shape = Shape::of(
    "a format with a schema",
    &[kind(&["json_schema"]), needed("json_schema", Object(&NAMED_SCHEMA))],
);

const NAMED_SCHEMA: Shape = Shape::of(
    "a schema with a name",
    &[needed("name", Text), maybe("description", Text), maybe("schema", Map), maybe("strict", Boolean)],
);
