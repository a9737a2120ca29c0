//! The stream of changes of the list of sessions (server-sent events).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::events::{EVENTS, begin_stream, stream_response};
use crate::feeds::event_text;
use crate::limits::KEEP_ALIVE;
use crate::problem::Problem;
use crate::state::{OpenStream, ServerState};
use crate::table::{Answer, Call, Route};

pub(crate) fn routes() -> Vec<Route> {
    let about = "Follow the list of sessions: each that is new or has changed, as server-sent events";
    vec![Route::get("/api/v1/sessions/events", about, Answer::Other(EVENTS), events)]
}

async fn events(call: Call) -> Result<Response, Problem> {
    let state = call.state;
    let place = begin_stream(&state)?;
    let feed = state.list.follow().await?;
    let first = Some(event_text("begin", &json!({ "v": 1 })));
    let reader = ListReader { state, feed, first, is_over: false, _place: place };
    Ok(stream_response(stream::unfold(reader, ListReader::next)))
}

/// Reads the changes for one client, as fast as it takes them.
struct ListReader {
    state: Arc<ServerState>,
    feed: Receiver<Bytes>,
    first: Option<Bytes>,
    is_over: bool,
    _place: OpenStream,
}

impl ListReader {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.is_over {
            return None;
        }
        let event = match self.first.take() {
            Some(first) => first,
            None => tokio::select! {
                biased;
                event = self.feed.recv() => match event {
                    Ok(event) => event,
                    // The client has to read the list again.
                    Err(RecvError::Lagged(count)) => {
                        self.state.metrics.missed.fetch_add(1, Ordering::Relaxed);
                        event_text("missed", &json!({ "v": 1, "count": count }))
                    }
                    Err(RecvError::Closed) => self.end("failed"),
                },
                () = self.state.ended.cancelled() => self.end("shutdown"),
                () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": \n\n"),
            },
        };
        self.state.metrics.events.fetch_add(1, Ordering::Relaxed);
        Some((Ok(event), self))
    }

    fn end(&mut self, reason: &str) -> Bytes {
        self.is_over = true;
        event_text("end", &json!({ "v": 1, "reason": reason }))
    }
}
