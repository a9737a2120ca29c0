//! Refusals for the length of a request, in the words of many servers: each is understood, and names the window
//! of its model where the server does.

use backstitch_providers::{ErrorKind, Provider, of_response};
use serde_json::{Value, json};

use Provider::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

/// A refusal as a server sends it.
pub(crate) struct Refusal {
    pub(crate) server: &'static str,
    pub(crate) provider: Provider,
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The window that it names.
    pub(crate) window: Option<u64>,
}

/// The refusals of servers, as of 2026-11: from their sources, and from reports of their users.
pub(crate) fn refusals() -> Vec<Refusal> {
    let openai = |message: &str, kind: &str, code: Value| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    let one = |server, provider, status, body, window| Refusal { server, provider, status, body, window };
    let google =
        |message: &str| json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}});
    let anthropic = |message: &str| json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    vec![
        one(
            "OpenAI",
            OpenAiChat,
            400,
            openai(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9357 tokens. Please reduce the length of the messages.",
                "invalid_request_error",
                json!("context_length_exceeded"),
            ),
            Some(8_192),
        ),
        one(
            "OpenAI Responses",
            OpenAiResponses,
            400,
            openai(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "invalid_request_error",
                json!("context_length_exceeded"),
            ),
            None,
        ),
        one(
            "OpenAI Responses without a code",
            OpenAiResponses,
            400,
            openai(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "invalid_request_error",
                json!(null),
            ),
            None,
        ),
        one(
            "OpenAI, tokens of a minute",
            OpenAiChat,
            429,
            openai(
                "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40021. The input or output tokens must be reduced in order to run successfully.",
                "tokens",
                json!("rate_limit_exceeded"),
            ),
            Some(30_000),
        ),
        one(
            "Azure",
            OpenAiChat,
            400,
            openai(
                "This model's maximum context length is 8192 tokens, however you requested 9357 tokens (8357 in your prompt; 1000 for the completion). Please reduce your prompt; or completion length.",
                "invalid_request_error",
                json!(null),
            ),
            Some(8_192),
        ),
        one(
            "Anthropic",
            Anthropic,
            400,
            anthropic("prompt is too long: 210381 tokens > 200000 maximum"),
            Some(200_000),
        ),
        one(
            "Anthropic with the answer",
            Anthropic,
            400,
            anthropic(
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
            ),
            Some(200_000),
        ),
        one(
            "Anthropic, bytes",
            Anthropic,
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            None,
        ),
        one("Bedrock", OpenAiChat, 400, json!({"message": "Input is too long for requested model."}), None),
        one(
            "Bedrock, Claude",
            Anthropic,
            400,
            json!({"message": "The model returned the following errors: prompt is too long: 208310 tokens > 200000 maximum"}),
            Some(200_000),
        ),
        one(
            "Gemini",
            Gemini,
            400,
            google("The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."),
            Some(1_048_576),
        ),
        one(
            "Vertex",
            Gemini,
            400,
            google(
                "Unable to submit request because the input token count is 40000 but the model only supports up to 32768. Reduce the input token count and try again.",
            ),
            Some(32_768),
        ),
        one(
            "Mistral",
            OpenAiChat,
            400,
            json!({"object": "error", "message": "Prompt contains 40213 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_invalid_args", "param": null, "code": "3051"}),
            Some(32_768),
        ),
        one(
            "OpenRouter",
            OpenAiChat,
            400,
            json!({"error": {"message": "This endpoint's maximum context length is 32768 tokens. However, you requested about 40213 tokens (39213 of text input, 1000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", "code": 400, "metadata": {"provider_name": null}}}),
            Some(32_768),
        ),
        one(
            "Groq",
            OpenAiChat,
            400,
            openai(
                "Please reduce the length of the messages or completion.",
                "invalid_request_error",
                json!("context_length_exceeded"),
            ),
            None,
        ),
        one(
            "Groq, tokens of a minute",
            OpenAiChat,
            413,
            openai(
                "Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9357, please reduce your message size and try again.",
                "tokens",
                json!("rate_limit_exceeded"),
            ),
            Some(6_000),
        ),
        one(
            "vLLM",
            OpenAiChat,
            400,
            json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 9357 tokens (9100 in the messages, 257 in the completion). Please reduce the length of the messages or completion.", "type": "BadRequestError", "param": null, "code": 400}),
            Some(4_096),
        ),
        one(
            "vLLM, the prompt",
            OpenAiChat,
            400,
            json!({"error": {"message": "The decoder prompt (length 9357) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.", "type": "BadRequestError", "code": 400}}),
            Some(4_096),
        ),
        one(
            "llama.cpp",
            OpenAiChat,
            400,
            json!({"error": {"code": 400, "message": "request (9357 tokens) exceeds the available context size (4096 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9357, "n_ctx": 4096}}),
            Some(4_096),
        ),
        one(
            "llama.cpp, older",
            OpenAiChat,
            500,
            json!({"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "server_error"}}),
            None,
        ),
        one(
            "LM Studio",
            OpenAiChat,
            400,
            json!({"error": "Trying to keep the first 9357 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}),
            Some(4_096),
        ),
        one(
            "LM Studio, newer",
            OpenAiChat,
            400,
            json!({"error": "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input."}),
            Some(4_096),
        ),
        one(
            "TGI",
            OpenAiChat,
            422,
            json!({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9357 `inputs` tokens and 100 `max_new_tokens`", "error_type": "validation"}),
            Some(4_096),
        ),
        one(
            "TGI, the input",
            OpenAiChat,
            422,
            json!({"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 9357", "error_type": "validation"}),
            Some(4_095),
        ),
        one(
            "Ollama",
            OpenAiChat,
            400,
            json!({"error": {"message": "the input length exceeds the context length", "type": "invalid_request_error", "param": null, "code": null}}),
            None,
        ),
        one(
            "Ollama, cloud",
            OpenAiChat,
            400,
            json!({"error": {"message": "prompt too long; exceeded max context length by 4 tokens", "type": "api_error"}}),
            None,
        ),
        one(
            "DeepSeek",
            OpenAiChat,
            400,
            openai(
                "This model's maximum context length is 65536 tokens. However, you requested 72814 tokens (68718 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
                "invalid_request_error",
                json!("invalid_request_error"),
            ),
            Some(65_536),
        ),
        one(
            "xAI",
            OpenAiChat,
            400,
            json!({"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
            Some(131_072),
        ),
        one(
            "SGLang",
            OpenAiChat,
            400,
            json!({"object": "error", "message": "The input (9357 tokens) is longer than the model's context length (4096 tokens).", "type": "BadRequestError", "code": 400}),
            Some(4_096),
        ),
    ]
}

#[test]
fn every_server_is_understood_and_its_window_is_read() {
    for Refusal { server, provider, status, body, window } in refusals() {
        let error = of_response(provider, status, |_| None, &body.to_string());
        assert_eq!(error.kind, ErrorKind::ContextTooLong, "{server}: {body}");
        assert_eq!((error.window, error.retryable), (window, false), "{server}: {body}");
        let error = of_response(
            provider,
            status,
            |name| (name == "x-should-retry").then_some("true"),
            &body.to_string(),
        );
        assert!(!error.retryable, "{server}: it stays too long");
    }
}

#[test]
fn other_refusals_are_not_about_the_length() {
    let cases = [
        (
            OpenAiChat,
            400,
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
            ErrorKind::InvalidRequest,
        ),
        (
            OpenAiChat,
            400,
            "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
            ErrorKind::InvalidRequest,
        ),
        (
            OpenAiChat,
            400,
            "Invalid schema for function 'look': description too long",
            ErrorKind::InvalidRequest,
        ),
        (
            OpenAiChat,
            429,
            "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 4021. Please try again in 4.042s.",
            ErrorKind::RateLimited,
        ),
        (OpenAiChat, 500, "The server had an error while processing your request", ErrorKind::Server),
        (
            OpenAiChat,
            401,
            "Incorrect API key provided; the context length does not exceed anything",
            ErrorKind::Auth,
        ),
        (
            Anthropic,
            400,
            "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after",
            ErrorKind::InvalidRequest,
        ),
        (
            Gemini,
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            ErrorKind::RateLimited,
        ),
    ];
    for (provider, status, message, kind) in cases {
        let body = json!({"error": {"message": message}});
        let error = of_response(provider, status, |_| None, &body.to_string());
        assert_eq!((error.kind, error.window), (kind, None), "{message}");
    }
}

#[test]
fn only_a_refusal_without_a_known_reason_is_unexplained() {
    let unexplained = |status, error: Value| {
        of_response(OpenAiChat, status, |_| None, &json!({"error": error}).to_string()).unexplained
    };
    assert!(unexplained(400, json!({"message": "Bad Request"})));
    assert!(unexplained(422, json!({"message": "cannot process", "param": "messages[3].content"})));
    assert!(!unexplained(404, json!({"message": "no such model"})));
    assert!(!unexplained(401, json!({"message": "who are you?"})));
    assert!(!unexplained(500, json!({"message": "oops"})));
    assert!(!unexplained(400, json!({"message": "no", "code": "model_not_found"})));
    assert!(!unexplained(400, json!({"message": "no", "param": "tools[0].function"})));
    assert!(!unexplained(
        400,
        json!({"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."})
    ));
}
