//! The form of a request to Messages.

use super::form::Form::{Any, Boolean, By, Count, List, Map, Object, Text, TextOr, Word};
use super::form::{Field, Shape, kind, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape::of(
    "a request",
    &[
        needed("model", Text),
        needed("max_tokens", Count(1)),
        needed("messages", List(&By("role", &[&USER, &ASSISTANT]))),
        maybe("system", TextOr(&Object(&TEXT))),
        maybe("tools", List(&Object(&TOOL))),
        maybe("tool_choice", Map),
        maybe("thinking", By("type", &[&THINKING_ENABLED, &THINKING_ADAPTIVE, &THINKING_DISABLED])),
        maybe("output_config", Object(&OUTPUT_CONFIG)),
        maybe("stream", Boolean),
        maybe("stop_sequences", List(&Text)),
        maybe("service_tier", Word(&["auto", "standard_only"])),
        CACHE,
        maybe("metadata", Map),
        maybe("container diagnostics inference_geo speed user_profile_id workspace_id", Any),
    ],
);

const CACHE: Field = maybe("cache_control", Object(&CACHE_CONTROL));

const CACHE_CONTROL: Shape =
    Shape::of("a cache mark", &[kind(&["ephemeral"]), maybe("ttl", Word(&["5m", "1h"]))]);

const USER: Shape = Shape::of(
    "a user message",
    &[
        needed("role", Word(&["user"])),
        needed("content", TextOr(&By("type", &[&TEXT, &IMAGE, &DOCUMENT, &RESULT]))),
    ],
);

const ASSISTANT: Shape = Shape::of(
    "an assistant message",
    &[
        needed("role", Word(&["assistant"])),
        needed("content", TextOr(&By("type", &[&TEXT, &THINKING, &REDACTED_THINKING, &CALL]))),
    ],
);

const TEXT: Shape = Shape::of(
    "a text block",
    &[kind(&["text"]), needed("text", Text), maybe("citations", List(&Map)), CACHE],
);

const THINKING: Shape =
    Shape::of("a thought", &[kind(&["thinking"]), needed("thinking", Text), needed("signature", Text)]);

const REDACTED_THINKING: Shape =
    Shape::of("a hidden thought", &[kind(&["redacted_thinking"]), needed("data", Text)]);

const CALL: Shape = Shape::of(
    "a call",
    &[
        kind(&["tool_use"]),
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
        kind(&["tool_result"]),
        needed("tool_use_id", Text),
        maybe("content", TextOr(&By("type", &[&TEXT, &IMAGE, &DOCUMENT]))),
        maybe("is_error", Boolean),
        maybe("toolset_name", Text),
        CACHE,
    ],
);

const IMAGE: Shape = Shape::of(
    "an image",
    &[
        kind(&["image"]),
        needed("source", By("type", &[&IMAGE_BYTES, &ADDRESS, &STORED_FILE])),
        maybe("transformations", Map),
        CACHE,
    ],
);

const DOCUMENT: Shape = Shape::of(
    "a document",
    &[
        kind(&["document"]),
        needed("source", By("type", &[&DOCUMENT_BYTES, &ADDRESS, &STORED_FILE])),
        maybe("title", Text),
        maybe("context", Text),
        maybe("citations", Map),
        CACHE,
    ],
);

const IMAGE_BYTES: Shape = Shape::of(
    "the bytes of an image",
    &[
        kind(&["base64"]),
        needed("media_type", Word(&["image/jpeg", "image/png", "image/gif", "image/webp"])),
        needed("data", Text),
    ],
);

const DOCUMENT_BYTES: Shape = Shape::of(
    "the bytes of a document",
    &[kind(&["base64"]), needed("media_type", Word(&["application/pdf"])), needed("data", Text)],
);

const ADDRESS: Shape = Shape::of("an address", &[kind(&["url"]), needed("url", Text)]);

const STORED_FILE: Shape = Shape::of("a stored file", &[kind(&["file"]), needed("file_id", Text)]);

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

const DISPLAY: Field = maybe("display", Word(&["summarized", "omitted"]));

const THINKING_ENABLED: Shape =
    Shape::of("thinking with a budget", &[kind(&["enabled"]), needed("budget_tokens", Count(1024)), DISPLAY]);

const THINKING_ADAPTIVE: Shape = Shape::of("thinking", &[kind(&["adaptive"]), DISPLAY]);

const THINKING_DISABLED: Shape = Shape::of("no thinking", &[kind(&["disabled"])]);

const OUTPUT_CONFIG: Shape = Shape::of(
    "the form of the answer",
    &[
        maybe("effort", Word(&["low", "medium", "high", "xhigh", "max"])),
        maybe("format", Object(&SCHEMA_FORMAT)),
    ],
);

const SCHEMA_FORMAT: Shape =
    Shape::of("a format with a schema", &[kind(&["json_schema"]), needed("schema", Map)]);
