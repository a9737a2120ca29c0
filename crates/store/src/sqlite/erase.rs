//! Erasure: removes what was deleted from the files of the store as well.
//!
//! SQLite keeps deleted content in free pages, in the free space of pages, and in its log. While data is
//! deleted on purpose, freed space is overwritten (`secure_delete = ON`; `FAST` would leave some of it).
//! Content that was freed earlier, such as a replaced snapshot or an inbox item that was taken, may hold the
//! same data, and cannot be found by searching, since it may be compressed. So the file is rebuilt
//! (`VACUUM`), and then the log is copied into it and truncated. SQLite reports success even if a reader
//! prevents that, so its answer is checked.
//!
//! Rebuilding needs as much free space as the store has content, twice, and blocks other writers meanwhile.

use backstitch_core::crash_point;
use backstitch_core::ports::{Erasure, StoreError};
use rusqlite::Connection;

use super::error::{Failure, chain_of};
use super::writer::{Writer, transaction};

/// Sets whether freed space is overwritten.
pub(super) fn overwrite(connection: &Connection, mode: OverwriteMode) -> Result<(), Failure> {
    let sql = match mode {
        OverwriteMode::On => "PRAGMA secure_delete = ON",
        OverwriteMode::Off => "PRAGMA secure_delete = OFF",
    };
    let set: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if mode == OverwriteMode::On && set != 1 {
        return Err(StoreError::Backend("SQLite does not overwrite deleted content".into()).into());
    }
    Ok(())
}

/// Whether freed space is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverwriteMode {
    On,
    Off,
}

/// Runs a deletion in one transaction, during which freed space is overwritten.
pub(super) fn overwriting<T>(
    writer: &Writer,
    run: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, StoreError> {
    writer.alone(|connection| {
        overwrite(connection, OverwriteMode::On)?;
        let result = transaction(connection, || run(connection));
        // Left on, it costs time and does no harm.
        let _ = overwrite(connection, OverwriteMode::Off);
        result
    })
}

/// Rebuilds the file and truncates the log. The deletion itself is durable already, so a failure is not an
/// error: it is reported, and the operation can be repeated.
pub(super) fn erase(writer: &Writer) -> Erasure {
    let rebuilt = writer.alone(|connection| {
        connection.execute_batch("VACUUM")?;
        Ok(())
    });
    if let Err(error) = rebuilt {
        let reason = format!("the file could not be rebuilt: {}", chain_of(&error));
        return Erasure::Pending { reason };
    }
    crash_point!("erase.rebuilt");
    let truncated = writer.alone(|connection| {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    let reason = match truncated {
        Ok(0) => return Erasure::Complete,
        Ok(_) => "another process reads the store, so its log could not be truncated".to_owned(),
        Err(error) => format!("the log could not be truncated: {}", chain_of(&error)),
    };
    Erasure::Pending { reason }
}
