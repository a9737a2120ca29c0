//! The form of a request to Gemini's `generateContent`.

use super::form::Form::{Any, Boolean, Count, List, Map, Number, Object, Text, Word};
use super::form::{Shape, Together, maybe, needed};

/// A request.
pub(super) static REQUEST: Shape = Shape::of(
    "a request",
    &[
        needed("contents", List(&Object(&CONTENT))),
        maybe("systemInstruction", Object(&INSTRUCTION)),
        maybe("tools", List(&Object(&TOOL))),
        maybe("toolConfig", Map),
        maybe("generationConfig", Object(&CONFIG)),
        maybe("safetySettings", List(&Map)),
        maybe("cachedContent", Text),
    ],
);

const CONTENT: Shape = Shape::of(
    "a content",
    &[needed("role", Word(&["user", "model"])), needed("parts", List(&Object(&PART)))],
);

const INSTRUCTION: Shape = Shape::of(
    "the system text",
    &[maybe("role", Word(&["user", "system"])), needed("parts", List(&Object(&PART)))],
);

const PART: Shape = Shape {
    name: "a part",
    fields: &[
        maybe("text", Text),
        maybe("functionCall", Object(&CALL)),
        maybe("functionResponse", Object(&RESPONSE)),
        maybe("inlineData", Object(&BYTES)),
        maybe("fileData", Object(&FILE)),
        maybe("executableCode", Map),
        maybe("codeExecutionResult", Map),
        maybe("toolCall", Map),
        maybe("toolResponse", Map),
        maybe("thought", Boolean),
        maybe("thoughtSignature", Text),
        maybe("videoMetadata", Map),
        maybe("partMetadata", Map),
        maybe("mediaResolution", Any),
    ],
    together: &[Together::OneOf(&[
        "text",
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    ])],
};

const CALL: Shape = Shape::of(
    "a call",
    &[needed("name", Text), maybe("args", Map), maybe("id", Text), maybe("willContinue", Boolean)],
);

const RESPONSE: Shape = Shape::of(
    "the response of a call",
    &[
        needed("name", Text),
        needed("response", Map),
        maybe("id", Text),
        maybe("parts", List(&Map)),
        maybe("scheduling", Text),
        maybe("willContinue", Boolean),
    ],
);

const BYTES: Shape =
    Shape::of("bytes", &[needed("mimeType", Text), needed("data", Text), maybe("displayName", Text)]);

const FILE: Shape =
    Shape::of("a file", &[needed("mimeType", Text), needed("fileUri", Text), maybe("displayName", Text)]);

/// A tool. Tools that run at the provider are never sent.
const TOOL: Shape = Shape::of("a tool", &[needed("functionDeclarations", List(&Object(&DECLARATION)))]);

const DECLARATION: Shape = Shape {
    name: "a function",
    fields: &[
        needed("name", Text),
        maybe("description", Text),
        maybe("parameters", Map),
        maybe("parametersJsonSchema", Map),
        maybe("response", Map),
        maybe("responseJsonSchema", Map),
        maybe("behavior", Text),
    ],
    together: &[
        Together::NotBoth("parameters", "parametersJsonSchema"),
        Together::NotBoth("response", "responseJsonSchema"),
    ],
};

const CONFIG: Shape = Shape {
    name: "how to generate",
    fields: &[
        maybe("maxOutputTokens", Count(1)),
        maybe("responseMimeType", Text),
        maybe("responseJsonSchema", Map),
        maybe("responseSchema", Map),
        maybe("thinkingConfig", Object(&THINKING)),
        maybe("temperature", Number),
        maybe("topP", Number),
        maybe("topK", Number),
        maybe("seed", Number),
        maybe("stopSequences", List(&Text)),
        maybe("candidateCount", Count(1)),
        maybe("frequencyPenalty", Number),
        maybe("presencePenalty", Number),
        maybe("logprobs responseLogprobs mediaResolution responseModalities speechConfig", Any),
    ],
    together: &[
        Together::NotBoth("responseSchema", "responseJsonSchema"),
        Together::With("responseSchema", "responseMimeType"),
        Together::With("responseJsonSchema", "responseMimeType"),
    ],
};

const THINKING: Shape = Shape {
    name: "how to think",
    fields: &[
        maybe("includeThoughts", Boolean),
        maybe("thinkingBudget", Number),
        maybe("thinkingLevel", Word(&["MINIMAL", "LOW", "MEDIUM", "HIGH"])),
    ],
    together: &[Together::NotBoth("thinkingBudget", "thinkingLevel")],
};
