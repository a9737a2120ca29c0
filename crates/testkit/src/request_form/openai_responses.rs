//! The form of a request to Responses.

use serde_json::Value;

use super::form::Form::{Any, Boolean, By, ByContent, Count, List, Map, Number, Object, Text, TextOr, Word};
use super::form::{Field, Shape, Together, kind, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape {
    name: "a request",
    fields: &[
        needed("model", Text),
        needed("input", TextOr(&ByContent(item))),
        maybe("instructions", Text),
        maybe("tools", List(&By("type", &[&TOOL]))),
        maybe("tool_choice", Any),
        maybe("parallel_tool_calls", Boolean),
        maybe("text", Object(&TEXT_CONFIG)),
        maybe("max_output_tokens", Count(16)),
        maybe("reasoning", Object(&REASONING_CONFIG)),
        maybe("store", Boolean),
        maybe("include", List(&Text)),
        maybe("truncation", Word(&["auto", "disabled"])),
        maybe("prompt_cache_key", Text),
        maybe("prompt_cache_options", Map),
        maybe("prompt_cache_retention", Word(&["in_memory", "24h"])),
        maybe("stream", Boolean),
        maybe("stream_options", Map),
        maybe("temperature", Number),
        maybe("top_p", Number),
        maybe("metadata", Map),
        maybe("user", Text),
        maybe("safety_identifier", Text),
        maybe("service_tier", Word(&["auto", "default", "flex", "scale", "priority"])),
        maybe("background context_management conversation moderation previous_response_id", Any),
        maybe("prompt top_logprobs", Any),
    ],
    together: &[
        Together::With("stream_options", "stream"),
        Together::NotBoth("conversation", "previous_response_id"),
    ],
};

fn item(value: &Value) -> Option<&'static Shape> {
    Some(match value.get("type").map_or(Some("message"), Value::as_str)? {
        // A message of an assistant is a text, or an output item with all fields of one.
        "message" if value["role"] == "assistant" && value["content"].is_array() => &OUTPUT_MESSAGE,
        "message" => &MESSAGE,
        "reasoning" => &REASONING,
        "function_call" => &CALL,
        "function_call_output" => &OUTPUT,
        "image_generation_call" => &IMAGE,
        _ => return None,
    })
}

const STATUS: &[&str] = &["in_progress", "completed", "incomplete"];
const PHASE: Field = maybe("phase", Word(&["commentary", "final_answer"]));

const MESSAGE: Shape = Shape::of(
    "a message",
    &[
        maybe("type", Word(&["message"])),
        needed("role", Word(&["user", "assistant", "system", "developer"])),
        needed("content", TextOr(&By("type", &[&INPUT_TEXT, &INPUT_IMAGE, &INPUT_FILE]))),
        maybe("status", Word(STATUS)),
        PHASE,
    ],
);

const OUTPUT_MESSAGE: Shape = Shape::of(
    "a message of an answer",
    &[
        kind(&["message"]),
        needed("id", Text),
        needed("role", Word(&["assistant"])),
        needed("status", Word(STATUS)),
        needed("content", List(&By("type", &[&OUTPUT_TEXT, &REFUSAL]))),
        PHASE,
    ],
);

const OUTPUT_TEXT: Shape = Shape::of(
    "a text of an answer",
    &[
        kind(&["output_text"]),
        needed("text", Text),
        needed("annotations", List(&Map)),
        maybe("logprobs", List(&Map)),
    ],
);

const REFUSAL: Shape = Shape::of("a refusal", &[kind(&["refusal"]), needed("refusal", Text)]);

const BREAKPOINT: Field = maybe("prompt_cache_breakpoint", Map);

const INPUT_TEXT: Shape =
    Shape::of("a text part", &[kind(&["input_text"]), needed("text", Text), BREAKPOINT]);

