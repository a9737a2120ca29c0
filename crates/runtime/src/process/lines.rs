//! Live output of a process, in whole lines.
//!
//! Keys are redacted in published output, and a key could span two reads. So output is published up to the
//! end of a line. A long line without an end is published in pieces, of which the last bytes are held back.

use std::sync::Arc;

/// Publishes output.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// The length from which an unfinished line is published.
const LONG: usize = 8 * 1024;

/// The number of bytes of a long line that are held back. It exceeds the length of a key.
const HELD_BACK: usize = 512;

/// Publishes one stream.
pub(super) struct Lines {
    sink: Sink,
    held: Vec<u8>,
}

impl Lines {
    pub(super) fn new(sink: Sink) -> Self {
        Self { sink, held: Vec::new() }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let ends = self.held.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map(|end| end + 1);
        let long = (self.held.len() > LONG).then(|| self.held.len() - HELD_BACK);
        if let Some(end) = ends.max(long) {
            self.publish(end);
        }
    }

    fn publish(&mut self, mut end: usize) {
        // Characters are not split: continuation bytes of UTF-8 belong to the next piece.
        while end < self.held.len() && end > 0 && self.held[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        let rest = self.held.split_off(end);
        let whole = std::mem::replace(&mut self.held, rest);
        if !whole.is_empty() {
            (self.sink)(&String::from_utf8_lossy(&whole));
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.publish(self.held.len());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn published(parts: &[&[u8]]) -> Vec<String> {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let into = heard.clone();
        let mut lines = Lines::new(Arc::new(move |text| into.lock().unwrap().push(text.to_owned())));
        parts.iter().for_each(|part| lines.add(part));
        drop(lines);
        Arc::into_inner(heard).unwrap().into_inner().unwrap()
    }

    #[test]
    fn whole_lines_are_published_and_the_rest_at_the_end() {
        assert_eq!(published(&[b"on", b"e\ntw", b"o"]), ["one\n", "two"]);
        assert_eq!(published(&[b"10 %\r20", b" %\r"]), ["10 %\r", "20 %\r"]);
        assert_eq!(published(&[]), [""; 0]);
    }

    #[test]
    fn no_key_is_cut_in_a_long_line() {
        let key = "sk-0123456789";
        let line = format!("{}{key}{}", "x".repeat(LONG - 5), "y".repeat(9));
        let pieces = published(&[&line.as_bytes()[..LONG + 4], &line.as_bytes()[LONG + 4..]]);
        assert!(pieces.len() > 1 && pieces.iter().any(|piece| piece.contains(key)), "{}", pieces.len());
        assert_eq!(pieces.concat(), line);
    }

    #[test]
    fn no_character_is_cut() {
        let line = "ä".repeat(LONG);
        let pieces = published(&[&line.as_bytes()[..LONG + 1], &line.as_bytes()[LONG + 1..]]);
        assert_eq!(pieces.concat(), line);
    }
}
