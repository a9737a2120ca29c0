//! Addresses and headers of requests.

use secrecy::SecretString;

use crate::dialects::dialect;
use crate::provider::{ModelTarget, Provider};
use crate::secret::ApiKey;

/// The URL of a request for this target.
pub(super) fn url(target: &ModelTarget, stream: bool) -> String {
    let address = &dialect(target.provider).address;
    let base = target.endpoint.as_deref().unwrap_or(address.base).trim_end_matches('/');
    format!("{base}{}", (address.path)(target, stream))
}

/// The headers without secrets.
pub(super) fn headers(provider: Provider, stream: bool) -> Vec<(&'static str, String)> {
    let accepted = if stream { "text/event-stream" } else { "application/json" };
    let own = dialect(provider).address.headers.iter().copied();
    let headers = [("content-type", "application/json"), ("accept", accepted)].into_iter().chain(own);
    headers.map(|(name, value)| (name, value.to_owned())).collect()
}

/// The header that holds the key.
pub(super) fn secret(provider: Provider, key: &ApiKey) -> (&'static str, SecretString) {
    let (name, prefix) = dialect(provider).address.key_header;
    (name, SecretString::from(format!("{prefix}{}", key.expose())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_address() {
        let url_of = |provider, stream| url(&ModelTarget::new(provider, "some/model"), stream);
        assert_eq!(url_of(Provider::OpenAiChat, true), "https://api.openai.com/v1/chat/completions");
        assert_eq!(url_of(Provider::OpenAiResponses, true), "https://api.openai.com/v1/responses");
        assert_eq!(url_of(Provider::Anthropic, false), "https://api.anthropic.com/v1/messages");
        assert_eq!(
            url_of(Provider::Gemini, true),
            "https://generativelanguage.googleapis.com/v1beta/models/some%2Fmodel:streamGenerateContent?alt=sse"
        );
        let local = ModelTarget::new(Provider::OpenAiChat, "m").at("http://127.0.0.1:8080/v1/");
        assert_eq!(url(&local, false), "http://127.0.0.1:8080/v1/chat/completions");
    }
}
