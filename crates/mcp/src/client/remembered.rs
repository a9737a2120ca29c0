//! The HTTP client of servers at an address.
//!
//! The SDK has one too, which reads answers of any size. This one reads them with the limits of
//! [`incoming`](super::incoming), and notices a server that does not know its client any more: the protocol wants
//! status 404 for that, but many servers answer with 400 and an error without an id, which the SDK cannot assign to a
//! request, so that its caller would wait for ever.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::incoming::IncomingMessage;
use super::stream::events;

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// The most bytes of an answer that is an error.
const LONGEST_FAILURE: usize = 64 * 1024;

/// An HTTP client.
#[derive(Clone)]
pub(super) struct RememberedClient(pub(super) reqwest::Client);

impl RememberedClient {
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self.0.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let request = with_headers(request, token, headers).json(message);
        let answer = request.send().await?;
        let status = answer.status();
        if let Some(challenge) = challenge(&answer) {
            return Err(match status {
                StatusCode::FORBIDDEN => {
                    StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None))
                }
                _ => StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)),
            });
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: HeaderName| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let kind = header(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let given = header(HeaderName::from_static(SESSION));
        let id = match message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if !status.is_success() {
            return failure(answer, kind.starts_with(JSON)).await.map(|error| {
                // An answer of this request, whatever its id.
                StreamableHttpPostResponse::Json(error, given)
            });
        }
        let Some(id) = id else {
            // No answer is expected, so an endless one is not read.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(answer.bytes_stream(), Some(id)), given));
        }
        if kind.starts_with(JSON) {
            return Ok(StreamableHttpPostResponse::Json(body(answer, &id).await?, given));
        }
        Err(StreamableHttpError::UnexpectedContentType(Some(kind)))
    }
}

impl StreamableHttpClient for RememberedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        let is_known = session.is_some();
        let answer = self.post(&uri, &message, session.as_deref(), token, headers).await?;
        let StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _) = &answer else {
            return Ok(answer);
        };
        if !is_request || error.id.is_some() {
            return Ok(answer);
        }
        if is_known && error.error.message.to_ascii_lowercase().contains("session") {
            return Err(StreamableHttpError::SessionExpired);
        }
        Err(StreamableHttpError::UnexpectedServerResponse(error.error.message.clone()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let mut request = self.0.get(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(session) = session {
            request = request.header(SESSION, &*session);
        }
        if let Some(last) = last_event {
            request = request.header("last-event-id", last);
        }
        let answer = with_headers(request, token, headers).send().await?;
        if let Some(challenge) = challenge(&answer) {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events(answer.error_for_status()?.bytes_stream(), None))
    }
}

fn with_headers(mut request: RequestBuilder, token: Option<String>, headers: Headers) -> RequestBuilder {
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// Returns what a server demands from a client that it does not let in.
fn challenge(answer: &Response) -> Option<String> {
    let is_refused = matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let header = answer.headers().get(WWW_AUTHENTICATE).filter(|_| is_refused)?;
    Some(String::from_utf8_lossy(header.as_bytes()).into_owned())
}

/// Reads the body that answers a request.
async fn body(answer: Response, request: &RequestId) -> Result<ServerJsonRpcMessage, HttpError> {
    let mut message = IncomingMessage::default();
    let mut stream = answer.bytes_stream();
    while let Some(bytes) = stream.next().await {
        message.add(&bytes?);
        if message.is_too_large() {
            break;
        }
    }
    let unusable = || StreamableHttpError::UnexpectedServerResponse("the answer is empty".into());
    message.read(Some(request)).ok_or_else(unusable)
}

/// Reads the beginning of an answer that is a failure. An error of the protocol in it is returned as such.
async fn failure(answer: Response, is_json: bool) -> Result<ServerJsonRpcMessage, HttpError> {
    let status = answer.status();
    let mut bytes = Vec::new();
    let mut stream = answer.bytes_stream();
    while let Some(Ok(more)) = stream.next().await {
        bytes.extend_from_slice(&more[..more.len().min(LONGEST_FAILURE - bytes.len())]);
        if bytes.len() >= LONGEST_FAILURE {
            break;
        }
    }
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_json && !is_refused {
        let mut message = IncomingMessage::default();
        message.add(&bytes);
        if let Some(error @ JsonRpcMessage::Error(_)) = message.read(None) {
            return Ok(error);
        }
    }
    let text = format!("HTTP {status}: {}", String::from_utf8_lossy(&bytes).trim());
    Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
}
