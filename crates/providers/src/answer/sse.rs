//! Server-sent events: bytes in, events out, no IO.
//!
//! Bytes may be cut anywhere, also in the middle of a character or between the two bytes of a line end: the events are the
//! same. Lines end with LF, CR or CRLF; comments are ignored; several `data` lines are joined by LF; an event without data is
//! none. What is not valid UTF-8 is replaced. An event that was not ended by an empty line is not an event.

/// The most bytes that one event may have.
const LONGEST_EVENT: usize = 64 * 1024 * 1024;

/// The most bytes that are kept of lines which are no fields.
const LONGEST_STRAY: usize = 64 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its data.
    pub data: String,
}

/// An event is too large to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {LONGEST_EVENT} bytes")]
pub struct EventTooLarge;

/// Decodes one stream.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Whether the last byte was a CR, so that a LF after it ends nothing.
    after_cr: bool,
    /// Whether a line was seen, so that a mark of byte order is looked for once.
    is_started: bool,
    name: String,
    data: Option<String>,
    stray: String,
}

impl SseDecoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in more bytes, and adds the events that they end to `events`.
    pub fn take_in(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
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

    /// What came that is no event: some servers report an error as bare JSON in the middle of a stream. To be asked for at
    /// the end of the stream.
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
