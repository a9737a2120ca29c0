//! Resources: typed values that tools use, and their lifetimes.
//!
//! [`Resources`] map a type to one instance. *Ordinary* resources, often traits such as `dyn Index`, are
//! registered as instances, or created on first use: once per *session*, or once per *call*. *Snapshotable*
//! resources are part of the state of their session: they are registered once, by value, and take part in
//! every transaction, snapshot and rewind. [`CallResources`] are the view of one call.

use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::call_resources::CallResources;
use super::cell::{ReadyRestore, ResourceInUse, SnapshotableResource};
use super::error::{ExecutionStateError, RestoreFailedError};
use super::files::WorkspaceResource;
use super::snapshotable::{ResourceSnapshot, Snapshotable};
use crate::ports::Workspace;
use crate::session::BoxError;
use crate::tool_spec::ResourceUse;

/// Lifetime of a resource that is created on first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceScope {
    /// Until the session is closed.
    Session,
    /// Until the end of the call that requested it.
    Call,
}

/// Resources cannot be registered together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourcesError {
    /// Two snapshotable resources have the same stored name.
    #[error("two snapshotable resources have the stored name {name:?}; each needs its own")]
    DuplicateName {
        /// The name.
        name: &'static str,
    },
    /// A type is registered twice, and at least once as snapshotable.
    #[error(
        "the resource {resource} is registered twice; a snapshotable resource is registered once, by `with_snapshotable`"
    )]
    DuplicateType {
        /// The type.
        resource: &'static str,
    },
    /// The stored name is reserved for the files of the session.
    #[error("the stored name {name:?} belongs to the files of the session; choose another")]
    ReservedName {
        /// The name.
        name: &'static str,
    },
}

pub(super) type AnyResource = Arc<dyn Any + Send + Sync>;
type Close = Arc<dyn Fn(&AnyResource) + Send + Sync>;
type Make = Arc<dyn Fn(&CallResources) -> Result<AnyResource, BoxError> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Maker {
    pub(super) scope: ResourceScope,
    pub(super) make: Make,
    pub(super) close: Option<Close>,
}

/// A created resource, its creator, and how it is closed.
pub(super) struct ResourceInstance {
    pub(super) kind: TypeId,
    pub(super) resource: AnyResource,
    pub(super) close: Option<Close>,
    /// The call that created it, until another call uses it too; then it belongs to the session.
    pub(super) only_of: Option<u64>,
}

#[derive(Default)]
pub(super) struct Instances {
    pub(super) by_type: HashMap<TypeId, AnyResource>,
    /// In the order of creation.
    pub(super) made: Vec<ResourceInstance>,
    pub(super) in_making: Vec<TypeId>,
}

impl Instances {
    pub(super) fn forget(&mut self, condition: impl Fn(&ResourceInstance) -> bool) -> Vec<ResourceInstance> {
        let (forgotten, kept) = std::mem::take(&mut self.made).into_iter().partition(condition);
        self.made = kept;
        for made in &forgotten {
            self.by_type.remove(&made.kind);
        }
        forgotten
    }

