//! Names of models: the provider, and the provider's name of the model.

use std::fmt;
use std::str::FromStr;

use backstitch_providers::Provider;
use serde::{Deserialize, Serialize};

use super::error::near;
use super::named::{NAMED_PROVIDERS, NamedProvider};

const SCRIPTED: &str = "scripted";

/// Source of a model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider {
    /// A model behind a wire format.
    Wire(Provider),
    /// A model of a provider that speaks the format of another one.
    Named(&'static NamedProvider),
    /// A file of replies.
    Scripted,
}

impl ModelProvider {
    /// Iterates over all providers, `scripted` last.
    pub fn all() -> impl Iterator<Item = Self> {
        let named = NAMED_PROVIDERS.iter().map(Self::Named);
        Provider::ALL.into_iter().map(Self::Wire).chain(named).chain([Self::Scripted])
    }

    /// Returns the wire format; `None` for a script.
    pub fn format(self) -> Option<Provider> {
        match self {
            Self::Wire(provider) => Some(provider),
            Self::Named(named) => Some(named.format),
            Self::Scripted => None,
        }
    }

    /// Returns the address of a named provider.
    pub fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Named(named) => Some(named.base_url),
            Self::Wire(_) | Self::Scripted => None,
        }
    }

    /// Returns the environment variables of the key, in order of precedence.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Wire(provider) => provider.key_variables(),
            Self::Named(named) => named.key_variables,
            Self::Scripted => &[],
        }
    }

    /// Returns the name in definitions and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wire(provider) => provider.as_str(),
            Self::Named(named) => named.name,
            Self::Scripted => SCRIPTED,
        }
    }
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

/// A text is no name of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidModelName(String);

impl FromStr for ModelName {
    type Err = InvalidModelName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all: Vec<_> = ModelProvider::all().map(ModelProvider::as_str).collect();
        let Some((provider, model)) = text.split_once(':').filter(|(_, model)| !model.is_empty()) else {
            let message = format!(
                "{text:?} names no model: write PROVIDER:MODEL, where the provider is one of {}",
                all.join(", ")
            );
            return Err(InvalidModelName(message));
        };
        match ModelProvider::all().find(|known| known.as_str() == provider) {
            Some(provider) => Ok(Self { provider, model: model.to_owned() }),
            None => {
                let hint = near(provider, &all);
                let message =
                    format!("there is no provider {provider:?}; there are {}{hint}", all.join(", "));
                Err(InvalidModelName(message))
            }
        }
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
