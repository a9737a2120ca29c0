//! Resources that take part in snapshots.
//!
//! A [`Snapshotable`] captures its state, and restores it in two steps: *preparing* does everything that can
//! fail, *committing* does the rest. A restore of several resources can therefore be cancelled while any of
//! them refuses.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::session::{BoxError, encode};

/// State that can be captured and restored.
///
/// A resource is a plain value: tools read it through a shared reference and change it through an exclusive
/// one, so it needs no lock of its own. Transactions do not detect changes through a shared reference, by a
/// lock inside of the resource.
///
/// ```
/// use backstitch_core::execution::{PreparedRestore, ResourceSnapshot, Snapshotable};
/// use backstitch_core::session::BoxError;
///
/// struct Counter(u64);
///
/// impl Snapshotable for Counter {
///     fn snapshot_name(&self) -> &'static str {
///         "counter"
///     }
///
///     fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
///         ResourceSnapshot::of(&self.0)
///     }
///
///     fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
///         let number = serde_json::from_value(snapshot.to_json()?)?;
///         Ok(PreparedRestore::replace(Counter(number)))
///     }
/// }
/// ```
pub trait Snapshotable: Sized + Send + Sync + 'static {
    /// Stored name of the state. It must never change.
    fn snapshot_name(&self) -> &'static str;

    /// Captures the current state.
    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError>;

    /// Prepares a restore: does everything that can fail, and changes nothing.
    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError>;
}

/// The second step of a restore: changes the resource.
pub struct PreparedRestore<T>(Box<Commit<T>>);

type Commit<T> = dyn FnOnce(&mut T) -> Result<(), BoxError> + Send;

impl<T> PreparedRestore<T> {
    /// Creates a restore that this function completes.
    pub fn new(commit: impl FnOnce(&mut T) -> Result<(), BoxError> + Send + 'static) -> Self {
        Self(Box::new(commit))
    }

    /// Creates a restore that replaces the resource by another value.
    pub fn replace(value: T) -> Self
    where
        T: Send + 'static,
    {
        Self::new(move |resource| {
            *resource = value;
            Ok(())
        })
    }

    /// Completes the restore.
    pub fn commit(self, resource: &mut T) -> Result<(), BoxError> {
        (self.0)(resource)
    }
}

impl<T> fmt::Debug for PreparedRestore<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PreparedRestore")
    }
}

/// A state in memory.
pub trait LiveSnapshot: Any + Send + Sync {
    /// Encodes the state as plain data, from which another process can restore.
    fn to_json(&self) -> Result<Value, BoxError>;
}

/// The state of one resource: in memory, or as plain data.
#[derive(Clone)]
pub enum ResourceSnapshot {
    /// A state in memory: cheap to capture and to restore.
    Live(Arc<dyn LiveSnapshot>),
    /// Decoded plain data.
    Stored(Value),
}

impl ResourceSnapshot {
    /// Creates a state in memory.
    pub fn live(snapshot: impl LiveSnapshot) -> Self {
        Self::Live(Arc::new(snapshot))
    }

    /// Encodes a state as plain data. Fails for values that JSON would change: numbers that are not finite,
    /// and keys that are not strings.
    pub fn of(state: &impl Serialize) -> Result<Self, BoxError> {
        let (value, _) = encode::to_json(state)?;
        Ok(Self::Stored(value))
    }

    /// Returns the state in memory, if it has this type.
    pub fn downcast<T: LiveSnapshot>(&self) -> Option<&T> {
        match self {
            Self::Live(snapshot) => (&**snapshot as &dyn Any).downcast_ref(),
            Self::Stored(_) => None,
        }
    }

    /// Returns the state as plain data.
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
