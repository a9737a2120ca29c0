//! The form of a request to Responses.

use serde_json::Value;

use super::form::Form::{Any, Boolean, By, Count, List, Map, Number, Object, Text, TextOr, Word};
use super::form::{Field, Shape, Together, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape {
    name: "a request",
    fields: &[
        needed("model", Text),
        needed("input", TextOr(&By(item))),
        maybe("instructions", Text),
        maybe("tools", List(&By(tool))),
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
        maybe("background", Any),
        maybe("context_management", Any),
        maybe("conversation", Any),
        maybe("moderation", Any),
        maybe("previous_response_id", Any),
        maybe("prompt", Any),
        maybe("top_logprobs", Any),
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
        needed("content", TextOr(&By(input_part))),
        maybe("status", Word(STATUS)),
        PHASE,
    ],
);

const OUTPUT_MESSAGE: Shape = Shape::of(
    "a message of an answer",
    &[
        needed("type", Word(&["message"])),
        needed("id", Text),
        needed("role", Word(&["assistant"])),
        needed("status", Word(STATUS)),
        needed("content", List(&By(output_part))),
        PHASE,
    ],
);

fn output_part(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "output_text" => &OUTPUT_TEXT,
        "refusal" => &REFUSAL,
        _ => return None,
    })
}

const OUTPUT_TEXT: Shape = Shape::of(
    "a text of an answer",
    &[
        needed("type", Word(&["output_text"])),
        needed("text", Text),
        needed("annotations", List(&Map)),
        maybe("logprobs", List(&Map)),
    ],
);

const REFUSAL: Shape = Shape::of("a refusal", &[needed("type", Word(&["refusal"])), needed("refusal", Text)]);

fn input_part(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "input_text" => &INPUT_TEXT,
        "input_image" => &INPUT_IMAGE,
        "input_file" => &INPUT_FILE,
        _ => return None,
    })
}

const BREAKPOINT: Field = maybe("prompt_cache_breakpoint", Map);

const INPUT_TEXT: Shape =
    Shape::of("a text part", &[needed("type", Word(&["input_text"])), needed("text", Text), BREAKPOINT]);

const INPUT_IMAGE: Shape = Shape {
    name: "an image",
    fields: &[
        needed("type", Word(&["input_image"])),
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
        needed("type", Word(&["input_file"])),
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
        needed("type", Word(&["reasoning"])),
        needed("id", Text),
        needed("summary", List(&Object(&SUMMARY))),
        maybe("content", List(&Object(&REASONING_TEXT))),
        maybe("encrypted_content", Text),
        maybe("status", Word(STATUS)),
    ],
);

const SUMMARY: Shape =
    Shape::of("a summary", &[needed("type", Word(&["summary_text"])), needed("text", Text)]);

const REASONING_TEXT: Shape =
    Shape::of("a thought", &[needed("type", Word(&["reasoning_text"])), needed("text", Text)]);

const CALL: Shape = Shape::of(
    "a call",
    &[
        needed("type", Word(&["function_call"])),
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
        needed("type", Word(&["function_call_output"])),
        needed("call_id", Text),
        needed("output", TextOr(&By(input_part))),
        maybe("id", Text),
        maybe("status", Word(STATUS)),
        maybe("caller", Map),
    ],
);

const IMAGE: Shape = Shape::of(
    "an image of an answer",
    &[
        needed("type", Word(&["image_generation_call"])),
        needed("id", Text),
        needed("status", Word(&["in_progress", "completed", "generating", "failed"])),
        needed("result", Text),
    ],
);

fn tool(value: &Value) -> Option<&'static Shape> {
    (value["type"] == "function").then_some(&TOOL)
}

const TOOL: Shape = Shape::of(
    "a tool",
    &[
        needed("type", Word(&["function"])),
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
    &[maybe("format", By(format)), maybe("verbosity", Word(&["low", "medium", "high"]))],
);

fn format(value: &Value) -> Option<&'static Shape> {
    Some(match value["type"].as_str()? {
        "text" | "json_object" => &PLAIN_FORMAT,
        "json_schema" => &SCHEMA_FORMAT,
        _ => return None,
    })
}

const PLAIN_FORMAT: Shape = Shape::of("a format", &[needed("type", Word(&["text", "json_object"]))]);

const SCHEMA_FORMAT: Shape = Shape::of(
    "a format with a schema",
    &[
        needed("type", Word(&["json_schema"])),
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
