//! The values that operations of [`Runtime`](crate::Runtime) return. As JSON, each is what the command prints with `--json`.
//!
//! The JSON is stable: fields may be added, and those that exist keep their names and meanings. A missing value is `null`, unless
//! its field says that it is left out. Text for people is made from the same values, by the program that prints them.

mod look;
mod models;
mod store;

pub use crate::agent_file::{ListedModel, ServerModels};
pub use backstitch_runtime::{
    ApplyReport, ApprovalOutcome, CompactReport, DecidedCall, DecisionReport, DiscardedEffect,
    EnqueuedSession, FileRestoreReport, ForkReport, IndexCheck, ResolutionReport, RestoredChange,
    RestoredEvent, RestoredFile, RestoredFiles, RewindReport, ScheduleList, ScheduledSession, SentItem,
    Version,
};
pub use look::*;
pub use models::ModelsReport;
pub use store::*;