    /// Returns the instance of a type for a call.
    pub(super) fn get(&mut self, kind: TypeId, call: u64) -> Option<AnyResource> {
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
pub(super) struct RegistryInner {
    pub(super) makers: HashMap<TypeId, Maker>,
    pub(super) instances: Mutex<Instances>,
    calls: AtomicU64,
    /// The snapshotable resources, in the order of registration.
    snapshotable: Vec<(TypeId, SnapshotableResource)>,
}

/// The resources of a session. A clone shares the instances, so each session needs resources of its own.
#[derive(Clone)]
pub struct Resources {
    pub(super) shared: Arc<RegistryInner>,
    workspace: Option<SnapshotableResource>,
    /// Largest permitted use of the snapshotable resources.
    pub(super) lent: ResourceUse,
}

impl Default for Resources {
    fn default() -> Self {
        Self { shared: Arc::default(), workspace: None, lent: ResourceUse::Write }
    }
}

/// A builder of a session's resources.
#[derive(Default)]
pub struct ResourcesBuilder {
    shared: RegistryInner,
    problem: Option<ResourcesError>,
}

impl ResourcesBuilder {
    /// Registers an instance of an ordinary resource. It replaces an earlier one of the same type.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, resource: Arc<T>) -> Self {
        let instances = self.shared.instances.get_mut().unwrap_or_else(PoisonError::into_inner);
        instances.by_type.insert(TypeId::of::<T>(), Arc::new(resource));
        self
    }

    /// Registers a snapshotable resource. Tools access it by its type through guards, and it takes part in
    /// every transaction, snapshot and rewind of the session.
    #[must_use]
    pub fn with_snapshotable<T: Snapshotable>(mut self, resource: T) -> Self {
        let resource = SnapshotableResource::new(resource);
        let (kind, name) = (TypeId::of::<T>(), resource.name());
        let known = &mut self.shared.snapshotable;
        let problem = if name == WorkspaceResource::NAME {
            Some(ResourcesError::ReservedName { name })
        } else if known.iter().any(|(_, other)| other.name() == name) {
            Some(ResourcesError::DuplicateName { name })
        } else if known.iter().any(|(other, _)| *other == kind) {
            Some(ResourcesError::DuplicateType { resource: type_name::<T>() })
        } else {
            None
        };
        self.problem = self.problem.or(problem);
        known.push((kind, resource));
        self
    }

    /// Registers a function that creates an ordinary resource on first use.
    #[must_use]
    pub fn with_maker<T: ?Sized + Send + Sync + 'static>(
        self,
        scope: ResourceScope,
        make: impl Fn(&CallResources) -> Result<Arc<T>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.maker(scope, make, None)
    }

    /// Does the same for a resource that has to be closed.
    #[must_use]
    pub fn with_closing_maker<T: ?Sized + Send + Sync + 'static>(
        self,
        scope: ResourceScope,
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
        scope: ResourceScope,
        make: impl Fn(&CallResources) -> Result<Arc<T>, BoxError> + Send + Sync + 'static,
        close: Option<Close>,
    ) -> Self {
        let make = move |call: &CallResources| make(call).map(|made| Arc::new(made) as AnyResource);
        self.shared.makers.insert(TypeId::of::<T>(), Maker { scope, make: Arc::new(make), close });
        self
    }

    /// Builds the resources. Fails if two snapshotable ones have the same stored name, or if a snapshotable
    /// one is registered twice.
    pub fn build(mut self) -> Result<Resources, ResourcesError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let instances = self.shared.instances.get_mut().unwrap_or_else(PoisonError::into_inner);
        let twice =
            self.shared.snapshotable.iter().find(|(kind, _)| {
                instances.by_type.contains_key(kind) || self.shared.makers.contains_key(kind)
            });
        if let Some((_, resource)) = twice {
            return Err(ResourcesError::DuplicateType { resource: resource.type_name() });
        }
        Ok(Resources { shared: Arc::new(self.shared), ..Resources::default() })
    }
}

impl Resources {
    /// Creates a builder without resources.
    pub fn builder() -> ResourcesBuilder {
        ResourcesBuilder::default()
    }

