//! Execution state: everything that can change while a prompt is evaluated.
//!
//! [`Resources`] are what tools use besides the session. A [`CompositeSnapshot`] covers the session and all
//! snapshotable resources. For callers without a journal, [`ExecutionState`] is the root of all state, with the
//! random number generator and the checkpoints. A restore is atomic: every part is prepared before any is
//! changed.

mod call_resources;
mod cell;
mod composite;
mod error;
mod files;
mod resources;
mod snapshotable;
mod state;

pub use call_resources::{CallResources, ResourceError};
pub use cell::{ResourceInUse, ResourceMut, ResourceRef, SnapshotableResource};
pub use composite::{
    COMPOSITE_VERSION, CompositeSnapshot, SnapshotMetadata, SnapshotPhase, snapshots_equivalent,
};
pub use error::{ExecutionStateError, RestoreFailedError};
pub use files::{WorkspaceResource, WorkspaceState};
pub use resources::{ResourceScope, Resources, ResourcesBuilder, ResourcesError};
pub use snapshotable::{LiveSnapshot, PreparedRestore, ResourceSnapshot, Snapshotable};
pub use state::{CheckpointStore, DEFAULT_CAPACITY, ExecutionState, ToolCheckpoint};
