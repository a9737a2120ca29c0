//! The requests that Anthropic Messages refuses.

use serde_json::Value;

use crate::rules::{
    Rule, check_model, check_names, check_unique, each, ensure, field, has_text, is_plain_name, items, rule,
    text,
};

pub(super) const RULES: &[Rule] = &[
    rule("anthropic.model", "a model is named", check_model),
    rule("anthropic.max-tokens", "the token limit is set, and is above the budget for thinking", |request| {
        let limit = request["max_tokens"].as_u64().unwrap_or(0);
        ensure(limit > 0, || "max_tokens".into())?;
        let thinking = &request["thinking"];
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        let fits = thinking["type"] != "enabled" || (1024..limit).contains(&budget);
        ensure(fits, || format!("a budget of {budget}"))
    }),
    rule("anthropic.roles", "users and assistants take turns, from a user to a user", |request| {
        let all = messages(request);
        ensure(all.len() % 2 == 1, || format!("{} messages", all.len()))?;
        for (index, message) in all.iter().enumerate() {
            let expected = if index.is_multiple_of(2) { "user" } else { "assistant" };
            ensure(text(message, "role") == expected, || format!("messages[{index}].role"))?;
        }
        Ok(())
    }),
    rule("anthropic.content", "each message has content", |request| {
        each(request, "messages[].content", |message| {
            !blocks(message).is_empty() || has_text(message, "content")
        })
    }),
    rule("anthropic.answered", "each call is answered in the next message", |request| {
        let all = messages(request);
        for (index, message) in all.iter().enumerate() {
            let answers = all.get(index + 1).map(results).unwrap_or_default();
            for id in calls(message) {
                let count = answers.iter().filter(|answer| **answer == id).count();
                ensure(count == 1, || format!("messages[{index}]: {id} has {count} results"))?;
            }
        }
        Ok(())
    }),
    rule("anthropic.result-has-call", "a result answers a call of the message before", |request| {
        let mut before: Vec<&str> = Vec::new();
        for (index, message) in messages(request).iter().enumerate() {
            for id in results(message) {
                ensure(before.contains(&id), || format!("messages[{index}]: {id}"))?;
            }
            before = calls(message);
        }
        Ok(())
    }),
    rule("anthropic.calls-last", "calls close the content of an assistant", |request| {
        each(request, "messages[]", |message| {
            let mut from_first = blocks(message).iter().skip_while(|block| text(block, "type") != "tool_use");
            let closes = from_first.all(|block| text(block, "type") == "tool_use");
            closes && (text(message, "role") != "user" || calls(message).is_empty())
        })
    }),
    rule("anthropic.results-first", "results open the content of a user", |request| {
        each(request, "messages[]", |message| {
            let mut behind = blocks(message).iter().skip_while(|block| text(block, "type") == "tool_result");
            let none_behind = !behind.any(|block| text(block, "type") == "tool_result");
            none_behind && (text(message, "role") == "user" || results(message).is_empty())
        })
    }),
    rule(
        "anthropic.thinking-first",
        "with a budget for thinking, the calls of the last loop begin with thoughts",
        thinking_first,
    ),
    rule("anthropic.thinking-form", "thoughts are signed and not the last", |request| {
        each(request, "messages[]", |message| {
            let is_assistants = text(message, "role") == "assistant";
            let is_whole = |block: &Value| match text(block, "type") {
                "thinking" => is_assistants && block["thinking"].is_string() && has_text(block, "signature"),
                "redacted_thinking" => is_assistants && has_text(block, "data"),
                _ => true,
            };
            blocks(message).iter().all(is_whole) && !blocks(message).last().is_some_and(is_thought)
        })
    }),
    rule("anthropic.cache-marks", "at most 4 cache marks, none on thoughts", |request| {
        let of_messages = messages(request).iter().flat_map(blocks);
        let all = items(request, "tools").iter().chain(items(request, "system")).chain(of_messages);
        let marked: Vec<&Value> = all.filter(|block| field(block, "cache_control").is_some()).collect();
        ensure(marked.len() <= 4, || format!("{} marks", marked.len()))?;
        ensure(!marked.into_iter().any(is_thought), || "a mark on thoughts".into())
    }),
    rule("anthropic.empty-text", "no text is empty", |request| {
        let says = |block: &Value| !text(block, "text").trim().is_empty();
        let is_sound = |block: &Value| text(block, "type") != "text" || says(block);
        each(request, "messages[]", |message| {
            let mut of_results = blocks(message).iter().flat_map(blocks);
            blocks(message).iter().all(is_sound) && of_results.all(is_sound)
        })?;
        ensure(items(request, "system").iter().all(says), || "system".into())
    }),
    rule("anthropic.call-ids", "ids are of letters, digits, _ or -, none twice", |request| {
        each(request, "messages[]", |message| calls(message).iter().all(|id| is_plain_name(id, 128)))?;
        check_unique(messages(request).iter().flat_map(calls))
    }),
    rule("anthropic.names", "names have 1 to 64 letters, digits, _ or -", |request| {
        let of_calls = messages(request).iter().flat_map(|message| fields_of(message, "tool_use", "name"));
        check_names(of_calls.chain(items(request, "tools").iter().map(|tool| text(tool, "name"))))
    }),
    rule("anthropic.input", "the input of a call is an object", |request| {
        each(request, "messages[]", |message| {
            let mut calls = blocks(message).iter().filter(|block| text(block, "type") == "tool_use");
            calls.all(|call| call["input"].is_object())
        })
    }),
    rule("anthropic.tools", "tool names are unique, each takes an object", |request| {
        check_unique(items(request, "tools").iter().map(|tool| text(tool, "name")))?;
        each(request, "tools[].input_schema", |tool| tool["input_schema"]["type"] == "object")
    }),
    rule("anthropic.media", "media has an accepted form", |request| {
        for (index, message) in messages(request).iter().enumerate() {
            let of_results = blocks(message).iter().flat_map(blocks);
            for block in blocks(message).iter().chain(of_results) {
                let place = || format!("messages[{index}]: {}", text(block, "type"));
                ensure(is_taken(block, text(message, "role")), place)?;
            }
        }
        Ok(())
    }),
    rule("anthropic.system", "the system text is apart from the messages", |request| {
        let is_text = |system: &Value| system.is_string() || system.is_array();
        ensure(request.get("system").is_none_or(is_text), || "system".into())?;
        each(request, "messages[]", |message| text(message, "role") != "system")
    }),
];

