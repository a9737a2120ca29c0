//! The requests that OpenAI Responses refuses when it is used without state.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::rules::{
    Rule, check_model, check_unique, each, ensure, has_text, is_closed_if_strict, is_object_text,
    is_plain_name, is_web_or_data, items, rule, text,
};

pub(super) const RULES: &[Rule] = &[
    rule("responses.model", "a model is named", check_model),
    rule("responses.input", "there are items, each of a known form", |request| {
        ensure(!input(request).is_empty(), || "input".into())?;
        each(request, "input[]", |item| {
            let has_role = matches!(text(item, "role"), "user" | "assistant" | "system" | "developer");
            item.is_object() && (has_role || !matches!(text(item, "type"), "" | "message"))
        })
    }),
    rule("responses.asks", "the last item is of a user or a result", |request| {
        let asks = |item: &Value| text(item, "role") == "user" || is(item, "function_call_output");
        ensure(input(request).last().is_some_and(asks), || "the last item".into())
    }),
    rule("responses.answered", "each call has an output behind it", |request| {
        let outputs = of_kind(request, "function_call_output");
        // Of several outputs, the last counts.
        let last: HashMap<&str, usize> = outputs.map(|(at, output)| (text(output, "call_id"), at)).collect();
        for (index, call) in of_kind(request, "function_call") {
            let id = text(call, "call_id");
            ensure(last.get(id).is_some_and(|at| *at > index), || format!("input[{index}]: {id}"))?;
        }
        Ok(())
    }),
    rule("responses.output-has-call", "an output answers a call before it", |request| {
        let mut asked: HashSet<&str> = HashSet::new();
        for (index, item) in input(request).iter().enumerate() {
            let id = text(item, "call_id");
            match text(item, "type") {
                "function_call" => drop(asked.insert(id)),
                "function_call_output" => ensure(asked.contains(id), || format!("input[{index}]: {id}"))?,
                _ => {}
            }
        }
        Ok(())
    }),
    rule("responses.once", "no call and no output occurs twice", |request| {
        for kind in ["function_call", "function_call_output"] {
            let ids = of_kind(request, kind).map(|(_, item)| text(item, "call_id"));
            check_unique(ids).map_err(|twice| format!("{kind} {twice}"))?;
        }
        Ok(())
    }),
    rule("responses.reasoning-followed", "reasoning is followed by what it led to", |request| {
        for (index, _) in of_kind(request, "reasoning") {
            let next = input(request)[index + 1..].iter().find(|item| !is(item, "reasoning"));
            let led_to = next.is_some_and(|item| {
                let is_input = matches!(text(item, "role"), "user" | "system" | "developer");
                !is_input && !is(item, "function_call_output")
            });
            ensure(led_to, || format!("input[{index}]"))?;
        }
        Ok(())
    }),
    rule("responses.encrypted", "reasoning travels encrypted", |request| {
        let included = items(request, "include").iter().any(|entry| entry == "reasoning.encrypted_content");
        // Models that do not reason refuse it.
        let has_reasoning = of_kind(request, "reasoning").next().is_some();
        ensure(included || !has_reasoning, || "include".into())?;
        each(request, "input[]", |item| !is(item, "reasoning") || has_text(item, "encrypted_content"))
    }),
    rule("responses.stateless", "nothing is kept on the other side", |request| {
        ensure(request["store"] == false, || "store".into())?;
        for name in ["previous_response_id", "conversation"] {
            ensure(request[name].is_null(), || name.into())?;
        }
        Ok(())
    }),
    rule("responses.arguments", "arguments are the text of a JSON object", |request| {
        each(request, "input[].arguments", |item| {
            !is(item, "function_call") || is_object_text(&item["arguments"])
        })
    }),
    rule("responses.call-ids", "ids of calls have 1 to 64 characters", |request| {
        each(request, "input[].call_id", |item| {
            let has_id = is(item, "function_call") || is(item, "function_call_output");
            !has_id || (1..=64).contains(&text(item, "call_id").len())
        })
    }),
    rule("responses.names", "names have 1 to 64 letters, digits, _ or -", |request| {
        let is_named = |item: &Value| is_plain_name(text(item, "name"), 64);
        each(request, "input[].name", |item| !is(item, "function_call") || is_named(item))?;
        each(request, "tools[].name", is_named)
    }),
    rule("responses.tools", "tools are flat, with `strict` set, no name twice", |request| {
        let tools = items(request, "tools");
        ensure(tools.len() <= 128, || format!("{} tools", tools.len()))?;
        check_unique(tools.iter().map(|tool| text(tool, "name")))?;
        each(request, "tools[]", |tool| {
            let is_flat = is(tool, "function") && tool.get("function").is_none();
            is_flat && tool.get("strict").is_some() && tool["parameters"]["type"] == "object"
        })
    }),
    rule(
        "responses.parts",
        "users speak in input parts; what an assistant said is a text, or output with id and status",
        parts,
    ),
    rule("responses.media", "media has an accepted form", |request| {
        for (index, item) in input(request).iter().enumerate() {
            for part in items(item, "content").iter().chain(items(item, "output")) {
                ensure(is_taken(part), || format!("input[{index}]: {}", text(part, "type")))?;
            }
        }
        Ok(())
    }),
    rule("responses.strict", "a strict schema is closed at every object", |request| {
        let format = &request["text"]["format"];
        ensure(is_closed_if_strict(&format["strict"], &format["schema"]), || "text.format".into())?;
        each(request, "tools[]", |tool| is_closed_if_strict(&tool["strict"], &tool["parameters"]))
    }),
    rule("responses.limit", "at least 16 tokens may be answered", |request| {
        let limit = request["max_output_tokens"].as_u64();
        ensure(limit.is_none_or(|limit| limit >= 16), || "max_output_tokens".into())
    }),
];

fn input(request: &Value) -> &[Value] {
    items(request, "input")
}

fn is(item: &Value, kind: &str) -> bool {
    text(item, "type") == kind
}

fn of_kind<'a>(request: &'a Value, kind: &'a str) -> impl Iterator<Item = (usize, &'a Value)> {
    input(request).iter().enumerate().filter(move |(_, item)| is(item, kind))
}

fn parts(request: &Value) -> Result<(), String> {
    for (index, item) in input(request).iter().enumerate() {
        let role = text(item, "role");
        if role.is_empty() {
            continue;
        }
        let parts = items(item, "content");
        ensure(!parts.is_empty() || has_text(item, "content"), || format!("input[{index}].content"))?;
        for (at, part) in parts.iter().enumerate() {
            let fits = match text(part, "type") {
                "output_text" | "refusal" => {
                    role == "assistant" && has_text(item, "id") && has_text(item, "status")
                }
                "input_text" => role != "assistant" && has_text(part, "text"),
                _ => role == "user",
            };
            ensure(fits, || format!("input[{index}].content[{at}]"))?;
        }
    }
    Ok(())
}

fn is_taken(part: &Value) -> bool {
    match text(part, "type") {
        "input_text" | "output_text" | "refusal" => true,
        "input_image" => {
            let has_detail = matches!(text(part, "detail"), "low" | "high" | "auto" | "original");
            has_detail && (is_web_or_data(text(part, "image_url")) || has_text(part, "file_id"))
        }
        "input_file" => {
            let has_bytes = text(part, "file_data").starts_with("data:") && has_text(part, "filename");
            has_bytes || is_web_or_data(text(part, "file_url")) || has_text(part, "file_id")
        }
        _ => false,
    }
}
