//! Structured answers, media and limits, in the form of each provider.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::message::{MediaPart, MediaUrl, Modality, Part, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::ports::{Policy, PolicyError, PolicyRequest};
use backstitch_providers::{
    Departure, ModelTarget, Provider, RequestLimits, RequestOptions, SendError, StructuredOutput,
};
use serde_json::{Value, json};

use super::loopback::{RUNTIME, model};
use super::support::Talk;
use super::support::server::{Served, Server};
use super::support::wire::Spoken;

fn asking(schema: &Value) -> PolicyRequest {
    let mut question = Talk::new().system("Be brief.").user("How is the weather?").question();
    question.output = Some(Arc::new(schema.clone()));
    question
}

/// The schema in a request, and its strict flag.
fn sent(body: &Value, provider: Provider) -> (Value, Value) {
    let (schema, strict) = match provider {
        Provider::OpenAiChat => {
            let format = &body["response_format"]["json_schema"];
            (&format["schema"], &format["strict"])
        }
        Provider::OpenAiResponses => (&body["text"]["format"]["schema"], &body["text"]["format"]["strict"]),
        Provider::Anthropic => (&body["output_config"]["format"]["schema"], &Value::Null),
        Provider::Gemini => (&body["generationConfig"]["responseJsonSchema"], &Value::Null),
    };
    (schema.clone(), strict.clone())
}

fn request(provider: Provider, question: &PolicyRequest) -> (Value, Vec<Departure>) {
    let rendered = model(provider, "http://127.0.0.1:9").request(question).unwrap();
    (rendered.body, rendered.report.departures)
}

fn rich() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "place": {"type": "string", "minLength": 2, "description": "Where"},
            "length": {"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255},
            "hint": {"type": ["string", "null"], "default": null},
            "more": {"type": "array", "items": {"$ref": "#/$defs/Stitch"}, "minItems": 3},
        },
        "required": ["place", "length", "more"],
        "$defs": {"Stitch": {"oneOf": [{"type": "string", "format": "uri"}, {"const": 7}]}},
    })
}

#[test]
fn each_provider_gets_the_schema_in_its_own_dialect() {
    let question = asking(&rich());
    for provider in [Provider::OpenAiChat, Provider::OpenAiResponses] {
        let (body, _) = request(provider, &question);
        let (schema, strict) = sent(&body, provider);
        assert_eq!(strict, true, "{schema:#}");
        let expected = json!({
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where (minLength: 2)"},
                "length": {"type": "integer", "minimum": 0, "maximum": 255},
                "hint": {"type": ["string", "null"]},
                "more": {"type": "array", "items": {"$ref": "#/$defs/Stitch"}, "minItems": 3},
            },
            "required": ["place", "length", "more", "hint"],
            "$defs": {"Stitch": {"anyOf": [{"type": "string", "description": "(format: uri)"}, {"const": 7}]}},
            "additionalProperties": false,
        });
        assert_eq!(schema, expected, "{provider}");
    }
    let (schema, _) = sent(&request(Provider::Anthropic, &question).0, Provider::Anthropic);
    assert_eq!(
        schema["properties"]["length"],
        json!({"type": "integer", "description": "(minimum: 0, maximum: 255)"})
    );
    assert_eq!(schema["properties"]["more"]["minItems"], 1);
    assert_eq!((&schema["additionalProperties"], &schema["required"]), (&json!(false), &rich()["required"]));
    let (schema, _) = sent(&request(Provider::Gemini, &question).0, Provider::Gemini);
    let mut expected = rich();
    expected.as_object_mut().unwrap().shift_remove("$schema");
    assert_eq!(schema, expected);
}

#[test]
fn an_inexpressible_schema_is_described_or_not_strict() {
    for schema in [
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "properties": {"a": true}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"not": {"type": "null"}}}, "required": ["a"]}),
    ] {
        let question = asking(&schema);
        for provider in [Provider::OpenAiChat, Provider::OpenAiResponses] {
            let (body, departures) = request(provider, &question);
            assert_eq!(sent(&body, provider), (schema.clone(), json!(false)), "{provider}");
            assert!(departures.is_empty());
        }
        let (body, departures) = request(Provider::Anthropic, &question);
        assert_eq!(body.get("output_config"), None, "{schema}");
        assert_eq!(departures, [Departure::OutputInWords]);
        let system = body["system"][0]["text"].as_str().unwrap();
        assert!(system.starts_with("Be brief.") && system.contains(&schema.to_string()), "{system}");
    }
    let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "required": ["root"], "$defs": {
        "Node": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}, "required": ["below"]}
    }});
    let list =
        json!({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}});
    for recursive in [tree, list] {
        assert_eq!(request(Provider::Anthropic, &asking(&recursive)).1, [Departure::OutputInWords]);
        let (body, _) = request(Provider::OpenAiChat, &asking(&recursive));
        assert_eq!(sent(&body, Provider::OpenAiChat).1, true, "{recursive}");
    }
}

