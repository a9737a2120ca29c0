//! Lines of a stream, with a limit.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::wire::WireError;

/// The most bytes of a line. The results of tools are in messages, and Codex cuts them off far below.
pub(super) const LONGEST: usize = 32 * 1024 * 1024;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// Reads lines. A read that is cancelled loses nothing.
pub(super) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold no end of a line.
    searched: usize,
    longest: usize,
}

/// Why there is no line.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The stream has ended.
    End,
    Read(io::Error),
    Wire(WireError),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), searched: 0, longest: LONGEST }
    }

    /// Returns the next line without its end. A last line without an end is incomplete, and left out.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + end;
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                self.searched = 0;
                return Ok(line);
            }
            self.searched = self.buffer.len();
            if self.searched > self.longest {
                return Err(NoLine::Wire(WireError::TooLong { limit: self.longest }));
            }
            self.buffer.reserve(CHUNK);
            if self.stream.read_buf(&mut self.buffer).await.map_err(NoLine::Read)? == 0 {
                return Err(NoLine::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_within_the_limit() {
        let mut lines = Lines::new(&b"one\n\ntwo\r\nrest"[..]);
        assert_eq!(lines.next().await.unwrap(), b"one");
        assert_eq!(lines.next().await.unwrap(), b"");
        assert_eq!(lines.next().await.unwrap(), b"two\r");
        assert!(matches!(lines.next().await, Err(NoLine::End)));

        let text = [vec![b'x'; 200_000], b"\n".to_vec()].concat();
        let mut short = Lines { longest: 100_000, ..Lines::new(&text[..]) };
        assert!(matches!(short.next().await, Err(NoLine::Wire(WireError::TooLong { limit: 100_000 }))));
        assert!(short.buffer.len() < 100_000 + 2 * CHUNK, "the rest is not read");
        assert_eq!(Lines::new(&text[..]).next().await.unwrap().len(), 200_000);
    }
}
