//! Builders of messages and of results: their output and their errors.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::IdStream;
use backstitch_core::message::{
    Anchor, Arguments, Large, MediaPart, MediaUrl, Message, MessageBuilder, MessageError, MessageKind,
    Modality, OptionResultBuilder, Part, PolicyName, Retry, RoleHint,
};
use backstitch_core::object::Object;
use backstitch_core::time::FixedClock;
use serde_json::{Value, json};

use crate::message::{call_id, call_of, ids, planner, policy, read, written};

/// A policy calls a search, reads the result, and requests a picture made from two others.
#[test]
fn a_step_with_a_call_its_result_and_interleaved_media() {
    let ids = ids();
    let question = MessageBuilder::next_step(Anchor::start(), &ids)
        .person(policy("ada"))
        .add_text("Sew me into that costume")
        .to_message()
        .unwrap();
    let mut builder = MessageBuilder::continue_step(&question, &ids);
    builder.policy(policy("stylist"));
    builder.add_option_call("find_costume", json!({"about": "a tale of dragons"})).unwrap();
    let call = builder.last_option_call().unwrap().clone();
    let result = OptionResultBuilder::response_to(&call).unwrap().success(json!({"found": 2}));

    builder.add_image("ada, standing", "https://example.org/ada.png").unwrap();
    builder.add_image("a dragon costume", "https://example.org/dragon.png").unwrap();
    builder.add_text("Put the costume of the second picture on the person of the first");
    let prompt = builder.to_message().unwrap();

    for message in [&call, &result, &prompt] {
        assert_eq!(message.step_num, question.step_num);
    }
    assert_eq!(call.policy, "stylist");
    assert_eq!(result.policy, "find_costume");
    let (call, result) = (call.option_call().unwrap(), result.option_result().unwrap());
    assert_eq!((result.invocation_id, &result.option_name), (call.invocation_id, &call.option_name));
    let hints: Vec<_> =
        prompt.parts().unwrap().iter().map(|part| part.as_media().map(|media| &media.prompt_hint)).collect();
    assert_eq!(hints, [Some(&Some("ada, standing".into())), Some(&Some("a dragon costume".into())), None]);
    assert_eq!(builder.into_messages().unwrap().len(), 2);
}

#[test]
fn steps_advance_or_stay() {
    let ids = ids();
    let at = |step: Option<u64>| {
        let mut message = planner(&ids).add_text("here").to_message().unwrap();
        message.step_num = step;
        message
    };
    let step_of = |mut builder: MessageBuilder| {
        builder.policy(policy("planner")).add_text("there").to_message().unwrap().step_num
    };
    assert_eq!(step_of(MessageBuilder::next_step(Anchor::start(), &ids)), Some(0));
    assert_eq!(step_of(MessageBuilder::next_step(7, &ids)), Some(8));
    assert_eq!(step_of(MessageBuilder::next_step(&at(Some(0)), &ids)), Some(1));
    assert_eq!(step_of(MessageBuilder::next_step(&at(None), &ids)), Some(0));
    assert_eq!(step_of(MessageBuilder::next_step(u64::MAX, &ids)), Some(u64::MAX));
    assert_eq!(step_of(MessageBuilder::continue_step(Anchor::start(), &ids)), None);
    assert_eq!(step_of(MessageBuilder::continue_step(7, &ids)), Some(7));
    assert_eq!(step_of(MessageBuilder::continue_step(&at(Some(3)), &ids)), Some(3));
    assert_eq!(step_of(MessageBuilder::continue_step(&at(None), &ids)), None);
}

#[test]
fn all_calls_are_kept_in_order_with_ids_of_their_own() {
    let mut builder = planner(&ids());
    for number in 0..20 {
        builder.add_option_call("count", json!({ "number": number })).unwrap();
    }
    builder.add_text("twenty calls");
    let invocations: HashSet<_> =
        builder.option_calls().iter().map(|call| call.option_call().unwrap().invocation_id).collect();
    assert_eq!(invocations.len(), 20);
    assert_eq!(builder.last_option_call(), builder.option_calls().last());

    let calls = builder.option_calls().to_vec();
    let parts = builder.to_message().unwrap();
    let messages = builder.into_messages().unwrap();
    assert_eq!(messages[0], parts);
    assert_eq!(messages[1..], calls);
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(call.option_call().unwrap().arguments.object().unwrap()["number"], number);
    }
}

#[test]
fn arguments_may_be_a_value_an_object_or_as_received() {
    let mut builder = planner(&ids());
    let object = json!({"a": 1});
    builder.add_option_call("one", object.clone()).unwrap();
    builder.add_option_call("two", object.as_object().unwrap().clone()).unwrap();
    builder
        .add_option_call("three", Arguments::from_text("{\"a\": "))
        .unwrap()
        .provider_call_id("call_9")
        .unwrap();
    let refused = builder.add_option_call("four", json!([1])).unwrap_err();
    assert!(matches!(refused, MessageError::ArgumentsNotObject { found: "an array" }));

    let calls: Vec<_> = builder.option_calls().iter().filter_map(Message::option_call).collect();
    assert_eq!(calls[0].arguments, calls[1].arguments);
    assert!(!calls[2].arguments.is_parsable());
    assert_eq!(
        calls.iter().map(|call| call.provider_call_id.as_deref()).collect::<Vec<_>>(),
        [None, None, Some("call_9")]
    );
}

