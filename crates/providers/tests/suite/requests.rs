//! Rendered requests of the four providers.

use std::sync::Arc;

use backstitch_core::message::{Arguments, MediaPart, MediaUrl, Modality, Part, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::ports::{AnsweredCall, PolicyAnswer};
use backstitch_providers::{
    CacheMarks, Departure, DropReason, MediaMode, MediaProblem, ModelTarget, OpenCalls, Provider,
    RenderError, RequestOptions, SamplingOptions, ThinkingBudget, Thread, ToolChoice, UnsupportedMediaPolicy,
    parse, render,
};
use serde_json::{Value, json};

use super::support::{MODEL, Talk, target, tools, whole_answer};

fn options() -> RequestOptions {
    RequestOptions::default()
}

/// A question, an answer of `maker` with two calls, one of them failed.
fn talk(maker: Provider) -> Talk {
    let answer = parse(&whole_answer(maker).to_string(), &target(maker)).unwrap();
    let talk = Talk::new().system("Be brief.").user("How is the weather?").answer(answer);
    talk.result(1, Err("upstream timeout")).result(0, Ok(json!("4 C, rain")))
}

#[test]
fn chat_gets_its_own_answer_back() {
    let body = talk(Provider::OpenAiChat).render(Provider::OpenAiChat, &options()).body;
    let calls = whole_answer(Provider::OpenAiChat)["choices"][0]["message"]["tool_calls"].clone();
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": "Checking.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_a", "content": "4 C, rain"},
        {"role": "tool", "tool_call_id": "call_b", "content": "ERROR: tool_error: upstream timeout"},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["tools"][0]["function"]["name"], "get_weather");
}

#[test]
fn responses_gets_its_own_answer_back() {
    let body = talk(Provider::OpenAiResponses).render(Provider::OpenAiResponses, &options()).body;
    let mut expected =
        vec![json!({"role": "user", "content": [{"type": "input_text", "text": "How is the weather?"}]})];
    expected.extend(whole_answer(Provider::OpenAiResponses)["output"].as_array().unwrap().clone());
    expected.push(json!({"type": "function_call_output", "call_id": "call_a", "output": "4 C, rain"}));
    let failed = "ERROR: tool_error: upstream timeout";
    expected.push(json!({"type": "function_call_output", "call_id": "call_b", "output": failed}));
    assert_eq!(body["input"], Value::Array(expected));
    assert_eq!((&body["instructions"], &body["store"]), (&json!("Be brief."), &json!(false)));
}

#[test]
fn anthropic_gets_its_own_answer_back() {
    let body = talk(Provider::Anthropic).user("And tomorrow?").render(Provider::Anthropic, &options()).body;
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "How is the weather?"}]},
        {"role": "assistant", "content": whole_answer(Provider::Anthropic)["content"]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_a", "content": [{"type": "text", "text": "4 C, rain"}]},
            {"type": "tool_result", "tool_use_id": "call_b", "content": [{"type": "text", "text": "tool_error: upstream timeout"}], "is_error": true},
            {"type": "text", "text": "And tomorrow?"},
        ]},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["system"], json!([{"type": "text", "text": "Be brief."}]));
}

#[test]
fn gemini_gets_its_own_answer_back() {
    let body = talk(Provider::Gemini).render(Provider::Gemini, &options()).body;
    let parts = whole_answer(Provider::Gemini)["candidates"][0]["content"]["parts"].clone();
    let expected = json!([
        {"role": "user", "parts": [{"text": "How is the weather?"}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "get_weather", "response": {"output": "4 C, rain"}, "id": "call_a"}},
            {"functionResponse": {"name": "get_weather", "response": {"error": "tool_error: upstream timeout"}, "id": "call_b"}},
        ]},
    ]);
    assert_eq!(body["contents"], expected);
}

