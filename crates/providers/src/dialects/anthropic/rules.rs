//! The requests that Anthropic Messages refuses.

use serde_json::Value;

use crate::rules::{Rule, ensure, is_plain_name, items, repeated, text};

pub(super) const RULES: &[Rule] = &[
    Rule { id: "anthropic.model", what: "a model is named", check: model },
    Rule {
        id: "anthropic.max-tokens",
        what: "the token limit is set, and is above the budget for thinking",
        check: max_tokens,
    },
    Rule {
        id: "anthropic.roles",
        what: "users and assistants take turns, from a user to a user",
        check: roles,
    },
    Rule { id: "anthropic.content", what: "each message has content", check: content },
    Rule {
        id: "anthropic.answered",
        what: "each call is answered in the next message",
        check: check_answered,
    },
    Rule {
        id: "anthropic.result-has-call",
        what: "a result answers a call of the message before",
        check: result_has_call,
    },
    Rule { id: "anthropic.calls-last", what: "calls close the content of an assistant", check: calls_last },
    Rule { id: "anthropic.results-first", what: "results open the content of a user", check: results_first },
    Rule {
        id: "anthropic.thinking-first",
        what: "with a budget for thinking, the calls of the last loop begin with thoughts",
        check: thinking_first,
    },
    Rule {
        id: "anthropic.thinking-form",
        what: "thoughts are signed and not the last",
        check: thinking_form,
    },
    Rule { id: "anthropic.cache-marks", what: "at most 4 cache marks, none on thoughts", check: cache_marks },
    Rule { id: "anthropic.empty-text", what: "no text is empty", check: empty_text },
    Rule {
        id: "anthropic.call-ids",
        what: "ids are of letters, digits, _ or -, none twice",
        check: call_ids,
    },
    Rule { id: "anthropic.names", what: "names have 1 to 64 letters, digits, _ or -", check: names },
    Rule { id: "anthropic.input", what: "the input of a call is an object", check: input },
    Rule { id: "anthropic.tools", what: "tool names are unique, each takes an object", check: tools },
    Rule { id: "anthropic.media", what: "media has an accepted form", check: media },
    Rule { id: "anthropic.system", what: "the system text is apart from the messages", check: system },
];

fn messages(request: &Value) -> &[Value] {
    items(request, "messages")
}

fn blocks(message: &Value) -> &[Value] {
    items(message, "content")
}

fn is_thought(block: &Value) -> bool {
    matches!(text(block, "type"), "thinking" | "redacted_thinking")
}

fn ids_of<'a>(message: &'a Value, kind: &str, name: &str) -> Vec<&'a str> {
    let wanted = blocks(message).iter().filter(|block| text(block, "type") == kind);
    wanted.map(|block| text(block, name)).collect()
}

fn model(request: &Value) -> Result<(), String> {
    ensure(!text(request, "model").is_empty(), || "model".into())
}

fn max_tokens(request: &Value) -> Result<(), String> {
    let Some(limit) = request.get("max_tokens").and_then(Value::as_u64) else {
        return Err("max_tokens".into());
    };
    let thinking = &request["thinking"];
    if thinking["type"] == "enabled" {
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        ensure((1024..limit).contains(&budget), || format!("a budget of {budget}"))?;
    }
    ensure(limit > 0, || "max_tokens".into())
}

fn roles(request: &Value) -> Result<(), String> {
    let all = messages(request);
    ensure(all.len() % 2 == 1, || format!("{} messages", all.len()))?;
    for (index, message) in all.iter().enumerate() {
        let expected = if index.is_multiple_of(2) { "user" } else { "assistant" };
        ensure(text(message, "role") == expected, || format!("messages[{index}].role"))?;
    }
    Ok(())
}

fn content(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        let says = !blocks(message).is_empty() || !text(message, "content").is_empty();
        ensure(says, || format!("messages[{index}].content"))?;
    }
    Ok(())
}

fn check_answered(request: &Value) -> Result<(), String> {
    let all = messages(request);
    for (index, message) in all.iter().enumerate() {
        let answers =
            all.get(index + 1).map(|next| ids_of(next, "tool_result", "tool_use_id")).unwrap_or_default();
        for id in ids_of(message, "tool_use", "id") {
            let count = answers.iter().filter(|answer| **answer == id).count();
            ensure(count == 1, || format!("messages[{index}]: {id} has {count} results"))?;
        }
    }
    Ok(())
}

fn result_has_call(request: &Value) -> Result<(), String> {
    let mut before: Vec<&str> = Vec::new();
    for (index, message) in messages(request).iter().enumerate() {
        for id in ids_of(message, "tool_result", "tool_use_id") {
            ensure(before.contains(&id), || format!("messages[{index}]: {id}"))?;
        }
        before = ids_of(message, "tool_use", "id");
    }
    Ok(())
}

fn calls_last(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        let mut from_first = blocks(message).iter().skip_while(|block| text(block, "type") != "tool_use");
        let closes = from_first.all(|block| text(block, "type") == "tool_use");
        ensure(closes, || format!("messages[{index}]"))?;
        let is_users = text(message, "role") == "user" && !ids_of(message, "tool_use", "id").is_empty();
        ensure(!is_users, || format!("messages[{index}]"))?;
    }
    Ok(())
}

