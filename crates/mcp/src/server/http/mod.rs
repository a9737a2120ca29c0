//! The server over HTTP: many clients, one session.
//!
//! Each client is served as over pipes; what they share are the calls, so a call that another client repeats by its id
//! runs nothing. A client that is gone leaves its calls running, with one exception: since revision 2026-07-28 closing
//! the response is the way to cancel a request.

mod access;
mod front;
mod token;

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::ports::BoxFuture;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use access::HttpAccess;
pub use token::{AccessToken, InvalidToken};

use super::{ServeError, ToolServer};
use front::Front;

/// The most connections at a time. Others wait.
const MOST_CONNECTIONS: usize = 256;

/// Time limit of the head of a request, also of the first one. Clients keep idle connections for less time.
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
            let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
            let connections = TaskTracker::new();
            let ending = CancellationToken::new();
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => break,
                    accepted = accepted(&listener, &room) => accepted,
                };
                let (stream, place) = match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // A client that was gone at once, or no descriptor is left for a moment.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let (front, ending) = (front.clone(), ending.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let front = front.clone();
                        async move { Ok::<_, std::convert::Infallible>(front.answer(request).await) }
                    });
                    let mut builder = http1::Builder::new();
                    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    let mut connection = std::pin::pin!(connection);
                    let ended = tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = ending.cancelled() => {
                            connection.as_mut().graceful_shutdown();
                            connection.await
                        }
                    };
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended with an error");
                    }
                    drop(place);
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

async fn accepted(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(tokio::net::TcpStream, Option<tokio::sync::OwnedSemaphorePermit>)> {
    // The semaphore is never closed.
    let place = room.clone().acquire_owned().await.ok();
    let (stream, _) = listener.accept().await?;
    let _ = stream.set_nodelay(true);
    Ok((stream, place))
}
