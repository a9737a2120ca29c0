//! Parts of requests that some servers refuse.
//!
//! They help where they are supported, and an answer does not need them. A request that was refused because
//! of one is sent again without it, and so are all later requests of the session to the same model. What was
//! refused follows from the texts of the refusals, which the journal holds.

/// A part of a request that a server refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedPart {
    /// Encrypted reasoning, which models that do not reason cannot return.
    #[error("encrypted reasoning")]
    EncryptedReasoning,
    /// Summaries of reasoning, which need a verified organisation.
    #[error("the summary of reasoning")]
    ReasoningSummary,
    /// The name of the token limit. Chat Completions has an older and a newer one.
    #[error("the name of the token limit")]
    LimitName,
    /// The usage at the end of a stream.
    #[error("the usage at the end of the stream")]
    StreamUsage,
    /// The schema of the answer. It is described in words instead.
    #[error("the schema of the answer")]
    Schema,
    /// Media of results and answers. It is described in words instead.
    #[error("media of results")]
    Media,
}

/// Words that refuse a field, as opposed to its value.
const REFUSES: [&str; 10] = [
    "not supported",
    "unsupported",
    "does not support",
    "doesn't support",
    "unavailable",
    "unrecognized",
    "unknown",
    "not permitted",
    "unexpected",
    "not allowed",
];

/// Words for media in refusals. The last two are of servers whose messages are only text.
const MEDIA: [&str; 7] = [
    "image",
    "vision",
    "multimodal",
    "modality",
    "pdf",
    "content must be a string",
    "value must be a string",
];

/// Words that refuse media, or its size or content.
const REFUSES_MEDIA: [&str; 11] = [
    "only supported by",
    "only supports text",
    "not enabled",
    "no endpoints found",
    "process",
    "exceed",
    "too large",
    "too many",
    "may be provided",
    "valid",
    "must be a string",
];

impl RefusedPart {
    /// The part that a refusal is about; `None` if it is about something else.
    pub fn of_refusal(message: &str) -> Option<Self> {
        let lower = message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let refuses = has(&REFUSES);
        if has(&["reasoning summaries", "reasoning.summary"]) {
            Some(Self::ReasoningSummary)
        } else if refuses && has(&["encrypted content", "encrypted_content"]) {
            Some(Self::EncryptedReasoning)
        } else if refuses && has(&["max_completion_tokens", "max_tokens"]) {
            Some(Self::LimitName)
        } else if refuses && has(&["stream_options"]) {
            Some(Self::StreamUsage)
        } else if refuses && has(&["response_format", "json_schema", "output_config.format"]) {
            Some(Self::Schema)
        } else if (refuses || has(&REFUSES_MEDIA)) && has(&MEDIA) {
            Some(Self::Media)
        } else {
            None
        }
    }
}