#[test]
fn older_geminis_and_plain_servers_get_the_schema_in_words() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]});
    let question = asking(&schema);
    let nobody = || Arc::new(backstitch_providers::Http::new().unwrap());
    let name = || backstitch_core::message::PolicyName::new("model").unwrap();
    let old = ModelTarget::new(Provider::Gemini, "gemini-2.5-flash");
    let old = backstitch_providers::ModelPolicy::new(name(), old, None, nobody());
    let body = old.request(&question).unwrap().body;
    assert_eq!(body.get("generationConfig"), None);
    assert!(body["systemInstruction"].to_string().contains("JSON Schema"));
    for provider in Provider::ALL {
        let options = RequestOptions { structured: StructuredOutput::InWords, ..RequestOptions::default() };
        let rendered =
            model(provider, "http://127.0.0.1:9").with_options(options).request(&question).unwrap();
        assert_eq!(sent(&rendered.body, provider).0, Value::Null);
        assert_eq!(rendered.report.departures, [Departure::OutputInWords]);
    }
}

#[test]
fn structured_answers_are_read_from_every_provider() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]});
    for provider in Provider::ALL {
        for (said, expected) in [("{\"t\": \"x\"}", Some(json!({"t": "x"}))), ("no JSON", None)] {
            let server = Server::with(vec![Served::stream(&Spoken::text(said).streamed(provider), 5)]);
            let policy = model(provider, server.address());
            let question = asking(&schema);
            let described = policy.describe(&question);
            let answer = RUNTIME.block_on(policy.decide(question, described)).unwrap();
            assert_eq!(answer.output, expected, "{provider}");
        }
    }
}

fn picture(bytes: &[u8]) -> (MediaPart, HashMap<backstitch_core::object::ObjectId, Arc<[u8]>>) {
    let object = Object::blob(bytes.to_vec());
    let media = MediaPart::new(Modality::Image, MediaUrl::blob(object.id()));
    (media, HashMap::from([(object.id(), object.bytes().clone())]))
}

#[test]
fn media_that_the_store_holds_is_sent_as_bytes() {
    let (media, held) = picture(b"\x89PNG\r\n\x1a\n and more");
    let talk = Talk::new().say(RoleHint::User, vec![Part::text("Look"), Part::Media(media)]);
    let mut question = talk.question();
    for provider in Provider::ALL {
        let refused = model(provider, "http://127.0.0.1:9").request(&question).unwrap_err();
        assert!(matches!(refused, SendError::Render(_)), "{refused}");
    }
    question.media = Arc::new(held);
    for provider in Provider::ALL {
        let (body, _) = request(provider, &question);
        assert!(body.to_string().contains("iVBORw0KGgog"), "{provider}: {body}");
        assert!(body.to_string().contains("Media 1:"), "{provider}");
    }
}

/// Asks a question that exceeds a limit.
fn refused(provider: Provider, limits: RequestLimits, question: &PolicyRequest) -> PolicyError {
    let server = Server::with(Vec::new());
    let policy = model(provider, server.address()).with_limits(limits);
    let described = policy.describe(question);
    assert_eq!((described.digest, described.body.is_some()), (None, false));
    let error = RUNTIME.block_on(policy.decide(question.clone(), described)).unwrap_err();
    assert!(server.seen().is_empty(), "{provider}: nothing is sent");
    error
}

#[test]
fn what_is_too_much_is_refused_before_it_is_sent() {
    let (media, held) = picture(b"\x89PNG\r\n\x1a\n");
    let parts = std::iter::repeat_n(Part::Media(media), 4).collect();
    let mut question = Talk::new().say(RoleHint::User, parts).question();
    question.media = Arc::new(held);
    for provider in Provider::ALL {
        let own = RequestLimits::of(provider);
        model(provider, "http://127.0.0.1:9").request(&question).unwrap();
        let error = refused(provider, RequestLimits { media: 3, ..own }, &question);
        assert_eq!((error.kind.as_str(), error.retryable), ("request_too_large", false));
        assert!(error.message.contains("3 media items") && error.message.contains("has 4"), "{error}");
        let error = refused(provider, RequestLimits { bytes: 300, ..own }, &question);
        assert_eq!((error.kind.as_str(), error.retryable), ("request_too_large", false));
        assert!(error.message.contains("300 bytes"), "{error}");
    }
}