/// A conversation of two evaluations, both with a turn 1, of which the first has an open call.
fn followed(maker: Provider) -> Talk {
    let answer = || parse(&whole_answer(maker).to_string(), &target(maker)).unwrap();
    let first = Talk::new().system("Be verbose.").user("How is the weather?").answer(answer());
    let first = first.result(1, Ok(json!("sunny")));
    let mut again = answer();
    for (call, id) in again.calls.iter_mut().zip(["call_c", "call_d"]) {
        call.provider_call_id = Some(id.to_owned());
    }
    again.provider = None;
    let second = first.follow_up().system("Be brief.").user("And tomorrow?").answer(again);
    // The open call of the first evaluation is the first open one.
    second.result(1, Ok(json!("4 C, rain"))).result(1, Ok(json!("fog")))
}

#[test]
fn a_follow_up_goes_to_each_provider_after_the_conversation_before_it() {
    for provider in Provider::ALL {
        let body = followed(provider).render(provider, &options()).body;
        let text = body.to_string();
        assert!(!text.contains("Be verbose."), "{provider}: {text}");
        assert_eq!(text.matches("Be brief.").count(), 1, "{provider}: {text}");
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{provider}: {what} in {text}"));
        assert!(place("How is the weather?") < place("interrupted: the call"), "{provider}: {text}");
        assert!(place("interrupted: the call") < place("And tomorrow?"), "{provider}: {text}");
        assert!(place("sunny") < place("And tomorrow?") && place("And tomorrow?") < place("fog"), "{text}");
        assert_eq!(text.matches("Checking.").count(), 2, "{provider}: {text}");
        let roles = |list: &Value| -> Vec<String> {
            let roles = list.as_array().unwrap().iter().map(|entry| entry["role"].as_str().unwrap());
            roles.map(str::to_owned).collect()
        };
        let expected = match provider {
            Provider::Anthropic => {
                (roles(&body["messages"]), vec!["user", "assistant", "user", "assistant", "user"])
            }
            Provider::Gemini => {
                (roles(&body["contents"]), vec!["user", "model", "user", "user", "model", "user"])
            }
            Provider::OpenAiChat => (
                roles(&body["messages"]),
                vec!["system", "user", "assistant", "tool", "tool", "user", "assistant", "tool", "tool"],
            ),
            Provider::OpenAiResponses => continue,
        };
        assert_eq!(expected.0, expected.1, "{provider}");
    }
}

#[test]
fn provider_data_is_only_sent_to_its_own_provider() {
    const SECRETS: [&str; 4] = ["gAAAAB==", "EqQB==", "EmwK==", "RXFR"];
    for maker in Provider::ALL {
        for asked in Provider::ALL {
            let other = ModelTarget::new(asked, "another-model");
            for target in [target(asked), other, target(asked).at("https://example.org/v1")] {
                let is_home = maker == asked && target.model == MODEL && target.endpoint.is_none();
                let rendered = talk(maker).render_for(&target, &options());
                let text = rendered.body.to_string();
                let leaks = SECRETS.iter().any(|secret| text.contains(secret));
                assert!(is_home || !leaks, "{maker} to {target:?}: {text}");
                assert!(text.contains("Checking.") && text.contains("Oslo") && text.contains("4 C, rain"));
                assert_eq!(rendered.report.dropped().count(), usize::from(!is_home), "{maker} to {target:?}");
            }
        }
    }
    let report = talk(Provider::Gemini).render(Provider::Anthropic, &options()).report;
    let (provider, model) = ("gemini".to_owned(), MODEL.to_owned());
    let reason = DropReason::OtherProvider;
    assert_eq!(report.departures, [Departure::PayloadDropped { turn: 1, provider, model, reason }]);
}

#[test]
fn open_calls_are_shown_as_interrupted_or_left_out() {
    for provider in Provider::ALL {
        let answer = parse(&whole_answer(provider).to_string(), &target(provider)).unwrap();
        let talk = Talk::new().user("How is the weather?").answer(answer).result(1, Ok(json!("sunny")));
        let shown = talk.render(provider, &options());
        assert!(shown.body.to_string().contains("interrupted: the call was cut off"), "{provider}");
        assert!(matches!(shown.report.departures[..], [Departure::Interrupted { .. }]));
        let skip = RequestOptions { open_calls: OpenCalls::Skip, ..options() };
        let skipped = talk.render(provider, &skip);
        let text = skipped.body.to_string();
        assert!(
            !text.contains("Oslo") && text.contains("Rome") && text.contains("sunny"),
            "{provider} {text}"
        );
    }
}

