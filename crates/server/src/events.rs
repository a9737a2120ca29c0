//! Streams of the events of a session (server-sent events).
//!
//! Records have ids, which are their positions: a client that was disconnected sends the last one that it has, and misses none. Live events
//! have no ids. A stream that is too slow for them skips some, and says so; the record that follows has everything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::Position;
use backstitch::report::PageLimit;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::feeds::{FeedEvent, event_text, record_text};
use crate::limits::KEEP_ALIVE;
use crate::problem::Problem;
use crate::state::{OpenStream, ServerState};
use crate::table::{Answer, Call, Route};

/// The media type of a stream.
pub(crate) const EVENTS: &str = "text/event-stream";

/// What a stream reads of the store at a time. It is kept until the client has taken it.
const BACKLOG: PageLimit = PageLimit { rows: 64, bytes: 64 * 1024 };

/// Delay before a stream reads again, if the server is busy.
const BUSY: Duration = Duration::from_secs(1);

/// Where a stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Position of the first record, or `head` for those that follow. The header Last-Event-ID is stronger.
    from: Option<String>,
}

pub(crate) fn routes() -> Vec<Route> {
    let about = "Follow the events of a session, as server-sent events";
    vec![Route::get("/api/v1/sessions/{session}/events", about, Answer::Other(EVENTS), events)]
}

async fn events(call: Call<EventsQuery>) -> Result<Response, Problem> {
    let state = call.state.clone();
    let place = begin_stream(&state)?;
    let start = Start::of(&call.headers, call.query.from.as_deref())?;
    let reading = state.reading.run(async move {
        let session = call.session().await?;
        Ok((session, call.runtime().head(session).await?))
    });
    let (session, head) = reading.await?;
    let from = match start {
        Start::Head => head,
        Start::At(position) => position,
    };
    let begin = json!({
        "v": 1, "session": session, "from": from, "head": head, "driven_here": state.runtime.drives(session),
    });
    let stream = EventReader {
        // Before anything is read, so that nothing is between the two.
        feed: state.feeds.follow(session),
        pending: VecDeque::from([event_text("begin", &begin)]),
        next: from,
        session,
        is_behind: from < head,
        is_over: false,
        state,
        _place: place,
    };
    Ok(stream_response(stream::unfold(stream, EventReader::next)))
}

/// Takes a place for a stream.
pub(crate) fn begin_stream(state: &ServerState) -> Result<OpenStream, Problem> {
    if state.ending.is_cancelled() {
        return Err(Problem::busy(StatusCode::SERVICE_UNAVAILABLE, "the server is ending"));
    }
    state.open_stream().ok_or_else(|| {
        let detail = format!("{} streams are open, and there can be no more", state.options.limits.streams);
        Problem::busy(StatusCode::TOO_MANY_REQUESTS, detail)
    })
}

/// Answers with a stream of events.
pub(crate) fn stream_response(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    // Proxies would collect the events otherwise.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}

/// Where a stream begins.
enum Start {
    At(Position),
    Head,
}

impl Start {
    fn of(headers: &HeaderMap, from: Option<&str>) -> Result<Self, Problem> {
        let number = |text: &str, what: &str| {
            let wrong = |_| Problem::invalid(format!("{what} is the position of a record"));
            text.trim().parse::<u64>().map_err(wrong)
        };
        if let Some(last) = headers.get("last-event-id") {
            let last = number(last.to_str().unwrap_or_default(), "the header Last-Event-ID")?;
            return Ok(Self::At(Position::new(last.saturating_add(1))));
        }
        match from {
            None => Ok(Self::At(Position::START)),
            Some("head") => Ok(Self::Head),
            Some(text) => Ok(Self::At(Position::new(number(text, "`from`")?))),
        }
    }
}

/// Reads the events of a session for one client, as fast as it takes them.
struct EventReader {
    state: Arc<ServerState>,
    session: SessionId,
    feed: Receiver<Arc<FeedEvent>>,
    /// Events that the client has not taken yet.
    pending: VecDeque<Bytes>,
    /// The record that comes next.
    next: Position,
    /// Whether records have to be read from the store.
    is_behind: bool,
    is_over: bool,
    _place: OpenStream,
}

impl EventReader {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                self.state.metrics.events.fetch_add(1, Ordering::Relaxed);
                return Some((Ok(event), self));
            }
            if self.is_over {
                return None;
            }
            if self.is_behind {
                self.is_behind = self.read_page().await;
                continue;
            }
            tokio::select! {
                biased;
                event = self.feed.recv() => self.receive(event).await,
                () = self.state.ended.cancelled() => {
                    // What the server recorded when it paused its sessions.
                    while self.read_page().await {}
                    self.end("shutdown", None);
                }
                () = tokio::time::sleep(KEEP_ALIVE) => self.pending.push_back(Bytes::from_static(b": \n\n")),
            }
        }
    }

    async fn receive(&mut self, event: Result<Arc<FeedEvent>, RecvError>) {
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => {
                // Records are read from the store. How many of the others were live is not known.
                self.is_behind = true;
                return self.miss(None);
            }
            Err(RecvError::Closed) => return self.end("failed", None),
        };
        match &*event {
            FeedEvent::Begin(head) => self.is_behind |= *head > self.next,
            FeedEvent::Record { position, .. } if *position < self.next => {}
            FeedEvent::Record { position, text: Some(text) } if *position == self.next => {
                self.pending.push_back(text.clone());
                self.next = position.next();
            }
            FeedEvent::Record { .. } => self.is_behind = true,
            FeedEvent::Live { at, text } => {
                while self.next < *at && !self.is_over {
                    if !self.read_page().await && self.next < *at {
                        break;
                    }
                }
                // The record after it was sent already, so it would come too late.
                match *at < self.next {
                    true => self.miss(Some(1)),
                    false => self.pending.push_back(text.clone()),
                }
            }
            FeedEvent::Missed(count) => self.miss(Some(*count)),
            FeedEvent::Removed => self.end("removed", None),
            FeedEvent::Failed(problem) => self.end("failed", Some(problem)),
        }
    }

    /// Reads records from the store. Returns whether there may be more.
    async fn read_page(&mut self) -> bool {
        let (runtime, session, next) = (self.state.runtime.clone(), self.session, self.next);
        let read = async move { Ok(runtime.record_lines(session, next, BACKLOG).await?) };
        match self.state.reading.run(read).await {
            Ok(lines) => {
                for line in &lines {
                    self.pending.push_back(record_text(line));
                    self.next = line.position.next();
                }
                !lines.is_empty()
            }
            Err(problem) if problem.code == ErrorCode::SessionNotFound.as_str() => {
                self.end("removed", None);
                false
            }
            Err(problem) if problem.status == StatusCode::SERVICE_UNAVAILABLE.as_u16() => {
                tokio::time::sleep(BUSY).await;
                true
            }
            Err(problem) => {
                self.end("failed", Some(&problem));
                false
            }
        }
    }

    /// Reports that live events were skipped.
    fn miss(&mut self, count: Option<u64>) {
        self.state.metrics.missed.fetch_add(1, Ordering::Relaxed);
        self.pending.push_back(event_text("missed", &json!({ "v": 1, "count": count })));
    }

    /// Ends the stream with an event.
    fn end(&mut self, reason: &str, problem: Option<&Problem>) {
        let mut data = json!({ "v": 1, "reason": reason });
        if let (Some(problem), Value::Object(fields)) = (problem, &mut data) {
            fields.insert("problem".to_owned(), json!(problem));
        }
        self.pending.push_back(event_text("end", &data));
        self.is_over = true;
    }
}
