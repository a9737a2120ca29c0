//! Resources: typed things that tools use, and how long they live.
//!
//! A [`Resources`] maps a type, often a trait such as `dyn Filesystem`, to one instance. An instance is given ready made, or
//! made when it is first asked for: once per *session*, or once per *call*. A [`CallResources`] is what one call sees. When
//! the call ends its own resources are closed, the last made first; when it fails, session resources that it was the first
//! to make are closed and forgotten with it.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::snapshotable::Snapshotable;
use crate::session::BoxError;

/// How long a resource lives that is made when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// As long as the session.
    Session,
    /// As long as the call that asked for it.
    Call,
}

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
}

type AnyResource = Arc<dyn Any + Send + Sync>;
type Close = Arc<dyn Fn(&AnyResource) + Send + Sync>;
type Make = Arc<dyn Fn(&CallResources) -> Result<AnyResource, BoxError> + Send + Sync>;

#[derive(Clone)]
struct Maker {
    scope: Scope,
    make: Make,
    close: Option<Close>,
}

/// A resource that was made, and how it is closed.
struct Made {
    resource: AnyResource,
    close: Option<Close>,
}

#[derive(Default)]
struct Instances {
    by_type: HashMap<TypeId, AnyResource>,
    /// In the order in which they were made.
    made: Vec<(TypeId, Made)>,
    in_making: Vec<TypeId>,
}

impl Instances {
    fn forget(&mut self, made_before: usize) -> Vec<Made> {
        let forgotten = self.made.split_off(made_before.min(self.made.len()));
        for (kind, _) in &forgotten {
            self.by_type.remove(kind);
        }
        forgotten.into_iter().map(|(_, made)| made).collect()
    }
}

#[derive(Default)]
struct Shared {
    makers: HashMap<TypeId, Maker>,
    instances: Mutex<Instances>,
    snapshotable: Vec<Arc<dyn Snapshotable>>,
}

/// The resources of a session.
#[derive(Clone, Default)]
pub struct Resources {
    shared: Arc<Shared>,
}

/// Collects what a session's resources are.
#[derive(Default)]
pub struct ResourcesBuilder {
    shared: Shared,
}

impl ResourcesBuilder {
    /// Gives a ready instance. A later one of the same type takes its place.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, resource: Arc<T>) -> Self {
        let instances = self.shared.instances.get_mut().unwrap_or_else(PoisonError::into_inner);
        instances.by_type.insert(TypeId::of::<T>(), Arc::new(resource));
        self
    }

    /// Gives a part of the state that snapshots cover. It takes part in every transaction.
    #[must_use]
    pub fn with_snapshotable(mut self, resource: Arc<dyn Snapshotable>) -> Self {
        self.shared.snapshotable.retain(|other| other.snapshot_name() != resource.snapshot_name());
        self.shared.snapshotable.push(resource);
        self
    }

    /// Says how a resource is made when it is first asked for.
    #[must_use]
    pub fn with_maker<T: ?Sized + Send + Sync + 'static>(
        self,
        scope: Scope,
        make: impl Fn(&CallResources) -> Result<Arc<T>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.maker(scope, make, None)
    }

    /// The same, for a resource that has to be closed.
    #[must_use]
    pub fn with_closing_maker<T: ?Sized + Send + Sync + 'static>(
        self,
        scope: Scope,
        make: impl Fn(&CallResources) -> Result<Arc<T>, BoxError> + Send + Sync + 'static,
        close: impl Fn(&T) + Send + Sync + 'static,
    ) -> Self {
        let close = move |resource: &AnyResource| {
            if let Some(resource) = resource.downcast_ref::<Arc<T>>() {
                close(resource);
            }
        };
        self.maker(scope, make, Some(Arc::new(close)))
    }

    fn maker<T: ?Sized + Send + Sync + 'static>(
        mut self,
        scope: Scope,
        make: impl Fn(&CallResources) -> Result<Arc<T>, BoxError> + Send + Sync + 'static,
        close: Option<Close>,
    ) -> Self {
        let make = move |call: &CallResources| make(call).map(|made| Arc::new(made) as AnyResource);
        self.shared.makers.insert(TypeId::of::<T>(), Maker { scope, make: Arc::new(make), close });
        self
    }

    /// The resources.
    pub fn build(self) -> Resources {
        Resources { shared: Arc::new(self.shared) }
    }
}

