//! The input of a connection, which notes its end.
//!
//! The SDK stops all requests a few seconds after the end of the input. That is no wish of the client to cancel
//! them, so the handler has to know the difference.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The input of a connection.
pub(super) struct ClientInput<R> {
    inner: R,
    ended: Arc<AtomicBool>,
}

impl<R> ClientInput<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, ended: Arc::default() }
    }

    /// Becomes true at the end of the input.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        self.ended.clone()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ClientInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let has_room = buffer.remaining() > 0;
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let is_end = match &read {
            Poll::Ready(Ok(())) => has_room && buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_end {
            self.ended.store(true, Ordering::SeqCst);
        }
        read
    }
}