#[test]
fn what_cannot_be_invoked_goes_back_in_a_legal_form() {
    let mut odd = AnsweredCall::new("no such.tool!", Arguments::from_text("{\"city\": \"Os"));
    odd.provider_call_id = Some("an id with spaces".into());
    let answer = PolicyAnswer { calls: vec![odd], ..PolicyAnswer::default() };
    let talk = Talk::new().user("Hello").answer(answer).result(0, Err("the arguments are not JSON"));
    for provider in Provider::ALL {
        let text = talk.render(provider, &options()).body.to_string();
        assert!(text.contains("unparsed_arguments") && text.contains("no_such_tool_"), "{provider} {text}");
    }
}

#[test]
fn a_user_always_asks_and_no_message_is_empty() {
    let talks = [
        Talk::new().system("Be brief."),
        Talk::new().user("  "),
        Talk::new().user("Hello").answer(PolicyAnswer::text("Hi.")),
        Talk::new().system("Be brief.").answer(PolicyAnswer::text("Hi.")).answer(PolicyAnswer::default()),
        Talk::new()
            .user("Hello")
            .answer(PolicyAnswer::text("Hi."))
            .answer(PolicyAnswer::text("Still here."))
            .user("Yes?"),
        Talk::new()
            .user("Hello")
            .answer(PolicyAnswer::text(" \n"))
            .say(RoleHint::System, vec![Part::text("Hurry.")]),
    ];
    for talk in &talks {
        for provider in Provider::ALL {
            talk.render(provider, &options());
        }
    }
}

fn image() -> MediaPart {
    let mut image = MediaPart::new(Modality::Image, MediaUrl::new("https://example.org/cloth.png").unwrap());
    image.prompt_hint = Some("the cloth".into());
    image
}

#[test]
fn media_is_labelled_and_sent_by_address_or_by_bytes() {
    let bytes: Arc<[u8]> = Arc::from(*b"\x89PNG\r\n\x1a\n");
    let blob = MediaPart::new(Modality::Image, MediaUrl::blob(Object::blob(bytes.clone()).id()));
    let talk = Talk::new().say(RoleHint::User, vec![image().into(), blob.into(), Part::text("Compare.")]);
    let options = RequestOptions { bytes: Some(Arc::new(move |_| Some(bytes.clone()))), ..options() };
    for provider in Provider::ALL {
        let text = talk.render(provider, &options).body.to_string();
        assert!(text.contains("Media 1: the cloth") && text.contains("Media 2:"), "{provider}");
        assert!(
            text.contains("https://example.org/cloth.png") && text.contains("iVBORw0KGgo="),
            "{provider} {text}"
        );
        let inline =
            RequestOptions { media: MediaMode::PreferBytes, without_labels: true, ..options.clone() };
        let text = talk.render(provider, &inline).body.to_string();
        assert!(!text.contains("Media") && !text.contains("example.org"), "{provider} {text}");
    }
}