#[test]
fn a_builder_with_too_little_says_what_is_missing() {
    let ids = ids();
    let mut builder = MessageBuilder::next_step(Anchor::start(), &ids);
    assert!(matches!(builder.to_message(), Err(MessageError::NoParts)));
    assert!(matches!(builder.clone().into_messages(), Err(MessageError::NoContent)));
    assert!(matches!(builder.provider_call_id("call_1"), Err(MessageError::NoOptionCall)));
    assert!(builder.last_option_call().is_none());
    assert!(matches!(builder.add_option_call("search_web", json!({})), Err(MessageError::NoPolicy)));
    builder.add_text("who says this?");
    assert!(matches!(builder.to_message(), Err(MessageError::NoPolicy)));
    assert!(matches!(builder.clone().into_messages(), Err(MessageError::NoPolicy)));

    let mut calls_only = planner(&ids);
    calls_only.add_option_call("search_web", json!({})).unwrap();
    assert!(matches!(calls_only.to_message(), Err(MessageError::NoParts)));
    assert_eq!(calls_only.into_messages().unwrap().len(), 1);
}

/// Default policy and role hint.
#[test]
fn defaults_follow_the_anchor() {
    let ids = ids();
    let person =
        MessageBuilder::next_step(0, &ids).person(policy("ada")).add_text("hm").to_message().unwrap();
    let model = planner(&ids).add_text("hm").to_message().unwrap();
    let call = call_of("search_web");
    let result = OptionResultBuilder::response_to(&call).unwrap().success(1);
    let runtime =
        OptionResultBuilder::response_to(&call).unwrap().as_runtime().error("x", "y", Retry::Refused);

    let (user, assistant) = (Some(RoleHint::User), Some(RoleHint::Assistant));
    for (anchor, expected_policy, parts_hint) in [
        (&person, Some("ada"), user),
        (&model, Some("planner"), None),
        (&call, Some("planner"), None),
        (&result, Some("search_web"), None),
        (&runtime, None, None),
    ] {
        let mut builder = MessageBuilder::next_step(anchor, &ids);
        builder.add_text("and then");
        let Some(expected_policy) = expected_policy else {
            assert!(matches!(builder.to_message(), Err(MessageError::NoPolicy)));
            continue;
        };
        builder.add_option_call("search_web", json!({})).unwrap();
        let [parts, call] = &builder.into_messages().unwrap()[..] else { panic!("parts and a call") };
        assert_eq!((&parts.policy, parts.role_hint_for_llm), (&policy(expected_policy), parts_hint));
        assert_eq!((&call.policy, call.role_hint_for_llm), (&policy(expected_policy), assistant));
    }
    assert_eq!(result.role_hint_for_llm, Some(RoleHint::Tool));

    // A policy that continues after a person is not that person.
    let mut builder = MessageBuilder::continue_step(&person, &ids);
    let message = builder.policy(policy("planner")).add_text("I see").to_message().unwrap();
    assert_eq!((message.policy.as_str(), message.role_hint_for_llm), ("planner", None));
}

#[test]
fn what_is_said_of_the_speaker_holds_for_all_of_the_builder() {
    let mut builder = planner(&ids());
    builder.add_option_call("search_web", json!({})).unwrap().add_text("hm");
    builder.policy(policy("critic")).role_hint(RoleHint::System);
    for message in builder.into_messages().unwrap() {
        assert_eq!((message.policy.as_str(), message.role_hint_for_llm), ("critic", Some(RoleHint::System)));
    }
}

#[test]
fn media_has_ids_that_a_replay_gives_again() {
    let build = |ids: &IdStream| {
        let mut builder = planner(ids);
        builder.add_image("", "https://example.org/1").unwrap();
        builder.add_audio("the tune", "https://example.org/1").unwrap();
        builder.add_video("the film", "https://example.org/1").unwrap();
        builder.add_document("the script", "https://example.org/1").unwrap();
        let mut given = MediaPart::new(Modality::Image, MediaUrl::blob(Object::blob(*b"x").id()));
        given.id = Some("sketch".into());
        builder.add_media(given);
        let message = builder.to_message().unwrap();
        message.parts().unwrap().iter().filter_map(Part::as_media).cloned().collect::<Vec<_>>()
    };
    let media = build(&ids());
    assert_eq!(media, build(&IdStream::from_seed([8; 32], Arc::new(FixedClock::default()))));
    let modalities: Vec<_> = media.iter().map(|media| media.modality).collect();
    assert_eq!(
        modalities,
        [Modality::Image, Modality::Audio, Modality::Video, Modality::Document, Modality::Image]
    );
    assert_eq!(media[0].prompt_hint, None);
    assert_eq!(media[4].id.as_deref(), Some("sketch"));
    let distinct: HashSet<_> = media.iter().map(|media| media.id.clone().unwrap()).collect();
    assert_eq!(distinct.len(), 5);
    assert!(distinct.iter().filter(|id| id.starts_with("media-") && id.len() == 18).count() == 4);
}

