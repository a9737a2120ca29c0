//! The requests that OpenAI Responses refuses when it is used without state.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::rules::{
    Rule, ensure, is_closed_everywhere, is_object_text, is_plain_name, is_web_or_data, items, repeated, text,
};

pub(super) const RULES: &[Rule] = &[
    Rule { id: "responses.model", what: "a model is named", check: model },
    Rule { id: "responses.input", what: "there are items, each of a known form", check: input },
    Rule { id: "responses.asks", what: "the last item is of a user or a result", check: asks },
    Rule { id: "responses.answered", what: "each call has an output behind it", check: check_answered },
    Rule {
        id: "responses.output-has-call",
        what: "an output answers a call before it",
        check: output_has_call,
    },
    Rule { id: "responses.once", what: "no call and no output occurs twice", check: once },
    Rule {
        id: "responses.reasoning-followed",
        what: "reasoning is followed by what it led to",
        check: check_reasoning_followed,
    },
    Rule { id: "responses.encrypted", what: "reasoning travels encrypted", check: check_encrypted },
    Rule { id: "responses.stateless", what: "nothing is kept on the other side", check: stateless },
    Rule { id: "responses.arguments", what: "arguments are the text of a JSON object", check: arguments },
    Rule { id: "responses.call-ids", what: "ids of calls have 1 to 64 characters", check: call_ids },
    Rule { id: "responses.names", what: "names have 1 to 64 letters, digits, _ or -", check: names },
    Rule { id: "responses.tools", what: "tools are flat, with `strict` set, no name twice", check: tools },
    Rule {
        id: "responses.parts",
        what: "users speak in input parts; what an assistant said is a text, or output with id and status",
        check: parts,
    },
    Rule { id: "responses.media", what: "media has an accepted form", check: media },
    Rule { id: "responses.strict", what: "a strict schema is closed at every object", check: strict },
    Rule { id: "responses.limit", what: "at least 16 tokens may be answered", check: limit },
];

fn input_of(request: &Value) -> &[Value] {
    items(request, "input")
}

fn of_kind<'a>(request: &'a Value, kind: &'a str) -> impl Iterator<Item = (usize, &'a Value)> {
    input_of(request).iter().enumerate().filter(move |(_, item)| text(item, "type") == kind)
}

fn model(request: &Value) -> Result<(), String> {
    ensure(!text(request, "model").is_empty(), || "model".into())
}

fn input(request: &Value) -> Result<(), String> {
    ensure(!input_of(request).is_empty(), || "input".into())?;
    for (index, item) in input_of(request).iter().enumerate() {
        let has_role = matches!(text(item, "role"), "user" | "assistant" | "system" | "developer");
        let has_kind = !matches!(text(item, "type"), "" | "message");
        ensure(item.is_object() && (has_role || has_kind), || format!("input[{index}]"))?;
    }
    Ok(())
}

fn asks(request: &Value) -> Result<(), String> {
    let asks = |item: &Value| text(item, "role") == "user" || text(item, "type") == "function_call_output";
    ensure(input_of(request).last().is_some_and(asks), || "the last item".into())
}

fn check_answered(request: &Value) -> Result<(), String> {
    let outputs = of_kind(request, "function_call_output").map(|(at, output)| (text(output, "call_id"), at));
    // Of several outputs, the last counts.
    let last: HashMap<&str, usize> = outputs.collect();
    for (index, call) in of_kind(request, "function_call") {
        let id = text(call, "call_id");
        ensure(last.get(id).is_some_and(|at| *at > index), || format!("input[{index}]: {id}"))?;
    }
    Ok(())
}

fn output_has_call(request: &Value) -> Result<(), String> {
    let mut asked: HashSet<&str> = HashSet::new();
    for (index, item) in input_of(request).iter().enumerate() {
        let id = text(item, "call_id");
        match text(item, "type") {
            "function_call" => drop(asked.insert(id)),
            "function_call_output" => ensure(asked.contains(id), || format!("input[{index}]: {id}"))?,
            _ => {}
        }
    }
    Ok(())
}

fn once(request: &Value) -> Result<(), String> {
    for kind in ["function_call", "function_call_output"] {
        let twice = repeated(of_kind(request, kind).map(|(_, item)| text(item, "call_id")));
        ensure(twice.is_none(), || format!("{kind} {twice:?}"))?;
    }
    Ok(())
}

fn check_reasoning_followed(request: &Value) -> Result<(), String> {
    let all = input_of(request);
    for (index, _) in of_kind(request, "reasoning") {
        let next = all[index + 1..].iter().find(|item| text(item, "type") != "reasoning");
        let led_to = next.is_some_and(|item| {
            let is_input = matches!(text(item, "role"), "user" | "system" | "developer");
            !is_input && text(item, "type") != "function_call_output"
        });
        ensure(led_to, || format!("input[{index}]"))?;
    }
    Ok(())
}

