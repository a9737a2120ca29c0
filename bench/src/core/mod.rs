//! The group `core`: operations in memory, without I/O.
//!
//! The aims are that a snapshot and a rollback cost at most a microsecond however much a session holds, and
//! that a dispatch costs the same in an empty session and in one with 100,000 items.

mod records;
mod sessions;

use crate::report::Report;

/// Measures the group.
pub(crate) fn run(report: &mut Report) {
    sessions::run(report);
    records::run(report);
}
