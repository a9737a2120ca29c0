//! Each rule of each table refuses a request that breaks it.

use std::collections::BTreeSet;

use backstitch_providers::Provider;
use backstitch_providers::validate::{rules, validate};
use serde_json::{Value, json};

type Mutation = (&'static str, fn(&mut Value));

/// Asserts that the request is accepted, that each mutation breaks its rule, and that each rule has one.
fn check(provider: Provider, request: &Value, mutations: &[Mutation]) {
    validate(provider, request).unwrap();
    for (rule, mutate) in mutations {
        let mut mutated = request.clone();
        mutate(&mut mutated);
        let error = validate(provider, &mutated).expect_err(rule);
        let broken: Vec<_> = error.violations.iter().map(|violation| violation.rule).collect();
        assert!(broken.contains(rule), "{rule} is not among {broken:?}");
    }
    let tested: BTreeSet<_> = mutations.iter().map(|(rule, _)| *rule).collect();
    let known: BTreeSet<_> = rules(provider).iter().map(|rule| rule.id).collect();
    assert_eq!(tested, known);
    assert_eq!(known.len(), rules(provider).len(), "ids are unique");
}

fn list<'a>(value: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    value[name].as_array_mut().unwrap()
}

fn remove(value: &mut Value, name: &str) {
    value.as_object_mut().unwrap().remove(name);
}

#[test]
fn chat_refuses_what_it_refuses() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"], "additionalProperties": false});
    let request = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}},
    });
    let mutations: &[Mutation] = &[
        ("chat.model", |request| remove(request, "model")),
        ("chat.messages", |request| request["messages"] = json!([])),
        ("chat.messages", |request| request["messages"][0]["role"] = "robot".into()),
        ("chat.asks", |request| list(request, "messages").push(json!({"role": "assistant", "content": "x"}))),
        ("chat.answered", |request| drop(list(request, "messages").pop())),
        ("chat.answered", |request| {
            list(request, "messages").insert(4, json!({"role": "user", "content": "x"}))
        }),
        ("chat.answered", |request| request["messages"][4]["tool_call_id"] = "a".into()),
        ("chat.result-has-call", |request| drop(list(request, "messages").remove(2))),
        ("chat.arguments", |request| {
            request["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({})
        }),
        ("chat.arguments", |request| {
            request["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{".into()
        }),
        ("chat.call-ids", |request| request["messages"][2]["tool_calls"][0]["id"] = "x".repeat(65).into()),
        ("chat.names", |request| request["messages"][2]["tool_calls"][0]["function"]["name"] = "a.b".into()),
        ("chat.names", |request| request["tools"][0]["function"]["name"] = "".into()),
        ("chat.tools", |request| request["tools"] = json!([])),
        ("chat.tools", |request| {
            let tool = request["tools"][0].clone();
            list(request, "tools").push(tool);
        }),
        ("chat.tool-text", |request| request["messages"][3]["content"] = json!([{"type": "image_url"}])),
        ("chat.content", |request| request["messages"][1]["content"] = "".into()),
        ("chat.content", |request| request["messages"][2]["content"] = Value::Null),
        ("chat.content", |request| remove(&mut request["messages"][2], "content")),
        ("chat.content", |request| request["messages"][2]["tool_calls"] = json!([])),
        ("chat.media", |request| {
            request["messages"][1]["content"][1] =
                json!({"type": "file", "file": {"file_url": "https://example.org"}})
        }),
        ("chat.strict", |request| {
            request["response_format"]["json_schema"]["schema"]["required"] = json!([])
        }),
        ("chat.limit", |request| {
            request["max_tokens"] = 1.into();
            request["max_completion_tokens"] = 1.into();
        }),
    ];
    check(Provider::OpenAiChat, &request, mutations);
}

#[test]
fn responses_refuses_what_it_refuses() {
    let schema = json!({"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"], "additionalProperties": false});
    let request = json!({
        "model": "m",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}]},
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "blob"},
            {"type": "message", "id": "msg", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "t", "annotations": []}]},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "one"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": false}],
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": true}},
    });
    let mutations: &[Mutation] = &[
        ("responses.model", |request| request["model"] = "".into()),
        ("responses.input", |request| request["input"] = json!([])),
        ("responses.input", |request| request["input"][0]["role"] = "robot".into()),
        ("responses.asks", |request| {
            list(request, "input").push(json!({"role": "assistant", "content": "x"}));
        }),
        ("responses.answered", |request| drop(list(request, "input").pop())),
        ("responses.answered", |request| list(request, "input").swap(3, 4)),
        ("responses.output-has-call", |request| drop(list(request, "input").remove(3))),
        ("responses.once", |request| {
            let output = request["input"][4].clone();
            list(request, "input").push(output);
        }),
        ("responses.reasoning-followed", |request| {
            let reasoning = request["input"][1].clone();
            list(request, "input").push(reasoning);
        }),
        ("responses.reasoning-followed", |request| {
            list(request, "input").insert(2, json!({"role": "user", "content": "x"}));
        }),
        ("responses.encrypted", |request| remove(&mut request["input"][1], "encrypted_content")),
        ("responses.encrypted", |request| remove(request, "include")),
        ("responses.stateless", |request| request["store"] = true.into()),
        ("responses.stateless", |request| request["previous_response_id"] = "resp_1".into()),
        ("responses.arguments", |request| request["input"][3]["arguments"] = "[".into()),
        ("responses.call-ids", |request| {
            request["input"][3]["call_id"] = "x".repeat(65).into();
            request["input"][4]["call_id"] = "x".repeat(65).into();
        }),
        ("responses.names", |request| request["input"][3]["name"] = "a b".into()),
        ("responses.tools", |request| remove(&mut request["tools"][0], "strict")),
        ("responses.parts", |request| request["input"][2]["content"][0]["type"] = "input_text".into()),
        ("responses.parts", |request| remove(&mut request["input"][2], "id")),
        ("responses.parts", |request| remove(&mut request["input"][2], "status")),
        ("responses.parts", |request| request["input"][0]["content"] = json!([])),
        ("responses.media", |request| remove(&mut request["input"][0]["content"][1], "detail")),
        ("responses.media", |request| request["input"][0]["content"][1]["type"] = "input_video".into()),
        ("responses.strict", |request| {
            remove(&mut request["text"]["format"]["schema"], "additionalProperties")
        }),
        ("responses.limit", |request| request["max_output_tokens"] = 3.into()),
    ];
    check(Provider::OpenAiResponses, &request, mutations);
}