const INPUT_IMAGE: Shape = Shape {
    name: "an image",
    fields: &[
        kind(&["input_image"]),
        needed("detail", Word(&["low", "high", "auto", "original"])),
        maybe("image_url", Text),
        maybe("file_id", Text),
        BREAKPOINT,
    ],
    together: &[Together::OneOf(&["image_url", "file_id"])],
};

const INPUT_FILE: Shape = Shape {
    name: "a file",
    fields: &[
        kind(&["input_file"]),
        maybe("detail", Word(&["auto", "low", "high"])),
        maybe("file_data", Text),
        maybe("file_id", Text),
        maybe("file_url", Text),
        maybe("filename", Text),
        BREAKPOINT,
    ],
    together: &[
        Together::OneOf(&["file_data", "file_id", "file_url"]),
        Together::With("file_data", "filename"),
    ],
};

const REASONING: Shape = Shape::of(
    "reasoning",
    &[
        kind(&["reasoning"]),
        needed("id", Text),
        needed("summary", List(&Object(&SUMMARY))),
        maybe("content", List(&Object(&REASONING_TEXT))),
        maybe("encrypted_content", Text),
        maybe("status", Word(STATUS)),
    ],
);

const SUMMARY: Shape = Shape::of("a summary", &[kind(&["summary_text"]), needed("text", Text)]);

const REASONING_TEXT: Shape = Shape::of("a thought", &[kind(&["reasoning_text"]), needed("text", Text)]);

const CALL: Shape = Shape::of(
    "a call",
    &[
        kind(&["function_call"]),
        needed("call_id", Text),
        needed("name", Text),
        needed("arguments", Text),
        maybe("id", Text),
        maybe("status", Word(STATUS)),
        maybe("namespace", Text),
        maybe("caller", Map),
    ],
);

const OUTPUT: Shape = Shape::of(
    "the output of a call",
    &[
        kind(&["function_call_output"]),
        needed("call_id", Text),
        needed("output", TextOr(&By("type", &[&INPUT_TEXT, &INPUT_IMAGE, &INPUT_FILE]))),
        maybe("id", Text),
        maybe("status", Word(STATUS)),
        maybe("caller", Map),
    ],
);

const IMAGE: Shape = Shape::of(
    "an image of an answer",
    &[
        kind(&["image_generation_call"]),
        needed("id", Text),
        needed("status", Word(&["in_progress", "completed", "generating", "failed"])),
        needed("result", Text),
    ],
);

const TOOL: Shape = Shape::of(
    "a tool",
    &[
        kind(&["function"]),
        needed("name", Text),
        needed("parameters", Map),
        needed("strict", Boolean),
        maybe("description", Text),
        maybe("output_schema", Map),
        maybe("defer_loading", Boolean),
        maybe("allowed_callers", List(&Word(&["direct", "programmatic"]))),
    ],
);

const TEXT_CONFIG: Shape = Shape::of(
    "the form of the answer",
    &[
        maybe("format", By("type", &[&PLAIN_FORMAT, &SCHEMA_FORMAT])),
        maybe("verbosity", Word(&["low", "medium", "high"])),
    ],
);

const PLAIN_FORMAT: Shape = Shape::of("a format", &[kind(&["text", "json_object"])]);

const SCHEMA_FORMAT: Shape = Shape::of(
    "a format with a schema",
    &[
        kind(&["json_schema"]),
        needed("name", Text),
        needed("schema", Map),
        maybe("description", Text),
        maybe("strict", Boolean),
    ],
);

const REASONING_CONFIG: Shape = Shape::of(
    "how to reason",
    &[
        maybe("effort", Word(&["none", "minimal", "low", "medium", "high", "xhigh", "max"])),
        maybe("summary", Word(&["auto", "concise", "detailed"])),
        maybe("generate_summary", Word(&["auto", "concise", "detailed"])),
        maybe("context", Word(&["auto", "current_turn", "all_turns"])),
        maybe("mode", Text),
    ],
);
