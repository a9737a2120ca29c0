//! Copies of stores whose end is missing.
//!
//! A copy that was aborted half way, or a disk that was full, leaves a file with fewer pages than its header counts, and SQLite
//! refuses such a file as a whole. A copy is filled up with empty pages: what is left can then be read, and the missing pages are
//! damage like any other. The file itself is not changed.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use backstitch_core::ports::OpenError;
use rusqlite::{Connection, OpenFlags};

use super::error::open_error;
use super::new_file::NewFile;
use super::open::connect;
use super::private::{self, beside};

/// Length of the header of a database.
const HEADER: usize = 100;

/// A copy with as many pages as its header counts. Dropping it deletes it.
pub(super) struct PaddedCopy {
    // Closed before the files are deleted.
    connection: Option<Connection>,
    file: NewFile,
}

impl PaddedCopy {
    /// Copies a store that is shorter than its header says. The copy lies beside `to`. Returns `None` if no page is missing.
    ///
    /// The store is opened as a file, which releases the locks that this process holds on it. So it must not be in use, and a store
    /// without its end cannot be.
    pub(super) fn of(from: &Path, to: &Path) -> Result<Option<Self>, OpenError> {
        let failed = |source| OpenError::Io { path: from.to_owned(), source };
        let mut old = File::open(from).map_err(failed)?;
        let mut header = [0; HEADER];
        let Some(whole) = old.read_exact(&mut header).ok().and_then(|()| whole_length(&header)) else {
            return Ok(None);
        };
        if old.metadata().map_err(failed)?.len() >= whole {
            return Ok(None);
        }
        if let Some(parent) = to.parent() {
            private::create_directories(parent)
                .map_err(|source| OpenError::Io { path: to.to_owned(), source })?;
        }
        let file = NewFile::with_data_of(to, to)?;
        let padded = fs::copy(from, file.temporary())
            .and_then(|_| File::options().write(true).open(file.temporary())?.set_len(whole));
        padded.map_err(failed)?;
        let mut copy = Self { connection: None, file };
        let log = beside(from, "-wal");
        if log.exists() {
            copy_private(&log, &copy.beside("-wal")).map_err(failed)?;
        }
        let opened = connect(copy.file.temporary(), OpenFlags::SQLITE_OPEN_READ_WRITE);
        copy.connection = Some(opened.map_err(open_error)?);
        Ok(Some(copy))
    }

    /// Returns the connection to the copy.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        beside(self.file.temporary(), suffix)
    }
}

impl Drop for PaddedCopy {
    fn drop(&mut self) {
        drop(self.connection.take());
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(self.beside(suffix));
        }
    }
}

fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut private::create_file(to)?)?;
    Ok(())
}

/// Returns the length of a database by its header: the size of a page, and their number. `None` if it is not a header.
fn whole_length(header: &[u8; HEADER]) -> Option<u64> {
    let page = match u16::from_be_bytes(header.get(16..18)?.try_into().ok()?) {
        1 => 65_536,
        size if size.is_power_of_two() && size >= 512 => u64::from(size),
        _ => return None,
    };
    let pages = u32::from_be_bytes(header.get(28..32)?.try_into().ok()?);
    header.starts_with(b"SQLite format 3\0").then(|| page * u64::from(pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_from_a_header_and_from_nothing_else() {
        let mut header = [0; HEADER];
        assert_eq!(whole_length(&header), None);
        header[..16].copy_from_slice(b"SQLite format 3\0");
        header[31] = 3;
        assert_eq!(whole_length(&header), None, "a page of no bytes");
        header[16..18].copy_from_slice(&[0x20, 0]);
        assert_eq!(whole_length(&header), Some(3 * 8192));
        header[16..18].copy_from_slice(&[0, 1]);
        assert_eq!(whole_length(&header), Some(3 * 65_536));
        header[0] = b's';
        assert_eq!(whole_length(&header), None);
    }
}
