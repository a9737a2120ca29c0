//! What is checked before a request reaches the protocol: who sends it, where to, and how large it is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::super::handler::SessionHandler;
use super::super::requests::RunningRequests;
use super::access::{HttpAccess, Refusal};

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// The largest body, in bytes: that of a line over pipes.
const LARGEST: usize = 16 * 1024 * 1024;

/// Time limit of a body.
const BODY: Duration = Duration::from_secs(60);

/// Time after which a client that has said nothing is forgotten. It then has to begin again.
const FORGET: Duration = Duration::from_secs(24 * 60 * 60);

/// The most clients at a time, of the revisions with a handshake.
const MOST_CLIENTS: usize = 1000;

/// Header with which a client names itself after the handshake.
const CLIENT: HeaderName = HeaderName::from_static("mcp-session-id");

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Answers requests.
pub(super) struct Front {
    access: HttpAccess,
    clients: Arc<LocalSessionManager>,
    service: StreamableHttpService<SessionHandler, LocalSessionManager>,
}

impl Front {
    pub(super) fn new(handler: SessionHandler, access: HttpAccess, streams: CancellationToken) -> Self {
        let mut clients = LocalSessionManager::default();
        clients.session_config.keep_alive = Some(FORGET);
        let clients = Arc::new(clients);
        // Names and origins were checked before, by the same list.
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(access.hosts().iter().map(|host| host.trim_matches(['[', ']'])))
            .with_cancellation_token(streams)
            .with_max_request_body_bytes(LARGEST);
        let service = StreamableHttpService::new(
            move || Ok(handler.of_connection(RunningRequests::of_http())),
            clients.clone(),
            config,
        );
        Self { access, clients, service }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, mut request: Request<Incoming>) -> Answer {
        if let Err(refusal) = self.access.check(request.uri(), request.headers()) {
            tracing::info!(?refusal, "a request was refused");
            let mut answer = refused(refusal.status(), refusal.text());
            if refusal == Refusal::Token {
                let scheme = HeaderValue::from_static("Bearer realm=\"backstitch\"");
                answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            return answer;
        }
        // Nothing behind this point needs the token.
        request.headers_mut().remove(AUTHORIZATION);
        if request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, "the endpoint of this server is /mcp");
        }
        let is_new = request.method() == Method::POST && !request.headers().contains_key(CLIENT);
        if is_new && self.clients.sessions.read().await.len() >= MOST_CLIENTS {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "too many clients are connected");
        }
        let (head, body) = request.into_parts();
        let body = match tokio::time::timeout(BODY, Limited::new(body, LARGEST).collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 16 MiB");
            }
            Ok(Err(_)) => return refused(StatusCode::BAD_REQUEST, "the body is incomplete"),
            Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        };
        let is_farewell = head.method == Method::DELETE;
        let mut answer = self.service.handle(Request::from_parts(head, Full::new(body))).await;
        // Some clients report any other status as a failure.
        if is_farewell && answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        answer
    }
}

fn refused(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