impl Resources {
    /// No resources yet.
    pub fn builder() -> ResourcesBuilder {
        ResourcesBuilder::default()
    }

    /// A resource that is there: given ready made, or made before for the session.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let instances = lock(&self.shared.instances);
        instances.by_type.get(&TypeId::of::<T>()).and_then(|resource| resource.downcast_ref()).cloned()
    }

    /// A resource that is there, or else this one.
    pub fn get_or<T: ?Sized + Send + Sync + 'static>(&self, default: Arc<T>) -> Arc<T> {
        self.get().unwrap_or(default)
    }

    /// The parts of the state that snapshots cover.
    pub fn snapshotable_resources(&self) -> &[Arc<dyn Snapshotable>] {
        &self.shared.snapshotable
    }

    /// What one call sees.
    pub fn for_call(&self) -> CallResources {
        let session_made_before = lock(&self.shared.instances).made.len();
        CallResources { session: self.clone(), own: Arc::default(), session_made_before }
    }

    /// Closes all that was made for the session, the last made first.
    pub fn close(&self) {
        let made = lock(&self.shared.instances).forget(0);
        close_all(made);
    }
}

/// The resources that one call sees.
#[derive(Clone)]
pub struct CallResources {
    session: Resources,
    own: Arc<Mutex<Instances>>,
    session_made_before: usize,
}

impl CallResources {
    /// A resource, made now if it has to be; `None` when there is none of this type.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Option<Arc<T>>, ResourceError> {
        let (kind, resource) = (TypeId::of::<T>(), type_name::<T>());
        if let Some(there) = self.there(kind) {
            return Ok(there.downcast_ref().cloned());
        }
        let Some(maker) = self.session.shared.makers.get(&kind) else { return Ok(None) };
        let instances = match maker.scope {
            Scope::Session => &self.session.shared.instances,
            Scope::Call => &*self.own,
        };
        // Noted and not locked: making one resource may ask for another.
        if lock(&self.own).in_making.contains(&kind) {
            return Err(ResourceError::Circular { resource });
        }
        lock(&self.own).in_making.push(kind);
        let made = (maker.make)(self);
        lock(&self.own).in_making.retain(|other| *other != kind);
        let made = made.map_err(|source| ResourceError::Provider { resource, source })?;
        let mut instances = lock(instances);
        // Another call may have made it meanwhile; then that one counts.
        if let Some(there) = instances.by_type.get(&kind) {
            return Ok(there.downcast_ref().cloned());
        }
        instances.by_type.insert(kind, made.clone());
        instances.made.push((kind, Made { resource: made.clone(), close: maker.close.clone() }));
        Ok(made.downcast_ref().cloned())
    }

    /// Closes the call's own resources, the last made first. Of a call that failed, what it was the first to make for the
    /// session goes too.
    pub fn end(&self, succeeded: bool) {
        close_all(lock(&self.own).forget(0));
        if !succeeded {
            let made = lock(&self.session.shared.instances).forget(self.session_made_before);
            close_all(made);
        }
    }

    fn there(&self, kind: TypeId) -> Option<AnyResource> {
        let own = lock(&self.own).by_type.get(&kind).cloned();
        own.or_else(|| lock(&self.session.shared.instances).by_type.get(&kind).cloned())
    }
}

fn close_all(made: Vec<Made>) {
    for made in made.into_iter().rev() {
        if let Some(close) = &made.close {
            close(&made.resource);
        }
    }
}

/// A poisoned lock means that a maker or a closer panicked; the maps themselves are sound.
fn lock(instances: &Mutex<Instances>) -> MutexGuard<'_, Instances> {
    instances.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Resources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.shared.snapshotable.iter().map(|one| one.snapshot_name()).collect();
        formatter.debug_struct("Resources").field("snapshotable", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for CallResources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallResources").finish_non_exhaustive()
    }
}
