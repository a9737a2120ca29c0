//! Snapshotable resources: registration, guards, and rollbacks.

use std::error::Error as _;
use std::sync::Arc;

use backstitch_core::execution::{
    CallResources, PreparedRestore, ResourceError, ResourceInUse, ResourceSnapshot, Resources,
    ResourcesError, Snapshotable,
};
use backstitch_core::session::BoxError;
use backstitch_core::tool::ResourceUse;
use backstitch_filesystem::MemoryFilesystem;

/// Lines with a stored name.
#[derive(Debug, PartialEq)]
struct Lines {
    name: &'static str,
    lines: Vec<String>,
}

fn lines(name: &'static str) -> Lines {
    Lines { name, lines: Vec::new() }
}

impl Snapshotable for Lines {
    fn snapshot_name(&self) -> &'static str {
        self.name
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        if self.lines.iter().any(|line| line == "torn") {
            panic!("it is torn");
        }
        ResourceSnapshot::of(&self.lines)
    }

    fn prepare_restore(&self, snapshot: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        let lines = serde_json::from_value(snapshot.to_json()?)?;
        Ok(PreparedRestore::replace(Self { name: self.name, lines }))
    }
}

struct Other;

impl Snapshotable for Other {
    fn snapshot_name(&self) -> &'static str {
        "lines"
    }

    fn snapshot(&self) -> Result<ResourceSnapshot, BoxError> {
        ResourceSnapshot::of(&())
    }

    fn prepare_restore(&self, _: &ResourceSnapshot) -> Result<PreparedRestore<Self>, BoxError> {
        Ok(PreparedRestore::replace(Self))
    }
}

fn resources() -> Resources {
    Resources::builder().with(Arc::new(7u32)).with_snapshotable(lines("lines")).build().unwrap()
}

fn writing(resources: &Resources) -> CallResources {
    resources.for_call().declared(ResourceUse::Write)
}

fn add(call: &CallResources, line: &str) {
    call.write::<Lines>().unwrap().unwrap().lines.push(line.to_owned());
}

fn seen(resources: &Resources) -> Vec<String> {
    resources.inspect(|lines: &Lines| lines.lines.clone()).unwrap().unwrap()
}

#[test]
fn one_registration_makes_a_resource_reachable_and_part_of_snapshots() {
    let resources = resources();
    let names: Vec<_> = resources.snapshotable_resources().map(|one| one.name()).collect();
    assert_eq!(names, ["lines"]);
    let call = writing(&resources);
    add(&call, "one");
    assert_eq!(call.read::<Lines>().unwrap().unwrap().lines, ["one"]);
    assert_eq!(*call.read::<u32>().unwrap().unwrap(), 7, "ordinary resources are read in the same way");
    assert_eq!(*call.read::<u32>().unwrap().unwrap().into_shared().unwrap(), 7);
    assert!(call.read::<u64>().unwrap().is_none());
    assert!(call.write::<Other>().unwrap().is_none());
    assert_eq!(seen(&resources), ["one"]);
}

#[test]
fn a_snapshotable_resource_is_never_given_out() {
    let resources = resources();
    let call = writing(&resources);
    assert!(resources.get::<Lines>().is_none());
    let error = call.get::<Lines>().unwrap_err();
    assert!(matches!(error, ResourceError::Guarded { .. }), "{error}");
    let guard = call.read::<Lines>().unwrap().unwrap();
    assert!(guard.into_shared().is_err());
}

#[test]
fn what_is_registered_wrongly_is_refused() {
    let build = |builder: backstitch_core::execution::ResourcesBuilder| builder.build().unwrap_err();
    let builder = || Resources::builder().with_snapshotable(lines("lines"));
    assert_eq!(build(builder().with_snapshotable(Other)), ResourcesError::DuplicateName { name: "lines" });
    let twice = build(builder().with_snapshotable(lines("more lines")));
    assert!(matches!(twice, ResourcesError::DuplicateType { .. }), "{twice}");
    let both = build(builder().with(Arc::new(lines("lines"))));
    assert!(matches!(both, ResourcesError::DuplicateType { .. }), "{both}");
    let reserved = build(Resources::builder().with_snapshotable(lines("workspace")));
    assert_eq!(reserved, ResourcesError::ReservedName { name: "workspace" });
    let files = MemoryFilesystem::new();
    assert!(builder().with_snapshotable(files.same_files()).build().is_ok());
}