#[test]
fn media_elsewhere_than_on_the_web_or_in_our_store_is_refused() {
    let mut builder = planner(&ids());
    for url in
        ["data:image/png;base64,AA==", "file:///etc/passwd", "javascript:alert(1)", "ftp://example.org/x"]
    {
        let error = builder.add_image("a hat", url).unwrap_err();
        assert!(matches!(error, MessageError::UnsupportedMediaUrl { .. }), "{url}: {error}");
    }
    for url in ["hat.png", "", "https://ada:secret@example.org/hat.png", "blob:hat"] {
        assert!(builder.add_document("a hat", url).is_err(), "{url}");
    }
    assert!(matches!(builder.to_message(), Err(MessageError::NoParts)), "what is refused is not added");
}

#[test]
fn only_a_call_can_be_answered() {
    let parts = planner(&ids()).add_text("hello").to_message().unwrap();
    let result = OptionResultBuilder::response_to(&call_of("search_web")).unwrap().success(1);
    for (message, expected) in [(parts, MessageKind::Parts), (result, MessageKind::OptionResult)] {
        let error = OptionResultBuilder::response_to(&message).unwrap_err();
        assert!(matches!(error, MessageError::NotAnOptionCall { kind } if kind == expected));
    }
}

#[test]
fn a_result_for_another_call_or_option_is_refused() {
    let call = call_of("search_web");
    let own = call.option_call().unwrap().invocation_id;
    let mut builder = OptionResultBuilder::response_to(&call).unwrap();
    builder.invocation_id(own).unwrap().option_name("search_web").unwrap();

    let other = call_id();
    let error = builder.invocation_id(other).unwrap_err();
    assert!(
        matches!(error, MessageError::MismatchedInvocation { expected, given } if expected == own && given == other)
    );
    let error = builder.option_name("search_mail").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the result answers a call of `search_web`, not of `search_mail`; build it with the call that it answers"
    );
    let result = builder.success(1);
    assert_eq!(result.option_result().unwrap().invocation_id, own, "a refusal changes nothing");
}

#[test]
fn a_result_speaks_as_the_option_unless_the_runtime_answers() {
    let answer = |option: &str| OptionResultBuilder::response_to(&call_of(option)).unwrap();
    assert_eq!(answer("search_web").success(1).policy, "search_web");
    assert_eq!(
        answer("search_web").as_runtime().error("invalid", "no", Retry::Refused).policy,
        PolicyName::runtime()
    );
    for made_up in ["", "runtime", "executor", "new\nline", &"n".repeat(300)] {
        let result = answer(made_up).error("unknown_option", "there is none", Retry::Refused);
        assert_eq!(result.policy, PolicyName::runtime());
        assert_eq!(result.option_result().unwrap().option_name, made_up);
        assert_eq!(result.option_result().unwrap().retryable, Some(false));
    }
}

#[test]
fn a_result_may_carry_media() {
    let picture = MediaPart::new(Modality::Image, MediaUrl::blob(Object::blob(*b"png").id()));
    let result = OptionResultBuilder::response_to(&call_of("draw"))
        .unwrap()
        .with_parts(vec![Part::text("a hat"), picture.clone().into()])
        .success(json!({"drawn": true}));
    let parts = &result.option_result().unwrap().parts;
    assert_eq!(parts[1].as_media().unwrap().id, Some(picture.stable_id()));
    assert_eq!(read(&written(&result)).unwrap(), result);
    assert_eq!(result.object_refs(), [Object::blob(*b"png").id()]);
}

#[test]
fn a_result_that_could_not_be_read_again_is_kept_as_its_text() {
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    let private = json!({"$serde_json::private::RawValue": "not json"});
    for value in [deep, private] {
        let result = OptionResultBuilder::response_to(&call_of("nest")).unwrap().success(value.clone());
        assert_eq!(result.option_result().unwrap().result, Large::Inline(Value::String(value.to_string())));
        assert_eq!(read(&written(&result)).unwrap(), result);
    }
}

#[test]
fn reserved_names_are_the_runtimes_own() {
    for name in ["runtime", "executor"] {
        assert!(matches!(PolicyName::new(name), Err(MessageError::ReservedPolicyName { .. })));
        let json = json!({"policy": name, "content": {"kind": "parts", "parts": []}});
        assert!(read(&json).unwrap().policy.is_reserved());
    }
}
