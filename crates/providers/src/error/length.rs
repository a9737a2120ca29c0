//! Refusals for the length of a request.
//!
//! Few servers have a code for it, so it is found in the words of the message. Many name the context window of
//! the model too. `tests/suite/lengths.rs` lists the words of each known server.

use serde_json::Value;

/// Phrases that only refusals for length contain, in lower case.
const SIGNS: [&str; 17] = [
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "too many tokens",
    "too many input tokens",
    "reduce the length of",
    "reduce your message size",
    "reduce your prompt",
    "tokens must be reduced",
    "exceeds the maximum number of tokens",
    "larger context length",
    "too large for model with",
    "`inputs` tokens +",
    "`inputs` must have less than",
    REQUEST_TOO_LARGE,
    "exceed_context_size",
];

/// The beginning of a refusal of one request that exceeds the tokens of a minute. Waiting does not help.
const REQUEST_TOO_LARGE: &str = "request too large for";

/// Words for the context window, which mean a refusal for length together with one of [`EXCESS`].
const WINDOWS: [&str; 7] = [
    "context length",
    "context size",
    "context window",
    "context limit",
    "model length",
    "prompt length",
    "token count",
];

const EXCESS: [&str; 6] =
    ["exceed", "too long", "too large", "longer than", "only supports", "but the request"];

/// Texts directly before the number of tokens of the window, in order of precedence.
const BEFORE_WINDOW: [&str; 16] = [
    "n_ctx: ",
    "context length is ",
    "context length of only ",
    "context length of ",
    "context length: ",
    "context length (",
    "context size (",
    "context window of ",
    "tokens allowed (",
    "model length of ",
    "prompt length is ",
    "supports up to ",
    "must be <= ",
    "must have less than ",
    "> ",
    "limit ",
];

/// Text directly after the number of tokens of the window.
const AFTER_WINDOW: &str = " maximum context length";

/// Plausible sizes of a context window, in tokens.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 256..=100_000_000;

/// Whether a message says that the conversation is too long.
pub(super) fn says_too_long(message: &str) -> bool {
    let lower = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    has(&SIGNS) || (has(&WINDOWS) && has(&EXCESS))
}

/// Whether a message says that this one request exceeds the tokens of a minute.
pub(super) fn says_request_too_large(message: &str) -> bool {
    message.to_lowercase().contains(REQUEST_TOO_LARGE)
}

/// The context window in tokens that a refusal for length names.
pub(super) fn named_window(error: &Value, message: &str) -> Option<u64> {
    let lower = message.to_lowercase();
    let before = || BEFORE_WINDOW.iter().find_map(|text| number_after(&lower, text));
    let after = || lower.split_once(AFTER_WINDOW).and_then(|(before, _)| last_number(before));
    let found = error["n_ctx"].as_u64().or_else(after).or_else(before);
    found.filter(|tokens| PLAUSIBLE.contains(tokens))
}

/// The number directly after the first occurrence of a text that a number follows.
fn number_after(lower: &str, text: &str) -> Option<u64> {
    lower.match_indices(text).find_map(|(place, _)| {
        let rest = &lower[place + text.len()..];
        let end = rest.find(|one| !is_digit(one)).unwrap_or(rest.len());
        number(&rest[..end])
    })
}

/// The number at the end of a text.
fn last_number(text: &str) -> Option<u64> {
    number(&text[text.trim_end_matches(is_digit).len()..])
}

/// Large numbers may be grouped by commas.
fn is_digit(one: char) -> bool {
    one.is_ascii_digit() || one == ','
}

fn number(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse().ok()
}
