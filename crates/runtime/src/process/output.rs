//! Output of processes, within limits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::ports::{OutputCaps, ProcessOutput};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::lines::{Lines, Sink};

/// One stream. It is read to its end, so that the process never blocks, and kept up to the limits.
pub(super) struct Stream {
    kept: Arc<Mutex<CappedOutput>>,
    ended: CancellationToken,
    reading: AbortHandle,
}

impl Stream {
    pub(super) fn of(
        mut pipe: impl AsyncRead + Send + Unpin + 'static,
        caps: OutputCaps,
        live: Sink,
    ) -> Self {
        let kept = Arc::new(Mutex::new(CappedOutput::new(caps)));
        let (ended, into) = (CancellationToken::new(), kept.clone());
        let at_end = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            let mut bytes = vec![0; 16 * 1024];
            let mut lines = Lines::new(live);
            while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
                lines.add(&bytes[..count]);
                into.lock().unwrap_or_else(PoisonError::into_inner).add(&bytes[..count]);
            }
            drop(at_end);
        });
        Self { kept, ended, reading: task.abort_handle() }
    }

    /// Completes when the stream has ended.
    pub(super) async fn wait_for_end(&self) {
        self.ended.cancelled().await;
    }

    /// Returns the output so far.
    pub(super) fn take(&self) -> ProcessOutput {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

struct CappedOutput {
    caps: OutputCaps,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl CappedOutput {
    fn new(caps: OutputCaps) -> Self {
        Self { caps, head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.caps.head.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.caps.tail);
        self.tail.drain(..surplus);
        self.cut += surplus as u64;
    }

    fn take(&mut self) -> ProcessOutput {
        ProcessOutput {
            head: std::mem::take(&mut self.head),
            cut: self.cut,
            tail: std::mem::take(&mut self.tail).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(parts: &[&[u8]]) -> ProcessOutput {
        let mut kept = CappedOutput::new(OutputCaps { head: 4, tail: 3 });
        parts.iter().for_each(|part| kept.add(part));
        kept.take()
    }

    #[test]
    fn beginning_and_end_are_kept() {
        let output =
            |head: &[u8], cut, tail: &[u8]| ProcessOutput { head: head.into(), cut, tail: tail.into() };
        assert_eq!(kept(&[]), output(b"", 0, b""));
        assert_eq!(kept(&[b"abc", b"defg"]), output(b"abcd", 0, b"efg"));
        assert_eq!(kept(&[b"abc", b"defg", b"hi"]), output(b"abcd", 2, b"ghi"));
        assert_eq!(kept(&[b"abcdefghijklm"]), output(b"abcd", 6, b"klm"));
        assert_eq!(kept(&[b"abc", b"defg"]).text(), "abcdefg");
        assert_eq!(kept(&[b"abcdefghi"]).text(), "abcd\n[2 bytes left out]\nghi");
    }
}
