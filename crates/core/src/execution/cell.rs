//! Storage of a snapshotable resource, and the guards through which it is used.
//!
//! A resource is never returned as an [`Arc`], since that could not be made read-only. A [`ResourceRef`]
//! reads it, a [`ResourceMut`] changes it; both can be held across an await. The hold of a call decides
//! whether it may have a guard, so a guard is never waited for: if it is not available, that is an error.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::snapshotable::{ResourceSnapshot, Snapshotable};
use crate::session::BoxError;

/// A resource cannot be used now, because another guard of it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a guard of the resource is still held; drop it first")]
pub struct ResourceInUse;

/// A snapshotable resource of any type.
#[derive(Clone)]
pub struct SnapshotableResource {
    name: &'static str,
    type_name: &'static str,
    cell: Arc<dyn ErasedResource>,
}

/// A prepared restore of one resource. Calling it completes the restore.
pub(super) type ReadyRestore = Box<dyn FnOnce() -> Result<(), BoxError> + Send>;

impl SnapshotableResource {
    pub(super) fn new<T: Snapshotable>(resource: T) -> Self {
        let (name, type_name) = (resource.snapshot_name(), std::any::type_name::<T>());
        Self { name, type_name, cell: Arc::new(Cell(Mutex::new(Some(Arc::new(resource))))) }
    }

    /// Name of the resource's type, for people.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Stored name of the resource.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Captures the current state. A panic of the resource is an error.
    pub fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        self.cell.snapshot()
    }

    /// Prepares a restore: does everything that can fail, and changes nothing. A panic of the resource is an
    /// error.
    pub(super) fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<ReadyRestore, BoxError> {
        self.cell.clone().prepare(snapshot)
    }

    /// Returns a guard that reads it, if it has this type.
    pub(super) fn read<T: ?Sized + Send + Sync + 'static>(
        &self,
    ) -> Option<Result<ResourceRef<T>, ResourceInUse>> {
        let value = match self.cell.read() {
            Ok(value) => value.downcast::<Arc<T>>().ok()?,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(ResourceRef { value: *value, kind: Kind::Snapshotable }))
    }

    /// Returns a guard that changes it, if it has this type.
    pub(super) fn write<T: Snapshotable>(&self) -> Option<Result<ResourceMut<T>, ResourceInUse>> {
        let cell: Arc<dyn Any + Send + Sync> = self.cell.clone();
        Some(ResourceMut::new(cell.downcast().ok()?))
    }

    /// Returns the result of `inspect`, if the resource has this type.
    pub(super) fn inspect<T: Snapshotable, R>(
        &self,
        inspect: impl FnOnce(&T) -> R,
    ) -> Option<Result<R, ResourceInUse>> {
        let cell: Arc<dyn Any + Send + Sync> = self.cell.clone();
        let cell: Arc<Cell<T>> = cell.downcast().ok()?;
        Some(cell.inspect(inspect))
    }
}

impl fmt::Debug for SnapshotableResource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SnapshotableResource").field(&self.name()).finish()
    }
}

/// Storage of one value. It is empty while a guard changes the value.
struct Cell<T>(Mutex<Option<Arc<T>>>);

impl<T> Cell<T> {
    /// Locks the storage. A poisoned lock means that the resource panicked while it was read; the storage
    /// itself is sound.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inspect<R>(&self, inspect: impl FnOnce(&T) -> R) -> Result<R, ResourceInUse> {
        self.lock().as_deref().map(inspect).ok_or(ResourceInUse)
    }
}

/// Operations of a cell that do not depend on its type.
trait ErasedResource: Any + Send + Sync {
    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError>;
    fn prepare(self: Arc<Self>, snapshot: &ResourceSnapshot) -> Result<ReadyRestore, BoxError>;
    /// Returns an `Arc` of the value.
    fn read(&self) -> Result<Box<dyn Any>, ResourceInUse>;
}

impl<T: Snapshotable> ErasedResource for Cell<T> {
    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        self.inspect(|value| without_panic(|| value.snapshot()))?
    }

    fn prepare(self: Arc<Self>, snapshot: &ResourceSnapshot) -> Result<ReadyRestore, BoxError> {
        let prepared = self.inspect(|value| without_panic(|| value.prepare_restore(snapshot)))??;
        Ok(Box::new(move || {
            let mut value = ResourceMut::new(self)?;
            without_panic(move || prepared.commit(&mut value))
        }))
    }

    fn read(&self) -> Result<Box<dyn Any>, ResourceInUse> {
        Ok(Box::new(self.lock().clone().ok_or(ResourceInUse)?))
    }
}

/// Runs code of a resource, and returns a panic as an error. The caller must not trust the resource after an
/// error.
fn without_panic<R>(work: impl FnOnce() -> Result<R, BoxError>) -> Result<R, BoxError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(format!("it panicked: {}", text.unwrap_or_else(|| "no message".to_owned())).into())
    })
}

/// A guard that reads a resource.
pub struct ResourceRef<T: ?Sized> {
    value: Arc<T>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Snapshotable,
}

impl<T: ?Sized> ResourceRef<T> {
    pub(super) fn ordinary(value: Arc<T>) -> Self {
        Self { value, kind: Kind::Ordinary }
    }

    /// Returns the resource itself, to be kept or passed on. Fails for a snapshotable resource and returns
    /// the guard.
    pub fn into_shared(self) -> Result<Arc<T>, Self> {
        match self.kind {
            Kind::Ordinary => Ok(self.value),
            Kind::Snapshotable => Err(self),
        }
    }
}

impl<T: ?Sized> Deref for ResourceRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ResourceRef<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.value, formatter)
    }
}

/// A guard that changes a snapshotable resource. The resource is unavailable to others while it is held.
pub struct ResourceMut<T: Snapshotable> {
    cell: Arc<Cell<T>>,
    /// Taken when the guard is dropped.
    value: Option<Arc<T>>,
}

impl<T: Snapshotable> ResourceMut<T> {
    fn new(cell: Arc<Cell<T>>) -> Result<Self, ResourceInUse> {
        let mut place = cell.lock();
        match place.take() {
            // Readers are created only under the lock, so an exclusive value stays exclusive.
            Some(value) if Arc::strong_count(&value) == 1 => {
                drop(place);
                Ok(Self { cell, value: Some(value) })
            }
            other => {
                *place = other;
                Err(ResourceInUse)
            }
        }
    }
}

impl<T: Snapshotable> Deref for ResourceMut<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().expect("invariant: a guard has its value until it is dropped")
    }
}

impl<T: Snapshotable> DerefMut for ResourceMut<T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.value.as_mut().expect("invariant: a guard has its value until it is dropped");
        Arc::get_mut(value).expect("invariant: the value was taken out of its place, so nobody else has it")
    }
}

impl<T: Snapshotable> Drop for ResourceMut<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        *self.cell.lock() = value;
    }
}

impl<T: Snapshotable + fmt::Debug> fmt::Debug for ResourceMut<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
