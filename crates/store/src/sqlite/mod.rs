//! A store in one SQLite file, or in memory.
//!
//! A store in memory is the same without files: one connection, which readers and the writer share, and claims without
//! lock files. The rest of this page is about files.
//!
//! The file holds sessions, records, objects, snapshots, claims and inboxes. It can be read with ordinary SQL
//! (`docs/storage.md`). Acknowledged writes are durable: each commit is synced before it is acknowledged
//! (write-ahead log, `synchronous = FULL`). Other processes may read and write the same file at any time; of
//! two that append to one session at the same position, exactly one succeeds.
//!
//! | module | responsibility |
//! |---|---|
//! | `store`, `port` | the store and what it holds, and the first port |
//! | `open`, `schema`, `options`, `private` | create and migrate the file |
//! | `writer`, `slot`, `watch` | group commit, only to files that are still in place |
//! | `admin`, `queue` | the second port, and the third |
//! | `sql` | statements in one call |
//! | `append`, `read`, `keys` | journals and their checksums |
//! | `objects`, `snapshots`, `inbox` | all other data |
//! | `claims` | claims to sessions, and liveness of their holders |
//! | `index`, `query` | summaries of sessions, and queries over them |
//! | `changes` | what calls changed, by path |
//! | `select` | read-only SQL of people over documented views |
//! | `gc`, `generation`, `size` | garbage collection and disk usage |
//! | `redact`, `redactions`, `remove`, `removals`, `expiry`, `erase` | deletion of values and of sessions |
//! | `verify`, `salvage` | detection of damage, and recovery from it |
//! | `backup`, `bundle`, `new_file` | copies of the store, and sessions that are moved to other stores |
//! | `unfinished` | what killed processes have left of them |
//! | `stage` | sessions of other kinds of stores, on their way to a bundle |
//!
//! Reads, and the commit of a leader (see `writer`), block the thread that polls the future, for as long as
//! the disk takes.

mod admin;
mod append;
mod backup;
mod bundle;
mod changes;
mod claims;
mod contents;
mod counters;
mod erase;
mod error;
mod expiry;
mod gc;
mod generation;
mod inbox;
mod index;
mod keys;
mod mark;
mod new_file;
mod objects;
mod open;
mod options;
mod padded;
mod port;
mod presence;
mod private;
mod query;
mod queue;
mod read;
mod readers;
mod redact;
mod redactions;
mod removals;
mod remove;
mod row;
mod salvage;
mod schema;
mod select;
mod size;
mod slot;
mod snapshots;
mod sql;
#[cfg(feature = "postgres")]
mod stage;
mod store;
mod unfinished;
mod verify;
mod watch;
mod writer;

pub use bundle::Bundle;
#[cfg(feature = "postgres")]
pub(crate) use bundle::{MovedBundle, MovedSession};
pub use counters::Counters;
pub use options::SqliteOptions;
#[cfg(feature = "postgres")]
pub(crate) use stage::{Stage, StagedRecord};
pub use store::SqliteStore;
