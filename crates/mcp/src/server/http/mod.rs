//! The server over HTTP: many clients, one session.
//!
//! Each client is served as over pipes; what they share are the calls, so a call that another client repeats by its id
//! runs nothing. A client that is gone leaves its calls running, with one exception: since revision 2026-07-28 closing
//! the response is the way to cancel a request.

mod access;
mod clients;
mod front;
mod places;
mod token;

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::ports::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use access::{AccessRefusal, HttpAccess};
pub use token::{AccessToken, InvalidToken};

use super::{ServeError, ToolServer};
use front::Front;
use places::Places;

/// Time limit of the head of a request after the first one. Clients keep idle connections for less time.
const HEAD: Duration = Duration::from_secs(120);

/// Time that clients have to read their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl ToolServer {
    /// Serves clients over HTTP until `stop` is cancelled. Their endpoint is `/mcp`.
    pub fn serve_http(
        self,
        listener: TcpListener,
        access: HttpAccess,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), ServeError>> {
        Box::pin(async move {
            // Ends the streams that never end by themselves.
            let streams = CancellationToken::new();
            let front = Arc::new(Front::new(self.handler, access, streams.clone()));
            let places = Places::default();
            let connections = TaskTracker::new();
            let ending = CancellationToken::new();
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => break,
                    accepted = listener.accept() => accepted,
                };
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        // A client that was gone at once, or no descriptor is left for a moment.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let (front, ending, stranger) = (front.clone(), ending.clone(), places.enter());
                let places = places.clone();
                connections.spawn(async move {
                    let of_connection = stranger.clone();
                    let service = service_fn(move |request| {
                        let (front, places, stranger) =
                            (front.clone(), places.clone(), of_connection.clone());
                        async move {
                            Ok::<_, std::convert::Infallible>(front.answer(request, &places, &stranger).await)
                        }
                    });
                    let mut builder = http1::Builder::new();
                    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    let mut connection = std::pin::pin!(connection);
                    let ended = tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = stranger.wait_for_overstay() => Ok(()),
                        () = ending.cancelled() => {
                            connection.as_mut().graceful_shutdown();
                            connection.await
                        }
                    };
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended with an error");
                    }
                    stranger.end();
                });
            }
            drop(listener);
            ending.cancel();
            connections.close();
            if tokio::time::timeout(LAST_ANSWERS, connections.wait()).await.is_err() {
                streams.cancel();
                let _ = tokio::time::timeout(LAST_ANSWERS, connections.wait()).await;
            }
            Ok(())
        })
    }
}