fn messages(request: &Value) -> &[Value] {
    items(request, "messages")
}

/// The blocks of a message or of a result.
fn blocks(message: &Value) -> &[Value] {
    items(message, "content")
}

fn is_thought(block: &Value) -> bool {
    matches!(text(block, "type"), "thinking" | "redacted_thinking")
}

fn fields_of<'a>(message: &'a Value, kind: &str, name: &str) -> Vec<&'a str> {
    let wanted = blocks(message).iter().filter(|block| text(block, "type") == kind);
    wanted.map(|block| text(block, name)).collect()
}

/// The ids of the calls of a message.
fn calls(message: &Value) -> Vec<&str> {
    fields_of(message, "tool_use", "id")
}

/// The ids of the calls that a message answers.
fn results(message: &Value) -> Vec<&str> {
    fields_of(message, "tool_result", "tool_use_id")
}

fn thinking_first(request: &Value) -> Result<(), String> {
    if request["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    // From the end back to the last user message without results.
    for (index, message) in messages(request).iter().enumerate().rev() {
        if text(message, "role") == "assistant" {
            let begins = blocks(message).first().is_some_and(is_thought);
            ensure(begins || calls(message).is_empty(), || format!("messages[{index}]"))?;
        } else if results(message).is_empty() {
            break;
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
        "base64" => has_type(text(source, "media_type")) && has_text(source, "data"),
        "file" => has_text(source, "file_id"),
        "text" | "content" => kind == "document",
        _ => false,
    };
    holds && role == "user"
}
