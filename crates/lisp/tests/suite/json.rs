//! JSON input and output.

use backstitch_lisp::{ErrorKind, Limits, Map, Value, from_json, read_edn, to_edn, to_json};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::support::{fails, gives};

fn edn(text: &str) -> Value {
    read_edn(text, &Limits::default()).expect("EDN")
}

#[track_caller]
fn comes_in(json: Json, expected: &str) {
    assert_eq!(to_edn(&from_json(&json, &Limits::default()).expect("a value")), expected);
}

#[track_caller]
fn goes_out(text: &str, expected: Json) {
    assert_eq!(to_json(&edn(text), None).expect("JSON"), expected);
}

#[test]
fn all_keys_are_keywords_whatever_the_data() {
    comes_in(
        json!({"name": "a", "content-type": 1, "with space": 2, "": 3, "a/b": 4, "1": 5}),
        r#"{: 3, :1 5, :content-type 1, :name "a", :with space 2, :a/b 4}"#,
    );
    comes_in(json!([null, true, 1, 1.5, "x", []]), r#"[nil true 1 1.5 "x" []]"#);
    comes_in(json!(18446744073709551615u64), "18446744073709551615N");
    comes_in(json!(-5), "-5");
}

#[test]
fn lookups_accept_either_spelling() {
    let Value::Map(map) = from_json(&json!({"a": 1, "b c": 2}), &Limits::default()).unwrap() else {
        panic!()
    };
    for (key, value) in [("\"a\"", 1), (":a", 1), ("\"b c\"", 2)] {
        assert_eq!(map.get(&edn(key)), Some(&Value::Integer(value)), "{key}");
    }
    assert_eq!(map.get(&Value::keyword("b c")), Some(&Value::Integer(2)));
}

#[test]
fn limits_hold_for_what_comes_in() {
    let mut deep = json!(1);
    for _ in 0..300 {
        deep = json!([deep]);
    }
    assert_eq!(from_json(&deep, &Limits::default()).unwrap_err().kind(), ErrorKind::NestingExceeded);
    let mut limits = Limits::default();
    limits.collection_size = 2;
    assert_eq!(from_json(&json!([1, 2, 3]), &limits).unwrap_err().kind(), ErrorKind::SizeExceeded);
    limits.string_bytes = 2;
    assert_eq!(from_json(&json!("abc"), &limits).unwrap_err().kind(), ErrorKind::SizeExceeded);
}

#[test]
fn values_go_out() {
    goes_out(
        "{:a 1 \"b\" [:c d \\e nil true 1.5 1/2]}",
        json!({"a": 1, "b": ["c", "d", "e", null, true, 1.5, 0.5]}),
    );
    goes_out("#{1 2}", json!([1, 2]));
    goes_out("(1 2)", json!([1, 2]));
    goes_out("{:a/b 1 5 2 nil 3}", json!({"a/b": 1, "5": 2, "null": 3}));
    goes_out("5N", json!(5));
    goes_out("18446744073709551615", json!(18446744073709551615u64));
    goes_out("#time/date \"2026-01-02\"", json!("2026-01-02"));
}

#[test]
fn what_json_cannot_hold() {
    for text in ["##Inf", "##NaN", "{:a 1 \"a\" 2}", "100000000000000000000", "{[1] 2}"] {
        assert_eq!(to_json(&edn(text), None).unwrap_err().kind(), ErrorKind::NotRepresentable, "{text}");
    }
}

#[test]
fn a_schema_says_where_hyphens_are_underscores() {
    let schema = json!({
        "properties": {
            "user_name": {},
            "content-type": {},
            "items": {"type": "array", "items": {"properties": {"unit_price": {}}}},
            "inner": {"properties": {"a_b": {}}}
        }
    });
    let value = edn(
        "{:user-name 1 :content-type 2 :other-key 3 :items [{:unit-price 4 :x-y 5}] :inner {:a-b 6 :c-d 7}}",
    );
    assert_eq!(
        to_json(&value, Some(&schema)).unwrap(),
        json!({
            "user_name": 1, "content-type": 2, "other-key": 3,
            "items": [{"unit_price": 4, "x-y": 5}], "inner": {"a_b": 6, "c-d": 7}
        })
    );
}

#[test]
fn two_keys_of_one_name_are_refused_even_if_the_schema_made_them_one() {
    let schema = json!({"properties": {"a_b": {}}});
    assert_eq!(
        to_json(&edn("{:a-b 1 :a_b 2}"), Some(&schema)).unwrap_err().kind(),
        ErrorKind::NotRepresentable
    );
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(|value| json!(value)),
        any::<String>().prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_comes_back_as_it_went_in(json in json_value()) {
        let value = from_json(&json, &Limits::default()).unwrap();
        prop_assert_eq!(to_json(&value, None).unwrap(), json);
    }
}

#[test]
fn reading_in_a_program() {
    gives(
        r#"(json/read-str "{\"a\": [1, 2.5, \"x\\u00e9\\n\", null, true], \"b c\": {}}")"#,
        r#"{"a" [1 2.5 "xé\n" nil true], "b c" {}}"#,
    );
    gives(r#"(json/parse-string "{\"a\": 1}" true)"#, "{:a 1}");
    gives(r#"(json/parse-string "{\"a\": 1}")"#, r#"{"a" 1}"#);
    gives(r#"(json/read-str "123456789012345678901234567890")"#, "123456789012345678901234567890N");
    gives(r#"(json/read-str " [1 , -0.5e3] ")"#, "[1 -500.0]");
    gives(r#"(json/read-str "\"\\ud83d\\ude00\\/\"")"#, r#""😀/""#);
    for text in [
        "",
        "{",
        "[1,]",
        "[1 2]",
        "{\\\"a\\\" 1}",
        "{a: 1}",
        "01",
        "1.",
        "+1",
        ".5",
        "nul",
        "\\\"a",
        "[1] 2",
        "1e999",
        "'a'",
        "NaN",
    ] {
        fails(&format!("(json/read-str \"{text}\")"), "invalid_text");
    }
    fails("(json/read-str nil)", "type_error");
    let deep = format!("(json/read-str \"{}\")", "[".repeat(10_000));
    fails(&deep, "nesting_exceeded");
}

#[test]
fn writing_in_a_program() {
    gives(
        r#"(json/write-str {:a [1 2.5 nil true "x\n\"" :k 1/2] "b" {}})"#,
        r#""{\"b\":{},\"a\":[1,2.5,null,true,\"x\\n\\\"\",\"k\",0.5]}""#,
    );
    gives(r#"(json/generate-string {:a 1})"#, r#""{\"a\":1}""#);
    gives(r#"(json/write-str [1 {:a []}] :indent true)"#, r#""[\n  1,\n  {\n    \"a\": []\n  }\n]""#);
    gives("(json/write-str 123456789012345678901234567890)", r#""123456789012345678901234567890""#);
    fails("(json/write-str ##NaN)", "not_representable");
    fails("(json/write-str {[1] 2})", "not_representable");
    assert!(Map::new().is_empty());
}

#[test]
fn dates_go_out_in_iso() {
    goes_out("#inst \"2025-02-03T04:05:06Z\"", json!("2025-02-03T04:05:06Z"));
    goes_out("{#inst \"2025-02-03T04:05:06.5Z\" 1}", json!({"2025-02-03T04:05:06.500Z": 1}));
}

proptest! {
    /// Whether a program works must not depend on which keys an object happens to have.
    #[test]
    fn keys_of_an_object_are_alike_and_come_back_exactly(names in prop::collection::btree_set(".{0,8}", 0..12)) {
        let object: serde_json::Map<String, Json> =
            names.iter().enumerate().map(|(at, name)| (name.clone(), json!(at))).collect();
        let json = Json::Object(object);
        let value = from_json(&json, &Limits::default()).unwrap();
        let Value::Map(map) = &value else { panic!() };
        prop_assert!(map.keys().all(|key| matches!(key, Value::Keyword(_))));
        for (at, name) in names.iter().enumerate() {
            prop_assert_eq!(map.get(&Value::string(name.as_str())), Some(&Value::Integer(at as i64)));
            prop_assert_eq!(map.get(&Value::keyword(name.as_str())), Some(&Value::Integer(at as i64)));
        }
        prop_assert_eq!(to_json(&value, None).unwrap(), json);
    }
}
