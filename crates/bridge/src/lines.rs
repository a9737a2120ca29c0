//! Lines of JSON from a program.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest line. Results of tools are in them, with whole files.
const LONGEST: usize = 64 * 1024 * 1024;

/// The most characters of a line in an error.
const SHOWN: usize = 120;

/// Reads lines of JSON. Cancel safe.
pub(crate) struct JsonLines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
}

impl<R: AsyncRead + Unpin> JsonLines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), longest: LONGEST }
    }

    /// Returns the next line, or `None` at the end of the input. An error says why a line cannot be used.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            let has_ended = loop {
                let read = self.input.fill_buf().await.map_err(|error| error.to_string())?;
                if read.is_empty() {
                    break true;
                }
                let end = read.iter().position(|byte| *byte == b'\n');
                let count = end.map_or(read.len(), |end| end + 1);
                if self.line.len() + count > self.longest {
                    return Err(format!("a line is longer than {} MiB", self.longest / 1024 / 1024));
                }
                self.line.extend_from_slice(&read[..count]);
                self.input.consume(count);
                if end.is_some() {
                    break false;
                }
            };
            let line = std::mem::take(&mut self.line);
            let text = line.trim_ascii();
            if text.is_empty() {
                if has_ended {
                    return Ok(None);
                }
                continue;
            }
            return match serde_json::from_slice::<Value>(text) {
                Ok(value) if value.is_object() => Ok(Some(value)),
                _ => {
                    let shown: String = String::from_utf8_lossy(text).chars().take(SHOWN).collect();
                    Err(format!("{shown:?} is not a JSON object"))
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Vec<Result<Value, String>> {
        let mut lines = JsonLines { longest: 100, ..JsonLines::new(text) };
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(value)) => all.push(Ok(value)),
                Ok(None) => return all,
                Err(error) => {
                    all.push(Err(error));
                    return all;
                }
            }
        }
    }

    #[tokio::test]
    async fn lines_are_objects_and_everything_else_is_an_error() {
        assert_eq!(
            read(b"{\"a\":1}\n\n  \n{\"b\":2}").await,
            [Ok(serde_json::json!({"a": 1})), Ok(serde_json::json!({"b": 2}))]
        );
        for text in [&b"hello\n"[..], b"[]\n", b"7\n", b"{\"a\":\n", b"\xff\xfe\n", b"{\"a\":1}}\n"] {
            let error = read(text).await.pop().unwrap().unwrap_err();
            assert!(error.contains("not a JSON object"), "{error}");
        }
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(200));
        assert!(read(long.as_bytes()).await[0].as_ref().unwrap_err().contains("longer than"));
    }
}