#[test]
fn media_that_is_not_taken_is_refused_or_described() {
    let video = MediaPart::new(Modality::Video, MediaUrl::new("https://example.org/film.mp4").unwrap());
    let talk = Talk::new().say(RoleHint::User, vec![video.into()]);
    let messages = talk.messages();
    for provider in [Provider::OpenAiChat, Provider::OpenAiResponses, Provider::Anthropic] {
        let error = render(&Thread::of(&messages), &tools(), &target(provider), &options()).unwrap_err();
        let RenderError::Media(media) = error else { panic!("{error}") };
        assert_eq!((media.modality, media.problem), (Modality::Video, MediaProblem::Modality));
        let describe = RequestOptions { unsupported: UnsupportedMediaPolicy::Describe, ..options() };
        let rendered = talk.render(provider, &describe);
        assert!(rendered.body.to_string().contains("[video at https://example.org/film.mp4]"));
        assert!(matches!(rendered.report.departures[..], [Departure::Described { .. }]));
    }
    talk.render(Provider::Gemini, &options());
    let far = MediaPart::new(Modality::Image, MediaUrl::blob(Object::blob(*b"x").id()));
    let talk = Talk::new().say(RoleHint::User, vec![far.into()]);
    let messages = talk.messages();
    for provider in Provider::ALL {
        let error = render(&Thread::of(&messages), &tools(), &target(provider), &options()).unwrap_err();
        let RenderError::Media(media) = error else { panic!("{error}") };
        assert_eq!(media.problem, MediaProblem::NoBytes);
    }
}

#[test]
fn media_of_results_reaches_the_model() {
    for provider in Provider::ALL {
        let answer = PolicyAnswer::default().call("look", Arguments::none()).call("look", Arguments::none());
        let talk = Talk::new().user("Look").answer(answer).result_with(json!(null), vec![image().into()]);
        let text = talk.result(0, Ok(json!({"seen": 1}))).render(provider, &options()).body.to_string();
        assert!(
            text.contains("https://example.org/cloth.png") && text.contains("Media 1: the cloth"),
            "{text}"
        );
    }
}

#[test]
fn options_are_said_in_each_providers_words() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"], "additionalProperties": false});
    let asked = |thinking, effort: Option<&str>| RequestOptions {
        max_output_tokens: Some(9_000),
        thinking,
        effort: effort.map(str::to_owned),
        cache: CacheMarks::Auto,
        cache_key: Some("conv-7".into()),
        output_schema: Some(Arc::new(schema.clone())),
        stream: true,
        ..options()
    };
    let body = |provider, asked| talk(provider).user("Proceed.").render(provider, &asked).body;
    let chat = body(Provider::OpenAiChat, asked(ThinkingBudget::Default, Some("low")));
    assert_eq!((&chat["max_completion_tokens"], &chat["stream"]), (&json!(9_000), &json!(true)));
    assert_eq!(chat["response_format"]["json_schema"]["strict"], true);
    let responses = body(Provider::OpenAiResponses, asked(ThinkingBudget::Adaptive, Some("low")));
    assert_eq!(responses["text"]["format"]["schema"], schema);
    assert_eq!(responses["reasoning"]["effort"], "low");
    let anthropic = body(Provider::Anthropic, asked(ThinkingBudget::Budget(2_000), Some("low")));
    assert_eq!(anthropic["thinking"], json!({"type": "enabled", "budget_tokens": 2_000}));
    assert_eq!(anthropic.to_string().matches("cache_control").count(), 4);
    let gemini = body(Provider::Gemini, asked(ThinkingBudget::Budget(2_000), None));
    assert_eq!(gemini["generationConfig"]["responseJsonSchema"], schema);
    assert_eq!(gemini["generationConfig"]["thinkingConfig"], json!({"thinkingBudget": 2_000}));
    let gemini = body(Provider::Gemini, asked(ThinkingBudget::Adaptive, Some("low")));
    let thinking = &gemini["generationConfig"]["thinkingConfig"];
    assert_eq!(thinking, &json!({"includeThoughts": true, "thinkingLevel": "LOW"}));
}