#[test]
fn a_tool_uses_resources_as_it_declares() {
    let resources = resources();
    for (declared, reads, writes) in [
        (ResourceUse::None, false, false),
        (ResourceUse::Read, true, false),
        (ResourceUse::Write, true, true),
    ] {
        let call = resources.for_call().declared(declared);
        assert_eq!(call.read::<Lines>().is_ok(), reads, "{declared:?}");
        assert_eq!(call.write::<Lines>().is_ok(), writes, "{declared:?}");
        assert!(call.read::<u32>().is_ok(), "ordinary resources need no declaration");
        let lent = resources.clone().lent(declared);
        let call = writing(&lent);
        assert_eq!(call.read::<Lines>().is_ok(), reads, "lent for {declared:?}");
        assert_eq!(call.write::<Lines>().is_ok(), writes, "lent for {declared:?}");
    }
    let error = resources.for_call().write::<Lines>().unwrap_err();
    assert!(matches!(error, ResourceError::NotDeclared { needed: "write", .. }), "{error}");
    assert!(error.to_string().contains(r#"resources = "write""#), "{error}");
    let error = writing(&resources.clone().lent(ResourceUse::Read)).write::<Lines>().unwrap_err();
    assert!(matches!(error, ResourceError::NotLent { needed: "write", .. }), "{error}");
    assert_eq!(resources.lent(ResourceUse::None).snapshotable_resources().count(), 0);
}

#[test]
fn guards_exclude_each_other_and_nobody_waits() {
    let resources = resources();
    let call = writing(&resources);
    let in_use = |error: ResourceError| {
        let source = error.source().and_then(|source| source.downcast_ref::<ResourceInUse>());
        assert!(source.is_some(), "{error}");
    };
    let (one, other) = (call.read::<Lines>().unwrap().unwrap(), call.read::<Lines>().unwrap().unwrap());
    in_use(call.write::<Lines>().unwrap_err());
    drop((one, other));
    let writer = call.write::<Lines>().unwrap().unwrap();
    in_use(call.read::<Lines>().unwrap_err());
    in_use(call.write::<Lines>().unwrap_err());
    assert_eq!(resources.inspect(|_: &Lines| ()), Some(Err(ResourceInUse)));
    let error = resources.restore(&call.before_changes()).unwrap_err();
    assert!(matches!(error, backstitch_core::execution::ExecutionStateError::Unprepared { .. }), "{error}");
    drop(writer);
    assert!(call.read::<Lines>().is_ok());
}

#[test]
fn the_first_guard_that_changes_captures_what_a_rollback_restores() {
    let resources = resources();
    add(&writing(&resources), "before");
    let call = writing(&resources);
    assert!(call.before_changes().is_empty(), "an unchanged resource is not captured");
    add(&call, "one");
    add(&call, "two");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut guard = call.write::<Lines>().unwrap().unwrap();
        guard.lines.clear();
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    assert!(seen(&resources).is_empty(), "a guard that a panic drops leaves the changes in place");
    resources.restore(&call.before_changes()).unwrap();
    assert_eq!(seen(&resources), ["before"]);
}

#[test]
fn a_state_that_json_would_change_is_refused() {
    assert!(ResourceSnapshot::of(&1.5).is_ok());
    for number in [f64::NAN, f64::INFINITY] {
        assert!(ResourceSnapshot::of(&[number]).is_err(), "{number}");
    }
}

#[test]
fn a_resource_that_cannot_be_captured_cannot_be_changed() {
    let resources = resources();
    add(&writing(&resources), "torn");
    let error = writing(&resources).write::<Lines>().unwrap_err();
    let ResourceError::Capture { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.to_string(), "it panicked: it is torn");
    assert_eq!(seen(&resources), ["torn"], "the resource itself is still there");
}
