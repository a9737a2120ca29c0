//! Server-sent events: bytes in, events out, no IO.
//!
//! Bytes may be split anywhere, also in the middle of a character or between the two bytes of a line end; the
//! events are the same. Lines end with LF, CR or CRLF; comments are ignored; several `data` lines are joined
//! by LF; an event without data is dropped. Invalid UTF-8 is replaced. An event that is not ended by an empty
//! line is dropped.

/// The maximum size of one event in bytes.
const LONGEST_EVENT: usize = 64 * 1024 * 1024;

/// The maximum number of bytes kept of lines that are not fields.
const LONGEST_STRAY: usize = 64 * 1024;

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The value of the `event` field; empty without one.
    pub name: String,
    /// The `data` lines, joined by LF.
    pub data: String,
}

/// An event exceeds the size limit of the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {LONGEST_EVENT} bytes")]
pub struct EventTooLarge;

/// Decodes one stream.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The current line, up to the last byte received.
    line: Vec<u8>,
    /// Whether the last byte was a CR: a LF after it belongs to the same line end.
    after_cr: bool,
    /// Whether a line was seen. A byte order mark is stripped from the first line only.
    is_started: bool,
    name: String,
    data: Option<String>,
    stray: String,
}

impl SseDecoder {
    /// Creates a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes more bytes, and appends the completed events to `events`.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            self.end_line(events)?;
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
        }
        self.line.extend_from_slice(rest);
        self.check()
    }

    /// Returns the received lines that belong to no event, at the end of the stream. Some servers report an
    /// error as bare JSON in the middle of a stream.
    pub fn into_stray(mut self) -> String {
        let line = std::mem::take(&mut self.line);
        self.keep_stray(&String::from_utf8_lossy(&line));
        self.stray
    }

    fn check(&self) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held > LONGEST_EVENT { Err(EventTooLarge) } else { Ok(()) }
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        self.check()?;
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !self.is_started {
            self.is_started = true;
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                events.push(SseEvent { name, data });
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.name = value.to_owned(),
            "" | "id" | "retry" => {}
            _ => self.keep_stray(line),
        }
        Ok(())
    }

    fn keep_stray(&mut self, line: &str) {
        if !line.is_empty() && self.stray.len() + line.len() < LONGEST_STRAY {
            self.stray.push_str(line);
            self.stray.push('\n');
        }
    }
}
