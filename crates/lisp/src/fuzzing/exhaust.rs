//! Programs that call one library function in a loop with the largest possible values.
//!
//! Each ends when its fuel is used, and none does more work per unit of fuel than others: the tests count
//! operations, and the benchmarks measure time.

use std::fmt::Write as _;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::engine::Engine;
use crate::limits::Limits;
use crate::value::{List, Map, Ratio, Set, Value};

/// Returns the largest values of each type under these limits, by name. Inputs of the host are not counted
/// against the memory limit, so collections have at most `items` items.
pub fn largest_values(limits: &Limits, items: usize) -> Map {
    let items = items.min(limits.collection_size);
    let bytes = limits.string_bytes;
    let integers = || (0..items as i64).map(Value::Integer);
    let texts = || (0..items).map(|at| Value::from(format!("item {at} of a collection")));
    let big: BigInt = (BigInt::from(1) << (limits.number_bits - 1)) - 1;
    let other: BigInt = (BigInt::from(1) << (limits.number_bits - 2)) + 1;
    let ratio = |above: &BigInt, below: &BigInt| match Ratio::reduce(above.clone(), below.clone()) {
        Ok(ratio) => Value::Ratio(Arc::new(ratio)),
        Err(whole) => Value::BigInteger(Arc::new(whole)),
    };
    let mut json = String::from("[");
    while json.len() < bytes.saturating_sub(64) {
        let _ = write!(json, "{{\"id\":{},\"name\":\"ü\"}},", json.len());
    }
    json.push_str("0]");
    let tower =
        || (0..40).fold(Value::vector(vec![Value::Integer(1)]), |v, _| Value::vector(vec![v.clone(), v]));
    let words = "some words ".repeat(bytes / 11);
    [
        ("nil", Value::Nil),
        ("integer", Value::Integer(i64::MAX)),
        ("float", Value::Float(1.5e300)),
        ("character", Value::Character('ü')),
        ("ascii", Value::from("a".repeat(bytes))),
        ("ascii2", Value::from("a".repeat(bytes))),
        ("words", Value::from(words)),
        ("unicode", Value::from("ü".repeat(bytes / 2))),
        ("json", Value::from(json)),
        ("digits", Value::from("7".repeat((limits.number_bits / 4) as usize))),
        ("keyword", Value::keyword("k".repeat(bytes / 4))),
        ("keyword2", Value::keyword("k".repeat(bytes / 4 - 1) + "l")),
        ("symbol", Value::symbol("s".repeat(bytes / 4))),
        ("big", Value::BigInteger(Arc::new(big.clone()))),
        ("big2", Value::BigInteger(Arc::new(&other >> 3))),
        ("ratio", ratio(&big, &other)),
        ("ratio2", ratio(&(&big - 2), &(&other >> 1))),
        ("vector", Value::vector(integers().collect())),
        ("texts", Value::vector(texts().collect())),
        ("texts2", Value::vector(texts().collect())),
        ("list", Value::List(List::from(texts().collect::<Vec<_>>()))),
        ("map", Value::Map(texts().zip(integers()).collect::<Map>())),
        ("map2", Value::Map(texts().zip(integers()).collect::<Map>())),
        (
            "maps",
            Value::vector(vec![Value::Map(integers().take(8).zip(texts()).collect::<Map>()); items / 8]),
        ),
        ("set", Value::Set(texts().collect::<Set>())),
        ("tower", tower()),
        ("tower2", tower()),
    ]
    .into_iter()
    .map(|(name, value)| (Value::keyword(name), value))
    .collect()
}

/// The arguments that functions are called with. `X` and `Y` stand for two large values of one type.
const ARGUMENTS: &[&str] = &[
    "X",
    "X Y",
    "X X",
    "X 0",
    "X 1000",
    "3 X",
    "X \"a\"",
    "\"x\" X",
    "inc X",
    "even? X",
    "identity X",
    "vector X",
    "X inc",
    "X :a",
    ":a X",
    "[X] [Y]",
    "[X Y]",
    "[Y X] X",
    "{X 1} Y",
    "#\"[a-z]+\" X",
    "X #\"e|(o)|x*y\"",
    "X 0 1000",
    "X 1 X",
    "X \"a\" \"bb\"",
    "X #\"o\" \"$0\"",
    "+ 0 X",
    "conj [] X",
    "X X Y",
    "2 1 X",
    "[] X Y",
    "{} X",
    "#{} X",
    "(atom X) conj 1",
    "\"%s %d\" X X",
];

/// Pairs of large values of one type.
const PAIRS: &[(&str, &str)] = &[
    ("nil", "nil"),
    ("integer", "integer"),
    ("float", "float"),
    ("character", "character"),
    ("ascii", "ascii2"),
    ("words", "words"),
    ("unicode", "unicode"),
    ("json", "json"),
    ("digits", "digits"),
    ("keyword", "keyword2"),
    ("symbol", "symbol"),
    ("big", "big2"),
    ("ratio", "ratio2"),
    ("vector", "vector"),
    ("texts", "texts2"),
    ("list", "list"),
    ("map", "map2"),
    ("maps", "maps"),
    ("set", "set"),
    ("tower", "tower2"),
];

/// Returns calls of one library function with the largest values, each as an expression, with every number of
/// arguments that it takes. Many of them are errors.
pub fn calls_of(engine: &Engine, function: &str) -> Vec<String> {
    let takes = |count: usize| match engine.inner().builtins.get(function) {
        Some(Value::Native(native)) => native.arity.accepts(count),
        Some(Value::Closure(closure)) => closure.function().arity(count).is_some(),
        _ => false,
    };
    let mut calls = Vec::new();
    if takes(0) {
        calls.push(format!("({function})"));
    }
    for arguments in ARGUMENTS.iter().filter(|arguments| takes(count(arguments))) {
        for (x, y) in PAIRS {
            let arguments = arguments.replace('X', &format!("data/{x}")).replace('Y', &format!("data/{y}"));
            calls.push(format!("({function} {arguments})"));
        }
    }
    calls
}

/// Counts the forms of a text.
fn count(text: &str) -> usize {
    crate::read_all(text, &crate::ReadLimits::default()).map_or(0, |forms| forms.len())
}

/// Returns a program that evaluates an expression in an endless loop. A lazy result is realised, and errors
/// are ignored.
pub fn for_ever(call: &str) -> String {
    format!("(loop [] (try (let [r {call}] (when (seq? r) (dorun r))) (catch Throwable e nil)) (recur))")
}

/// Returns the library functions that a program can call, except those that end it.
pub fn functions(engine: &Engine) -> Vec<String> {
    let is_function = |name: &str| {
        !name.ends_with('*')
            && !matches!(name, "return" | "fail" | "throw")
            && engine.doc(name).is_some_and(|doc| doc.starts_with("a function"))
    };
    engine.names().into_iter().filter(|name| is_function(name)).map(str::to_owned).collect()
}
