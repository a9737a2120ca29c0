//! Where requests go, and which headers they have.

use secrecy::SecretString;

use crate::provider::{Provider, Target};
use crate::secret::ApiKey;

/// The version of Anthropic's API that is spoken here.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Where a request for this target goes.
pub(super) fn url(target: &Target, stream: bool) -> String {
    let own = match target.provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => "https://api.openai.com/v1",
        Provider::Anthropic => "https://api.anthropic.com",
        Provider::Gemini => "https://generativelanguage.googleapis.com",
    };
    let base = target.endpoint.as_deref().unwrap_or(own).trim_end_matches('/');
    match target.provider {
        Provider::OpenAiChat => format!("{base}/chat/completions"),
        Provider::OpenAiResponses => format!("{base}/responses"),
        Provider::Anthropic => format!("{base}/v1/messages"),
        Provider::Gemini => {
            let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            format!("{base}/v1beta/models/{}:{method}", escaped(&target.model))
        }
    }
}

/// The name of a model as a part of a path.
fn escaped(model: &str) -> String {
    let mut path = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// The headers that anybody may see.
pub(super) fn headers(provider: Provider, stream: bool) -> Vec<(&'static str, String)> {
    let accepted = if stream { "text/event-stream" } else { "application/json" };
    let mut headers = vec![("content-type", "application/json".to_owned()), ("accept", accepted.to_owned())];
    if provider == Provider::Anthropic {
        headers.push(("anthropic-version", ANTHROPIC_VERSION.to_owned()));
    }
    headers
}

/// The header that nobody may see.
pub(super) fn secret(provider: Provider, key: &ApiKey) -> (&'static str, SecretString) {
    match provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => {
            ("authorization", SecretString::from(format!("Bearer {}", key.expose())))
        }
        Provider::Anthropic => ("x-api-key", SecretString::from(key.expose().to_owned())),
        Provider::Gemini => ("x-goog-api-key", SecretString::from(key.expose().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_address() {
        let url_of = |provider, stream| url(&Target::new(provider, "some/model"), stream);
        assert_eq!(url_of(Provider::OpenAiChat, true), "https://api.openai.com/v1/chat/completions");
        assert_eq!(url_of(Provider::OpenAiResponses, true), "https://api.openai.com/v1/responses");
        assert_eq!(url_of(Provider::Anthropic, false), "https://api.anthropic.com/v1/messages");
        assert_eq!(
            url_of(Provider::Gemini, true),
            "https://generativelanguage.googleapis.com/v1beta/models/some%2Fmodel:streamGenerateContent?alt=sse"
        );
        let local = Target::new(Provider::OpenAiChat, "m").at("http://127.0.0.1:8080/v1/");
        assert_eq!(url(&local, false), "http://127.0.0.1:8080/v1/chat/completions");
    }
}
