//! Items as JSON: items that a draft accepts are read back equal, and all others are refused when they are
//! dispatched.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::session::{SessionError, SliceOp, SlicePolicy, Snapshot};
use backstitch_macros::Slice;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::samples::{Knock, items, note, session};
use crate::strategies;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "measure", crate = backstitch_core::__private)]
struct Measure {
    mean: f64,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Single(f32),
    Pair(f64, Option<f64>),
    Nested {
        deep: Option<Option<bool>>,
        empty: Option<()>,
        inner: Vec<Shape>,
    },
    ByName(BTreeMap<String, Shape>),
    ByLetter(BTreeMap<char, f64>),
    ByNumber(BTreeMap<u32, f64>),
    Tagged(Tagged),
    Any(Value),
    PerhapsAny(Option<Value>),
    /// A deserializer by hand distinguishes `null` from a missing field.
    Given {
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        value: Option<Value>,
    },
    Large(i128),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Empty,
    One { value: f64 },
    Many { by: BTreeMap<String, f64> },
}

fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn measure(mean: f64, shape: Shape) -> Measure {
    Measure { mean, shape }
}

/// A number that may be infinite or NaN.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => any::<f64>().prop_filter("is finite", |number| number.is_finite()),
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE]),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let tagged = prop_oneof![
        Just(Tagged::Empty),
        float().prop_map(|value| Tagged::One { value }),
        btree_map(strategies::text(), float(), 0..3).prop_map(|by| Tagged::Many { by }),
    ];
    let leaf = prop_oneof![
        Just(Shape::Unit),
        float().prop_map(|number| Shape::Single(number as f32)),
        (float(), option::of(float())).prop_map(|(one, other)| Shape::Pair(one, other)),
        btree_map(any::<char>(), float(), 0..3).prop_map(Shape::ByLetter),
        btree_map(any::<u32>(), float(), 0..3).prop_map(Shape::ByNumber),
        tagged.prop_map(Shape::Tagged),
        strategies::value().prop_map(Shape::Any),
        option::of(strategies::value()).prop_map(Shape::PerhapsAny),
        option::of(strategies::value()).prop_map(|value| Shape::Given { value }),
        any::<i128>().prop_map(Shape::Large),
        any::<i64>().prop_map(|number| Shape::Large(number.into())),
        vec(any::<u8>(), 0..4).prop_map(Shape::Bytes),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let nested = (option::of(option::of(any::<bool>())), option::of(Just(())), vec(inner.clone(), 0..3));
        prop_oneof![
            nested.prop_map(|(deep, empty, inner)| Shape::Nested { deep, empty, inner }),
            btree_map(strategies::text(), inner, 0..3).prop_map(Shape::ByName),
        ]
    })
}

/// Returns whether `serde_json` alone would read the item back equal.
fn comes_back(item: &Measure) -> bool {
    let text = serde_json::to_value(item).and_then(|value| serde_json::to_string(&value));
    let again = text.and_then(|text| serde_json::from_str::<Measure>(&text));
    again.is_ok_and(|again| again == *item)
}

