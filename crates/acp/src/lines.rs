//! Standard input and output as lines, one message on each.
//!
//! Lines are read and written by threads of their own, so that neither keeps the process from ending. A line that is too long is
//! left out while it is read, and one that is not UTF-8 as well. The SDK gets a text in their place that is not JSON, and answers
//! that it cannot be parsed.

use std::io::{self, BufRead, Write};

use futures_util::{Sink, Stream, sink, stream};
use tokio::sync::{mpsc, oneshot};

/// Maximum length of a line, in bytes. A prompt with many images fits.
const LONGEST: usize = 64 * 1024 * 1024;

/// The number of lines that wait to be handled. Reading stops meanwhile.
const MOST_WAITING: usize = 64;

/// What stands in place of a line that is not read.
const TOO_LONG: &str = "the line is longer than 64 MiB";
const NOT_TEXT: &str = "the line is not UTF-8";

/// Reads lines until the input ends, or until `each` returns false.
fn read_lines(
    mut input: impl BufRead,
    longest: usize,
    mut each: impl FnMut(String) -> bool,
) -> io::Result<()> {
    let (mut line, mut is_long) = (Vec::new(), false);
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            // A line without an end is not a message.
            return Ok(());
        }
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..newline.unwrap_or(bytes.len())];
        if line.len() + piece.len() > longest {
            (line, is_long) = (Vec::new(), true);
        } else if !is_long {
            line.extend_from_slice(piece);
        }
        let taken = newline.map_or(bytes.len(), |end| end + 1);
        input.consume(taken);
        if newline.is_none() {
            continue;
        }
        let whole = std::mem::take(&mut line);
        let text = match String::from_utf8(whole) {
            _ if std::mem::take(&mut is_long) => TOO_LONG.to_owned(),
            Ok(text) if text.trim().is_empty() => continue,
            Ok(text) => text,
            Err(_) => NOT_TEXT.to_owned(),
        };
        if !each(text) {
            return Ok(());
        }
    }
}

/// Returns the lines of standard input.
pub(crate) fn incoming() -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let (sender, lines) = mpsc::channel(MOST_WAITING);
    std::thread::spawn(move || {
        let read = read_lines(io::stdin().lock(), LONGEST, |line| sender.blocking_send(Ok(line)).is_ok());
        if let Err(error) = read {
            let _ = sender.blocking_send(Err(error));
        }
    });
    stream::unfold(lines, |mut lines| async move { lines.recv().await.map(|line| (line, lines)) })
}

/// Returns a sink for lines of standard output, and what completes once all of them are written.
pub(crate) fn outgoing() -> (impl Sink<String, Error = io::Error> + Send + 'static, oneshot::Receiver<()>) {
    let (sender, mut lines) = mpsc::channel::<String>(MOST_WAITING);
    let (written, is_written) = oneshot::channel();
    std::thread::spawn(move || {
        while let Some(mut line) = lines.blocking_recv() {
            line.push('\n');
            let mut output = io::stdout().lock();
            if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
                // The editor is gone. The next line finds the channel closed.
                return;
            }
        }
        let _ = written.send(());
    });
    let sink = sink::unfold(sender, |sender, line: String| async move {
        match sender.send(line).await {
            Ok(()) => Ok(sender),
            Err(_) => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    });
    (sink, is_written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(input: &[u8], longest: usize) -> Vec<String> {
        let mut lines = Vec::new();
        // A small buffer, so that lines arrive in pieces.
        let input = io::BufReader::with_capacity(3, input);
        read_lines(input, longest, |line| {
            lines.push(line);
            true
        })
        .unwrap();
        lines
    }

    #[test]
    fn lines_are_read_within_the_limit() {
        assert_eq!(lines_of(b"{\"a\":1}\n\n  \n{}\n{\"cut", 20), ["{\"a\":1}", "{}"]);
        assert_eq!(lines_of(b"0123456789\nshort\n", 8), [TOO_LONG, "short"]);
        assert_eq!(lines_of(b"\xff\xfe\nshort\n", 8), [NOT_TEXT, "short"]);
    }
}
