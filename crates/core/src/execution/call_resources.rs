//! The resources of one call.
//!
//! Ordinary resources are shared. When the call ends, its own ones are closed in reverse order of creation;
//! when it fails, session resources that it was the first to create are closed and dropped too. Snapshotable
//! resources are used through guards, as far as the tool declares their use; the first guard that changes one
//! captures the state for a rollback.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cell::{ResourceInUse, ResourceMut, ResourceRef};
use super::resources::{AnyResource, Instances, ResourceInstance, ResourceScope, Resources, close_all, lock};
use super::snapshotable::{ResourceSnapshot, Snapshotable};
use crate::session::BoxError;
use crate::tool_spec::ResourceUse;

/// A resource is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The maker of the resource failed.
    #[error("the resource {resource} could not be created")]
    Provider {
        /// The type.
        resource: &'static str,
        /// Error of the maker.
        #[source]
        source: BoxError,
    },
    /// The maker of the resource requests the resource itself.
    #[error("creating the resource {resource} requires the resource itself")]
    Circular {
        /// The type.
        resource: &'static str,
    },
    /// The tool does not declare this use of snapshotable resources.
    #[error(
        "the tool does not declare that it uses the resource {resource} in this way: it needs `resources = {needed:?}`"
    )]
    NotDeclared {
        /// The type.
        resource: &'static str,
        /// Use that the tool has to declare: "read" or "write".
        needed: &'static str,
    },
    /// The session is a child session of a call that does not lend it this use of the resource.
    #[error("the resource {resource} is lent to this session for less than `resources = {needed:?}`")]
    NotLent {
        /// The type.
        resource: &'static str,
        /// Use that the call would have to lend: "read" or "write".
        needed: &'static str,
    },
    /// A guard of the resource is held.
    #[error("the resource {resource} cannot be used")]
    InUse {
        /// The type.
        resource: &'static str,
        /// Reason for the failure.
        #[source]
        source: ResourceInUse,
    },
    /// The state could not be captured, so a rollback could not restore it.
    #[error("the resource {resource} cannot be changed, because its state could not be captured")]
    Capture {
        /// The type.
        resource: &'static str,
        /// Error of the resource.
        #[source]
        source: BoxError,
    },
    /// The resource is snapshotable, so it is only available through a guard.
    #[error("the resource {resource} is snapshotable: it is read and changed through guards")]
    Guarded {
        /// The type.
        resource: &'static str,
    },
}

/// The resources of one call.
#[derive(Clone)]
pub struct CallResources {
    session: Resources,
    own: Arc<Mutex<Instances>>,
    /// Distinguishes the calls of a session.
    call: u64,
    /// Use that the tool declares.
    declared: ResourceUse,
    /// Earlier states of the snapshotable resources that the call has changed.
    before: Arc<Mutex<BTreeMap<String, ResourceSnapshot>>>,
}

impl CallResources {
    pub(super) fn new(session: Resources, call: u64) -> Self {
        let (own, before) = (Arc::default(), Arc::default());
        Self { session, own, call, declared: ResourceUse::None, before }
    }

    /// Sets the declared use of snapshotable resources.
    #[must_use]
    pub fn declared(mut self, declared: ResourceUse) -> Self {
        self.declared = declared;
        self
    }

    /// Returns an ordinary resource, created now if necessary; `None` if there is none of this type.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, ResourceError> {
        let (kind, resource) = (TypeId::of::<T>(), type_name::<T>());
        if self.session.of_type(kind).is_some() {
            return Err(ResourceError::Guarded { resource });
        }
        if let Some(there) = self.there(kind) {
            return Ok(there.downcast_ref().cloned());
        }
        let Some(maker) = self.session.shared.makers.get(&kind) else { return Ok(None) };
        let instances = match maker.scope {
            ResourceScope::Session => &self.session.shared.instances,
            ResourceScope::Call => &*self.own,
        };
        // Marked and not locked: creating one resource may request another.
        if lock(&self.own).in_making.contains(&kind) {
            return Err(ResourceError::Circular { resource });
        }
        lock(&self.own).in_making.push(kind);
        let made = (maker.make)(self);
        lock(&self.own).in_making.retain(|other| *other != kind);
        let made = made.map_err(|source| ResourceError::Provider { resource, source })?;
        let close = maker.close.clone();
        let made = ResourceInstance { kind, resource: made, close, only_of: Some(self.call) };
        let mut instances = lock(instances);
        // If another call created it concurrently, that instance counts.
        if let Some(there) = instances.get(kind, self.call) {
            drop(instances);
            close_all(vec![made]);
            return Ok(there.downcast_ref().cloned());
        }
        let resource = made.resource.clone();
        instances.by_type.insert(kind, resource.clone());
        instances.made.push(made);
        Ok(resource.downcast_ref().cloned())
    }

    /// Returns a guard that reads a resource of either kind; `None` if there is none of this type.
    pub fn read<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Option<ResourceRef<T>>, ResourceError> {
        let Some(found) = self.session.of_type(TypeId::of::<T>()) else {
            return Ok(self.get()?.map(ResourceRef::ordinary));
        };
        let resource = type_name::<T>();
        self.check(resource, ResourceUse::Read)?;
        found.read().transpose().map_err(|source| ResourceError::InUse { resource, source })
    }

    /// Returns a guard that changes a snapshotable resource; `None` if there is none of this type. The first
    /// guard of a call captures the state for a rollback.
    pub fn write<T: Snapshotable>(&self) -> Result<Option<ResourceMut<T>>, ResourceError> {
        let Some(found) = self.session.of_type(TypeId::of::<T>()) else { return Ok(None) };
        let resource = type_name::<T>();
        self.check(resource, ResourceUse::Write)?;
        let mut before = self.before();
        if !before.contains_key(found.name()) {
            let captured = found.snapshot().map_err(|source| ResourceError::Capture { resource, source })?;
            before.insert(found.name().to_owned(), captured);
        }
        drop(before);
        found.write().transpose().map_err(|source| ResourceError::InUse { resource, source })
    }

    fn check(&self, resource: &'static str, needed: ResourceUse) -> Result<(), ResourceError> {
        let (word, lent) = (if needed == ResourceUse::Write { "write" } else { "read" }, self.session.lent);
        if self.declared < needed {
            return Err(ResourceError::NotDeclared { resource, needed: word });
        }
        if lent < needed {
            return Err(ResourceError::NotLent { resource, needed: word });
        }
        Ok(())
    }

    /// Returns the earlier states of the snapshotable resources that the call has changed.
    pub fn before_changes(&self) -> BTreeMap<String, ResourceSnapshot> {
        self.before().clone()
    }

    /// Closes the call's own resources in reverse order of creation. After a failed call, resources that it
    /// created for the session are closed too, unless another call uses them.
    pub fn end(&self, succeeded: bool) {
        let own = lock(&self.own).forget(|_| true);
        close_all(own);
        if !succeeded {
            let made = lock(&self.session.shared.instances).forget(|made| made.only_of == Some(self.call));
            close_all(made);
        }
    }

    fn there(&self, kind: TypeId) -> Option<AnyResource> {
        let own = lock(&self.own).by_type.get(&kind).cloned();
        own.or_else(|| lock(&self.session.shared.instances).get(kind, self.call))
    }

    /// Locks the earlier states. A poisoned lock means that a resource panicked while it was captured; the
    /// map itself is sound.
    fn before(&self) -> MutexGuard<'_, BTreeMap<String, ResourceSnapshot>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallResources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallResources").finish_non_exhaustive()
    }
}
