//! The environment variables of API keys, and the addresses that need none.

use std::sync::LazyLock;

use backstitch_providers::Provider;
use url::{Host, Url};

use super::error::Problem;

/// Environment variable with the token that clients of an MCP server over HTTP have to send.
pub const SERVER_TOKEN_VARIABLE: &str = "BACKSTITCH_MCP_TOKEN";

/// Environment variables that hold the keys of all providers, and the token of a server. Commands that an agent runs
/// do not see them, and their values are redacted.
pub static KEY_VARIABLES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut variables = Vec::new();
    for variable in Provider::ALL.into_iter().flat_map(key_variables) {
        if !variables.contains(variable) {
            variables.push(*variable);
        }
    }
    variables.push(SERVER_TOKEN_VARIABLE);
    variables
});

/// Returns the environment variables of a provider's key, in order of precedence.
pub fn key_variables(provider: Provider) -> &'static [&'static str] {
    provider.key_variables()
}

/// Refuses a text that cannot be the base URL of a model's API.
pub fn check_base_url(text: &str) -> Result<(), Problem> {
    checked_url(text).map(|_| ())
}

/// Parses the address of a definition. It is recorded, so one that may hold a secret is refused.
pub(super) fn checked_url(text: &str) -> Result<Url, Problem> {
    let wrong = |reason: &str| Problem::new(["base_url"], reason);
    let url: Url = text.parse().map_err(|error| wrong(&format!("this is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("the URL must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(wrong(
            "the URL is recorded, so it must not hold names, passwords or parameters; keys come from the environment",
        ));
    }
    Ok(url)
}

/// Whether an address is on this machine, where models need no key.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
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
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            SERVER_TOKEN_VARIABLE,
        ];
        assert_eq!(*KEY_VARIABLES, known);
    }

    #[test]
    fn addresses_of_this_machine_are_known_and_secrets_are_refused() {
        let is_local = |text: &str| is_loopback(&checked_url(text).unwrap());
        assert!(
            is_local("http://127.0.0.1:80/v1") && is_local("http://localhost") && is_local("http://[::1]:1")
        );
        assert!(!is_local("https://example.org") && !is_local("http://localhost.example.org"));
        for wrong in ["example.org", "ftp://a/", "http://me:secret@a/", "https://a/?key=secret"] {
            assert!(checked_url(wrong).is_err(), "{wrong}");
        }
    }
}
