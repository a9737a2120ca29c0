//! Finish reasons: every documented one of every provider, and calls that the token limit cut off.

use backstitch_core::message::Arguments;
use backstitch_core::ports::{Finish, PolicyAnswer};
use backstitch_providers::{ErrorKind, FinishMeaning, Provider, ProviderError, finish_reasons, parse};
use serde_json::{Value, json};

use super::answers::read_stream;
use super::support::target;
use super::support::wire::{Spoken, stream_of};

/// An answer without streaming and streamed.
fn both(spoken: &Spoken, provider: Provider) -> [Result<PolicyAnswer, ProviderError>; 2] {
    let whole = parse(&spoken.whole(provider).to_string(), &target(provider));
    let streamed = read_stream(provider, &spoken.streamed(provider));
    [whole, streamed.map(|(answer, _)| answer)]
}

/// The finish reason of each provider for the token limit.
fn limit(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAiChat => "length",
        Provider::OpenAiResponses => "max_output_tokens",
        Provider::Anthropic => "max_tokens",
        Provider::Gemini => "MAX_TOKENS",
    }
}

#[test]
fn every_documented_reason_has_its_meaning_streamed_and_not() {
    for provider in Provider::ALL {
        for (word, meaning) in finish_reasons(provider) {
            for result in both(&Spoken::text("Seams").ending(word), provider) {
                let expected = match meaning {
                    FinishMeaning::Whole => Ok(Finish::Stop),
                    FinishMeaning::Length => Ok(Finish::Length),
                    FinishMeaning::Pause => Ok(Finish::Pause),
                    FinishMeaning::Other => Ok(Finish::Other((*word).to_owned())),
                    FinishMeaning::Withheld => Err(ErrorKind::ContentFilter),
                    FinishMeaning::ContextFull => Err(ErrorKind::ContextTooLong),
                    // A failed response is classified by its error, and is a server error without one.
                    FinishMeaning::Malformed if *word == "failed" => Err(ErrorKind::Server),
                    FinishMeaning::Malformed => Err(ErrorKind::Malformed),
                    other => panic!("{other:?} has no test"),
                };
                let found = result.as_ref().map(|answer| answer.finish.clone());
                assert_eq!(found.map_err(|error| error.kind), expected, "{provider} {word}");
                if let Ok(answer) = result {
                    assert_eq!(answer.provider.unwrap().finish_reason.as_deref(), Some(*word));
                }
            }
        }
    }
}

#[test]
fn the_guide_lists_every_documented_reason() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/providers.md");
    let guide = std::fs::read_to_string(path).unwrap();
    for provider in Provider::ALL {
        for (word, _) in finish_reasons(provider) {
            assert!(guide.contains(&format!("`{word}`")), "{provider}: {word} is not in docs/providers.md");
        }
    }
}

#[test]
fn an_unknown_reason_is_kept_in_its_own_word() {
    // An incomplete response is cut off, whatever the reason.
    let others = Provider::ALL.into_iter().filter(|provider| *provider != Provider::OpenAiResponses);
    for provider in others {
        for answer in both(&Spoken::text("Seams").ending("brand_new"), provider) {
            assert_eq!(answer.unwrap().finish, Finish::Other("brand_new".to_owned()), "{provider}");
        }
    }
}

#[test]
fn an_incomplete_response_is_never_complete() {
    for reason in ["max_output_tokens", "max_messages", "brand_new"] {
        let response = json!({
            "status": "incomplete", "incomplete_details": {"reason": reason}, "usage": {"output_tokens": 4},
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sea"}]}],
        });
        let event = json!({"type": "response.incomplete", "response": response});
        let (streamed, _) = read_stream(Provider::OpenAiResponses, &stream_of(&[event])).unwrap();
        let whole = parse(&response.to_string(), &target(Provider::OpenAiResponses)).unwrap();
        for answer in [streamed, whole] {
            assert_eq!(answer.finish, Finish::Length, "{reason}");
            assert_eq!(answer.provider.unwrap().finish_reason.as_deref(), Some(reason));
        }
    }
}