#[test]
fn anthropic_refuses_what_it_refuses() {
    let request = json!({
        "model": "m",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "s"}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "signed"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "t"},
                {"type": "tool_use", "id": "a", "name": "look", "input": {}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
                {"type": "tool_result", "tool_use_id": "b"},
                {"type": "text", "text": "t"},
            ]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    });
    let mutations: &[Mutation] = &[
        ("anthropic.model", |request| remove(request, "model")),
        ("anthropic.max-tokens", |request| remove(request, "max_tokens")),
        ("anthropic.max-tokens", |request| request["max_tokens"] = 1024.into()),
        ("anthropic.roles", |request| drop(list(request, "messages").remove(0))),
        ("anthropic.roles", |request| list(request, "messages").clear()),
        ("anthropic.roles", |request| {
            list(request, "messages").push(json!({"role": "assistant", "content": "x"}))
        }),
        ("anthropic.content", |request| request["messages"][0]["content"] = json!([])),
        ("anthropic.answered", |request| drop(list(&mut request["messages"][2], "content").remove(0))),
        ("anthropic.answered", |request| {
            let later = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]);
            list(request, "messages").splice(2..2, later.as_array().unwrap().clone());
        }),
        ("anthropic.result-has-call", |request| {
            request["messages"][2]["content"][0]["tool_use_id"] = "z".into()
        }),
        ("anthropic.calls-last", |request| list(&mut request["messages"][1], "content").swap(2, 3)),
        ("anthropic.results-first", |request| list(&mut request["messages"][2], "content").swap(1, 2)),
        ("anthropic.thinking-first", |request| drop(list(&mut request["messages"][1], "content").drain(..2))),
        ("anthropic.thinking-form", |request| remove(&mut request["messages"][1]["content"][0], "signature")),
        ("anthropic.thinking-form", |request| {
            list(&mut request["messages"][1], "content").truncate(2);
        }),
        ("anthropic.cache-marks", |request| {
            for index in 2..5 {
                request["messages"][1]["content"][index]["cache_control"] = json!({"type": "ephemeral"});
            }
            for place in ["tools", "system"] {
                request[place][0]["cache_control"] = json!({"type": "ephemeral"});
            }
        }),
        ("anthropic.empty-text", |request| request["messages"][0]["content"][0]["text"] = " ".into()),
        ("anthropic.empty-text", |request| {
            request["messages"][2]["content"][0]["content"][0]["text"] = "".into();
        }),
        ("anthropic.call-ids", |request| request["messages"][1]["content"][4]["id"] = "a".into()),
        ("anthropic.call-ids", |request| request["messages"][1]["content"][4]["id"] = "a b".into()),
        ("anthropic.names", |request| request["messages"][1]["content"][3]["name"] = "a.b".into()),
        ("anthropic.input", |request| request["messages"][1]["content"][3]["input"] = "{}".into()),
        ("anthropic.tools", |request| remove(&mut request["tools"][0], "input_schema")),
        ("anthropic.media", |request| {
            request["messages"][0]["content"][1]["source"]["media_type"] = "image/bmp".into()
        }),
        ("anthropic.media", |request| request["messages"][0]["content"][1]["type"] = "audio".into()),
        ("anthropic.system", |request| {
            list(request, "messages").insert(0, json!({"role": "system", "content": "x"}));
        }),
    ];
    check(Provider::Anthropic, &request, mutations);
}

