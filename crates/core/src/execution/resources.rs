//! Resources: typed things that tools use, and how long they live.
//!
//! A [`Resources`] maps a type, often a trait such as `dyn Filesystem`, to one instance. An instance is given ready made, or
//! made when it is first asked for: once per *session*, or once per *call*. A [`CallResources`] is what one call sees. When
//! the call ends its own resources are closed, the last made first; when it fails, session resources that it was the first
//! to make are closed and forgotten with it.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// A resource that was made, by whom, and how it is closed.
struct Made {
    kind: TypeId,
    resource: AnyResource,
    close: Option<Close>,
    /// The call that made it, until another one uses it too: then it belongs to the session.
    only_of: Option<u64>,
}

#[derive(Default)]
struct Instances {
    by_type: HashMap<TypeId, AnyResource>,
    /// In the order in which they were made.
    made: Vec<Made>,
    in_making: Vec<TypeId>,
}

impl Instances {
    fn forget(&mut self, condition: impl Fn(&Made) -> bool) -> Vec<Made> {
        let (forgotten, kept) = std::mem::take(&mut self.made).into_iter().partition(condition);
        self.made = kept;
        for made in &forgotten {
            self.by_type.remove(&made.kind);
        }
        forgotten
    }

    /// What there is of a type, for a call.
    fn get(&mut self, kind: TypeId, call: u64) -> Option<AnyResource> {
        let there = self.by_type.get(&kind)?.clone();
        if let Some(made) = self.made.iter_mut().find(|made| made.kind == kind)
            && made.only_of != Some(call)
        {
            made.only_of = None;
        }
        Some(there)
    }
}

#[derive(Default)]
struct Shared {
    makers: HashMap<TypeId, Maker>,
    instances: Mutex<Instances>,
    calls: AtomicU64,
}

/// The resources of a session.
#[derive(Clone, Default)]
pub struct Resources {
    shared: Arc<Shared>,
    snapshotable: Arc<Vec<Arc<dyn Snapshotable>>>,
}

/// Collects what a session's resources are.
#[derive(Default)]
pub struct ResourcesBuilder {
    shared: Shared,
    snapshotable: Vec<Arc<dyn Snapshotable>>,
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
        self.snapshotable.retain(|other| other.snapshot_name() != resource.snapshot_name());
        self.snapshotable.push(resource);
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
        Resources { shared: Arc::new(self.shared), snapshotable: Arc::new(self.snapshotable) }
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
        &self.snapshotable
    }

    /// The part of the state of this type.
    pub fn snapshotable<T: Snapshotable>(&self) -> Option<Arc<T>> {
        self.snapshotable.iter().find_map(|one| {
            let one: Arc<dyn Any + Send + Sync> = one.clone();
            one.downcast().ok()
        })
    }

    /// The same with one more part of the state.
    #[must_use]
    pub fn including(mut self, resource: Arc<dyn Snapshotable>) -> Self {
        let snapshotable = Arc::make_mut(&mut self.snapshotable);
        snapshotable.retain(|other| other.snapshot_name() != resource.snapshot_name());
        snapshotable.push(resource);
        self
    }

    /// What one call sees.
    pub fn for_call(&self) -> CallResources {
        let call = self.shared.calls.fetch_add(1, Ordering::Relaxed);
        CallResources { session: self.clone(), own: Arc::default(), call }
    }

    /// Closes all that was made for the session, the last made first.
    pub fn close(&self) {
        let made = lock(&self.shared.instances).forget(|_| true);
        close_all(made);
    }
}

/// The resources that one call sees.
#[derive(Clone)]
pub struct CallResources {
    session: Resources,
    own: Arc<Mutex<Instances>>,
    /// Tells the calls of a session apart.
    call: u64,
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
        let close = maker.close.clone();
        let made = Made { kind, resource: made, close, only_of: Some(self.call) };
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
        let names: Vec<_> = self.snapshotable.iter().map(|one| one.snapshot_name()).collect();
        formatter.debug_struct("Resources").field("snapshotable", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for CallResources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallResources").finish_non_exhaustive()
    }
}
