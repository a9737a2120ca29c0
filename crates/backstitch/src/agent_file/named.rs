//! Providers with a name of their own that speak a format of another one.
//!
//! Each has its own address and its own variable for the key, so that several of them can be used side by side.
//! `base_url` replaces the address.

use backstitch_providers::Provider;

/// A provider with an address, a key and a known format.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedProvider {
    /// The name in definitions and on the command line.
    pub name: &'static str,
    /// The base URL of its API.
    pub base_url: &'static str,
    /// The format that it speaks.
    pub format: Provider,
    /// The environment variables of its key. A server on one's own machines has none.
    pub key_variables: &'static [&'static str],
}

impl NamedProvider {
    const fn chat(
        name: &'static str,
        base_url: &'static str,
        key_variables: &'static [&'static str],
    ) -> Self {
        Self { name, base_url, format: Provider::OpenAiChat, key_variables }
    }
}

/// The named providers, as of November 2026.
pub static NAMED_PROVIDERS: [NamedProvider; 7] = [
    NamedProvider::chat("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]),
    NamedProvider::chat("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    NamedProvider::chat("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]),
    NamedProvider::chat("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    NamedProvider::chat("xai", "https://api.x.ai/v1", &["XAI_API_KEY"]),
    NamedProvider::chat("ollama", "http://localhost:11434/v1", &[]),
    NamedProvider::chat("lmstudio", "http://localhost:1234/v1", &[]),
];