#[test]
fn gemini_refuses_what_it_refuses() {
    let request = json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "t"}, {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "a", "name": "look", "args": {}}, "thoughtSignature": "signed"},
                {"functionCall": {"id": "b", "name": "look", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "look", "response": {"output": "one"}}},
                {"functionResponse": {"id": "b", "name": "look", "response": {"error": "two"}}},
            ]},
        ],
        "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
    });
    let mutations: &[Mutation] = &[
        ("gemini.contents", |request| request["contents"] = json!([])),
        ("gemini.contents", |request| request["contents"][0]["role"] = "assistant".into()),
        ("gemini.contents", |request| request["contents"][0]["parts"] = json!([])),
        ("gemini.asks", |request| {
            list(request, "contents").push(json!({"role": "model", "parts": [{"text": "x"}]}))
        }),
        ("gemini.begins", |request| drop(list(request, "contents").remove(0))),
        ("gemini.answered", |request| drop(list(&mut request["contents"][2], "parts").pop())),
        ("gemini.answered", |request| {
            list(request, "contents").insert(2, json!({"role": "user", "parts": [{"text": "x"}]}));
        }),
        ("gemini.response-has-call", |request| drop(list(request, "contents").remove(1))),
        ("gemini.call-follows-user", |request| {
            list(request, "contents").insert(1, json!({"role": "model", "parts": [{"text": "x"}]}));
        }),
        ("gemini.echo", |request| remove(&mut request["contents"][2]["parts"][0]["functionResponse"], "id")),
        ("gemini.echo", |request| {
            request["contents"][2]["parts"][0]["functionResponse"]["name"] = "see".into()
        }),
        ("gemini.signature", |request| remove(&mut request["contents"][1]["parts"][0], "thoughtSignature")),
        ("gemini.signature-place", |request| {
            request["contents"][1]["parts"][0]["functionCall"]["thoughtSignature"] = "signed".into();
        }),
        ("gemini.objects", |request| {
            request["contents"][1]["parts"][0]["functionCall"]["args"] = "{}".into()
        }),
        ("gemini.objects", |request| {
            request["contents"][2]["parts"][0]["functionResponse"]["response"] = "one".into();
        }),
        ("gemini.names", |request| request["tools"][0]["functionDeclarations"][0]["name"] = "1look".into()),
        ("gemini.parts", |request| request["contents"][0]["parts"][0]["text"] = "".into()),
        ("gemini.parts", |request| request["contents"][1]["parts"][0]["text"] = "x".into()),
        ("gemini.media", |request| remove(&mut request["contents"][0]["parts"][1]["fileData"], "mimeType")),
        ("gemini.tools", |request| {
            let tool = request["tools"][0]["functionDeclarations"][0].clone();
            list(&mut request["tools"][0], "functionDeclarations").push(tool);
        }),
        ("gemini.exclusive", |request| {
            request["tools"][0]["functionDeclarations"][0]["parameters"] = json!({"type": "OBJECT"});
        }),
        ("gemini.exclusive", |request| {
            request["generationConfig"] =
                json!({"thinkingConfig": {"thinkingBudget": 1, "thinkingLevel": "LOW"}});
        }),
        ("gemini.system", |request| request["systemInstruction"] = json!({"parts": []})),
    ];
    check(Provider::Gemini, &request, mutations);
}
