//! `hash`: equal values have equal hashes, whatever their representation.

use std::sync::Arc;

use backstitch_lisp::{Inputs, MachineOutcome, Map, Sequence, Set, Value, equal};
use num_bigint::BigInt;
use proptest::prelude::*;

use crate::generate::value;
use crate::support::{engine, gives};

/// Runs a program on two values.
fn of_both(source: &str, a: &Value, b: &Value) -> Value {
    let data: Map =
        [(Value::keyword("a"), a.clone()), (Value::keyword("b"), b.clone())].into_iter().collect();
    let inputs = Inputs { data, ..Inputs::default() };
    let program = engine().compile(source, &inputs).expect("a program");
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => finished.result.expect("a value"),
        _ => panic!("{source} waits for the host"),
    }
}

/// Returns the same value in another representation, where there is one.
fn held_otherwise(value: &Value) -> Value {
    let all = |items: &mut dyn Iterator<Item = &Value>| items.map(held_otherwise).collect::<Vec<Value>>();
    match value {
        Value::Integer(value) => Value::BigInteger(Arc::new(BigInt::from(*value))),
        Value::BigInteger(value) => {
            i64::try_from(&**value).map_or_else(|_| Value::BigInteger(value.clone()), Value::Integer)
        }
        Value::Float(value) if *value == 0.0 => Value::Float(-value),
        Value::Vector(items) => Value::list(all(&mut items.iter())),
        Value::List(list) => {
            let mut items = Vec::new();
            let mut rest = list.clone();
            while let Some(node) = rest.node() {
                items.push(held_otherwise(node.first()));
                rest = match node.rest() {
                    Value::List(list) => list.clone(),
                    _ => break,
                };
            }
            match items.len() % 2 {
                0 => Value::vector(items),
                _ => Sequence::realised(items),
            }
        }
        Value::Set(set) => Value::Set(all(&mut set.iter()).into_iter().collect::<Set>()),
        Value::Map(map) => Value::Map(
            map.iter().map(|(key, value)| (held_otherwise(key), held_otherwise(value))).collect::<Map>(),
        ),
        other => other.clone(),
    }
}

/// Values many of which are equal to each other.
fn crowded() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Nil),
        (-1..2i64).prop_map(Value::Integer),
        (-1..2i64).prop_map(|value| Value::BigInteger(Arc::new(BigInt::from(value)))),
        prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN]).prop_map(Value::Float),
        prop::sample::select(vec!["", "a"]).prop_map(Value::from),
        Just(Value::keyword("a")),
        Just(Value::symbol("a")),
    ];
    scalar.prop_recursive(2, 8, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::vector),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::list),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Sequence::realised),
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| Value::Set(items.into_iter().collect::<Set>())),
            prop::collection::vec((inner.clone(), inner), 0..3)
                .prop_map(|entries| Value::Map(entries.into_iter().collect::<Map>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_value_hashes_alike_however_it_is_held(value in value()) {
        let other = held_otherwise(&value);
        // NaN equals nothing, not even itself.
        if equal(&value, &other) {
            prop_assert_eq!(of_both("(= (hash data/a) (hash data/b))", &value, &other), Value::Boolean(true));
        }
        let both = of_both("[(= data/a data/b) (= (hash data/a) (hash (walk/prewalk identity data/a)))]", &value, &other);
        prop_assert_eq!(both, Value::vector(vec![equal(&value, &other).into(), true.into()]));
    }

    #[test]
    fn equal_values_have_equal_hashes(a in crowded(), b in crowded()) {
        let told = of_both("[(= data/a data/b) (= (hash data/a) (hash data/b))]", &a, &b);
        prop_assert_ne!(told, Value::vector(vec![true.into(), false.into()]), "{:?} and {:?}", a, b);
    }
}

#[test]
fn the_kinds_that_are_equal_hash_alike() {
    gives("(= (hash [[1]]) (hash (list (list 1))) (hash (map (fn [x] [x]) [1])))", "true");
    gives("(= (hash {:a [1]}) (hash {:a (list 1)}))", "true");
    gives("(= (hash 1) (hash 1N))", "true");
    gives("(= (hash #{[1 2]}) (hash #{(range 1 3)}))", "true");
    gives("(= (hash 0.0) (hash -0.0))", "true");
    gives("(= (hash (range 3)) (hash [0 1 2]) (hash (cons 0 [1 2])) (hash (rest [9 0 1 2])))", "true");
}

#[test]
fn what_differs_mostly_hashes_differently() {
    gives(
        "(count (set (map hash [nil false true 0 1 -1 1.0 1/2 \\a \"a\" :a 'a [] {} #{} [1] [1 2] [[1] 2] [1 [2]] {:a 1} {1 :a} #{1}])))",
        "22",
    );
}