    /// Returns an existing ordinary resource: a registered instance, or one that was created for the session.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let instances = lock(&self.shared.instances);
        instances.by_type.get(&TypeId::of::<T>()).and_then(|resource| resource.downcast_ref()).cloned()
    }

    /// Returns the result of `inspect` for a snapshotable resource, outside of any call; `None` if there is none
    /// of this type.
    pub fn inspect<T: Snapshotable, R>(
        &self,
        inspect: impl FnOnce(&T) -> R,
    ) -> Option<Result<R, ResourceInUse>> {
        self.of_type(TypeId::of::<T>())?.inspect(inspect)
    }

    /// The parts of the state that snapshots cover: the snapshotable resources, and the files.
    pub fn snapshotable_resources(&self) -> impl Iterator<Item = &SnapshotableResource> {
        self.registered().chain(&self.workspace)
    }

    /// The snapshotable resources without the files, in the order of registration.
    pub fn registered(&self) -> impl Iterator<Item = &SnapshotableResource> {
        let registered = self.shared.snapshotable.iter().map(|(_, resource)| resource);
        registered.filter(|_| !self.lent.is_none())
    }

    pub(super) fn of_type(&self, kind: TypeId) -> Option<&SnapshotableResource> {
        let found = self.shared.snapshotable.iter().find(|(known, _)| *known == kind);
        found.map(|(_, resource)| resource)
    }

    /// Makes these files a part of the state, in place of earlier ones, or removes the files.
    #[must_use]
    pub fn with_workspace(mut self, workspace: Option<Arc<dyn Workspace>>) -> Self {
        let resource = |workspace| SnapshotableResource::new(WorkspaceResource::new(workspace));
        self.workspace = workspace.map(resource);
        self
    }

    /// Limits the use of the snapshotable resources. The instances are shared.
    #[must_use]
    pub fn lent(mut self, most: ResourceUse) -> Self {
        self.lent = self.lent.min(most);
        self
    }

    /// Restores the states of these resources: all are prepared before any is changed. States of unknown
    /// resources are ignored.
    pub fn restore(&self, states: &BTreeMap<String, ResourceSnapshot>) -> Result<(), ExecutionStateError> {
        commit_all(self.prepare_restore(states)?).map_err(ExecutionStateError::RestoreFailed)
    }

    /// Refuses states that could not be restored: of an unknown resource, or of one that refuses. Nothing is
    /// changed.
    pub fn check_restore(
        &self,
        states: &BTreeMap<String, ResourceSnapshot>,
    ) -> Result<(), ExecutionStateError> {
        self.check_known(states)?;
        self.prepare_restore(states).map(drop)
    }

    pub(super) fn check_known(
        &self,
        states: &BTreeMap<String, ResourceSnapshot>,
    ) -> Result<(), ExecutionStateError> {
        let is_known = |name: &str| self.snapshotable_resources().any(|one| one.name() == name);
        match states.keys().find(|name| !is_known(name)) {
            Some(resource) => Err(ExecutionStateError::UnknownResource { resource: resource.clone() }),
            None => Ok(()),
        }
    }

    /// Prepares the restore of all resources that have a state in `states`.
    pub(super) fn prepare_restore(
        &self,
        states: &BTreeMap<String, ResourceSnapshot>,
    ) -> Result<Vec<(&'static str, ReadyRestore)>, ExecutionStateError> {
        let named = self.snapshotable_resources().filter_map(|one| Some((one, states.get(one.name())?)));
        let prepared = named.map(|(resource, state)| match resource.prepare_restore(state) {
            Ok(ready) => Ok((resource.name(), ready)),
            Err(source) => {
                Err(ExecutionStateError::Unprepared { resource: resource.name().to_owned(), source })
            }
        });
        prepared.collect()
    }

    /// Returns the resources for one call. By default it may not use snapshotable ones.
    pub fn for_call(&self) -> CallResources {
        CallResources::new(self.clone(), self.shared.calls.fetch_add(1, Ordering::Relaxed))
    }

    /// Closes everything that was created for the session, in reverse order of creation.
    pub fn close(&self) {
        let made = lock(&self.shared.instances).forget(|_| true);
        close_all(made);
    }
}

/// Completes prepared restores.
pub(super) fn commit_all(prepared: Vec<(&'static str, ReadyRestore)>) -> Result<(), RestoreFailedError> {
    for (resource, ready) in prepared {
        ready().map_err(|source| RestoreFailedError { resource: resource.to_owned(), source })?;
    }
    Ok(())
}

pub(super) fn close_all(made: Vec<ResourceInstance>) {
    for made in made.into_iter().rev() {
        if let Some(close) = &made.close {
            close(&made.resource);
        }
    }
}

/// Locks the instances. A poisoned lock means that a maker or a closer panicked; the maps themselves are
/// sound.
pub(super) fn lock(instances: &Mutex<Instances>) -> MutexGuard<'_, Instances> {
    instances.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Resources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.snapshotable_resources().map(SnapshotableResource::name).collect();
        formatter.debug_struct("Resources").field("snapshotable", &names).finish_non_exhaustive()
    }
}
