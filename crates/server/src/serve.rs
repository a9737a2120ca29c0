//! Accepts connections until the server ends, and ends it so that no work is lost.
//!
//! When the server ends, it accepts nothing new, pauses what it drives as the command does, and lets streams end with an event. A client that
//! does not read its last answer is left.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use backstitch::Runtime;
use backstitch::journal::StopReason;
use backstitch::ports::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::front::router;
use crate::limits::{HEAD_TIME, LARGEST_BUFFER, LAST_ANSWERS};
use crate::operate::export_values;
use crate::state::{ServerOptions, ServerState};
use crate::timed::TimedStream;
use crate::tls::{TlsError, TlsFiles};

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 4_096;

/// A server over HTTP.
pub struct Server {
    state: Arc<ServerState>,
    tls: Option<TlsAcceptor>,
}

/// A server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Server {
    /// Creates a server over a runtime.
    pub fn new(runtime: Runtime, options: ServerOptions) -> Self {
        let state = Arc::new(ServerState::new(runtime, options));
        export_values(&state);
        Self { state, tls: None }
    }

    /// Encrypts connections with a certificate.
    pub fn with_tls(self, files: &TlsFiles) -> Result<Self, ServeError> {
        Ok(Self { tls: Some(files.acceptor()?), ..self })
    }

    /// Serves clients until `stop` is cancelled. Then everything that the server drives is paused, and its sessions can be resumed.
    pub fn serve(self, listener: TcpListener, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { state, tls } = self;
            let router = router(state.clone());
            let write_time = Duration::from_secs(state.options.limits.write_seconds);
            let connections = TaskTracker::new();
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => break,
                    accepted = listener.accept() => accepted,
                };
                let stream = match accepted {
                    Ok((stream, _)) if connections.len() < MOST_CONNECTIONS => stream,
                    // Closing it at once is all that can be done for it.
                    Ok(_) => continue,
                    Err(error) => {
                        // A client that was gone at once, or no descriptor is left for a moment.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let _ = stream.set_nodelay(true);
                let (router, ended, tls) = (router.clone(), state.ended.clone(), tls.clone());
                connections.spawn(connect(stream, tls, write_time, router, ended));
            }
            drop(listener);
            state.ending.cancel();
            state.runtime.stop(StopReason::Signal);
            state.runtime.shutdown().await;
            state.ended.cancel();
            connections.close();
            let _ = tokio::time::timeout(LAST_ANSWERS, connections.wait()).await;
        })
    }
}

async fn connect(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    write_time: Duration,
    router: Router,
    ended: CancellationToken,
) {
    let stream = TimedStream::new(stream, write_time);
    match tls {
        None => answer(stream, router, ended).await,
        Some(tls) => match tokio::time::timeout(HEAD_TIME, tls.accept(stream)).await {
            Ok(Ok(stream)) => answer(stream, router, ended).await,
            Ok(Err(error)) => tracing::debug!(%error, "a connection is not encrypted"),
            Err(_) => {}
        },
    }
}

/// Answers the requests of a connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    ended: CancellationToken,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(LARGEST_BUFFER);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = ended.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a connection ended with an error");
    }
}
