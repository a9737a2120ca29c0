//! Streams of events of servers at an address.
//!
//! The parser of events keeps an event until it is complete, so the bytes are counted before they reach it. In place
//! of an event that is too large, the stream of a request has an error for it, and ends.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

use super::incoming::{IncomingMessage, LARGEST, unreadable};

/// Returns the events of a stream. `request` is the one that it answers, if there is one.
pub(super) fn events<S, E>(bytes: S, request: Option<RequestId>) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Error + Send + Sync + 'static,
{
    let excess = request.clone().and_then(|request| {
        unreadable(request, format!("its answer is not read: it has more than {} MiB", LARGEST / 1024 / 1024))
    });
    let excess = excess.and_then(|message| serde_json::to_string(&message).ok()).unwrap_or_default();
    let is_over = Arc::new(AtomicBool::new(false));
    let state = (Box::pin(bytes), EventSize::default(), excess.clone(), is_over.clone());
    let bounded = stream::unfold(state, |(mut bytes, mut size, excess, is_over)| async move {
        if is_over.load(Ordering::Relaxed) {
            return None;
        }
        let piece = match bytes.next().await? {
            Ok(piece) if size.add(&piece) > LARGEST => {
                is_over.store(true, Ordering::Relaxed);
                // Ends the event that was begun, before the error.
                Ok(Bytes::from(format!("\n\ndata: {excess}\n\n")))
            }
            piece => piece,
        };
        Some((piece, (bytes, size, excess, is_over)))
    });
    let events = SseStream::from_bytes_stream(bounded);
    events
        .map(move |event| {
            let mut event = event?;
            event.data = match event.data {
                // Half of an event means nothing.
                Some(data) if is_over.load(Ordering::Relaxed) && data != excess => None,
                Some(data) if !data.trim().is_empty() => checked(&data, request.as_ref()),
                data => data,
            };
            Ok(event)
        })
        .boxed()
}

/// Returns the data of an event as this program reads it. `None` leaves it out.
fn checked(data: &str, request: Option<&RequestId>) -> Option<String> {
    let mut message = IncomingMessage::default();
    message.add(data.as_bytes());
    // Events of the stream may also be notifications, whose request is not this one.
    let is_answer = message.is_too_large();
    let message = message.read(request.filter(|_| is_answer))?;
    serde_json::to_string(&message).ok()
}

/// The size of the event that is being received.
#[derive(Debug, Default)]
struct EventSize {
    bytes: usize,
    is_line_start: bool,
}

impl EventSize {
    /// Adds bytes, and returns the size of the largest event so far that is not complete.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut most = self.bytes;
        for byte in bytes {
            self.bytes += 1;
            match byte {
                // An empty line ends an event.
                b'\n' if self.is_line_start => self.bytes = 0,
                b'\n' => self.is_line_start = true,
                b'\r' => {}
                _ => self.is_line_start = false,
            }
            most = most.max(self.bytes);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn data(pieces: Vec<String>) -> Vec<String> {
        let pieces = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        let events = events(stream::iter(pieces), Some(RequestId::Number(3)));
        events.filter_map(|event| async { event.unwrap().data }).collect().await
    }

    #[tokio::test]
    async fn an_endless_event_is_an_error_of_its_request() {
        let ping = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\r\n\r\n";
        let mut pieces = vec![ping.to_owned(), "data: ".to_owned()];
        pieces.extend(std::iter::repeat_n("a".repeat(1024 * 1024), 9));
        pieces.push(ping.to_owned());
        let data = data(pieces).await;
        assert!(data[0].contains("progress"), "{}", data[0]);
        assert!(data.last().unwrap().contains("8 MiB") && data.last().unwrap().contains("\"id\":3"));
    }

    #[tokio::test]
    async fn many_small_events_are_no_large_one() {
        let event = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"a\":\"{}\"}}}}\n\n",
            "a".repeat(1 << 20)
        );
        assert_eq!(data(vec![event; 12]).await.len(), 12);
    }
}
