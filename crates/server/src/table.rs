//! The table of routes. The router and the description of the API are both built from it.
//!
//! There are two kinds of routes. One that reads is a `GET`; one that changes something has another method, and is refused here unless the
//! server may write, before its body is read. There is no other way to add a route, so that none can be forgotten.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use backstitch::Runtime;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::ports::BoxFuture;
use backstitch::view::JournalView;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::limits::BODY_TIME;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::state::ServerState;

/// The name of a session in a path.
const SESSION: &str = "session";

/// No query parameters, or no fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// Adds the schema of a type to a description.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A route of the server.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// The schema of its query parameters.
    pub(crate) query: fn() -> Schema,
    /// The schema of the body of one that changes something.
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Answer,
    pub(crate) router: MethodRouter<Arc<ServerState>>,
}

/// What a route answers.
pub(crate) enum Answer {
    Json(StatusCode, SchemaOf),
    /// Another media type.
    Other(&'static str),
}

/// A request, as its handler sees it.
pub(crate) struct Call<Q = NoFields, B = ()> {
    pub(crate) state: Arc<ServerState>,
    pub(crate) headers: HeaderMap,
    path: Vec<(String, String)>,
    pub(crate) query: Q,
    pub(crate) body: B,
}

impl<Q, B> Call<Q, B> {
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.state.runtime
    }

    /// Returns a part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Finds the session of the path.
    pub(crate) async fn session(&self) -> Result<SessionId, Problem> {
        let name = self.part(SESSION);
        match name.parse() {
            Ok(session) => Ok(session),
            Err(_) => Ok(self.runtime().find_session(name).await?),
        }
    }

    /// Loads the view of the session of the path.
    pub(crate) async fn view(&self) -> Result<Arc<JournalView>, Problem> {
        Ok(self.state.views.load(self.runtime(), self.session().await?).await?)
    }
}

impl Route {
    /// A route that answers with a report.
    pub(crate) fn read<Q, T, F, W>(path: &'static str, about: &'static str, handler: F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + 'static,
        F: Fn(Call<Q>) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let answer = Answer::Json(StatusCode::OK, |generator| generator.subschema_for::<T>());
        Self::get(path, about, answer, move |call: Call<Q>| {
            let handler = handler.clone();
            async move {
                let work = call.state.reading.clone();
                let body = work.run(async move { to_json(&handler(call).await?) }).await?;
                Ok(json(StatusCode::OK, body))
            }
        })
    }

    /// A route that reads, and answers with something else than a report. Its handler does its own work in places.
    pub(crate) fn get<Q, F, W>(path: &'static str, about: &'static str, answer: Answer, handler: F) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        F: Fn(Call<Q>) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let parameters = Parameters::of::<Q>();
        let handle: Handle = Arc::new(move |state, path, request| {
            let call = read_head(state, &path, &request, &parameters);
            let handler = handler.clone();
            Box::pin(async move { handler(call?).await })
        });
        let router = router(MethodFilter::GET, handle);
        Self {
            method: Method::GET,
            path,
            about,
            query: || schemars::schema_for!(Q),
            body: None,
            answer,
            router,
        }
    }

    /// A route that changes something. This is the one place of all of them.
    pub(crate) fn change<Q, B, T, F, W>(
        (method, path): (Method, &'static str),
        about: &'static str,
        status: StatusCode,
        handler: F,
    ) -> Self
    where
        Q: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        B: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        T: Serialize + JsonSchema + 'static,
        F: Fn(Call<Q, B>) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let (parameters, is_removal) = (Parameters::of::<Q>(), method == Method::DELETE);
        let handle: Handle = Arc::new(move |state, path, request| {
            let (handler, parameters) = (handler.clone(), parameters.clone());
            Box::pin(async move {
                check_write(&state)?;
                let Call { state, headers, path, query, .. } =
                    read_head::<Q>(state, &path, &request, &parameters)?;
                let limit = state.options.limits.body_bytes;
                let body: B = from_json(&read_body(&headers, request.into_body(), limit).await?)?;
                let call = Call { state: state.clone(), headers, path, query, body };
                let done = state.writing.run(async move {
                    if !call.part(SESSION).is_empty() {
                        check_session(&call.state, call.session().await?, is_removal).await?;
                    }
                    to_json(&handler(call).await?)
                });
                Ok(json(status, done.await?))
            })
        });
        let filter = match method {
            Method::DELETE => MethodFilter::DELETE,
            _ => MethodFilter::POST,
        };
        let answer = Answer::Json(status, |generator| generator.subschema_for::<T>());
        let router = router(filter, handle);
        let body: SchemaOf = |generator| generator.subschema_for::<B>();
        Self { method, path, about, query: || schemars::schema_for!(Q), body: Some(body), answer, router }
    }

    /// Whether it changes something.
    pub(crate) fn changes(&self) -> bool {
        self.body.is_some()
    }
}

/// What answers the requests of a route. Its type is erased, so that axum is compiled for one kind of handler.
type Handle = Arc<
    dyn Fn(Arc<ServerState>, RawPathParams, Request) -> BoxFuture<'static, Result<Response, Problem>>
        + Send
        + Sync,
>;

fn router(filter: MethodFilter, handle: Handle) -> MethodRouter<Arc<ServerState>> {
    on(
        filter,
        move |State(state): State<Arc<ServerState>>, path: RawPathParams, request: Request| async move {
            handle(state, path, request).await.unwrap_or_else(Problem::into_response)
        },
    )
}

/// Refuses a change of a session that is beyond what clients may do.
async fn check_session(state: &ServerState, session: SessionId, is_removal: bool) -> Result<(), Problem> {
    match is_removal {
        true => state.rights.check_removal(&state.runtime, &state.views, session).await,
        false => state.rights.check_session(&state.runtime, &state.views, session).await,
    }
}

/// Refuses a change if the server only reads, or ends.
fn check_write(state: &ServerState) -> Result<(), Problem> {
    if !state.options.write {
        let detail = "this server only reads";
        let hint = "start it with `--write`, so that clients may change sessions";
        return Err(Problem::new(ErrorCode::ServerReadOnly, detail).with_hint(Some(hint)));
    }
    if state.ending.is_cancelled() {
        return Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, "the server is ending"));
    }
    Ok(())
}

fn read_head<Q: DeserializeOwned>(
    state: Arc<ServerState>,
    path: &RawPathParams,
    request: &Request,
    parameters: &Parameters,
) -> Result<Call<Q>, Problem> {
    let query = parameters.read(request.uri().query().unwrap_or_default())?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(Call { state, headers: request.headers().clone(), path, query, body: () })
}

/// Reads a body with JSON. An empty one has no fields.
async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let bytes = match tokio::time::timeout(BODY_TIME, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body is larger than {limit} bytes");
            return Err(Problem::new(ErrorCode::TooLarge, detail));
        }
        Ok(Err(_)) => return Err(Problem::invalid("the body is incomplete")),
        Err(_) => {
            let detail = "the body did not arrive in time";
            return Err(Problem::with_status(StatusCode::REQUEST_TIMEOUT, ErrorCode::RequestInvalid, detail));
        }
    };
    if bytes.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // A page of another origin cannot send this type without asking first.
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let detail = "the body has to be of the type application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::with_status(status, ErrorCode::RequestInvalid, detail));
    }
    Ok(bytes)
}

fn from_json<B: DeserializeOwned>(bytes: &[u8]) -> Result<B, Problem> {
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Bytes, Problem> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(Problem::new(ErrorCode::Internal, format!("the answer has no JSON: {error}"))),
    }
}

pub(crate) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
