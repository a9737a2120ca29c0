//! The index of a repository, without what git only remembers about files.
//!
//! `git status` writes the index anew to remember the times of files. That changes nothing, so only the
//! modes, objects, flags and paths of the entries count. An index of an unknown form counts as a whole.

/// Length of an entry up to its object: times, device, inode, mode, owner and size.
const STAT: usize = 40;

/// Position of the mode in an entry.
const MODE: std::ops::Range<usize> = 24..28;

/// Adds the entries of an index to a digest.
pub(super) fn update(digest: &mut blake3::Hasher, bytes: &[u8]) {
    let mut entries = blake3::Hasher::new();
    match read(bytes, &mut entries) {
        Some(()) => digest.update(entries.finalize().as_bytes()),
        None => digest.update(bytes),
    };
}

/// Reads versions 2 to 4, with objects of SHA-1. Returns `None` for everything else.
fn read(bytes: &[u8], entries: &mut blake3::Hasher) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    for _ in 0..number(8)? {
        let entry = bytes.get(at..)?;
        let flags = u16::from_be_bytes(*entry.get(STAT + 20..)?.first_chunk()?);
        let is_extended = flags & 0x4000 != 0;
        let head = STAT + 22 + if is_extended { 2 } else { 0 };
        let name = entry.get(head..)?;
        let length = match version {
            4 => prefixed(name)?,
            _ => name.iter().position(|byte| *byte == 0)? + 1,
        };
        entries.update(entry.get(MODE)?).update(entry.get(STAT..head)?).update(&name[..length]);
        at += if version == 4 { head + length } else { (head + length + 7) & !7 };
    }
    Some(())
}

/// Length of a path of version 4 with its end. The number of bytes that the path before has more comes first.
fn prefixed(name: &[u8]) -> Option<usize> {
    let number = name.iter().position(|byte| byte & 0x80 == 0)? + 1;
    Some(number + name[number..].iter().position(|byte| *byte == 0)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(seconds: u8, object: u8, name: &[u8]) -> Vec<u8> {
        let mut bytes = [&b"DIRC"[..], &2_u32.to_be_bytes(), &1_u32.to_be_bytes()].concat();
        bytes.extend([seconds; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([seconds; 12]);
        bytes.extend([object; 20]);
        bytes.extend((name.len() as u16).to_be_bytes());
        bytes.extend(name);
        bytes.extend(std::iter::repeat_n(0, 8 - (62 + name.len()) % 8));
        bytes.extend([seconds; 20]);
        bytes
    }

    fn digest(bytes: &[u8]) -> blake3::Hash {
        let mut digest = blake3::Hasher::new();
        update(&mut digest, bytes);
        digest.finalize()
    }

    #[test]
    fn times_do_not_count_and_entries_do() {
        let one = digest(&index(1, 7, b"a"));
        assert_eq!(one, digest(&index(2, 7, b"a")));
        assert_ne!(one, digest(&index(1, 8, b"a")));
        assert_ne!(one, digest(&index(1, 7, b"b")));
    }

    #[test]
    fn an_unknown_or_damaged_index_counts_as_a_whole() {
        let whole = index(1, 7, b"a");
        for length in 0..whole.len() - 20 {
            let _ = digest(&whole[..length]);
        }
        assert_ne!(digest(b"DIRCx"), digest(b"DIRCy"));
    }
}
