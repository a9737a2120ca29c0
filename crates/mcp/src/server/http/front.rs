//! What is checked before a request reaches the protocol: who sends it, where to, and how large it is.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::super::handler::SessionHandler;
use super::super::requests::RunningRequests;
use super::access::{AccessRefusal, HttpAccess};
use super::clients::KnownClients;
use super::places::{Places, Stranger};

/// The path of the endpoint.
const PATH: &str = "/mcp";

/// The largest body, in bytes: that of a line over pipes.
const LARGEST: usize = 16 * 1024 * 1024;

/// Time limit of a body.
const BODY: Duration = Duration::from_secs(60);

/// Time after which a client that has said nothing is forgotten. It then has to begin again.
const FORGET: Duration = Duration::from_secs(24 * 60 * 60);

/// Header with which a client names itself after the handshake.
const CLIENT: HeaderName = HeaderName::from_static("mcp-session-id");

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Answers requests.
pub(super) struct Front {
    access: HttpAccess,
    sessions: Arc<LocalSessionManager>,
    clients: KnownClients,
    service: StreamableHttpService<SessionHandler, LocalSessionManager>,
}

impl Front {
    pub(super) fn new(handler: SessionHandler, access: HttpAccess, streams: CancellationToken) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(FORGET);
        let sessions = Arc::new(sessions);
        // Names and origins were checked before, by the same list.
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(access.hosts.iter().map(|host| host.trim_matches(['[', ']'])))
            .with_cancellation_token(streams)
            .with_max_request_body_bytes(LARGEST);
        let service = StreamableHttpService::new(
            move || Ok(handler.of_connection(RunningRequests::of_http())),
            sessions.clone(),
            config,
        );
        Self { access, sessions, clients: KnownClients::default(), service }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        mut request: Request<Incoming>,
        places: &Places,
        stranger: &Stranger,
    ) -> Answer {
        if let Err(refusal) = self.access.check(request.uri(), request.headers()) {
            tracing::info!(?refusal, "a request was refused");
            let mut answer = refused(refusal.status(), refusal.text());
            if refusal == AccessRefusal::Token {
                let scheme = HeaderValue::from_static("Bearer realm=\"backstitch\"");
                answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            return answer;
        }
        stranger.introduce();
        // Nothing behind this point needs the token.
        request.headers_mut().remove(AUTHORIZATION);
        if request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, "the endpoint of this server is /mcp");
        }
        // A stream of events stays open, so it takes no place of a request.
        let place = match *request.method() {
            Method::GET => places.for_stream(),
            _ => places.for_request().await,
        };
        let Some(place) = place else {
            let mut answer = refused(StatusCode::SERVICE_UNAVAILABLE, "too many requests are open");
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
            return answer;
        };
        let client = request.headers().get(CLIENT).and_then(|name| name.to_str().ok()).map(str::to_owned);
        let is_new = request.method() == Method::POST && client.is_none();
        if is_new {
            for silent in self.clients.forget_silent() {
                let _ = self.sessions.close_session(&silent.into()).await;
            }
        }
        let open_request = client.as_deref().map(|client| self.clients.note_request(client));
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
        let given = answer.headers().get(CLIENT).and_then(|name| name.to_str().ok()).map(str::to_owned);
        let open_request = match (is_new, given) {
            (true, Some(given)) => Some(self.clients.note_request(&given)),
            _ => open_request,
        };
        if let Some(client) = client.filter(|_| is_farewell || answer.status() == StatusCode::NOT_FOUND) {
            self.clients.remove(&client);
        }
        // Some clients report any other status as a failure.
        if is_farewell && answer.status() == StatusCode::ACCEPTED {
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        // The request is open until its answer was sent.
        answer.map(|body| {
            body.map_frame(move |frame| {
                let _ = (&place, &open_request);
                frame
            })
            .boxed()
        })
    }
}

fn refused(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
