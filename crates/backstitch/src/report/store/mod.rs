//! Reports of operations on a whole store.

mod check;
mod erase;
mod moving;

pub use check::{RedactedRecords, StoreBackup, StoreCheck, StoreCollection, StoreSalvage, WrongSnapshot};
pub use erase::{SessionRedaction, SessionRemoval};
pub use moving::{
    BundleExport, GitExport, GitOmission, MarkdownExport, SessionCopy, SessionImport, SessionTransfer,
    UncoveredFile,
};
