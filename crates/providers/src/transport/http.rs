//! HTTP, by reqwest and rustls.
//!
//! Redirects are not followed, since the key must not be sent to another server. A connection without data
//! for too long counts as broken. Errors do not contain the URL, which the caller knows.

use std::time::Duration;

use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::with_causes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect;
use secrecy::ExposeSecret;

use super::{Body, HttpRequest, HttpResponse, Transport, TransportError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The default for how long a server may send nothing. Models think for minutes, but most servers send
/// keep-alives.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(600);

/// A transport over the network. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    silence: Duration,
}

impl Http {
    /// Creates a transport with its own connections and a silence timeout of 600 s.
    pub fn new() -> Result<Self, TransportError> {
        Self::with_silence(SILENCE_TIMEOUT)
    }

    /// Creates a transport with its own connections. A server that sends nothing for this long counts as
    /// gone, before its answer begins and between two chunks of it.
    pub fn with_silence(silence: Duration) -> Result<Self, TransportError> {
        // A program that has chosen a crypto provider keeps it.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("backstitch/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(silence)
            .build()
            .map_err(|error| broken(error, silence))?;
        Ok(Self { client, silence })
    }

    /// Sends what was prepared, with the headers of the request, and waits for the head of the response.
    async fn answer(
        &self,
        builder: reqwest::RequestBuilder,
        request: &HttpRequest,
    ) -> Result<HttpResponse, TransportError> {
        let builder = builder.headers(headers_of(request)?);
        let response = builder.send().await.map_err(|error| broken(error, self.silence))?;
        let headers = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let (status, headers) = (response.status().as_u16(), headers.collect());
        Ok(HttpResponse { status, headers, body: Box::new(HttpBody { response, silence: self.silence }) })
    }
}

impl Transport for Http {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let builder = self.client.post(&request.url).body(request.body.text());
            self.answer(builder, &request).await
        })
    }

    fn look_up(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        if !request.body.is_empty() {
            return self.send(request);
        }
        Box::pin(async move { self.answer(self.client.get(&request.url), &request).await })
    }
}

/// The headers of a request. Later ones replace earlier ones.
fn headers_of(request: &HttpRequest) -> Result<HeaderMap, TransportError> {
    let mut headers = HeaderMap::new();
    let mut insert = |name: &str, value: &str, is_secret: bool| {
        let illegal = || {
            let what =
                if is_secret { format!("the value of `{name}`") } else { format!("`{name}: {value}`") };
            TransportError::broken(format!("{what} has characters that no header allows"))
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| illegal())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| illegal())?;
        value.set_sensitive(is_secret);
        headers.insert(header, value);
        Ok(())
    };
    for (name, value) in &request.headers {
        insert(name, value, false)?;
    }
    if let Some((name, secret)) = &request.secret {
        insert(name, secret.expose_secret(), true)?;
    }
    for header in &request.custom {
        insert(header.name(), header.expose_value(), true)?;
    }
    Ok(headers)
}

/// A body that is still being received.
struct HttpBody {
    response: reqwest::Response,
    silence: Duration,
}

impl Body for HttpBody {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, TransportError>> {
        Box::pin(async move {
            let chunk = self.response.chunk().await.map_err(|error| broken(error, self.silence))?;
            Ok(chunk.map(Vec::from))
        })
    }
}

/// The error with all its sources. Of the URL it names scheme, host and port, and nothing that may hold a secret.
fn broken(error: reqwest::Error, silence: Duration) -> TransportError {
    let server = error.url().map(|url| url.origin().ascii_serialization());
    if error.is_timeout() && !error.is_connect() {
        let server = server.unwrap_or_else(|| "the server".to_owned());
        return TransportError::broken(format!("{server} sent nothing for {} s", silence.as_secs_f64()));
    }
    let error = error.without_url();
    if let Some(server) = server.filter(|_| error.is_connect()) {
        let cause = std::iter::successors(std::error::Error::source(&error), |cause| cause.source()).last();
        let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
        return TransportError::broken(format!("{server} cannot be reached: {cause}"));
    }
    TransportError::broken(with_causes(&error))
}
