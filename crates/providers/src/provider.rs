//! The four wire formats, and what a request is made for.

use std::fmt;

use backstitch_core::journal::ProviderSidecar;

use crate::report::DropReason;

/// A provider, or rather a wire format that one or more providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI Chat Completions, and everything that is compatible with it.
    OpenAiChat,
    /// OpenAI Responses, without state on the other side.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The name that stands in journals and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The provider of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == name)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Whom a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The provider.
    pub provider: Provider,
    /// The model, as the provider names it.
    pub model: String,
    /// The address, where it is another one than the provider's own. It must not hold secrets: it is recorded.
    pub endpoint: Option<String>,
}

impl Target {
    /// A model at its provider's own address.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self { provider, model: model.into(), endpoint: None }
    }

    /// The same model at another address.
    #[must_use]
    pub fn at(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// A sidecar that says that this target made an answer.
    pub(crate) fn sidecar(&self, payload: &str, finish_reason: Option<&str>) -> ProviderSidecar {
        ProviderSidecar {
            provider: self.provider.to_string(),
            model: self.model.clone(),
            endpoint: self.endpoint.clone(),
            payload: Some(payload.into()),
            finish_reason: finish_reason.map(str::to_owned),
            ..ProviderSidecar::default()
        }
    }

    /// Why a payload of this origin cannot go to this target; `None` when it can.
    pub(crate) fn refuses(&self, sidecar: &ProviderSidecar) -> Option<DropReason> {
        if sidecar.provider != self.provider.as_str() {
            Some(DropReason::OtherProvider)
        } else if sidecar.model != self.model {
            Some(DropReason::OtherModel)
        } else if sidecar.endpoint != self.endpoint {
            Some(DropReason::OtherEndpoint)
        } else {
            None
        }
    }
}
