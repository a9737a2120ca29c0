//! Resources: registered and created instances, their lifetimes, and the cleanup after a failed call.

use std::sync::{Arc, Mutex};

use backstitch_core::execution::{ResourceError, ResourceScope, Resources, ResourcesBuilder};

trait Index: Send + Sync {
    fn name(&self) -> String;
}

struct Named(&'static str);

impl Index for Named {
    fn name(&self) -> String {
        self.0.to_owned()
    }
}

struct First;
struct Second;
struct Third;

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Creates a resource, and logs when it is closed.
fn closing<T: Send + Sync + 'static>(
    builder: ResourcesBuilder,
    scope: ResourceScope,
    log: &Log,
    name: &'static str,
    make: fn() -> T,
) -> ResourcesBuilder {
    let log = log.clone();
    builder.with_closing_maker(
        scope,
        move |_| Ok(Arc::new(make())),
        move |_: &T| log.lock().unwrap().push(name),
    )
}

fn taken(log: &Log) -> Vec<&'static str> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn a_ready_instance_is_found_by_its_type_or_its_trait() {
    let named: Arc<dyn Index> = Arc::new(Named("first"));
    let resources = Resources::builder().with(named).with(Arc::new(7u32)).build().unwrap();
    assert_eq!(resources.get::<dyn Index>().unwrap().name(), "first");
    assert_eq!(*resources.get::<u32>().unwrap(), 7);
    assert!(resources.get::<u64>().is_none());
    let call = resources.for_call();
    assert_eq!(call.get::<dyn Index>().unwrap().unwrap().name(), "first");
    assert!(call.get::<u64>().unwrap().is_none());
}

#[test]
fn a_later_instance_takes_the_place_of_an_earlier_one() {
    let resources = Resources::builder().with(Arc::new(1u32)).with(Arc::new(2u32)).build().unwrap();
    assert_eq!(*resources.get::<u32>().unwrap(), 2);
}

#[test]
fn what_is_made_lives_as_long_as_its_scope() {
    let log = Log::default();
    let builder = closing(Resources::builder(), ResourceScope::Session, &log, "first", || First);
    let builder = closing(builder, ResourceScope::Call, &log, "second", || Second);
    let resources = closing(builder, ResourceScope::Call, &log, "third", || Third).build().unwrap();
    assert!(resources.get::<First>().is_none(), "it is made when a call first asks for it");

    let call = resources.for_call();
    let first = call.get::<First>().unwrap().unwrap();
    let second = call.get::<Second>().unwrap().unwrap();
    assert!(Arc::ptr_eq(&second, &call.get::<Second>().unwrap().unwrap()));
    call.get::<Third>().unwrap();
    call.end(true);
    assert_eq!(taken(&log), ["third", "second"], "the last made is closed first");

    let another = resources.for_call();
    assert!(Arc::ptr_eq(&first, &another.get::<First>().unwrap().unwrap()));
    assert!(!Arc::ptr_eq(&second, &another.get::<Second>().unwrap().unwrap()));
    another.end(true);
    assert_eq!(taken(&log), ["second"]);
    resources.close();
    assert_eq!(taken(&log), ["first"]);
}

#[test]
fn what_a_failing_call_was_the_first_to_make_goes_with_it() {
    let log = Log::default();
    let builder = closing(Resources::builder(), ResourceScope::Session, &log, "first", || First);
    let builder = closing(builder, ResourceScope::Session, &log, "second", || Second);
    let resources = closing(builder, ResourceScope::Session, &log, "third", || Third).build().unwrap();
    let earlier = resources.for_call();
    earlier.get::<First>().unwrap();
    earlier.end(true);

    let (failing, beside) = (resources.for_call(), resources.for_call());
    failing.get::<First>().unwrap();
    failing.get::<Second>().unwrap();
    beside.get::<Third>().unwrap();
    failing.end(false);
    assert_eq!(taken(&log), ["second"], "only what it made");
    assert!(resources.get::<First>().is_some() && resources.get::<Third>().is_some());
    assert!(resources.get::<Second>().is_none());

    let (failing, beside) = (resources.for_call(), resources.for_call());
    failing.get::<Second>().unwrap();
    beside.get::<Second>().unwrap();
    failing.end(false);
    assert!(taken(&log).is_empty(), "another call uses it");
    beside.end(true);
    resources.close();
    assert_eq!(taken(&log), ["second", "third", "first"]);
}

#[test]
fn making_one_resource_may_need_another_but_not_itself() {
    let resources = Resources::builder()
        .with_maker(ResourceScope::Session, |_| Ok(Arc::new(20u32)))
        .with_maker(ResourceScope::Call, |call| {
            Ok(Arc::new(u64::from(*call.get::<u32>()?.ok_or("there is none")?) + 1))
        })
        .with_maker::<i8>(ResourceScope::Call, |call| {
            Ok(call.get::<i16>()?.map(|_| Arc::new(0)).ok_or("none")?)
        })
        .with_maker::<i16>(ResourceScope::Call, |call| {
            Ok(call.get::<i8>()?.map(|_| Arc::new(0)).ok_or("none")?)
        })
        .with_maker::<f32>(ResourceScope::Session, |_| Err("out of order".into()))
        .build()
        .unwrap();
    let call = resources.for_call();
    assert_eq!(*call.get::<u64>().unwrap().unwrap(), 21);
    let mut error: &dyn std::error::Error = &call.get::<i8>().unwrap_err();
    let circular = loop {
        match error.downcast_ref::<ResourceError>() {
            Some(ResourceError::Circular { resource }) => break *resource,
            _ => error = error.source().unwrap(),
        }
    };
    assert_eq!(circular, "i8");
    let error = call.get::<f32>().unwrap_err();
    assert!(matches!(error, ResourceError::Provider { resource: "f32", .. }), "{error}");
    assert!(resources.get::<f32>().is_none());
}
