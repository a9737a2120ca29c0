//! Damaged, oversized or hostile documents are refused, or restore to valid values.

use backstitch_lisp::{
    ErrorKind, Inputs, Limits, Memory, Value, restore_changes, restore_memory, restore_value, store_changes,
    store_memory, store_value,
};
use serde_json::{Value as Json, json};

use crate::stored::{leave_behind, run};
use crate::support::engine;

#[test]
fn a_document_has_a_bounded_size() {
    let mut limits = Limits::default();
    limits.memory_bytes = 1_000;
    let large = Value::vector((0..1_000).map(Value::Integer).collect());
    assert_eq!(store_value(&large, &limits).unwrap_err().kind(), ErrorKind::SizeExceeded);
}

#[track_caller]
fn refused(document: Json, kind: ErrorKind) {
    let error = restore_value(&document, engine(), &mut Inputs::default()).err();
    assert_eq!(error.as_ref().map(|error| error.kind()), Some(kind), "{document}: {error:?}");
}

#[test]
fn damaged_documents_are_refused() {
    refused(json!(null), ErrorKind::InvalidStored);
    refused(json!({"version": 3, "nodes": [], "root": null}), ErrorKind::InvalidStored);
    refused(json!({"version": 1}), ErrorKind::InvalidStored);
    for root in [
        json!({}),
        json!([]),
        json!([1]),
        json!(["zzz"]),
        json!(["r", 0]),
        json!(["r", -1]),
        json!(1.5),
        json!(1e300),
        json!(["c", "ab"]),
        json!(["n", "x"]),
        json!(["q", "1", "0"]),
        json!(["q", "4", "2"]),
        json!(["f", "x"]),
        json!(["native", "no-such"]),
        json!(["t", "(+ 1 2)"]),
        json!(["atom", "x"]),
    ] {
        refused(json!({"version": 1, "nodes": [], "root": root}), ErrorKind::InvalidStored);
    }
    for node in [
        json!(["v", ["r", 0]]),
        json!(["m", 1]),
        json!(["e", 1]),
        json!(["sm"]),
        json!(["sm", 0, 1]),
        json!(["sset"]),
        json!(["x", "no_such_kind", "", null, null, null]),
        json!(["x"]),
        json!(["fn"]),
        json!(["fn", {}]),
        json!(["fn", {"text": "(+ 1 2)", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] (no/such x))", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x) (fn [y] y)", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x)", "names": [], "member": 7, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] y)", "names": ["y"], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x)", "names": ["y"], "member": 0, "stamp": 1}, 5]),
        json!(["fn", {"library": 999999, "about": "", "names": [], "member": 0, "stamp": 1}]),
        json!(5),
    ] {
        refused(json!({"version": 1, "nodes": [node], "root": ["r", 0]}), ErrorKind::InvalidStored);
    }
    refused(json!({"version": 1, "nodes": [], "root": ["re", "("]}), ErrorKind::InvalidRegex);
}

#[test]
fn limits_hold_for_what_comes_back() {
    let nodes: Vec<Json> =
        std::iter::once(json!(["v"])).chain((0..5_000).map(|at| json!(["v", ["r", at]]))).collect();
    refused(json!({"version": 1, "nodes": nodes, "root": null}), ErrorKind::NestingExceeded);
    let huge = "9".repeat(1_000_000);
    refused(json!({"version": 1, "nodes": [], "root": ["n", huge]}), ErrorKind::NumberSizeExceeded);
}

#[test]
fn a_million_nested_vectors_are_refused_and_dropped() {
    let document = json!({"version": 1, "nodes": [["v"]], "root": ["r", 0]});
    assert!(restore_value(&document, engine(), &mut Inputs::default()).is_ok());
}

/// Small changes to a valid document: each restores or fails, and nothing panics.
#[test]
fn mutated_documents_restore_or_fail() {
    let memory = run(
        "(def a (atom [1 2.5 1/3 \\a \"b\" :c 'd #{1} {:e nil}])) (def f (let [n 5] (fn [x] (+ x n)))) (def g (comp inc f))
         (def e (ex-info \"x\" {})) (def s (map inc [1 2]))",
        Memory::new(),
    )
    .memory;
    let text = store_memory(&memory, &Limits::default()).unwrap().to_string();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let mut restored = 0;
    for _ in 0..20_000 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = b"0123456789[]{}\",:abrvfnmx"[random(25)],
                1 => {
                    bytes.remove(at);
                }
                _ => {
                    let end = (at + random(20)).min(bytes.len());
                    let copied = bytes[at..end].to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, copied);
                }
            }
        }
        if let Ok(document) = serde_json::from_slice::<Json>(&bytes) {
            restored += usize::from(restore_memory(&document, engine(), &Inputs::default()).is_ok());
        }
    }
    assert!(restored > 100, "{restored}");
}

#[test]
fn damaged_changes_are_refused() {
    let good =
        store_changes(&Memory::new(), &leave_behind("(def x [1 2])"), &[], &Limits::default()).unwrap();
    for field in
        ["version", "nodes", "definitions", "atoms", "next_stamp", "values", "forgotten", "dropped", "names"]
    {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        let mut inputs = Inputs::default();
        assert!(restore_changes(&bad, engine(), &mut inputs).is_err(), "{field}");
        assert!(inputs.memory.is_empty());
    }
}