#[test]
fn an_answer_that_cannot_be_used_costs_what_it_reports() {
    for provider in Provider::ALL {
        for (word, meaning) in finish_reasons(provider) {
            if matches!(
                meaning,
                FinishMeaning::Withheld | FinishMeaning::Malformed | FinishMeaning::ContextFull
            ) {
                for result in both(&Spoken::text("Seams").ending(word), provider) {
                    let usage = result.unwrap_err().usage;
                    assert!(
                        usage.input_tokens > 0 && usage.output_tokens > 0,
                        "{provider} {word}: {usage:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_called_decides_and_not_the_word_for_it() {
    for provider in Provider::ALL {
        for answer in both(&Spoken::text("Seams").call("call_a", "look", r#"{"at":"seams"}"#), provider) {
            assert_eq!(answer.unwrap().finish, Finish::Calls, "{provider}");
        }
    }
    // A forced function ends with `stop`; an answer that announces calls and makes none is an ordinary one.
    let forced = Spoken::default().call("call_a", "look", "{}").ending("stop");
    let none = Spoken::text("Seams").ending("tool_calls");
    for (forced, none) in
        both(&forced, Provider::OpenAiChat).into_iter().zip(both(&none, Provider::OpenAiChat))
    {
        assert_eq!((forced.unwrap().finish, none.unwrap().finish), (Finish::Calls, Finish::Stop));
    }
}

#[test]
fn a_function_call_of_the_old_form_is_a_call() {
    let function = json!({"name": "look", "arguments": "{\"at\":\"seams\"}"});
    let body = json!({"choices": [{"finish_reason": "function_call", "message": {"role": "assistant", "content": null, "function_call": function}}]});
    let whole = parse(&body.to_string(), &target(Provider::OpenAiChat)).unwrap();
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let events = [
        delta(
            json!({"role": "assistant", "content": null, "function_call": {"name": "look", "arguments": ""}}),
        ),
        delta(json!({"function_call": {"arguments": "{\"at\":"}})),
        delta(json!({"function_call": {"arguments": "\"seams\"}"}})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]}),
        json!("[DONE]"),
    ];
    let (streamed, _) = read_stream(Provider::OpenAiChat, &stream_of(&events)).unwrap();
    for answer in [whole, streamed] {
        assert_eq!(answer.finish, Finish::Calls);
        assert_eq!(answer.calls[0].name, "look");
        assert_eq!(answer.calls[0].arguments, Arguments::from_text(r#"{"at":"seams"}"#));
    }
}

/// Every beginning of an answer that the limit may leave, with the calls whose arguments are complete. Where
/// arguments are objects, a call is present or not.
fn beginnings(provider: Provider) -> Vec<(Spoken, Vec<&'static str>)> {
    let (first, second) = (r#"{"at":"hem"}"#, r#"{"at":"cuff","deep":{"a":1}}"#);
    let with_first = Spoken::text("I look.").call("call_a", "look", first).ending(limit(provider));
    let mut cases = vec![(Spoken::text("I lo").ending(limit(provider)), vec![])];
    let takes_texts = provider != Provider::Gemini;
    for end in 0..=first.len() {
        if takes_texts || end == first.len() {
            let spoken =
                Spoken::text("I look.").call("call_a", "look", &first[..end]).ending(limit(provider));
            cases.push((spoken, if end == first.len() { vec!["call_a"] } else { vec![] }));
        }
    }
    for end in 0..=second.len() {
        if takes_texts || end == second.len() {
            let spoken = with_first.clone().call("call_b", "look", &second[..end]);
            cases.push((spoken, if end == second.len() { vec!["call_a", "call_b"] } else { vec!["call_a"] }));
        }
    }
    cases
}

#[test]
fn no_call_counts_whose_arguments_the_limit_cut_off() {
    for provider in Provider::ALL {
        for (spoken, complete) in beginnings(provider) {
            let (answer, _) = read_stream(provider, &spoken.streamed(provider)).unwrap();
            assert_eq!(answer.finish, Finish::Length, "{provider} {spoken:?}");
            for call in &answer.calls {
                let id = call.provider_call_id.as_deref().unwrap();
                let is_complete = complete.contains(&id);
                // An object may be cut off and still parse, so the last one does not count.
                let is_sure = provider != Provider::Gemini || Some(id) != last_id(&spoken);
                assert_eq!(call.cut_off, !(is_complete && is_sure), "{provider} {spoken:?}");
            }
            assert_eq!(answer.calls.len(), spoken.calls.len(), "{provider}");
        }
    }
}

fn last_id(spoken: &Spoken) -> Option<&str> {
    spoken.calls.last().map(|(id, _, _)| id.as_str())
}

#[test]
fn an_object_in_one_piece_before_the_limit_does_not_count_as_complete() {
    let body = json!({"content": [
        {"type": "tool_use", "id": "s", "name": "look", "input": {"a": 1}},
        {"type": "tool_use", "id": "t", "name": "look", "input": {"a": {"b": 1}}},
    ], "stop_reason": "max_tokens"});
    let answer = parse(&body.to_string(), &target(Provider::Anthropic)).unwrap();
    assert_eq!([answer.calls[0].cut_off, answer.calls[1].cut_off], [false, true]);
    let item = json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "status": "incomplete"});
    let body = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [item]});
    let answer = parse(&body.to_string(), &target(Provider::OpenAiResponses)).unwrap();
    assert!(answer.calls[0].cut_off);
}

#[test]
fn calls_of_whole_answers_are_never_cut_off() {
    for provider in Provider::ALL {
        for arguments in ["{}", r#"{"at":"seams"}"#] {
            for answer in both(&Spoken::default().call("call_a", "look", arguments), provider) {
                assert!(!answer.unwrap().calls[0].cut_off, "{provider}");
            }
        }
    }
}
