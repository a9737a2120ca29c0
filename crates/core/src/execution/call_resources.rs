//! The resources that one call sees.
//!
//! Ordinary resources are shared. When the call ends its own ones are closed, the last made first; when it fails, session resources that
//! it was the first to make are closed and forgotten with it. Snapshotable resources are reached through guards, as far as the
//! tool declares that it uses them; the first guard that changes one captures what a rollback restores.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cell::{ResourceInUse, ResourceMut, ResourceRef};
use super::resources::{AnyResource, Instances, ResourceInstance, ResourceScope, Resources, close_all, lock};
use super::snapshotable::{ResourceSnapshot, Snapshotable};
use crate::session::BoxError;
use crate::tool_spec::ResourceUse;

/// A resource could not be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// Making it failed.
    #[error("the resource {resource} could not be made")]
    Provider {
        /// The type.
        resource: &'static str,
        /// What its maker said.
        #[source]
        source: BoxError,
    },
    /// Making it needs itself.
    #[error("making the resource {resource} needs the resource itself")]
    Circular {
        /// The type.
        resource: &'static str,
    },
    /// The tool does not declare that it uses snapshotable resources in this way.
    #[error(
        "the tool does not declare that it uses the resource {resource} in this way: it needs `resources = {needed:?}`"
    )]
    NotDeclared {
        /// The type.
        resource: &'static str,
        /// What the tool has to declare: "read" or "write".
        needed: &'static str,
    },
    /// The session works for a call that may not change snapshotable resources.
    #[error("the resource {resource} is lent to this session for less than `resources = {needed:?}`")]
    NotLent {
        /// The type.
        resource: &'static str,
        /// What the call would have to lend: "read" or "write".
        needed: &'static str,
    },
    /// A guard of it is held.
    #[error("the resource {resource} cannot be used")]
    InUse {
        /// The type.
        resource: &'static str,
        /// Why.
        #[source]
        source: ResourceInUse,
    },
    /// It could not be captured, so a rollback could not restore it.
    #[error("the resource {resource} cannot be changed, because its state could not be captured")]
    Capture {
        /// The type.
        resource: &'static str,
        /// What the resource said.
        #[source]
        source: BoxError,
    },
    /// It is snapshotable, and so it is only given through a guard.
    #[error("the resource {resource} is snapshotable: it is read and changed through guards")]
    Guarded {
        /// The type.
        resource: &'static str,
    },
}

/// The resources that one call sees.
#[derive(Clone)]
pub struct CallResources {
    session: Resources,
    own: Arc<Mutex<Instances>>,
    /// Tells the calls of a session apart.
    call: u64,
    /// What the tool declares.
    declared: ResourceUse,
    /// The snapshotable resources that the call has changed, as they were before.
    before: Arc<Mutex<BTreeMap<String, ResourceSnapshot>>>,
}

impl CallResources {
    pub(super) fn new(session: Resources, call: u64) -> Self {
        let (own, before) = (Arc::default(), Arc::default());
        Self { session, own, call, declared: ResourceUse::None, before }
    }

    /// The same for a tool that declares this use of snapshotable resources.
    #[must_use]
    pub fn declared(mut self, declared: ResourceUse) -> Self {
        self.declared = declared;
        self
    }

    /// An ordinary resource, made now if it has to be; `None` when there is none of this type.
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
        // Noted and not locked: making one resource may ask for another.
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
        // Another call may have made it meanwhile; then that one counts.
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

    /// A guard that reads a resource of either kind; `None` when there is none of this type.
    pub fn read<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Option<ResourceRef<T>>, ResourceError> {
        let Some(found) = self.session.of_type(TypeId::of::<T>()) else {
            return Ok(self.get()?.map(ResourceRef::ordinary));
        };
        let resource = type_name::<T>();
        self.check(resource, ResourceUse::Read)?;
        found.read().transpose().map_err(|source| ResourceError::InUse { resource, source })
    }

    /// A guard that changes a snapshotable resource; `None` when there is none of this type. The first one of a call captures
    /// what a rollback restores.
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

    /// The snapshotable resources that the call has changed, as they were before.
    pub fn before_changes(&self) -> BTreeMap<String, ResourceSnapshot> {
        self.before().clone()
    }

    /// Closes the call's own resources, the last made first. Of a call that failed, what it made for the session goes too,
    /// unless another call uses it.
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

    /// A poisoned lock means that a resource panicked while it was captured; the map itself is sound.
    fn before(&self) -> MutexGuard<'_, BTreeMap<String, ResourceSnapshot>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallResources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallResources").finish_non_exhaustive()
    }
}
