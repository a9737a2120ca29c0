//! Values about the history of sessions: rewinds, restores, forks and applied changes.

pub use backstitch_runtime::{
    ApplyReport, DiscardedEffect, FileRestoreReport, ForkReport, RestoredChange, RestoredEvent, RestoredFile,
    RestoredFiles, RewindReport,
};
