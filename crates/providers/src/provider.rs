//! The list of providers, and the target of a request.
//!
//! A provider is a folder in `dialects/` and one entry of the list here. The list generates the variants of
//! [`Provider`], their names, and the lookup in `dialects/mod.rs`; no other code names a variant.

use std::fmt;

/// Calls a macro with the list of providers: the documented variant, the name in journals and on the command
/// line, and the folder.
macro_rules! with_providers {
    ($callback:ident) => {
        $callback! {
            /// OpenAI Chat Completions, and every compatible server.
            OpenAiChat, "openai-chat", openai_chat;
            /// OpenAI Responses, without server-side state.
            OpenAiResponses, "openai", openai_responses;
            /// Anthropic Messages.
            Anthropic, "anthropic", anthropic;
            /// Gemini.
            Gemini, "gemini", gemini;
        }
    };
}
pub(crate) use with_providers;

macro_rules! define_provider {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $folder:ident;)*) => {
        /// A provider, or more exactly a wire format that one or more providers use.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Provider {
            $($(#[$doc])* $variant,)*
        }

        impl Provider {
            /// All providers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in journals and on the command line.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
with_providers!(define_provider);

impl Provider {
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

/// The model that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTarget {
    /// The provider.
    pub provider: Provider,
    /// The model, as the provider names it.
    pub model: String,
    /// The address, if it is not the provider's own. It is recorded, so it must not contain secrets.
    pub endpoint: Option<String>,
}

impl ModelTarget {
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
}