#[test]
fn sampling_and_the_choice_of_tools_are_said_in_each_providers_words() {
    let body = |provider, asked: &RequestOptions| Talk::new().user("Hello").render(provider, asked).body;
    let sampling = |seed, stop: &[&str]| SamplingOptions {
        temperature: Some(0.5),
        top_p: Some(0.9),
        seed,
        stop: stop.iter().map(|text| (*text).to_owned()).collect(),
    };
    let fields = json!({"user": "ada"});
    let all = RequestOptions {
        sampling: sampling(Some(7), &["END"]),
        tool_choice: ToolChoice::Named("look".into()),
        parallel_tool_calls: Some(false),
        verbosity: Some("low".into()),
        body: fields.as_object().unwrap().clone(),
        ..options()
    };
    let chat = body(Provider::OpenAiChat, &all);
    assert_eq!(
        (&chat["temperature"], &chat["seed"], &chat["stop"]),
        (&json!(0.5), &json!(7), &json!(["END"]))
    );
    assert_eq!(chat["tool_choice"], json!({"type": "function", "function": {"name": "look"}}));
    assert_eq!(
        (&chat["parallel_tool_calls"], &chat["verbosity"], &chat["user"]),
        (&json!(false), &json!("low"), &json!("ada"))
    );
    let responses =
        body(Provider::OpenAiResponses, &RequestOptions { sampling: sampling(None, &[]), ..all.clone() });
    assert_eq!((&responses["top_p"], &responses["text"]), (&json!(0.9), &json!({"verbosity": "low"})));
    assert_eq!(responses["tool_choice"], json!({"type": "function", "name": "look"}));
    let plain = RequestOptions { verbosity: None, body: Default::default(), ..all.clone() };
    let stops = SamplingOptions { stop: vec!["END".into()], ..SamplingOptions::default() };
    let anthropic = body(Provider::Anthropic, &RequestOptions { sampling: stops, ..plain.clone() });
    assert_eq!(anthropic["stop_sequences"], json!(["END"]));
    assert_eq!(
        anthropic["tool_choice"],
        json!({"type": "tool", "name": "look", "disable_parallel_tool_use": true})
    );
    let gemini = RequestOptions {
        parallel_tool_calls: None,
        body: json!({"generationConfig": {"topK": 40}}).as_object().unwrap().clone(),
        ..plain
    };
    let gemini = body(Provider::Gemini, &gemini);
    let expected = json!({"temperature": 0.5, "topP": 0.9, "seed": 7, "stopSequences": ["END"], "topK": 40});
    assert_eq!(gemini["generationConfig"], expected, "objects are merged");
    let calling = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}});
    assert_eq!(gemini["toolConfig"], calling);
}

#[test]
fn thinking_is_left_out_where_the_thoughts_are_missing() {
    let asked = RequestOptions { thinking: ThinkingBudget::Budget(2_000), ..options() };
    let rendered = talk(Provider::OpenAiChat).render(Provider::Anthropic, &asked);
    assert_eq!(rendered.body.get("thinking"), None);
    assert!(rendered.report.departures.contains(&Departure::ThinkingLeftOut));
}

#[test]
fn thinking_has_room_beside_the_answer() {
    let body = |thinking| {
        let asked = RequestOptions { thinking, ..options() };
        Talk::new().user("Hello").render(Provider::Anthropic, &asked).body
    };
    let large = body(ThinkingBudget::Budget(16_000));
    assert_eq!(large["thinking"], json!({"type": "enabled", "budget_tokens": 16_000}));
    assert_eq!(large["max_tokens"], 16_000 + 8_192);
    let none = body(ThinkingBudget::Budget(0));
    assert_eq!((&none["thinking"], &none["max_tokens"]), (&json!({"type": "disabled"}), &json!(8_192)));
    let most = body(ThinkingBudget::Budget(u32::MAX - 1));
    assert_eq!(most["max_tokens"], u32::MAX);
}

