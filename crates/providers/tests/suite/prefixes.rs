//! Any journal, cut at any record, renders to a request that each validator accepts.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Record, RecordBody, Role};
use backstitch_core::machine::{Action, Machinery, Past, ToolLoops};
use backstitch_core::object::ObjectId;
use backstitch_core::view::Transcript;
use backstitch_providers::validate::validate;
use backstitch_providers::{
    OpenCalls, Provider, RequestOptions, Target, Thinking, Thread, Unsupported, render,
};
use backstitch_testkit::{fold, sample};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{MODEL, tools};

/// The raw payload with which a provider would have made these messages.
fn payload(provider: Provider, answer: &[Arc<InnerMessage>]) -> Value {
    let text = answer.iter().map(|message| message.message.text().into_owned()).collect::<String>();
    let calls = answer.iter().filter_map(|message| message.message.option_call());
    let calls = calls.map(|call| {
        let id = call.provider_call_id.clone().unwrap_or_default();
        let object = call.arguments.object().cloned().unwrap_or_default();
        (id, call.option_name.clone(), call.arguments.text().into_owned(), object)
    });
    match provider {
        Provider::OpenAiChat => {
            let calls: Vec<Value> = calls
                .map(|(id, name, text, _)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": text}}))
                .collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls, "reasoning_content": "hm"})
        }
        Provider::OpenAiResponses => {
            let mut items =
                vec![json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "blob"})];
            if !text.is_empty() {
                items.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
            }
            items.extend(calls.map(|(id, name, text, _)| json!({"type": "function_call", "call_id": id, "name": name, "arguments": text})));
            items.into()
        }
        Provider::Anthropic => {
            let mut blocks = vec![
                json!({"type": "thinking", "thinking": "hm", "signature": "signed"}),
                json!({"type": "text", "text": text}),
            ];
            blocks.extend(calls.map(
                |(id, name, _, object)| json!({"type": "tool_use", "id": id, "name": name, "input": object}),
            ));
            blocks.into()
        }
        Provider::Gemini => {
            let mut parts = vec![json!({"text": "hm", "thought": true}), json!({"text": text})];
            for (index, (id, name, _, object)) in calls.enumerate() {
                let mut part = json!({"functionCall": {"id": id, "name": name, "args": object}});
                if index == 0 {
                    part["thoughtSignature"] = "signed".into();
                }
                parts.push(part);
            }
            parts.into()
        }
    }
}

/// Makes each answer of a journal the answer of one of the providers.
fn with_payloads(records: &mut [Record], first: usize) {
    for index in 0..records.len() {
        let RecordBody::MessageAppended(head) = &records[index].body else { continue };
        if head.provider.is_none() {
            continue;
        }
        let head = head.clone();
        let run = records[index..].iter().map_while(|record| match &record.body {
            RecordBody::MessageAppended(message)
                if message.turn == head.turn && message.role() == Role::Assistant =>
            {
                Some(message.clone())
            }
            _ => None,
        });
        let answer: Vec<_> = run.collect();
        let provider = Provider::ALL[(first + index / 7) % 4];
        let mut made = InnerMessage::clone(&head);
        if let Some(sidecar) = &mut made.provider {
            sidecar.provider = provider.to_string();
            sidecar.model = if index.is_multiple_of(5) { "another".into() } else { MODEL.into() };
            sidecar.payload = Some(payload(provider, &answer).to_string().into());
        }
        records[index].body = RecordBody::MessageAppended(Arc::new(made));
    }
}

fn hydrated(transcript: &Transcript, objects: &HashMap<ObjectId, Arc<[u8]>>) -> Transcript {
    let whole = transcript.all().iter().map(|message| {
        let mut message = InnerMessage::clone(message);
        message.hydrate(|reference| objects.get(&reference.object).cloned()).unwrap();
        message
    });
    Transcript::new(whole.collect())
}

fn options(objects: &HashMap<ObjectId, Arc<[u8]>>, variant: usize) -> RequestOptions {
    let known: Vec<ObjectId> = objects.keys().copied().collect();
    RequestOptions {
        open_calls: if variant % 3 == 2 { OpenCalls::Skip } else { OpenCalls::Interrupted },
        thinking: if variant % 2 == 1 { Thinking::Budget(1_024) } else { Thinking::Default },
        // Odd journals hold media that not every provider takes.
        unsupported: if variant % 2 == 1 { Unsupported::Describe } else { Unsupported::Refuse },
        // The sample images are words; what counts here is that there are bytes of some picture.
        bytes: Arc::new(move |media| {
            let object = media.url.object_id()?;
            known.contains(&object).then(|| Arc::from(*b"\x89PNG\r\n\x1a\n"))
        }),
        ..RequestOptions::default()
    }
}

/// Renders every cut of a journal for every provider. How many of them the machine would have asked, and how many payloads
/// were replayed, is given back.
fn check_every_cut(journal: &sample::Journal, variant: usize) -> (usize, usize) {
    let mut records = journal.records();
    with_payloads(&mut records, variant);
    let objects: HashMap<_, _> =
        journal.objects().map(|object| (object.id(), object.bytes().clone())).collect();
    let options = options(&objects, variant);
    let tools = tools();
    let (mut asked, mut replayed) = (0, 0);
    for view in fold::every_cut(&records).unwrap() {
        let transcript = hydrated(&view.transcript().unwrap(), &objects);
        for evaluation in view.evaluations() {
            let id = evaluation.evaluation_id;
            let action = ToolLoops::default().rebuild(&Past::of(&view, id).unwrap()).unwrap().next();
            let state = transcript.conversation(id);
            let thread = state.as_ref().map(Thread::of).unwrap_or_default();
            let open = transcript.pending_tool_calls(id).len();
            asked += usize::from(action == Action::Ask);
            // Also where the machine would do something else: a request can be looked at anywhere.
            for provider in Provider::ALL {
                let rendered = render(&thread, &tools, &Target::new(provider, MODEL), &options).unwrap();
                if let Err(error) = validate(provider, &rendered.body) {
                    panic!("at {:?}: {error}\n{:#}", view.head(), rendered.body);
                }
                let text = rendered.body.to_string();
                replayed += usize::from(text.contains("\"hm\""));
                if options.open_calls == OpenCalls::Interrupted {
                    let shown = text.matches("interrupted: the call was cut off").count();
                    assert_eq!(shown, open, "{provider}: each open call is shown as interrupted");
                }
            }
        }
    }
    (asked, replayed)
}

#[test]
fn sample_journals_ask_and_replay() {
    let (asked, replayed) = check_every_cut(&sample::journal(3, 25), 0);
    assert!(asked > 20 && replayed > 20, "{asked} asked, {replayed} replayed");
    check_every_cut(&sample::every_kind(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_prefix_of_any_journal_renders_to_a_valid_request(seed in any::<u64>(), turns in 1usize..10, variant in 0usize..12) {
        check_every_cut(&sample::journal(seed, turns), variant);
    }
}
