//! Resources that take part in snapshots.
//!
//! A [`Snapshotable`] captures its state, and restores it in two steps: *preparing* does everything that can fail, *committing*
//! does the rest. So a restore of several resources can be called off as long as any of them refuses.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::session::{BoxError, encode};

/// State that can be captured and restored.
///
/// A resource is a plain value: tools read it through a shared reference and change it through an exclusive one, so it needs no
/// lock of its own. What is changed behind a shared reference, by a lock inside of the resource, is not seen by a transaction.
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
    /// The name under which the state is stored. It must never change.
    fn snapshot_name(&self) -> &'static str;

    /// Captures the state as it is now.
    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError>;

    /// Does everything of a restore that can fail, and changes nothing.
    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError>;
}

/// The second half of a restore: changes the resource.
pub struct PreparedRestore<T>(Box<Commit<T>>);

type Commit<T> = dyn FnOnce(&mut T) -> Result<(), BoxError> + Send;

impl<T> PreparedRestore<T> {
    /// A restore that this function completes.
    pub fn new(commit: impl FnOnce(&mut T) -> Result<(), BoxError> + Send + 'static) -> Self {
        Self(Box::new(commit))
    }

    /// A restore that puts another value in the place of the resource.
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

    /// A state as plain data. What JSON would change is refused: numbers that are not finite, and keys that are not strings.
    pub fn of(state: &impl Serialize) -> Result<Self, BoxError> {
        let (value, _) = encode::to_json(state)?;
        Ok(Self::Stored(value))
    }

    /// The state in memory, when it is one of this type.
    pub fn downcast<T: LiveSnapshot>(&self) -> Option<&T> {
        match self {
            Self::Live(snapshot) => (&**snapshot as &dyn Any).downcast_ref(),
            Self::Stored(_) => None,
        }
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
