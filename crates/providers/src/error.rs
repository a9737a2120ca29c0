//! Errors of exchanges with providers.
//!
//! All providers' errors form one taxonomy, from which the caller knows how to react: retry with backoff,
//! shorten the conversation, change the request, or give up. Texts of providers are truncated; secrets are
//! removed from them before an error leaves the crate (see [`ProviderError::without`]).

mod classify;
mod length;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use backstitch_core::budget::Amounts;
use backstitch_core::code::ErrorCode;
use backstitch_core::ports::wait_text;
use backstitch_core::text::one_line;
pub use classify::retry_delay;
pub(crate) use classify::{Classify, LONGEST_WAIT, SentError, error_in_body, of_event, of_response};

use crate::provider::Provider;
use crate::secret::redact_text;

/// The maximum number of characters of a provider's message after redaction.
const LONGEST_MESSAGE: usize = 1_000;

/// The maximum before redaction: a secret at the end of a message must not be cut before it is found.
const LONGEST_RAW: usize = 16_000;

/// The maximum number of quoted characters of a body without the provider's form.
const LONGEST_QUOTE: usize = 300;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// The kind of an error, common to all providers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];

            /// The stable code of the kind.
            pub fn code(self) -> ErrorCode {
                match self {
                    $(Self::$kind => ErrorCode::$kind,)*
                }
            }
        }
    };
}

kinds! {
    /// The key is missing, wrong, or does not allow this.
    Auth,
    /// The account has no credit left, or has reached a limit that waiting does not lift.
    OutOfCredit,
    /// Too many requests or tokens at the moment.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed internally.
    Server,
    /// The provider refuses the request.
    InvalidRequest,
    /// The conversation is too long for the model.
    ContextTooLong,
    /// The provider or the model refuses to answer.
    ContentFilter,
    /// The provider was not reached, or the connection broke before an answer began.
    Network,
    /// The answer ended early.
    CutStream,
    /// The answer does not have the provider's form.
    Malformed,
    /// A cassette has no answer for the request, and nothing was sent.
    NotRecorded,
}

impl ErrorKind {
    /// The name of the code.
    pub fn as_str(self) -> &'static str {
        self.code().as_str()
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::CutStream
            | Self::Malformed => true,
            Self::Auth
            | Self::OutOfCredit
            | Self::InvalidRequest
            | Self::ContextTooLong
            | Self::ContentFilter
            | Self::NotRecorded => false,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A provider did not give a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} did not answer ({kind}): {message}{}", wait_text(*.retry_after))]
pub struct ProviderError {
    /// The provider.
    pub provider: Provider,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The provider's message, or a description of the problem.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The provider's own code for the error.
    pub code: Option<String>,
    /// How long to wait before a retry, if the provider says so.
    pub retry_after: Option<Duration>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The context window of the model in tokens, if the provider names it.
    pub window: Option<u64>,
    /// Whether the provider refused the request for a reason that is not known. Its length may be the reason.
    pub unexplained: bool,
    /// The cost of the failed request, if the provider reports it.
    pub usage: Box<Amounts>,
}

impl ProviderError {
    /// Creates an error. Whether it is retryable depends on its kind.
    pub fn new(provider: Provider, kind: ErrorKind, message: impl AsRef<str>) -> Self {
        let message = message.as_ref().chars().take(LONGEST_RAW).collect();
        let retryable = kind.is_retryable();
        Self {
            provider,
            kind,
            message,
            status: None,
            code: None,
            retry_after: None,
            retryable,
            window: None,
            unexplained: false,
            usage: Box::new(Amounts::ZERO),
        }
    }

    /// An answer without the provider's form.
    pub(crate) fn malformed(provider: Provider, problem: impl AsRef<str>) -> Self {
        Self::new(provider, ErrorKind::Malformed, problem)
    }

    /// An answer that ended early.
    pub(crate) fn cut_stream(provider: Provider) -> Self {
        let text = "the stream ended before the answer did; nothing of it was kept";
        Self::new(provider, ErrorKind::CutStream, text)
    }

    /// Adds the cost of the failed request.
    #[must_use]
    pub(crate) fn costing(mut self, usage: Amounts) -> Self {
        *self.usage = usage;
        self
    }

    /// Removes a secret that the provider may have repeated, and truncates the message.
    #[must_use]
    pub fn without(self, secret: &str) -> Self {
        self.redacted(secret).truncated()
    }

    pub(crate) fn redacted(mut self, secret: &str) -> Self {
        self.message = redact_text(&self.message, secret);
        self.code = self.code.map(|code| redact_text(&code, secret));
        self
    }

    pub(crate) fn truncated(mut self) -> Self {
        if let Some((end, _)) = self.message.char_indices().nth(LONGEST_MESSAGE) {
            self.message.truncate(end);
        }
        self
    }
}

/// The beginning of a body, in one line. Redact secrets before, since the cut may split one.
pub(crate) fn quote(body: &str) -> String {
    one_line(body, LONGEST_QUOTE)
}
