//! Names of models: the provider, and the provider's name of the model.
//!
//! Some providers have a name of their own and speak a format of another one. Each has its own address and its own variable for
//! the key, so that several of them can be used side by side. `base_url` replaces the address.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use backstitch_providers::Provider;
use serde::{Deserialize, Serialize};

const SCRIPTED: &str = "scripted";

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

/// Source of a model's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelProvider {
    /// A model behind a wire format.
    Wire(Provider),
    /// A model of a provider that speaks the format of another one.
    Named(&'static NamedProvider),
    /// A model of a provider that the definition or the settings define, by its name.
    Defined(Arc<str>),
    /// A file of replies.
    Scripted,
}

impl ModelProvider {
    /// Iterates over the built-in providers, `scripted` last.
    pub fn built_in() -> impl Iterator<Item = Self> {
        let named = NAMED_PROVIDERS.iter().map(Self::Named);
        Provider::ALL.into_iter().map(Self::Wire).chain(named).chain([Self::Scripted])
    }

    /// Returns the wire format of a built-in provider; `None` for others and for a script.
    pub fn format(&self) -> Option<Provider> {
        match self {
            Self::Wire(provider) => Some(*provider),
            Self::Named(named) => Some(named.format),
            Self::Defined(_) | Self::Scripted => None,
        }
    }

    /// Returns the address of a named provider.
    pub fn base_url(&self) -> Option<&'static str> {
        match self {
            Self::Named(named) => Some(named.base_url),
            Self::Wire(_) | Self::Defined(_) | Self::Scripted => None,
        }
    }

    /// Returns the environment variables of the key of a built-in provider, in order of precedence.
    pub fn key_variables(&self) -> &'static [&'static str] {
        match self {
            Self::Wire(provider) => provider.key_variables(),
            Self::Named(named) => named.key_variables,
            Self::Defined(_) | Self::Scripted => &[],
        }
    }

    /// Returns the name in definitions and on the command line.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wire(provider) => provider.as_str(),
            Self::Named(named) => named.name,
            Self::Defined(name) => name,
            Self::Scripted => SCRIPTED,
        }
    }
}

/// Whether a text can be the name of a provider.
pub(super) fn is_provider_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(is_word)
}

/// The name of a model: `provider:model`, or `scripted:FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    /// Source of the answers.
    pub provider: ModelProvider,
    /// The provider's name of the model, or the file of a script.
    pub model: String,
}

/// A text is not a name of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidModelName(String);

impl FromStr for ModelName {
    type Err = InvalidModelName;

    /// Parses a name. Whether a provider that is not built in exists is known when a model of it is used.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').filter(|(_, model)| !model.is_empty());
        let Some((provider, model)) = parts.filter(|(provider, _)| is_provider_name(provider)) else {
            let built_in: Vec<_> = ModelProvider::built_in().collect();
            let all: Vec<_> = built_in.iter().map(ModelProvider::as_str).collect();
            let message = format!(
                "{text:?} names no model: write PROVIDER:MODEL, where the provider is one of {}, or one of your own",
                all.join(", ")
            );
            return Err(InvalidModelName(message));
        };
        let built_in = ModelProvider::built_in().find(|known| known.as_str() == provider);
        let provider = built_in.unwrap_or_else(|| ModelProvider::Defined(provider.into()));
        Ok(Self { provider, model: model.to_owned() })
    }
}

impl TryFrom<String> for ModelName {
    type Error = InvalidModelName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.provider.as_str(), self.model)
    }
}