fn check_encrypted(request: &Value) -> Result<(), String> {
    let included = items(request, "include").iter().any(|entry| entry == "reasoning.encrypted_content");
    // Models that do not reason refuse it.
    let has_reasoning = of_kind(request, "reasoning").next().is_some();
    ensure(included || !has_reasoning, || "include".into())?;
    for (index, item) in of_kind(request, "reasoning") {
        ensure(!text(item, "encrypted_content").is_empty(), || format!("input[{index}]"))?;
    }
    Ok(())
}

fn stateless(request: &Value) -> Result<(), String> {
    ensure(request["store"] == false, || "store".into())?;
    for name in ["previous_response_id", "conversation"] {
        ensure(request.get(name).is_none_or(Value::is_null), || name.into())?;
    }
    Ok(())
}

fn arguments(request: &Value) -> Result<(), String> {
    for (index, call) in of_kind(request, "function_call") {
        ensure(is_object_text(call.get("arguments")), || format!("input[{index}].arguments"))?;
    }
    Ok(())
}

fn call_ids(request: &Value) -> Result<(), String> {
    for kind in ["function_call", "function_call_output"] {
        for (index, item) in of_kind(request, kind) {
            ensure((1..=64).contains(&text(item, "call_id").len()), || format!("input[{index}].call_id"))?;
        }
    }
    Ok(())
}

fn names(request: &Value) -> Result<(), String> {
    for (index, call) in of_kind(request, "function_call") {
        ensure(is_plain_name(text(call, "name"), 64), || format!("input[{index}].name"))?;
    }
    for (index, tool) in items(request, "tools").iter().enumerate() {
        ensure(is_plain_name(text(tool, "name"), 64), || format!("tools[{index}].name"))?;
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), String> {
    let tools = items(request, "tools");
    ensure(tools.len() <= 128, || format!("{} tools", tools.len()))?;
    let twice = repeated(tools.iter().map(|tool| text(tool, "name")));
    ensure(twice.is_none(), || format!("{twice:?} occurs twice"))?;
    for (index, tool) in tools.iter().enumerate() {
        let is_flat = tool["type"] == "function" && tool.get("function").is_none();
        let holds = is_flat && tool.get("strict").is_some() && tool["parameters"]["type"] == "object";
        ensure(holds, || format!("tools[{index}]"))?;
    }
    Ok(())
}

fn parts(request: &Value) -> Result<(), String> {
    for (index, item) in input_of(request).iter().enumerate() {
        let role = text(item, "role");
        if role.is_empty() {
            continue;
        }
        let parts = items(item, "content");
        ensure(!parts.is_empty() || !text(item, "content").is_empty(), || format!("input[{index}].content"))?;
        for (at, part) in parts.iter().enumerate() {
            let fits = match text(part, "type") {
                "output_text" | "refusal" => {
                    role == "assistant" && !text(item, "id").is_empty() && !text(item, "status").is_empty()
                }
                "input_text" => role != "assistant" && !text(part, "text").is_empty(),
                _ => role == "user",
            };
            ensure(fits, || format!("input[{index}].content[{at}]"))?;
        }
    }
    Ok(())
}

fn media(request: &Value) -> Result<(), String> {
    for (index, item) in input_of(request).iter().enumerate() {
        for part in items(item, "content").iter().chain(items(item, "output")) {
            let taken = match text(part, "type") {
                "input_text" | "output_text" | "refusal" => true,
                "input_image" => {
                    let has_detail = matches!(text(part, "detail"), "low" | "high" | "auto" | "original");
                    let has_source =
                        is_web_or_data(text(part, "image_url")) || !text(part, "file_id").is_empty();
                    has_detail && has_source
                }
                "input_file" => {
                    let has_bytes =
                        text(part, "file_data").starts_with("data:") && !text(part, "filename").is_empty();
                    has_bytes || is_web_or_data(text(part, "file_url")) || !text(part, "file_id").is_empty()
                }
                _ => false,
            };
            ensure(taken, || format!("input[{index}]: {}", text(part, "type")))?;
        }
    }
    Ok(())
}

fn strict(request: &Value) -> Result<(), String> {
    let format = &request["text"]["format"];
    ensure(format["strict"] != true || is_closed_everywhere(&format["schema"]), || "text.format".into())?;
    for (index, tool) in items(request, "tools").iter().enumerate() {
        let holds = tool["strict"] != true || is_closed_everywhere(&tool["parameters"]);
        ensure(holds, || format!("tools[{index}]"))?;
    }
    Ok(())
}

fn limit(request: &Value) -> Result<(), String> {
    let limit = request.get("max_output_tokens").and_then(Value::as_u64);
    ensure(limit.is_none_or(|limit| limit >= 16), || "max_output_tokens".into())
}
