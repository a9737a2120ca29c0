//! How requests leave and answers arrive.
//!
//! A [`Transport`] is the only thing here that does IO. It posts a body and gives back a status, headers and the bytes of an
//! answer as they come. It knows nothing of providers, so that a recording can stand in for a network.

#[cfg(feature = "http")]
mod http;
mod miss;

use std::sync::Arc;

use backstitch_core::ports::BoxFuture;
use secrecy::SecretString;

#[cfg(feature = "http")]
pub use http::Http;
pub use miss::{CassetteMiss, MissReason};

/// A request: always a `POST` with a JSON body.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// Where to. It holds no secret.
    pub url: String,
    /// Headers that anybody may see, by lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The header that nobody may see.
    pub secret: Option<(&'static str, SecretString)>,
    /// The body.
    pub body: Arc<str>,
}

/// A response whose body is still coming.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers, by lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn Body>,
}

impl HttpResponse {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The bytes of a response.
pub trait Body: Send {
    /// The next bytes; `None` at the end.
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>>;
}

/// A response did not come, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The other side was not reached, or the connection broke.
    #[error("{message}")]
    Broken {
        /// What happened. It must not hold the secret of the request.
        message: String,
    },
    /// Nobody was asked, and a recording has no answer.
    #[error(transparent)]
    NotRecorded(Box<CassetteMiss>),
}

impl TransportError {
    /// The other side was not reached, or the connection broke.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::Broken { message: message.into() }
    }
}

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the head of its response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;
}
