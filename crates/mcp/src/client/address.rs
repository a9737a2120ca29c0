//! Connections to servers over HTTP.
//!
//! Headers go to the host of the URL and to no other: a redirect is followed only within it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::incoming::reason_of;
use super::remembered::RememberedClient;
use super::spec::AddressSpec;

/// Time limit of a connection.
const CONNECT: Duration = Duration::from_secs(30);

/// Interval of the probes of a connection over which nothing is sent.
const PROBE: Duration = Duration::from_secs(30);

/// The most redirects of a request.
const MOST_REDIRECTS: usize = 5;

/// The most attempts to receive the rest of an answer over a new connection. Then the call fails.
const MOST_ATTEMPTS: usize = 4;

/// Delay before the first of them. It is doubled for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// The most calls at a time. Others wait.
const MOST_CALLS: usize = 64;

/// Returns the connection to a server, which is made with the first message. An error is a text without secrets.
pub(super) fn transport(
    address: &AddressSpec,
) -> Result<StreamableHttpClientTransport<RememberedClient>, String> {
    // A program that has chosen a crypto provider keeps it.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = reqwest::Client::builder()
        .user_agent(concat!("backstitch/", env!("CARGO_PKG_VERSION")))
        .redirect(within_host())
        .connect_timeout(CONNECT)
        .tcp_keepalive(PROBE)
        .build()
        .map_err(|error| full(&error))?;
    let mut headers = HashMap::new();
    for (name, value) in &address.headers {
        let parsed: HeaderName = name.parse().map_err(|_| format!("{name:?} is not a name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header {name} has characters that no header allows"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    let mut backoff = ExponentialBackoff::default();
    (backoff.max_times, backoff.base_duration) = (Some(MOST_ATTEMPTS), FIRST_DELAY);
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(headers)
        .max_concurrent_requests(MOST_CALLS)
        // A new connection lists the tools again, which may have changed.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(backoff);
    Ok(StreamableHttpClientTransport::with_client(RememberedClient(client), config))
}

/// Follows redirects that keep the method, the host and the port.
fn within_host() -> Policy {
    Policy::custom(|attempt| {
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        let is_same = attempt.previous().first().is_some_and(|first| {
            first.scheme() == attempt.url().scheme()
                && first.host_str() == attempt.url().host_str()
                && first.port_or_known_default() == attempt.url().port_or_known_default()
        });
        if attempt.previous().len() > MOST_REDIRECTS {
            attempt.error("too many redirects")
        } else if keeps_method && is_same {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Whether the server no longer knows the client, so that nothing was run.
pub(super) fn is_forgotten(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let first: &(dyn Error + 'static) = &*error.error;
    std::iter::successors(Some(first), |&error| error.source()).any(|error| {
        let known = error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        matches!(known, Some(StreamableHttpError::SessionExpired))
    })
}

/// Returns the error of a handshake, without the names of the SDK's types.
pub(super) fn of_handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => full(&*error.error),
        ClientInitializeError::JsonRpcError(error) => reason_of(error).unwrap_or(&error.message).to_owned(),
        other => full(other),
    }
}

/// Returns the error of a request, without the names of the SDK's types.
pub(super) fn of_request(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => full(&*error.error),
        ServiceError::McpError(error) => reason_of(error).unwrap_or(&error.message).to_owned(),
        ServiceError::UnexpectedResponse => "its answer is not the result of a call".to_owned(),
        other => full(other),
    }
}

/// Returns an error with its causes.
fn full(error: &(dyn Error + 'static)) -> String {
    // This one does not name its cause.
    if let Some(StreamableHttpError::Client(error)) =
        error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        return full(error);
    }
    let mut text = error.to_string();
    if let Some(cause) = error.source() {
        let more = full(cause);
        // Some errors repeat their cause.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}
