//! Transports of requests and answers.
//!
//! A [`Transport`] is the only part of this crate that does IO. It posts a body and returns a status, headers
//! and the bytes of the answer as they arrive. It is independent of providers, so that a cassette can replace
//! the network.

mod header;
#[cfg(feature = "http")]
mod http;
mod miss;

use backstitch_core::ports::{BoxFuture, RequestBody};
use secrecy::SecretString;

pub use header::{InvalidHeader, RequestHeader};
#[cfg(feature = "http")]
pub use http::Http;
pub use miss::{CassetteMiss, MissReason};

/// A request: a `POST` with a JSON body.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The URL. It contains no secret.
    pub url: String,
    /// Headers without secrets, by lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The header that holds the key.
    pub secret: Option<(&'static str, SecretString)>,
    /// Headers that the user adds. They replace others of the same name.
    pub custom: Vec<RequestHeader>,
    /// The body.
    pub body: RequestBody,
}

/// A response whose body is still being received.
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Headers, by lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn Body>,
}

impl HttpResponse {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The bytes of a response.
pub trait Body: Send {
    /// The next bytes; `None` at the end.
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>>;
}

/// A response was not received, or is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server was not reached, or the connection broke.
    #[error("{message}")]
    Broken {
        /// The description. It must not contain the secret of the request.
        message: String,
    },
    /// A cassette has no answer for the request, and nothing was sent.
    #[error(transparent)]
    NotRecorded(Box<CassetteMiss>),
}

impl TransportError {
    /// Creates an error for a server that was not reached, or a connection that broke.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::Broken { message: message.into() }
    }
}

/// Sends requests to a server, or to a replacement of one.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the head of its response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>>;

    /// Asks a server about its models: a `GET` if the request has no body, else a `POST`. By default nothing is sent, so
    /// that recordings and scripts ask nobody.
    fn look_up(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let _ = request;
        Box::pin(async { Err(TransportError::broken("this transport asks no server about its models")) })
    }

    /// Whether servers limit the requests, so that all of an account wait if one is asked to. Recordings have no
    /// limits.
    fn has_limits(&self) -> bool {
        true
    }
}