fn results_first(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        let mut behind = blocks(message).iter().skip_while(|block| text(block, "type") == "tool_result");
        let none_behind = !behind.any(|block| text(block, "type") == "tool_result");
        let is_user =
            text(message, "role") == "user" || ids_of(message, "tool_result", "tool_use_id").is_empty();
        ensure(none_behind && is_user, || format!("messages[{index}]"))?;
    }
    Ok(())
}

fn thinking_first(request: &Value) -> Result<(), String> {
    if request["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    // From the end back to the last user message without results.
    for (index, message) in messages(request).iter().enumerate().rev() {
        match text(message, "role") {
            "assistant" => {
                let begins = blocks(message).first().is_some_and(is_thought);
                ensure(begins || ids_of(message, "tool_use", "id").is_empty(), || {
                    format!("messages[{index}]")
                })?;
            }
            _ if ids_of(message, "tool_result", "tool_use_id").is_empty() => break,
            _ => {}
        }
    }
    Ok(())
}

fn thinking_form(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        for (at, block) in blocks(message).iter().enumerate() {
            let holds = match text(block, "type") {
                "thinking" => block["thinking"].is_string() && !text(block, "signature").is_empty(),
                "redacted_thinking" => !text(block, "data").is_empty(),
                _ => continue,
            };
            let is_assistants = text(message, "role") == "assistant";
            ensure(holds && is_assistants, || format!("messages[{index}].content[{at}]"))?;
        }
        ensure(!blocks(message).last().is_some_and(is_thought), || {
            format!("messages[{index}] ends in thoughts")
        })?;
    }
    Ok(())
}

fn cache_marks(request: &Value) -> Result<(), String> {
    let of_messages = messages(request).iter().flat_map(blocks);
    let all = items(request, "tools").iter().chain(items(request, "system")).chain(of_messages);
    let marked: Vec<&Value> = all.filter(|block| block.get("cache_control").is_some()).collect();
    ensure(marked.len() <= 4, || format!("{} marks", marked.len()))?;
    ensure(!marked.iter().any(|block| is_thought(block)), || "a mark on thoughts".into())
}

fn empty_text(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        let of_results = blocks(message).iter().flat_map(|block| items(block, "content"));
        for block in blocks(message).iter().chain(of_results) {
            let is_empty = text(block, "type") == "text" && text(block, "text").trim().is_empty();
            ensure(!is_empty, || format!("messages[{index}]"))?;
        }
    }
    let system = items(request, "system");
    ensure(!system.iter().any(|block| text(block, "text").trim().is_empty()), || "system".into())
}

fn call_ids(request: &Value) -> Result<(), String> {
    let ids: Vec<&str> =
        messages(request).iter().flat_map(|message| ids_of(message, "tool_use", "id")).collect();
    let odd = ids.iter().find(|id| !is_plain_name(id, 128));
    ensure(odd.is_none(), || format!("{odd:?}"))?;
    let twice = repeated(ids);
    ensure(twice.is_none(), || format!("{twice:?} occurs twice"))
}

fn names(request: &Value) -> Result<(), String> {
    let of_calls = messages(request).iter().flat_map(|message| ids_of(message, "tool_use", "name"));
    let of_tools = items(request, "tools").iter().map(|tool| text(tool, "name"));
    let odd = of_calls.chain(of_tools).find(|name| !is_plain_name(name, 64));
    ensure(odd.is_none(), || format!("{odd:?}"))
}

fn input(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        let mut calls = blocks(message).iter().filter(|block| text(block, "type") == "tool_use");
        ensure(calls.all(|call| call["input"].is_object()), || format!("messages[{index}]"))?;
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), String> {
    let tools = items(request, "tools");
    let twice = repeated(tools.iter().map(|tool| text(tool, "name")));
    ensure(twice.is_none(), || format!("{twice:?} occurs twice"))?;
    for (index, tool) in tools.iter().enumerate() {
        ensure(tool["input_schema"]["type"] == "object", || format!("tools[{index}].input_schema"))?;
    }
    Ok(())
}

fn media(request: &Value) -> Result<(), String> {
    for (index, message) in messages(request).iter().enumerate() {
        for block in blocks(message) {
            for block in std::iter::once(block).chain(items(block, "content")) {
                ensure(is_taken(block, text(message, "role")), || {
                    format!("messages[{index}]: {}", text(block, "type"))
                })?;
            }
        }
    }
    Ok(())
}

fn is_taken(block: &Value, role: &str) -> bool {
    const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let kind = text(block, "type");
    if !matches!(kind, "image" | "document") {
        return !matches!(kind, "audio" | "video" | "input_audio" | "image_url" | "");
    }
    let source = &block["source"];
    let has_type = |mime: &str| match kind {
        "image" => PICTURES.contains(&mime),
        _ => mime == "application/pdf",
    };
    let holds = match text(source, "type") {
        "url" => text(source, "url").starts_with("http"),
        "base64" => has_type(text(source, "media_type")) && !text(source, "data").is_empty(),
        "file" => !text(source, "file_id").is_empty(),
        "text" | "content" => kind == "document",
        _ => false,
    };
    holds && role == "user"
}

fn system(request: &Value) -> Result<(), String> {
    let is_text = |system: &Value| system.is_string() || system.is_array();
    ensure(request.get("system").is_none_or(is_text), || "system".into())?;
    let inside = messages(request).iter().position(|message| text(message, "role") == "system");
    ensure(inside.is_none(), || format!("messages[{inside:?}]"))
}
