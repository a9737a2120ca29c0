//! Reads files and links, or trusts the result of an earlier read.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::UncoveredReason;

use super::walk::{VisitOutcome, uncovered};
use super::{Purpose, Scan, Stop};
use crate::host::index::{Entry, Leaf, LeafFlags, OmittedPath};
use crate::host::sys::{self, EntryStat, Stamp, is_gone};

/// Maximum number of attempts to read a file that changes during the read.
const ATTEMPTS: usize = 3;

/// Systems stamp files with a clock that advances in steps of some milliseconds.
const STEP: Duration = Duration::from_millis(20);

/// Some filesystems store whole seconds, or every second one.
const COARSE_STEP: Duration = Duration::from_millis(2_500);

/// Start time of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanStart {
    fine: (i64, u32),
    coarse: (i64, u32),
}

impl ScanStart {
    pub(super) fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let before = |step| {
            let time = now.saturating_sub(step);
            (i64::try_from(time.as_secs()).unwrap_or(i64::MAX), time.subsec_nanos())
        };
        Self { fine: before(STEP), coarse: before(COARSE_STEP) }
    }

    /// Returns whether a file could change after this scan without a change of its stamp.
    pub(super) fn is_racy(&self, stamp: &Stamp) -> bool {
        let coarse = stamp.mtime.1 == 0 && stamp.ctime.1 == 0;
        stamp.mtime.max(stamp.ctime) >= if coarse { self.coarse } else { self.fine }
    }
}

impl Scan<'_> {
    pub(super) fn file(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        found: EntryStat,
        previous: Option<Leaf>,
    ) -> Result<VisitOutcome, Stop> {
        let size = found.stamp.size;
        if size > self.limits.file_bytes {
            return Ok(uncovered(UncoveredReason::TooLarge, Some(size)));
        }
        if let Some(leaf) = self.reuse_leaf(&found, previous) {
            return Ok(VisitOutcome::Entry(Entry::File(leaf)));
        }
        // A restore does not need the content of new files, or of files whose size differs.
        if self.purpose == Purpose::Restore && previous.is_none_or(|leaf| leaf.stamp.size != size) {
            return Ok(unread());
        }
        // What waits for an answer may be new, and is spent then.
        if self.limits.spend.is_some_and(|left| size.saturating_add(self.waiting_bytes) > left) {
            self.ask()?;
        }
        if self.limits.spend.is_some_and(|left| size > left) {
            return Ok(uncovered(UncoveredReason::TooLarge, Some(size)));
        }
        self.read += 1;
        let content = match read_file(directory, name, self.limits.file_bytes) {
            Ok(content) => content,
            Err(error) => return self.unreadable(error, size),
        };
        if content.bytes.len() as u64 > self.limits.file_bytes {
            return Ok(uncovered(UncoveredReason::TooLarge, Some(content.found.stamp.size)));
        }
        let stamp = content.found.stamp;
        let racy = !content.steady || self.started.is_racy(&stamp);
        let id = self.give(Object::blob(content.bytes))?;
        let (linked, attributes) = (content.found.links > 1, content.attributes);
        let flags = LeafFlags { racy, stored: false, linked, attributes };
        Ok(VisitOutcome::Entry(Entry::File(Leaf { stamp, mode: content.found.mode, id, flags })))
    }

    pub(super) fn link(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        found: EntryStat,
        previous: Option<Leaf>,
    ) -> Result<VisitOutcome, Stop> {
        if let Some(leaf) = self.reuse_leaf(&found, previous) {
            return Ok(VisitOutcome::Entry(Entry::Link(leaf)));
        }
        if self.purpose == Purpose::Restore && previous.is_none() {
            return Ok(unread());
        }
        self.read += 1;
        let target = match read_link(directory, name) {
            Ok(target) => target,
            Err(error) => return self.unreadable(error, found.stamp.size),
        };
        let id = self.give(Object::blob(target))?;
        let flags = LeafFlags { racy: self.started.is_racy(&found.stamp), ..LeafFlags::default() };
        Ok(VisitOutcome::Entry(Entry::Link(Leaf { stamp: found.stamp, mode: 0, id, flags })))
    }

    /// Returns the known state of a file, if it cannot have changed and the store has its content.
    fn reuse_leaf(&self, found: &EntryStat, previous: Option<Leaf>) -> Option<Leaf> {
        let mut leaf = previous.filter(|leaf| !leaf.flags.racy && leaf.stamp == found.stamp)?;
        // A changed mode shows in the stamp. Links have none.
        leaf.flags.linked &= found.links > 1;
        // The object of an earlier capture may not have been stored.
        (leaf.flags.stored || self.purpose == Purpose::Restore).then_some(leaf)
    }

    fn unreadable(&self, error: io::Error, size: u64) -> Result<VisitOutcome, Stop> {
        match error.kind() {
            _ if is_gone(&error) => Ok(VisitOutcome::Nothing),
            io::ErrorKind::PermissionDenied => Ok(uncovered(UncoveredReason::Unreadable, Some(size))),
            _ => Err(sys::io_error(&self.path, error).into()),
        }
    }
}

fn unread() -> VisitOutcome {
    VisitOutcome::Entry(Entry::Uncovered(OmittedPath { reason: None, bytes: None }))
}

struct Content {
    bytes: Vec<u8>,
    found: EntryStat,
    attributes: bool,
    /// True if it did not change while it was read.
    steady: bool,
}

fn read_file(
    directory: BorrowedFd<'_>,
    name: impl rustix::path::Arg + Copy,
    limit: u64,
) -> io::Result<Content> {
    let mut attempt = 1;
    loop {
        let (file, found) = sys::open_file(directory, name)?;
        let attributes = has_attributes(file.as_fd());
        let file = File::from(file);
        let capacity = usize::try_from(found.stamp.size.min(limit)).unwrap_or(0);
        let mut bytes = Vec::with_capacity(capacity + 1);
        (&file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        let steady = sys::file_stat(&file)?.stamp == found.stamp && bytes.len() as u64 == found.stamp.size;
        if steady || attempt == ATTEMPTS {
            return Ok(Content { bytes, found, attributes, steady });
        }
        attempt += 1;
    }
}

fn read_link(directory: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes())
}

/// Returns whether a file has this content now.
pub(crate) fn has_content(directory: BorrowedFd<'_>, name: &[u8], content: &[u8]) -> io::Result<bool> {
    Ok(read_file(directory, name, content.len() as u64)?.bytes == content)
}

/// Computes the id of a link's current content.
pub(crate) fn hash_link(directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<ObjectId> {
    Ok(Object::blob(read_link(directory, name)?).id())
}

/// Returns whether a file has extended attributes or access lists, which a restore would not set.
pub(super) fn has_attributes(file: BorrowedFd<'_>) -> bool {
    let mut buffer = [0_u8; 1024];
    match rustix::fs::flistxattr(file, &mut buffer[..]) {
        Ok(length) => buffer[..length].split(|byte| *byte == 0).any(|name| {
            // Labels that the system gives to every file.
            !name.is_empty() && name != b"security.selinux" && !name.starts_with(b"com.apple.")
        }),
        // A list that does not fit is not empty.
        Err(rustix::io::Errno::RANGE) => true,
        Err(_) => false,
    }
}
