//! A look at a message while it is read, before anything is built from it.
//!
//! Parsed JSON can take a hundred times the memory of its text, and deep nesting exhausts the stack. So the bytes are
//! counted, with their depth and their values, and a message over a limit is never parsed. The id of the answered
//! request is found on the way, so that its caller learns why there is no result.

use rmcp::model::RequestId;

/// The largest message of a server, in bytes.
pub(in super::super) const LARGEST: usize = 8 * 1024 * 1024;

/// The deepest nesting. Journals are written with a little more.
const DEEPEST: usize = 96;

/// The most values of a message. An object counts as several, because it takes as much memory.
const MOST_VALUES: usize = 250_000;

const OBJECT_COST: usize = 4;

/// The longest id of a request that is recognized, in bytes.
const LONGEST_ID: usize = 64;

/// Why a message is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    #[error("it has more than {} MiB", LARGEST / 1024 / 1024)]
    Bytes,
    #[error("it is nested more than {DEEPEST} levels deep")]
    Depth,
    #[error("it has more than {MOST_VALUES} values")]
    Values,
}

/// What is known of a message whose bytes were seen.
#[derive(Debug, Default)]
pub(super) struct Scan {
    bytes: usize,
    depth: usize,
    values: usize,
    /// Why the message is not read, if a limit is exceeded.
    pub(super) excess: Option<Excess>,
    is_string: bool,
    is_escaped: bool,
    /// Whether the next text of the outermost object is a key.
    is_key: bool,
    key: Vec<u8>,
    is_id: bool,
    id: Vec<u8>,
    has_method: bool,
}

impl Scan {
    /// Looks at the next bytes of the message.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > LARGEST {
            self.exceed(Excess::Bytes);
        }
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        let is_outermost = self.depth == 1;
        if self.is_string {
            if is_outermost && self.is_key && (self.is_escaped || byte != b'"') && self.key.len() < 8 {
                self.key.push(byte);
            }
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_string = false,
                _ => {}
            }
            self.take_id(byte);
            return;
        }
        match byte {
            b'{' | b'[' => {
                self.depth += 1;
                self.count(if byte == b'{' { OBJECT_COST } else { 1 });
                if self.depth > DEEPEST {
                    self.exceed(Excess::Depth);
                }
                self.is_key = self.depth == 1;
                self.key.clear();
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_id &= !is_outermost;
            }
            b',' => {
                self.count(1);
                if is_outermost {
                    (self.is_key, self.is_id) = (true, false);
                    self.key.clear();
                }
            }
            b':' if is_outermost && self.is_key => {
                self.is_key = false;
                self.has_method |= self.key == b"method";
                if self.key == b"id" {
                    self.is_id = true;
                    self.id.clear();
                }
                return;
            }
            b'"' => self.is_string = true,
            _ => {}
        }
        self.take_id(byte);
    }

    fn take_id(&mut self, byte: u8) {
        if self.is_id && self.depth == 1 && self.id.len() <= LONGEST_ID {
            self.id.push(byte);
        }
    }

    fn count(&mut self, cost: usize) {
        self.values = self.values.saturating_add(cost);
        if self.values > MOST_VALUES {
            self.exceed(Excess::Values);
        }
    }

    fn exceed(&mut self, excess: Excess) {
        self.excess.get_or_insert(excess);
    }

    /// Returns the id of the request that the message answers.
    pub(super) fn answered(&self) -> Option<RequestId> {
        let is_answer = !self.has_method && !self.is_id && self.id.len() <= LONGEST_ID;
        serde_json::from_slice(&self.id).ok().filter(|_| is_answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Scan {
        let mut scan = Scan::default();
        // In pieces, as they come.
        for piece in text.as_bytes().chunks(3) {
            scan.feed(piece);
        }
        scan
    }

    #[test]
    fn the_answered_request_is_found_wherever_it_stands() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":9}}"#, Some("7")),
            (r#"{"result":{"id":9,"a":[{"id":1}]}, "id" : 7 }"#, Some("7")),
            (r#"{"a":"\"id\":3,","id":"x-1"}"#, Some("x-1")),
            (r#"{"a":"}{","b":["]"],"id":12}"#, Some("12")),
            (r#"{"id":5,"method":"sampling/createMessage"}"#, None),
            (r#"{"result":{"id":9}}"#, None),
            (r#"{"value":"id","id":null}"#, None),
            (r#"[{"id":4}]"#, None),
            ("", None),
        ] {
            assert_eq!(scan(text).answered().map(|id| id.to_string()).as_deref(), id, "{text}");
            assert_eq!(scan(text).excess, None, "{text}");
        }
    }

    #[test]
    fn limits_are_noticed_and_the_id_still_found() {
        let deep = format!(r#"{{"result":{}{},"id":1}}"#, "[".repeat(3000), "]".repeat(3000));
        let many = format!(r#"{{"result":[{}0],"id":2}}"#, "{},".repeat(100_000));
        let large = format!(r#"{{"result":"{}","id":3}}"#, "a".repeat(LARGEST));
        let texts = [(deep, Excess::Depth, "1"), (many, Excess::Values, "2"), (large, Excess::Bytes, "3")];
        for (text, excess, id) in texts {
            let mut scan = Scan::default();
            scan.feed(text.as_bytes());
            assert_eq!(scan.excess, Some(excess));
            assert_eq!(scan.answered().map(|id| id.to_string()).as_deref(), Some(id));
        }
    }
}
