//! Calls in the dialects of servers that are compatible with Chat Completions: however they are split into
//! deltas, they are the calls of the answer without streaming.

use backstitch_core::ports::{AnsweredCall, PolicyAnswer};
use backstitch_providers::{Provider, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::answers::read_stream;
use super::support::target;

/// The index that a server sends with a call.
#[derive(Debug, Clone, Copy)]
enum Index {
    Right,
    AlwaysZero,
    Missing,
}

#[derive(Debug, Clone, Copy)]
struct Dialect {
    index: Index,
    /// Whether each delta has the id, or only the first.
    id_everywhere: bool,
    /// Whether arguments are a complete object, or pieces of a text.
    as_object: bool,
    /// Whether deltas without an id or a name have them as empty texts.
    empty_texts: bool,
    /// The number of characters of arguments in a delta.
    size: usize,
}

type Called = (String, Value);

fn whole(calls: &[Called], dialect: Dialect) -> PolicyAnswer {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let arguments =
                if dialect.as_object { arguments.clone() } else { arguments.to_string().into() };
            json!({"id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let message = json!({"role": "assistant", "content": "", "tool_calls": calls});
    let body = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    parse(&body.to_string(), &target(Provider::OpenAiChat)).unwrap()
}

fn pieces(index: usize, (name, arguments): &Called, dialect: Dialect) -> Vec<Value> {
    let id = format!("call_{index}");
    let texts: Vec<Value> = if dialect.as_object {
        vec![arguments.clone()]
    } else {
        let text: Vec<char> = arguments.to_string().chars().collect();
        let cut = text.chunks(dialect.size).map(|piece| Value::from(piece.iter().collect::<String>()));
        // The first delta has the name, and often nothing else.
        if dialect.size.is_multiple_of(2) {
            cut.collect()
        } else {
            std::iter::once("".into()).chain(cut).collect()
        }
    };
    let piece = |(at, arguments): (usize, Value)| {
        let mut function = json!({"arguments": arguments});
        let mut piece = json!({});
        if at == 0 {
            function["name"] = name.as_str().into();
            piece["type"] = "function".into();
        } else if dialect.empty_texts {
            function["name"] = "".into();
            piece["id"] = "".into();
        }
        if at == 0 || dialect.id_everywhere {
            piece["id"] = id.as_str().into();
        }
        match dialect.index {
            Index::Right => piece["index"] = index.into(),
            Index::AlwaysZero => piece["index"] = 0.into(),
            Index::Missing => {}
        }
        piece["function"] = function;
        piece
    };
    texts.into_iter().enumerate().map(piece).collect()
}

/// The answer as a stream. One event may contain pieces of several calls.
fn streamed(calls: &[Called], dialect: Dialect, together: usize) -> PolicyAnswer {
    let all: Vec<Value> =
        calls.iter().enumerate().flat_map(|(index, call)| pieces(index, call, dialect)).collect();
    let mut events: Vec<Value> = all
        .chunks(together)
        .map(|some| json!({"choices": [{"index": 0, "delta": {"tool_calls": some}}]}))
        .collect();
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
    let mut text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    read_stream(Provider::OpenAiChat, &text).unwrap().0
}

fn named(calls: &[AnsweredCall]) -> Vec<(&str, Option<&str>, String, bool)> {
    let one = |call: &AnsweredCall| call.arguments.text().into_owned();
    calls
        .iter()
        .map(|call| (call.name.as_str(), call.provider_call_id.as_deref(), one(call), call.cut_off))
        .collect()
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let index = prop_oneof![Just(Index::Right), Just(Index::AlwaysZero), Just(Index::Missing)];
    (index, any::<bool>(), any::<bool>(), any::<bool>(), 1_usize..12).prop_map(
        |(index, id_everywhere, as_object, empty_texts, size)| Dialect {
            index,
            id_everywhere,
            as_object,
            empty_texts,
            size,
        },
    )
}

fn called() -> impl Strategy<Value = Called> {
    let arguments = prop_oneof![
        Just(json!({})),
        "[a-zé\"{}]{0,12}".prop_map(|text| json!({"path": text})),
        (any::<i32>(), "[a-z]{1,4}").prop_map(|(number, name)| json!({name: {"deep": [number, null]}})),
    ];
    (prop_oneof![Just("read_file".to_owned()), Just("list_files".to_owned())], arguments)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_in_any_dialect_are_the_calls_of_the_answer_in_one_piece(
        calls in prop::collection::vec(called(), 1..5), dialect in dialect(), together in 1_usize..4,
    ) {
        let (whole, streamed) = (whole(&calls, dialect), streamed(&calls, dialect, together));
        prop_assert_eq!(named(&streamed.calls), named(&whole.calls));
        prop_assert_eq!(streamed.calls.len(), calls.len());
        prop_assert_eq!(streamed.finish, whole.finish);
    }
}

#[test]
fn two_calls_with_one_index_are_two_calls() {
    // As Ollama sends them: ollama/ollama#15457.
    let call = |id: &str, name: &str, arguments: &str| json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}}]});
    let events = [
        call("call_x", "read_file", r#"{"path":"a.txt"}"#),
        call("call_y", "list_files", "{}"),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let (answer, _) = read_stream(Provider::OpenAiChat, &text).unwrap();
    let expected = [
        ("read_file", Some("call_x"), r#"{"path":"a.txt"}"#.to_owned(), false),
        ("list_files", Some("call_y"), "{}".to_owned(), false),
    ];
    assert_eq!(named(&answer.calls), expected);
}
