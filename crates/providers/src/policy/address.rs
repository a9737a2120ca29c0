//! Addresses and headers of requests.

use secrecy::SecretString;

use crate::dialects::dialect;
use crate::provider::{ModelTarget, Provider};
use crate::secret::ApiKey;

/// The URL of a request for this target.
pub(super) fn url(target: &ModelTarget, stream: bool) -> String {
    let address = &dialect(target.provider).address;
    below(target.endpoint.as_deref().unwrap_or(address.base), &(address.path)(target, stream))
}

/// The URL of the list of models at an address.
pub(super) fn models(provider: Provider, base: &str) -> String {
    below(base, dialect(provider).address.models)
}

/// The URL of a path that a server has beside its API, which is below `/v1`.
pub(super) fn beside(base: &str, path: &str) -> String {
    let base = base.split_once('?').map_or(base, |(base, _)| base).trim_end_matches('/');
    format!("{}{path}", base.strip_suffix("/v1").unwrap_or(base))
}

/// The URL of a path below an address.
fn below(base: &str, path: &str) -> String {
    // The parameters of an address, such as the version of Azure's API, follow the path.
    let (base, parameters) = base.split_once('?').map_or((base, None), |(base, rest)| (base, Some(rest)));
    let url = format!("{}{path}", base.trim_end_matches('/'));
    match parameters {
        Some(parameters) if url.contains('?') => format!("{url}&{parameters}"),
        Some(parameters) => format!("{url}?{parameters}"),
        None => url,
    }
}

/// The headers without secrets.
pub(super) fn headers(provider: Provider, stream: bool) -> Vec<(&'static str, String)> {
    let accepted = if stream { "text/event-stream" } else { "application/json" };
    let own = dialect(provider).address.headers.iter().copied();
    let headers = [("content-type", "application/json"), ("accept", accepted)].into_iter().chain(own);
    headers.map(|(name, value)| (name, value.to_owned())).collect()
}

/// The header that holds the key.
pub(super) fn secret(target: &ModelTarget, key: &ApiKey) -> (&'static str, SecretString) {
    let (name, prefix) = match dialect(target.provider).address.key_header {
        _ if key.is_token => ("authorization", "Bearer "),
        _ if is_azure(target) => ("api-key", ""),
        header => header,
    };
    (name, SecretString::from(format!("{prefix}{}", key.expose())))
}

/// Whether a target is at Azure, where keys have a header of their own.
fn is_azure(target: &ModelTarget) -> bool {
    let rest = target.endpoint.as_deref().and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
    let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
    host.ends_with(".openai.azure.com") || host.ends_with(".cognitiveservices.azure.com")
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

    #[test]
    fn lists_of_models_are_below_an_address_and_other_questions_beside_it() {
        let list = |provider, base| models(provider, base);
        assert_eq!(list(Provider::OpenAiChat, "http://a:1/v1/"), "http://a:1/v1/models");
        assert_eq!(
            list(Provider::OpenAiResponses, "http://a/b?api-version=1"),
            "http://a/b/models?api-version=1"
        );
        assert_eq!(list(Provider::Anthropic, "http://a:1"), "http://a:1/v1/models");
        assert_eq!(list(Provider::Gemini, "http://a:1"), "http://a:1/v1beta/models");
        assert_eq!(beside("http://a:1/v1/", "/props"), "http://a:1/props");
        assert_eq!(beside("http://a:1", "/props"), "http://a:1/props");
        assert_eq!(beside("http://a/gate/v1?api-version=1", "/props"), "http://a/gate/props");
    }

    #[test]
    fn azure_has_a_dated_address_and_a_header_of_its_own() {
        let deployment = "https://a.openai.azure.com/openai/deployments/d/?api-version=2024-10-21";
        let target = ModelTarget::new(Provider::OpenAiChat, "m").at(deployment);
        let dated = "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21";
        assert_eq!(url(&target, true), dated);
        let gemini = ModelTarget::new(Provider::Gemini, "m").at("http://x?a=b");
        assert_eq!(url(&gemini, true), "http://x/v1beta/models/m:streamGenerateContent?alt=sse&a=b");
        let header = |target: &ModelTarget, key| secret(target, &key).0;
        assert_eq!(header(&target, ApiKey::new("k")), "api-key");
        assert_eq!(header(&target, ApiKey::token("t")), "authorization");
        assert_eq!(header(&ModelTarget::new(Provider::OpenAiChat, "m"), ApiKey::new("k")), "authorization");
        assert_eq!(header(&ModelTarget::new(Provider::Anthropic, "m"), ApiKey::new("k")), "x-api-key");
        assert_eq!(header(&ModelTarget::new(Provider::Anthropic, "m"), ApiKey::token("t")), "authorization");
    }
}
