//! What can go wrong between us and a provider.
//!
//! All providers' errors form one taxonomy, so that whoever asks knows what to do: wait and ask again, shorten the
//! conversation, change the request, or give up. Texts of providers are kept short; secrets are taken out before an error is
//! made from what a provider said (see [`ProviderError::without`]).

mod classify;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use backstitch_core::code::ErrorCode;
use backstitch_core::ports::wait_text;
pub use classify::retry_delay;
pub(crate) use classify::{Classify, SentError, of_event, of_response, said_error};

use crate::provider::Provider;
use crate::secret::redact_text;

/// The most characters that are kept of what a provider said, once secrets are taken out of it.
const LONGEST_MESSAGE: usize = 1_000;

/// The most characters that are kept until then: a secret at the end of a message must not be cut before it is found.
const LONGEST_RAW: usize = 16_000;

/// The most characters that are quoted of a body that is not of the provider's own form.
const LONGEST_QUOTE: usize = 300;

/// Which kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, wrong, or does not allow this.
    Auth,
    /// The account has no money left, or has reached a limit that does not pass by waiting.
    OutOfCredit,
    /// Too many requests or tokens for now.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// The request is not one that the provider takes.
    InvalidRequest,
    /// The conversation is too long for the model.
    ContextTooLong,
    /// The provider or the model refuses to answer this.
    ContentFilter,
    /// The provider was not reached, or the connection broke before an answer began.
    Network,
    /// The answer broke off.
    CutStream,
    /// The answer is not of the provider's own form.
    Malformed,
    /// Nobody was asked, and a recording has no answer.
    NotRecorded,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Auth,
        Self::OutOfCredit,
        Self::RateLimited,
        Self::Overloaded,
        Self::Server,
        Self::InvalidRequest,
        Self::ContextTooLong,
        Self::ContentFilter,
        Self::Network,
        Self::CutStream,
        Self::Malformed,
        Self::NotRecorded,
    ];

    /// The stable code of the kind.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Auth => ErrorCode::Auth,
            Self::OutOfCredit => ErrorCode::OutOfCredit,
            Self::RateLimited => ErrorCode::RateLimited,
            Self::Overloaded => ErrorCode::Overloaded,
            Self::Server => ErrorCode::Server,
            Self::InvalidRequest => ErrorCode::InvalidRequest,
            Self::ContextTooLong => ErrorCode::ContextTooLong,
            Self::ContentFilter => ErrorCode::ContentFilter,
            Self::Network => ErrorCode::Network,
            Self::CutStream => ErrorCode::CutStream,
            Self::Malformed => ErrorCode::Malformed,
            Self::NotRecorded => ErrorCode::NotRecorded,
        }
    }

    /// The code as a word.
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

/// A provider did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} did not answer ({kind}): {message}{}", wait_text(*.retry_after))]
pub struct ProviderError {
    /// The provider.
    pub provider: Provider,
    /// What went wrong.
    pub kind: ErrorKind,
    /// What the provider said, or what was noticed here.
    pub message: String,
    /// The status of the HTTP response, when there was one.
    pub status: Option<u16>,
    /// The provider's own word for the error.
    pub code: Option<String>,
    /// How long to wait before asking again, where that was said.
    pub retry_after: Option<Duration>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl ProviderError {
    /// An error of a kind.
    pub fn new(provider: Provider, kind: ErrorKind, message: impl AsRef<str>) -> Self {
        let message = message.as_ref().chars().take(LONGEST_RAW).collect();
        let retryable = kind.is_retryable();
        Self { provider, kind, message, status: None, code: None, retry_after: None, retryable }
    }

    /// An answer that is not of the provider's own form.
    pub(crate) fn malformed(provider: Provider, problem: impl AsRef<str>) -> Self {
        Self::new(provider, ErrorKind::Malformed, problem)
    }

    /// An answer that broke off.
    pub(crate) fn cut_stream(provider: Provider) -> Self {
        let text = "the stream ended before the answer did; nothing of it was kept";
        Self::new(provider, ErrorKind::CutStream, text)
    }

    /// The same error without a secret, should the provider have repeated it, and no longer than is worth keeping.
    #[must_use]
    pub fn without(mut self, secret: &str) -> Self {
        if !secret.is_empty() {
            self.message = redact_text(&self.message, secret);
            self.code = self.code.map(|code| redact_text(&code, secret));
        }
        if let Some((end, _)) = self.message.char_indices().nth(LONGEST_MESSAGE) {
            self.message.truncate(end);
        }
        self
    }
}

/// The beginning of a body, in one line. Secrets have to be taken out before, since one may be cut.
pub(crate) fn quote(body: &str) -> String {
    let line = body.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
