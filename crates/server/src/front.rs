//! What is checked before a request reaches its route, and the headers that every answer has.
//!
//! A web page can send requests to a server on the same machine, but it cannot choose the headers `Host` and `Origin`. So these are checked
//! first and on every route, also on those without a token. Answers to refused requests have the same headers as all others.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use backstitch::code::ErrorCode;
use backstitch_mcp::AccessRefusal;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::describe::description;
use crate::limits::{LARGEST_HEAD, LONGEST_TARGET};
use crate::problem::Problem;
use crate::routes::routes;
use crate::state::ServerState;

/// The beginning of the routes of the API.
const API: &str = "/api/";

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; \
         font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Whether a request needs the token: all but those for pages and for the state of the server.
fn needs_token(path: &str) -> bool {
    path.starts_with(API) || path == "/metrics"
}

/// Builds the service that answers all requests.
pub(crate) fn router(state: Arc<ServerState>) -> Router {
    let description = serde_json::to_vec(&description()).unwrap_or_default();
    let _ = state.description.set(description.into());
    let mut router = Router::new();
    for route in routes() {
        router = router.route(route.path, route.router);
    }
    router
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(state.clone(), watch))
        .with_state(state)
}

/// Checks a request, and adds the headers to its answer.
async fn watch(State(state): State<Arc<ServerState>>, mut request: Request, next: Next) -> Response {
    let (started, method) = (Instant::now(), request.method().clone());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let is_api = needs_token(request.uri().path());
    let mut response = match check(&state, &request) {
        Ok(()) => {
            // Nothing behind this point needs the token.
            request.headers_mut().remove(AUTHORIZATION);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let cache = if is_api { "no-store" } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    let route = route.as_deref().unwrap_or("other");
    let method = if is_usual(&method) { method.as_str() } else { "OTHER" };
    state.metrics.count_request(method, route, response.status().as_u16(), started.elapsed());
    response
}

fn is_usual(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS].contains(method)
}

fn check(state: &ServerState, request: &Request) -> Result<(), Problem> {
    let refused = |refusal: AccessRefusal| {
        tracing::info!(?refusal, "a request was refused");
        Problem::with_status(refusal.status(), ErrorCode::AccessDenied, refusal.text())
    };
    let (uri, headers) = (request.uri(), request.headers());
    let access = &state.options.access;
    access.check_place(uri, headers).map_err(refused)?;
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > LONGEST_TARGET {
        let detail = format!("the target of the request is longer than {LONGEST_TARGET} bytes");
        return Err(Problem::with_status(StatusCode::URI_TOO_LONG, ErrorCode::TooLarge, detail));
    }
    let head = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
    if head > LARGEST_HEAD {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let detail = format!("the headers of the request are longer than {LARGEST_HEAD} bytes");
        return Err(Problem::with_status(status, ErrorCode::TooLarge, detail));
    }
    let token = if needs_token(uri.path()) { Some(access.check_token(headers)) } else { None };
    let rate = if token == Some(Ok(())) { &state.rate } else { &state.strangers };
    if !rate.admits() {
        return Err(Problem::busy(StatusCode::TOO_MANY_REQUESTS, "too many requests in a second"));
    }
    token.unwrap_or(Ok(())).map_err(refused)
}

/// Answers with a page, where no route is.
async fn page(State(state): State<Arc<ServerState>>, request: Request) -> Response {
    let path = request.uri().path();
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let pages = state.options.pages.as_ref().filter(|_| is_get && !path.starts_with(API));
    match pages.and_then(|pages| pages.page(path)) {
        Some(page) => {
            let mut response = Response::new(Body::from(page.bytes.into_owned()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
            response
        }
        None => {
            let hint = "GET /api/v1/openapi.json lists the routes";
            Problem::new(ErrorCode::NoSuchRoute, "there is nothing at this path")
                .with_hint(Some(hint))
                .into_response()
        }
    }
}

async fn wrong_method() -> Response {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let detail = "the route has another method, which the header Allow names";
    Problem::with_status(status, ErrorCode::NoSuchRoute, detail).into_response()
}
