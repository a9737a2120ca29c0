//! An HTTP client that notices a server which does not know it any more.
//!
//! The protocol wants status 404 for that. Many servers answer with 400 and an error without an id, which the SDK cannot
//! assign to a request, so that its caller would wait for ever.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// An HTTP client.
#[derive(Clone)]
pub(super) struct RememberedClient(pub(super) reqwest::Client);

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
        let most = usize::MAX;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        let is_known = session.is_some();
        let answer =
            self.0.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await?;
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
        self.0.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
    }
}