fn has_number_keys(shape: &Shape) -> bool {
    match shape {
        Shape::ByNumber(by) => !by.is_empty(),
        Shape::Nested { inner, .. } => inner.iter().any(has_number_keys),
        Shape::ByName(by) => by.values().any(has_number_keys),
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_accepted_is_read_as_it_was_and_all_else_is_refused(mean in float(), shape in shape()) {
        let mut session = session();
        let item = measure(mean, shape);
        let mut draft = session.draft();
        let accepted = draft.append(item.clone()).map(drop);
        match accepted {
            Ok(()) => {
                session.commit(draft).unwrap();
                let text = session.snapshot().to_json().unwrap();
                let again = Snapshot::from_json(&text).unwrap().all::<Measure>().unwrap();
                prop_assert_eq!(&again[0], &item);
            }
            Err(error) => {
                prop_assert!(error.to_string().contains("\"measure\""), "{}", error);
                prop_assert!(!comes_back(&item) || has_number_keys(&item.shape), "{:?}: {}", item, error);
                prop_assert_eq!(draft.changes().count(), 0);
                prop_assert!(items::<Measure>(&draft).is_empty());
            }
        }
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_every_way_into_a_draft() {
    let mut session = session();
    session.register::<Measure, Knock>(|_, _, _| Ok(SliceOp::append(measure(f64::INFINITY, Shape::Unit))));
    let mut draft = session.draft();
    draft.append(note(1, "a")).unwrap();
    let nan = || measure(1.5, Shape::Pair(0.0, Some(f64::NAN)));
    for error in [
        draft.append(nan()).map(drop).unwrap_err(),
        draft.seed([measure(1.5, Shape::Unit), nan()]).map(drop).unwrap_err(),
        draft.dispatch(Knock { times: 1 }).map(drop).unwrap_err(),
    ] {
        assert!(matches!(&error, SessionError::Encode { slice, .. } if slice == "measure"), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("NaN") || cause.contains("inf"), "{cause}");
    }
    assert_eq!(draft.changes().count(), 1, "the draft is as it was before each");
    assert!(items::<Measure>(&draft).is_empty());
    session.commit(draft).unwrap();
}

#[test]
fn what_is_reduced_again_at_the_commit_is_encoded_again() {
    let mut session = session();
    session.register::<Measure, Knock>(|measures, _, _| {
        let mean = if measures.is_empty() { 1.5 } else { f64::NAN };
        Ok(SliceOp::append(measure(mean, Shape::Unit)))
    });
    let (mut one, mut other) = (session.draft(), session.draft());
    one.dispatch(Knock { times: 1 }).unwrap();
    other.dispatch(Knock { times: 1 }).unwrap();
    session.commit(one).unwrap();
    let error = session.prepare(&other).unwrap_err();
    assert!(matches!(&error, SessionError::Encode { slice, .. } if slice == "measure"), "{error}");
    assert_eq!(items::<Measure>(&session).len(), 1);
}

/// Counts how often it is serialized.
#[derive(Debug, Deserialize, Slice)]
#[slice(name = "counted", crate = backstitch_core::__private)]
struct Counted(u32);

static WRITTEN: AtomicUsize = AtomicUsize::new(0);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITTEN.fetch_add(1, Ordering::SeqCst);
        self.0.serialize(serializer)
    }
}

#[test]
fn an_item_is_encoded_once() {
    let mut session = session();
    let mut draft = session.draft();
    draft.append(Counted(7)).unwrap();
    assert_eq!(WRITTEN.load(Ordering::SeqCst), 1);
    let prepared = session.prepare(&draft).unwrap();
    for _ in 0..2 {
        prepared.changes()[0].encode().unwrap();
    }
    session.apply(prepared).unwrap();
    assert_eq!(WRITTEN.load(Ordering::SeqCst), 1);
}

#[test]
fn what_the_type_does_not_read_is_refused() {
    #[derive(Debug, Serialize, Deserialize, Slice)]
    #[slice(name = "one_way", crate = backstitch_core::__private)]
    struct OneWay {
        #[serde(serialize_with = "as_text")]
        number: u32,
    }

    fn as_text<S: Serializer>(number: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    #[derive(Debug, Serialize, Deserialize, Slice)]
    #[slice(name = "twice", crate = backstitch_core::__private)]
    struct Twice {
        name: String,
        #[serde(flatten)]
        more: BTreeMap<String, String>,
    }

    let session = session();
    let mut draft = session.draft();
    let error = draft.append(OneWay { number: 1 }).map(drop).unwrap_err();
    assert!(matches!(&error, SessionError::Unreadable { slice, .. } if slice == "one_way"), "{error}");
    let more = BTreeMap::from([("name".to_owned(), "b".to_owned())]);
    let error = draft.append(Twice { name: "a".into(), more }).map(drop).unwrap_err();
    assert!(matches!(&error, SessionError::Encode { slice, .. } if slice == "twice"), "{error}");
    assert_eq!(draft.changes().count(), 0);
}

#[test]
fn sets_in_any_order_and_caches_of_anything_are_accepted() {
    #[derive(Debug, Serialize, Deserialize, Slice)]
    #[slice(name = "names", crate = backstitch_core::__private)]
    struct Names {
        names: HashSet<String>,
        last: Option<Value>,
    }

    let mut session = session();
    let mut draft = session.draft();
    let names = (0..20).map(|number| number.to_string()).collect();
    draft.append(Names { names, last: Some(Value::Bool(true)) }).unwrap();
    session.commit(draft).unwrap();

    session.set_policy::<Measure>(SlicePolicy::Cache);
    let mut draft = session.draft();
    draft.append(measure(f64::NAN, Shape::Unit)).unwrap();
    session.commit(draft).unwrap();
}
