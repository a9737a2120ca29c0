//! The environment variables of API keys, and the addresses that need none.

use std::sync::LazyLock;

use url::{Host, Url};

use super::error::Problem;
use super::model::ModelProvider;

/// Environment variable with the token that clients of an MCP server over HTTP have to send.
pub const SERVER_TOKEN_VARIABLE: &str = "BACKSTITCH_MCP_TOKEN";

/// Environment variables that hold the keys of all providers, and the token of a server. Commands that an agent runs
/// do not see them, and their values are redacted.
pub static KEY_VARIABLES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut variables = Vec::new();
    for variable in ModelProvider::built_in().flat_map(|provider| provider.key_variables()) {
        if !variables.contains(variable) {
            variables.push(*variable);
        }
    }
    variables.push(SERVER_TOKEN_VARIABLE);
    variables
});

/// The parameter with which Azure dates its API.
const VERSION_PARAMETER: &str = "api-version";

/// Refuses a text that cannot be the base URL of a model's API.
pub fn check_base_url(text: &str) -> Result<(), Problem> {
    checked_url(text).map(|_| ())
}

/// Parses the address of a definition. It is recorded, so one that may hold a secret is refused.
pub(super) fn checked_url(text: &str) -> Result<Url, Problem> {
    let wrong = |reason: &str| Problem::new(["base_url"], reason);
    let url: Url = text.parse().map_err(|error| wrong(&format!("this is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("the URL must start with http:// or https://"));
    }
    let has_parameters = url.query_pairs().any(|(name, _)| name != VERSION_PARAMETER);
    if !url.username().is_empty() || url.password().is_some() || has_parameters {
        return Err(wrong(
            "the URL is recorded, so it must not hold names, passwords or parameters other than `api-version`; keys come from the environment",
        ));
    }
    Ok(url)
}

/// Whether an address is on this machine or in a private network, where models need no key.
pub(super) fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_private() || address.is_link_local(),
        Some(Host::Ipv6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        Some(Host::Domain(name)) => {
            // A name without a dot is found in the own network only.
            !name.contains('.')
                || [".localhost", ".local", ".lan", ".internal"].iter().any(|end| name.ends_with(end))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_all_providers_are_known() {
        let known = [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "OPENROUTER_API_KEY",
            "DEEPSEEK_API_KEY",
            "MISTRAL_API_KEY",
            "GROQ_API_KEY",
            "XAI_API_KEY",
            SERVER_TOKEN_VARIABLE,
        ];
        assert_eq!(*KEY_VARIABLES, known);
    }

    #[test]
    fn addresses_of_the_own_network_are_known_and_secrets_are_refused() {
        let is_own = |text: &str| is_private(&checked_url(text).unwrap());
        for own in [
            "http://127.0.0.1:80/v1",
            "http://localhost",
            "http://[::1]:1",
            "http://192.168.1.20:8080/v1",
            "http://10.0.0.3",
            "http://[fd00::1]:1",
            "http://gpu-box:8080",
            "http://gpu.local:8080",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["https://example.org", "http://localhost.example.org", "http://8.8.8.8", "http://172.32.0.1"]
        {
            assert!(!is_own(other), "{other}");
        }
        assert!(
            checked_url("https://a.openai.azure.com/openai/deployments/d?api-version=2024-10-21").is_ok()
        );
        for wrong in ["example.org", "ftp://a/", "http://me:secret@a/", "https://a/?key=secret"] {
            assert!(checked_url(wrong).is_err(), "{wrong}");
        }
    }
}
