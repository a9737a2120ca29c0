//! Arbitrary values for property tests.

use std::sync::Arc;

use backstitch_lisp::{Limits, List, Map, Ratio, Set, Value, read_edn};
use num_bigint::BigInt;
use proptest::prelude::*;

/// Values that can be printed and read back.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::vector),
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| Value::List(List::from(items))),
            prop::collection::vec(inner.clone(), 0..20)
                .prop_map(|items| Value::Set(items.into_iter().collect::<Set>())),
            prop::collection::vec((inner.clone(), inner), 0..20)
                .prop_map(|entries| Value::Map(entries.into_iter().collect::<Map>())),
        ]
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Boolean),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        (any::<i128>(), any::<i64>()).prop_map(|(a, b)| Value::BigInteger(Arc::new(BigInt::from(a) * b))),
        (any::<i64>(), 1..1000i64).prop_map(|(a, b)| match Ratio::reduce(a.into(), b.into()) {
            Ok(ratio) => Value::Ratio(Arc::new(ratio)),
            Err(whole) => Value::BigInteger(Arc::new(whole)),
        }),
        any::<char>().prop_map(Value::Character),
        any::<String>().prop_map(Value::from),
        "[a-z*+!?<>=_-][a-z0-9*+!?<>=_'#-]{0,6}(/[a-z][a-z0-9-]{0,4})?"
            .prop_filter_map("not a name", |name| {
                backstitch_lisp::is_keyword_name(&name).then(|| Value::keyword(name))
            }),
        "[a-zλ][a-z0-9*+!?-]{0,6}(/[a-z][a-z0-9-]{0,4})?".prop_filter_map("not a symbol", |name| {
            crate::support::is_symbol_name(&name).then(|| Value::symbol(name))
        }),
        prop::sample::select(vec![
            "#inst \"2026-01-02T03:04:05.678-00:00\"",
            "#time/date \"2026-01-02\"",
            "#time/instant \"2026-01-02T03:04:05.000001Z\"",
            "#time/duration \"PT-1.5S\"",
            "#uuid \"123e4567-e89b-12d3-a456-426614174000\"",
            "#\"a\\\"\\d+[^\\s]\"",
        ])
        .prop_map(|text| read_edn(text, &Limits::default()).expect("a literal")),
    ]
}
