//! Keys of a terminal, one at a time.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, OutputModes, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

/// How long the rest of a sequence may take after its first byte, which is that of Esc.
pub(crate) const SEQUENCE: Duration = Duration::from_millis(50);

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Character(char),
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U.
    Erase,
    Tab,
    Up,
    Down,
    PageUp,
    PageDown,
    /// Text follows that was pasted.
    PasteStart,
    /// The pasted text has ended.
    PasteEnd,
    /// Ctrl-C, Ctrl-D, or the terminal is gone.
    End,
    /// A key without a meaning here.
    Other,
}

/// A terminal that reports each key at once, and does not print it. It is restored on drop.
pub(crate) struct Keyboard {
    before: Termios,
    /// Bytes that were read and belong to later keys.
    pending: Vec<u8>,
}

impl Keyboard {
    /// Prepares the terminal. What was typed before is forgotten.
    pub(crate) fn open() -> io::Result<Self> {
        let input = io::stdin();
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        raw.make_raw();
        raw.output_modes |= OutputModes::OPOST;
        tcsetattr(&input, OptionalActions::Now, &raw)?;
        let _ = tcflush(&input, QueueSelector::IFlush);
        Ok(Self { before, pending: Vec::new() })
    }

    /// Waits for a key.
    pub(crate) fn next(&mut self) -> Key {
        loop {
            if self.pending.is_empty() && !self.read(None) {
                return Key::End;
            }
            if self.pending == [0x1b] {
                self.read(Some(SEQUENCE));
            }
            if let Some((key, length)) = decode(&self.pending) {
                self.pending.drain(..length);
                return key;
            }
            // The rest of a character.
            if !self.read(None) {
                return Key::End;
            }
        }
    }

    /// Reads what is there, or waits for it. Returns false if nothing comes.
    fn read(&mut self, most: Option<Duration>) -> bool {
        match read_bytes(most) {
            Ok(bytes) => {
                self.pending.extend_from_slice(&bytes);
                !bytes.is_empty()
            }
            Err(_) => false,
        }
    }
}

/// Reads bytes from standard input. Returns none if nothing comes in time. Fails at its end.
pub(crate) fn read_bytes(most: Option<Duration>) -> io::Result<Vec<u8>> {
    let input = io::stdin();
    let most = most.map(|most| Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() });
    loop {
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut ready, most.as_ref()) {
            Ok(0) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&input, &mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => return Ok(bytes[..count].to_vec()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Decodes the first key of some bytes, and returns its length. `None` if more bytes are needed.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Key, usize)> {
    let (key, length) = match bytes {
        [] => return None,
        [b'\r' | b'\n', ..] => (Key::Enter, 1),
        [b'\t', ..] => (Key::Tab, 1),
        [0x7f | 0x08, ..] => (Key::Backspace, 1),
        [0x03 | 0x04, ..] => (Key::End, 1),
        [0x15, ..] => (Key::Erase, 1),
        // Ctrl-P and Ctrl-N.
        [0x10, ..] => (Key::Up, 1),
        [0x0e, ..] => (Key::Down, 1),
        [0x1b, b'[' | b'O', rest @ ..] => {
            // A sequence ends with its first byte in this range.
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            let Some(end) = end else { return Some((Key::Other, bytes.len())) };
            let key = match (&rest[..end], rest[end]) {
                (b"", b'A') => Key::Up,
                (b"", b'B') => Key::Down,
                (b"5", b'~') => Key::PageUp,
                (b"6", b'~') => Key::PageDown,
                (b"200", b'~') => Key::PasteStart,
                (b"201", b'~') => Key::PasteEnd,
                _ => Key::Other,
            };
            (key, end + 3)
        }
        [0x1b] => (Key::Escape, 1),
        // Alt and a key.
        [0x1b, ..] => (Key::Other, 2),
        [byte, ..] if byte.is_ascii_control() => (Key::Other, 1),
        _ => {
            let most = &bytes[..bytes.len().min(4)];
            let valid = match std::str::from_utf8(most) {
                Ok(text) => text,
                Err(error) if error.valid_up_to() > 0 => {
                    std::str::from_utf8(&most[..error.valid_up_to()]).unwrap_or_default()
                }
                // The rest of the character has not arrived.
                Err(error) if error.error_len().is_none() => return None,
                Err(_) => return Some((Key::Other, 1)),
            };
            let character = valid.chars().next()?;
            (Key::Character(character), character.len_utf8())
        }
    };
    Some((key, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_from_bytes() {
        type Case = (&'static [u8], Option<(Key, usize)>);
        let cases: [Case; 14] = [
            (b"a", Some((Key::Character('a'), 1))),
            ("ä".as_bytes(), Some((Key::Character('ä'), 2))),
            (&[0xc3], None),
            (&[0xff, b'a'], Some((Key::Other, 1))),
            (b"\x1b", Some((Key::Escape, 1))),
            (b"\x1b[A", Some((Key::Up, 3))),
            (b"\x1bOBx", Some((Key::Down, 3))),
            (b"\x1b[6~", Some((Key::PageDown, 4))),
            (b"\x1b[1;5C", Some((Key::Other, 6))),
            (b"\x1b[", Some((Key::Other, 2))),
            (b"\x1bx", Some((Key::Other, 2))),
            (b"\r", Some((Key::Enter, 1))),
            (b"\x03", Some((Key::End, 1))),
            (b"", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
    }
}