#[test]
fn an_option_that_a_provider_cannot_honour_is_refused() {
    use Provider::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
    let budget = |tokens| RequestOptions { thinking: ThinkingBudget::Budget(tokens), ..options() };
    let limit = |tokens| RequestOptions { max_output_tokens: Some(tokens), ..options() };
    let cases = [
        (OpenAiChat, budget(2_000), Some("thinking")),
        (OpenAiChat, budget(0), Some("thinking")),
        (OpenAiResponses, budget(2_000), Some("thinking")),
        (Anthropic, budget(0), None),
        (Anthropic, budget(1), Some("thinking")),
        (Anthropic, budget(1_023), Some("thinking")),
        (Anthropic, budget(1_024), None),
        (Anthropic, RequestOptions { max_output_tokens: Some(2_000), ..budget(2_000) }, Some("thinking")),
        (Anthropic, RequestOptions { max_output_tokens: Some(2_001), ..budget(2_000) }, None),
        (Gemini, budget(0), None),
        (Gemini, budget(1), None),
        (Gemini, RequestOptions { effort: Some("low".into()), ..budget(1) }, Some("thinking")),
        (OpenAiResponses, limit(15), Some("max_output_tokens")),
        (OpenAiResponses, limit(16), None),
        (OpenAiChat, limit(0), Some("max_output_tokens")),
        (Anthropic, limit(0), Some("max_output_tokens")),
        (Gemini, limit(1), None),
    ];
    let talk = Talk::new().user("Hello");
    let messages = talk.messages();
    for (provider, asked, refused) in cases {
        let rendered = render(&Thread::of(&messages), &tools(), &target(provider), &asked);
        match (rendered, refused) {
            (Ok(_), None) => drop(talk.render(provider, &asked)),
            (Err(RenderError::Option(found)), Some(option)) => assert_eq!(found.option, option),
            (found, _) => panic!("{provider} {asked:?}: {found:?}"),
        }
    }
}

#[test]
fn what_an_assistant_said_has_a_published_form_in_responses() {
    // Of another provider, of another model, and without an origin: each is a plain text.
    let others = [
        talk(Provider::Anthropic).render(Provider::OpenAiResponses, &options()),
        talk(Provider::OpenAiResponses)
            .render_for(&ModelTarget::new(Provider::OpenAiResponses, "another"), &options()),
        Talk::new()
            .user("Hello")
            .answer(PolicyAnswer::text("Checking."))
            .user("And?")
            .render(Provider::OpenAiResponses, &options()),
    ];
    for rendered in others {
        let said = rendered.body["input"].as_array().unwrap().iter().find(|item| item["role"] == "assistant");
        let expected = json!({"type": "message", "role": "assistant", "content": "Checking."});
        assert_eq!(said, Some(&expected));
    }
}

#[test]
fn a_message_without_id_or_status_goes_back_in_words_and_its_reasoning_stays() {
    for missing in ["id", "status"] {
        let mut body = whole_answer(Provider::OpenAiResponses);
        for item in body["output"].as_array_mut().unwrap() {
            if item["type"] == "message" {
                item.as_object_mut().unwrap().remove(missing);
            }
        }
        let answer = parse(&body.to_string(), &target(Provider::OpenAiResponses)).unwrap();
        let talk = Talk::new().user("Hello").answer(answer).result(0, Ok(json!(1))).result(0, Ok(json!(2)));
        let rendered = talk.render(Provider::OpenAiResponses, &options());
        assert_eq!(rendered.report.dropped().count(), 0);
        let items = rendered.body["input"].as_array().unwrap();
        assert!(items.iter().any(|item| item["encrypted_content"] == "gAAAAB=="));
        assert!(items.iter().any(|item| item["content"] == "Checking."), "{items:?}");
    }
}

#[test]
fn no_message_of_chat_is_null() {
    let call = || PolicyAnswer::default().call("look", Arguments::none());
    let mut replayed = whole_answer(Provider::OpenAiChat);
    replayed["choices"][0]["message"]["content"] = Value::Null;
    replayed["choices"][0]["message"]["reasoning_content"] = Value::Null;
    let replayed = parse(&replayed.to_string(), &target(Provider::OpenAiChat)).unwrap();
    let talks = [
        Talk::new().user("Look").answer(call()).result(0, Ok(json!("seen"))),
        Talk::new().user("Look").answer(replayed).result(0, Ok(json!(1))).result(0, Ok(json!(2))),
    ];
    for talk in talks {
        let body = talk.render(Provider::OpenAiChat, &options()).body;
        let silent =
            body["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
        assert_eq!(silent.unwrap()["content"], "");
        assert!(!body.to_string().contains("null"), "{body}");
    }
}
