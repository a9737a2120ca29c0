//! What takes part in a snapshot of everything.
//!
//! A [`Snapshotable`] captures its state and puts it back in two steps: *preparing* does all that can fail, *committing* does
//! the rest. So a restore of several things can be called off as long as any of them refuses.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::session::BoxError;

/// State that can be captured and put back.
pub trait Snapshotable: Any + Send + Sync {
    /// The name under which the state is stored. It must never change.
    fn snapshot_name(&self) -> &'static str;

    /// Captures the state as it is now.
    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError>;

    /// Does all of a restore that can fail, and nothing that shows.
    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore, BoxError>;
}

/// The second half of a restore.
pub struct PreparedRestore(Box<dyn FnOnce() -> Result<(), BoxError> + Send>);

impl PreparedRestore {
    /// A restore that this function completes.
    pub fn new(commit: impl FnOnce() -> Result<(), BoxError> + Send + 'static) -> Self {
        Self(Box::new(commit))
    }

    /// Completes the restore.
    pub fn commit(self) -> Result<(), BoxError> {
        (self.0)()
    }
}

impl fmt::Debug for PreparedRestore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PreparedRestore")
    }
}

/// A state that is still in memory.
pub trait LiveSnapshot: Any + Send + Sync {
    /// The state as plain data, from which another process can restore.
    fn to_json(&self) -> Result<Value, BoxError>;
}

/// The state of one resource: still in memory, or as plain data.
#[derive(Clone)]
pub enum ResourceSnapshot {
    /// In memory: cheap to take and to restore.
    Live(Arc<dyn LiveSnapshot>),
    /// As plain data, as it was read.
    Stored(Value),
}

impl ResourceSnapshot {
    /// A state in memory.
    pub fn live(snapshot: impl LiveSnapshot) -> Self {
        Self::Live(Arc::new(snapshot))
    }

    /// The state in memory, when it is one of this type.
    pub fn downcast<T: LiveSnapshot>(&self) -> Option<&T> {
        match self {
            Self::Live(snapshot) => (&**snapshot as &dyn Any).downcast_ref(),
            Self::Stored(_) => None,
        }
    }

    /// What of the state is content. Objects that are brought along (a field `objects`) are named by the rest already, and
    /// whether they have to be brought says nothing about the state.
    pub fn content(&self) -> Result<Value, BoxError> {
        let mut value = self.to_json()?;
        if let Some(fields) = value.as_object_mut() {
            fields.remove("objects");
        }
        Ok(value)
    }

    /// The state as plain data.
    pub fn to_json(&self) -> Result<Value, BoxError> {
        match self {
            Self::Live(snapshot) => snapshot.to_json(),
            Self::Stored(value) => Ok(value.clone()),
        }
    }
}

impl fmt::Debug for ResourceSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live(_) => formatter.write_str("Live"),
            Self::Stored(value) => formatter.debug_tuple("Stored").field(value).finish(),
        }
    }
}
