//! The stat cache on disk.
//!
//! It saves the first scan of a process from reading every file. It is optional: a cache that is damaged, of
//! another version or directory, or from before the last boot is ignored, because an unclean shutdown may
//! lose content that the cache vouches for. For the same reason it is written without syncing.
//!
//! It also says which objects the store has, with a mark of the store from before that was asked. If the store has
//! removed anything since, or is another one, the mark does not hold and the store is asked again.
//!
//! The file is `magic`, the digest of the rest, and then the boot id, the directory's device and inode, the mark, and
//! the directories, each with its entries. Numbers are little-endian.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use backstitch_core::object::ObjectId;
use backstitch_core::ports::{StoredMark, UncoveredReason};

use super::index::{DirIndex, Entry, Leaf, LeafFlags, NodeFlags, OmittedPath};
use super::sys::Stamp;

const MAGIC: &[u8; 16] = b"backstitch-stat2";
const MAX_DEPTH: usize = backstitch_filesystem::format::MAX_DEPTH + 2;

/// Boot and directory that a cache belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) boot: String,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Identifies the current boot. `None` if the system does not provide it; then there is no cache on disk.
pub(crate) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty() && text.len() <= 64)
}

/// Writes a cache atomically.
pub(crate) fn save(path: &Path, owner: &Owner, mark: Option<&StoredMark>, root: &DirIndex) -> io::Result<()> {
    let mut body = Writer(Vec::with_capacity(64 * 1024));
    body.bytes(owner.boot.as_bytes());
    body.number(owner.device);
    body.number(owner.inode);
    body.bytes(mark.map_or(&[], StoredMark::as_bytes));
    body.node(root);
    let temporary = path.with_extension("new");
    let mut file = super::private::create_file(&temporary)?;
    file.write_all(MAGIC)?;
    file.write_all(blake3::hash(&body.0).as_bytes())?;
    file.write_all(&body.0)?;
    drop(file);
    fs::rename(temporary, path)
}

/// Reads a cache, and returns `None` unless it can be trusted. What it says about the store is true as long as the mark
/// holds. Without a mark it says nothing.
pub(crate) fn load(path: &Path, owner: &Owner) -> Option<(DirIndex, Option<StoredMark>)> {
    let bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (digest, body) = rest.split_first_chunk::<32>()?;
    if blake3::hash(body).as_bytes() != digest {
        return None;
    }
    let mut reader = Reader(body);
    let written = Owner {
        boot: String::from_utf8(reader.bytes()?.to_vec()).ok()?,
        device: reader.number()?,
        inode: reader.number()?,
    };
    if written != *owner {
        return None;
    }
    let mark = Some(reader.bytes()?).filter(|bytes| !bytes.is_empty()).map(StoredMark::new);
    let mut root = reader.node(0)?;
    if mark.is_none() {
        root.forget_stored();
    }
    reader.0.is_empty().then_some((root, mark))
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn small(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.small(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn stamp(&mut self, stamp: &Stamp) {
        self.number(stamp.device);
        self.number(stamp.inode);
        self.number(stamp.size);
        for (seconds, nanos) in [stamp.mtime, stamp.ctime] {
            self.number(seconds.cast_unsigned());
            self.small(nanos);
        }
    }

    fn id(&mut self, id: Option<ObjectId>) {
        self.0.push(u8::from(id.is_some()));
        self.0.extend(id.iter().flat_map(|id| id.as_bytes()));
    }

    fn node(&mut self, node: &DirIndex) {
        self.stamp(&node.stamp);
        self.small(node.mode);
        self.id(node.tree);
        self.id(node.modes);
        let NodeFlags { sealed, stored, exceptional, refused, attributes, racy, .. } = node.flags;
        self.0.push(bits([sealed, exceptional, refused, attributes, racy, stored]));
        self.small(u32::try_from(node.entries.len()).unwrap_or(u32::MAX));
        for (name, entry) in &node.entries {
            self.bytes(name);
            match entry {
                Entry::File(leaf) => self.leaf(0, leaf),
                Entry::Link(leaf) => self.leaf(1, leaf),
                Entry::Directory(below) => {
                    self.0.push(2);
                    self.node(below);
                }
                Entry::Uncovered(omitted) => {
                    self.0.push(3);
                    self.0.push(omitted.reason.map_or(0, code));
                }
            }
        }
    }

    fn leaf(&mut self, kind: u8, leaf: &Leaf) {
        self.0.push(kind);
        self.stamp(&leaf.stamp);
        self.small(leaf.mode);
        self.0.extend_from_slice(leaf.id.as_bytes());
        let LeafFlags { racy, linked, attributes, stored } = leaf.flags;
        self.0.push(bits([racy, linked, attributes, stored, false, false]));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.small()?;
        self.take(usize::try_from(count).ok()?)
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let (device, inode, size) = (self.number()?, self.number()?, self.number()?);
        let mut time = || Some((self.number()?.cast_signed(), self.small()?));
        Some(Stamp { device, inode, size, mtime: time()?, ctime: time()? })
    }

    fn object(&mut self) -> Option<ObjectId> {
        Some(ObjectId::from_bytes(self.take(20)?.try_into().ok()?))
    }

    fn id(&mut self) -> Option<Option<ObjectId>> {
        match self.byte()? {
            0 => Some(None),
            _ => self.object().map(Some),
        }
    }

    fn node(&mut self, depth: usize) -> Option<DirIndex> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (stamp, mode) = (self.stamp()?, self.small()?);
        let (tree, modes) = (self.id()?, self.id()?);
        let [sealed, exceptional, refused, attributes, racy, stored] = unbits(self.byte()?);
        let flags =
            NodeFlags { sealed, stored, exceptional, refused, attributes, racy, ..NodeFlags::default() };
        let mut node = DirIndex { stamp, mode, tree, modes, flags, entries: Vec::new() };
        for _ in 0..self.small()? {
            let name = self.bytes()?.into();
            let entry = match self.byte()? {
                0 => Entry::File(self.leaf()?),
                1 => Entry::Link(self.leaf()?),
                2 => Entry::Directory(Box::new(self.node(depth + 1)?)),
                _ => Entry::Uncovered(OmittedPath { reason: reason(self.byte()?), bytes: None }),
            };
            node.entries.push((name, entry));
        }
        Some(node)
    }

    fn leaf(&mut self) -> Option<Leaf> {
        let (stamp, mode, id) = (self.stamp()?, self.small()?, self.object()?);
        let [racy, linked, attributes, stored, ..] = unbits(self.byte()?);
        Some(Leaf { stamp, mode, id, flags: LeafFlags { racy, linked, attributes, stored } })
    }
}

fn bits(flags: [bool; 6]) -> u8 {
    flags.iter().enumerate().fold(0, |bits, (at, flag)| bits | (u8::from(*flag) << at))
}

fn unbits(bits: u8) -> [bool; 6] {
    std::array::from_fn(|at| bits & (1 << at) != 0)
}

/// Reasons for which a scan omits a path.
const REASONS: [UncoveredReason; 8] = [
    UncoveredReason::OwnRepository,
    UncoveredReason::OwnFiles,
    UncoveredReason::Excluded,
    UncoveredReason::TooLarge,
    UncoveredReason::IgnoredBudget,
    UncoveredReason::Special,
    UncoveredReason::Unreadable,
    UncoveredReason::TooDeep,
];

fn code(reason: UncoveredReason) -> u8 {
    REASONS.iter().position(|other| *other == reason).map_or(0, |at| at as u8 + 1)
}

fn reason(code: u8) -> Option<UncoveredReason> {
    REASONS.get(usize::from(code).checked_sub(1)?).copied()
}
