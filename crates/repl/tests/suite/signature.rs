//! Signatures: both notations, and the mismatches that a model is shown.

use backstitch_repl::{Field, Signature, Type, mismatches};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn signature(text: &str) -> Signature {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_signature_is_read_and_written() {
    for text in [
        "{count :int, items [{id :int}]}",
        "(query :string, limit :int?) -> [{id :int, title :string?}]",
        ":any",
        "[:float]",
        "{note :string?, _hidden [:int], deep {a {b [:bool?]}}?}",
        "{\"odd name\" :keyword, m :map}",
    ] {
        assert_eq!(signature(text).to_string(), text);
    }
    assert_eq!(signature("{:count :integer}"), signature("{ count\n:int, }"));
    assert_eq!(signature("-> :string"), signature(":str"));
}

#[test]
fn an_invalid_signature_is_reported_with_its_position() {
    for (text, problem, at) in [
        ("", "a type is expected", 1),
        ("{count}", "a type is expected", 7),
        ("{count :number2}", "there is no type `:number2`", 9),
        ("{a :int, a :int}", "there are two fields `a`", 11),
        ("[:int", "ends with `]`", 6),
        ("(a :int) {}", "after the parameters comes `->`", 10),
        (":int :int", "something follows its end", 6),
        ("{\"open :int}", "does not end", 2),
        (&"[".repeat(100), "nested more than", 34),
    ] {
        let error = text.parse::<Signature>().unwrap_err();
        assert!(error.problem.contains(problem), "{text}: {error}");
        assert_eq!(error.at, at, "{text}: {error}");
    }
}

#[test]
fn a_signature_is_a_schema() {
    let schema = signature("{count :int, items [{id :int}], note :string?}").to_schema();
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer"},
                "items": {"type": "array", "items": {
                    "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false
                }},
                "note": {"type": ["string", "null"]},
            },
            "required": ["count", "items"],
            "additionalProperties": false,
        })
    );
    let read = Signature::from_schema(&json!({
        "$defs": {"Row": {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]}},
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}, "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "odd": {"oneOf": [{"type": "string"}, {"type": "integer"}]}},
        "required": ["rows", "odd"],
    }));
    assert_eq!(read.output.to_string(), "{rows [{id :int}], either :string?, odd :any}");
    // A schema that refers to itself is cut off at some depth.
    let endless = Signature::from_schema(&json!({"$ref": "#"}));
    assert_eq!(endless.output, Type::Any);
}

#[test]
fn mismatches_say_what_to_do() {
    let wanted = signature("{count :int, items [{id :int}], note :string?, _token :string}").output;
    let told = |value: Json| -> Vec<String> {
        mismatches(&value, &wanted).iter().map(ToString::to_string).collect()
    };
    assert!(told(json!({"count": 1, "items": [{"id": 2}], "note": null, "_token": "x"})).is_empty());
    assert_eq!(
        told(json!({"count": "3", "items": [{"id": 1}, {"id": 1.5}], "_token": 7, "extra": true})),
        [
            "[:count]: expected an integer, got the string \"3\"; read it with `parse-long`",
            "[:items 1 :id]: expected an integer, got the number 1.5; make it an integer with `long` or `Math/round`",
            "[:_token]: expected a string, got a number; make it a string with `str`",
            "[:extra]: expected no such field, got true; leave it out or spell it as one of :count, :items, :note, :_token",
        ]
    );
    assert_eq!(
        told(json!({"items": {}, "_token": "secret"})),
        [
            "[:count]: expected an integer, got nothing; add it, for example `:count 42`",
            "[:items]: expected a list, each item a map, got an empty map; put it into a vector: `[{:id 42}]`",
        ]
    );
    assert_eq!(
        told(json!([1])),
        [
            "[]: expected a map, got a list of 1 item; write for example `{:count 42, :items [{:id 42}], :note \"text\", :_token \"text\"}`"
        ]
    );
    let many = mismatches(&json!(vec!["x"; 1000]), &signature("[:int]").output);
    assert_eq!(many.len(), 20);
}

fn any_type() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![
        Just(Type::String),
        Just(Type::Int),
        Just(Type::Float),
        Just(Type::Bool),
        Just(Type::Keyword),
        Just(Type::Map),
        Just(Type::Any)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let field = ("[a-z_][a-z0-9_-]{0,6}|[ \"\\\\]{1,3}", inner.clone(), any::<bool>()).prop_map(
            |(name, holds, optional)| {
                let holds = if optional { Type::Optional(Box::new(holds)) } else { holds };
                Field { name, holds }
            },
        );
        prop_oneof![
            inner.prop_map(|items| Type::List(Box::new(items))),
            prop::collection::vec(field, 0..4).prop_map(|mut fields| {
                let mut seen = std::collections::HashSet::new();
                fields.retain(|field| seen.insert(field.name.clone()));
                Type::Object(fields)
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read_again(output in any_type()) {
        let written = Signature { parameters: Vec::new(), output, schema: None };
        prop_assert_eq!(written.to_string().parse::<Signature>().unwrap(), written);
    }

    #[test]
    fn no_text_makes_it_fail_otherwise(text in "[-\\[\\]{}()?:>,a-z\" é]{0,60}") {
        let _ = text.parse::<Signature>();
    }

    #[test]
    fn an_example_fits(output in any_type()) {
        let engine = backstitch_lisp::Engine::new();
        let inputs = backstitch_lisp::Inputs::default();
        let program = engine.compile(&output.example(), &inputs).unwrap();
        let backstitch_lisp::MachineOutcome::Finished(finished) = engine.start(&program, inputs).run() else { panic!() };
        let json = backstitch_lisp::to_json(&finished.result.unwrap(), Some(&output.to_schema())).unwrap();
        prop_assert_eq!(mismatches(&json, &output), vec![]);
    }
}

#[test]
fn the_text_of_a_schema_is_a_signature() {
    let text = r#" {"type": "object", "properties": {"count": {"type": "integer"}, "note": {"type": "string"}}, "required": ["count"]}"#;
    assert_eq!(text.parse::<Signature>().unwrap().output.to_string(), "{count :int, note :string?}");
    assert_eq!("{}".parse::<Signature>().unwrap().output, Type::Object(Vec::new()));
    let error = "{count: int}".parse::<Signature>().unwrap_err().to_string();
    assert!(error.contains("after a colon comes the name of a type: `name :int`, at character 8"), "{error}");
}

#[test]
fn a_schema_that_says_more_than_types_is_kept() {
    let choice =
        json!({"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "required": ["size"]});
    let read: Signature = choice.to_string().parse().unwrap();
    assert_eq!(read.schema.as_ref(), Some(&choice));
    assert_eq!(read.to_schema(), choice);
    // The text reads back as the same signature.
    assert_eq!(read.to_string().parse::<Signature>().unwrap(), read);
    // Types say everything about this one.
    let plain = signature("{count :int, note :string?}");
    assert_eq!(plain.to_schema().to_string().parse::<Signature>().unwrap(), plain);
}
