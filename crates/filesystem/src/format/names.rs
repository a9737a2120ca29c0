//! Names and paths as bytes.
//!
//! A path is relative to the workspace, with names joined by `/`; the empty path is the workspace itself. For
//! people, invalid UTF-8 is displayed as replacement characters. Stored text contains such paths
//! percent-encoded.

/// Name of an entry in a directory.
pub type Name = Box<[u8]>;

/// Joins a directory and a name to a path.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + name.len() + 1);
    path.extend_from_slice(directory);
    push(&mut path, name);
    path
}

/// Appends a name to a path.
pub fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// Formats a path for people.
pub fn shown(path: &[u8]) -> String {
    if path.is_empty() { ".".to_owned() } else { String::from_utf8_lossy(path).into_owned() }
}

/// Encodes bytes as printable ASCII. All other bytes, and `%`, become `%` and two hexadecimal digits.
pub fn encode(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | 0..=0x20 | 0x7f.. => {
                // Writing to a string does not fail.
                let _ = write!(text, "%{byte:02x}");
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// Decodes the output of [`encode`], and returns `None` for any other text.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>()?;
        bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    (encode(&bytes).as_bytes() == text).then_some(bytes)
}

/// Divides a path into the directory above it, which is empty at the top, and its name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&path[..0], path),
    }
}

/// Returns whether a path lies below a directory.
pub(super) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Returns whether the bytes are a valid name in a directory.
pub fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Returns whether the bytes are a valid path below the workspace.
pub fn is_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_their_text() {
        for bytes in [&b"plain"[..], b"", b"a b%c", b"\xff\x00\n", "é".as_bytes()] {
            assert_eq!(decode(encode(bytes).as_bytes()).as_deref(), Some(bytes), "{bytes:?}");
        }
        for text in ["%", "%4", "%zz", "%41", "a b", "%FF"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn hostile_paths_are_none() {
        for path in ["", "/", "a/", "/a", "a//b", "..", "a/..", "a/./b", "a\0b"] {
            assert!(!is_path(path.as_bytes()), "{path:?}");
        }
        assert!(is_path(b"a/b\xff/..c"));
    }
}
