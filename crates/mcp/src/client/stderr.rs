//! The end of a server's standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;

/// The most bytes that are kept.
const MOST: usize = 8 * 1024;

/// Keeps the end of a stream.
#[derive(Clone, Default)]
pub(super) struct KeptStderr {
    kept: Arc<Mutex<VecDeque<u8>>>,
    /// Cancelled once the stream was read to its end.
    ended: CancellationToken,
}

impl KeptStderr {
    /// Reads a stream to its end, in the background.
    pub(super) fn of(mut stream: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let kept = Self::default();
        let target = kept.clone();
        tokio::spawn(async move {
            let _ended = target.ended.drop_guard();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                let mut kept = target.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..count]);
                let excess = kept.len().saturating_sub(MOST);
                kept.drain(..excess);
            }
        });
        kept
    }

    /// Waits until the stream was read to its end, which is when all processes that write to it have ended. Returns false if that
    /// took longer than `limit`.
    pub(super) async fn has_ended_within(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.ended.cancelled()).await.is_ok()
    }

    /// Returns the last lines for an error message, after a newline. Empty if there are none.
    pub(super) fn shown(&self) -> String {
        let kept: Vec<u8> =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.trim().lines().collect();
        let last = &lines[lines.len().saturating_sub(10)..];
        if last.is_empty() {
            String::new()
        } else {
            format!("\nits standard error ends with:\n{}", last.join("\n"))
        }
    }
}
