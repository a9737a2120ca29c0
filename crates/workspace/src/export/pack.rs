//! Packs: many objects in one file, with an index.
//!
//! A pack is a header, each object deflated after its kind and size, and the SHA-1 of all that. The index
//! (version 2) contains the sorted ids with the offset and the checksum of each object.

use std::io::{self, Write};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use sha1_checked::{Digest as _, Sha1};

/// Writes a pack.
pub(super) struct PackWriter<W> {
    output: HashingWriter<W>,
    entries: Vec<(ObjectId, u32, u64)>,
}

/// Offsets of objects in a pack.
pub(super) struct PackIndex {
    entries: Vec<(ObjectId, u32, u64)>,
    checksum: [u8; 20],
}

impl<W: Write> PackWriter<W> {
    /// Begins a pack of `count` objects.
    pub(super) fn new(output: W, count: u32) -> io::Result<Self> {
        let mut output = HashingWriter { output, hasher: Sha1::new(), written: 0, crc: Crc::new() };
        output.write_all(b"PACK")?;
        output.write_all(&2_u32.to_be_bytes())?;
        output.write_all(&count.to_be_bytes())?;
        Ok(Self { output, entries: Vec::with_capacity(count as usize) })
    }

    pub(super) fn add(&mut self, object: &Object) -> io::Result<()> {
        let start = self.output.written;
        self.output.crc = Crc::new();
        self.output.write_all(&header(object.kind(), object.bytes().len()))?;
        let mut encoder = ZlibEncoder::new(&mut self.output, Compression::default());
        encoder.write_all(object.bytes())?;
        encoder.finish()?;
        self.entries.push((object.id(), self.output.crc.sum(), start));
        Ok(())
    }

    /// Writes the checksum that ends the pack.
    pub(super) fn finish(mut self) -> io::Result<(W, PackIndex)> {
        let checksum: [u8; 20] = self.output.hasher.finalize().into();
        self.output.output.write_all(&checksum)?;
        self.entries.sort_unstable();
        Ok((self.output.output, PackIndex { entries: self.entries, checksum }))
    }
}

/// Encodes the kind and the size of an object in groups of seven bits.
fn header(kind: ObjectKind, size: usize) -> Vec<u8> {
    let kind: u8 = match kind {
        ObjectKind::Commit => 1,
        ObjectKind::Tree => 2,
        // There are no other kinds in a root.
        _ => 3,
    };
    let mut bytes = Vec::with_capacity(10);
    let mut byte = (kind << 4) | (size & 0x0f) as u8;
    let mut rest = size >> 4;
    while rest > 0 {
        bytes.push(byte | 0x80);
        byte = (rest & 0x7f) as u8;
        rest >>= 7;
    }
    bytes.push(byte);
    bytes
}

impl PackIndex {
    /// Name that git gives to the pack.
    pub(super) fn name(&self) -> String {
        format!("pack-{}", ObjectId::from_bytes(self.checksum))
    }

    /// Encodes the index.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0xff, b't', b'O', b'c', 0, 0, 0, 2];
        for first in 0..=255_u8 {
            let count = self.entries.partition_point(|(id, ..)| id.as_bytes()[0] <= first);
            bytes.extend_from_slice(&(count as u32).to_be_bytes());
        }
        self.entries.iter().for_each(|(id, ..)| bytes.extend_from_slice(id.as_bytes()));
        self.entries.iter().for_each(|(_, crc, _)| bytes.extend_from_slice(&crc.to_be_bytes()));
        // Offsets beyond 31 bits are in a separate table.
        let mut far: Vec<u64> = Vec::new();
        for (.., at) in &self.entries {
            let place = match u32::try_from(*at) {
                Ok(near) if near < 0x8000_0000 => near,
                _ => {
                    far.push(*at);
                    0x8000_0000 | (far.len() - 1) as u32
                }
            };
            bytes.extend_from_slice(&place.to_be_bytes());
        }
        far.iter().for_each(|at| bytes.extend_from_slice(&at.to_be_bytes()));
        bytes.extend_from_slice(&self.checksum);
        let mut hasher = Sha1::new();
        hasher.update(&bytes);
        let checksum: [u8; 20] = hasher.finalize().into();
        bytes.extend_from_slice(&checksum);
        bytes
    }
}

/// Hashes and counts written bytes.
struct HashingWriter<W> {
    output: W,
    hasher: Sha1,
    crc: Crc,
    written: u64,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.output.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.crc.update(&bytes[..count]);
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
