//! The requests that OpenAI Chat Completions refuses.

use serde_json::Value;

use crate::rules::{
    Rule, ensure, is_closed_everywhere, is_object_text, is_plain_name, is_web_or_data, items, repeated, text,
};

pub(super) const RULES: &[Rule] = &[
    Rule { id: "chat.model", what: "a model is named", check: model },
    Rule { id: "chat.messages", what: "there are messages, each with a known role", check: messages },
    Rule { id: "chat.asks", what: "the last message is of a user or a tool", check: asks },
    Rule {
        id: "chat.answered",
        what: "each call is answered right after the message that makes it, once",
        check: check_answered,
    },
    Rule {
        id: "chat.result-has-call",
        what: "a tool message answers a call before it",
        check: result_has_call,
    },
    Rule { id: "chat.arguments", what: "arguments are the text of a JSON object", check: arguments },
    Rule { id: "chat.call-ids", what: "ids of calls have 1 to 64 characters", check: call_ids },
    Rule { id: "chat.names", what: "names have 1 to 64 letters, digits, _ or -", check: names },
    Rule {
        id: "chat.tools",
        what: "at most 128 tools, no name twice, parameters of an object",
        check: tools,
    },
    Rule { id: "chat.tool-text", what: "results are text", check: tool_text },
    Rule { id: "chat.content", what: "messages say something, and never null", check: content },
    Rule { id: "chat.media", what: "media has an accepted form", check: media },
    Rule { id: "chat.strict", what: "a strict schema is closed at every object", check: strict },
    Rule { id: "chat.limit", what: "the limit of tokens is given once", check: limit },
];

fn calls(message: &Value) -> &[Value] {
    items(message, "tool_calls")
}

fn model(request: &Value) -> Result<(), String> {
    ensure(!text(request, "model").is_empty(), || "model".into())
}

fn messages(request: &Value) -> Result<(), String> {
    ensure(!items(request, "messages").is_empty(), || "messages".into())?;
    for (index, message) in items(request, "messages").iter().enumerate() {
        let is_known =
            matches!(text(message, "role"), "system" | "developer" | "user" | "assistant" | "tool");
        ensure(is_known, || format!("messages[{index}].role"))?;
    }
    Ok(())
}

fn asks(request: &Value) -> Result<(), String> {
    let last = items(request, "messages").last();
    ensure(last.is_some_and(|last| matches!(text(last, "role"), "user" | "tool")), || {
        "the last message".into()
    })
}

fn check_answered(request: &Value) -> Result<(), String> {
    let messages = items(request, "messages");
    for (index, message) in messages.iter().enumerate() {
        let mut open: Vec<&str> = calls(message).iter().map(|call| text(call, "id")).collect();
        for answer in &messages[index + 1..] {
            if open.is_empty() || text(answer, "role") != "tool" {
                break;
            }
            let id = text(answer, "tool_call_id");
            let place = open.iter().position(|call| *call == id);
            match place {
                Some(place) => open.remove(place),
                None => return Err(format!("{id} answers nothing or twice, after messages[{index}]")),
            };
        }
        ensure(open.is_empty(), || format!("messages[{index}]: {} has no answer", open.join(", ")))?;
    }
    Ok(())
}

fn result_has_call(request: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in items(request, "messages").iter().enumerate() {
        if text(message, "role") == "tool" {
            let id = text(message, "tool_call_id");
            ensure(open.contains(&id), || format!("messages[{index}]: {id}"))?;
        } else {
            open = calls(message).iter().map(|call| text(call, "id")).collect();
        }
    }
    Ok(())
}

fn each_call(request: &Value, check: impl Fn(&Value) -> bool) -> Result<(), String> {
    for (index, message) in items(request, "messages").iter().enumerate() {
        for (at, call) in calls(message).iter().enumerate() {
            ensure(check(call), || format!("messages[{index}].tool_calls[{at}]"))?;
        }
    }
    Ok(())
}

fn arguments(request: &Value) -> Result<(), String> {
    each_call(request, |call| is_object_text(call["function"].get("arguments")))
}

fn call_ids(request: &Value) -> Result<(), String> {
    each_call(request, |call| (1..=64).contains(&text(call, "id").len()) && call["type"] == "function")
}

fn names(request: &Value) -> Result<(), String> {
    each_call(request, |call| is_plain_name(text(&call["function"], "name"), 64))?;
    for (index, tool) in items(request, "tools").iter().enumerate() {
        ensure(is_plain_name(text(&tool["function"], "name"), 64), || format!("tools[{index}]"))?;
    }
    Ok(())
}

fn tools(request: &Value) -> Result<(), String> {
    let tools = items(request, "tools");
    ensure(tools.len() <= 128, || format!("{} tools", tools.len()))?;
    ensure(request.get("tools").is_none() || !tools.is_empty(), || "an empty list of tools".into())?;
    let twice = repeated(tools.iter().map(|tool| text(&tool["function"], "name")));
    ensure(twice.is_none(), || format!("{twice:?} occurs twice"))?;
    for (index, tool) in tools.iter().enumerate() {
        let of_object = tool["function"]["parameters"]["type"] == "object";
        ensure(of_object && tool["type"] == "function", || format!("tools[{index}]"))?;
    }
    Ok(())
}

fn tool_text(request: &Value) -> Result<(), String> {
    for (index, message) in items(request, "messages").iter().enumerate() {
        if text(message, "role") == "tool" {
            let parts = items(message, "content");
            let is_text = message["content"].is_string()
                || (!parts.is_empty() && parts.iter().all(|part| part["type"] == "text"));
            ensure(is_text, || format!("messages[{index}].content"))?;
        }
    }
    Ok(())
}

fn content(request: &Value) -> Result<(), String> {
    for (index, message) in items(request, "messages").iter().enumerate() {
        let says = match &message["content"] {
            Value::String(value) => !value.is_empty() || text(message, "role") == "tool",
            Value::Array(parts) => {
                let empty = |part: &Value| part["type"] == "text" && text(part, "text").is_empty();
                !parts.is_empty() && !parts.iter().any(empty)
            }
            _ => false,
        };
        let may_be_silent = text(message, "role") == "assistant" && !calls(message).is_empty();
        let no_empty_list = message.get("tool_calls").is_none_or(|_| !calls(message).is_empty());
        // Some compatible servers refuse null, and all of them accept an empty text.
        let is_valid = says || (may_be_silent && message["content"] == "");
        ensure(is_valid && no_empty_list, || format!("messages[{index}]"))?;
    }
    Ok(())
}

fn media(request: &Value) -> Result<(), String> {
    for (index, message) in items(request, "messages").iter().enumerate() {
        for (at, part) in items(message, "content").iter().enumerate() {
            let taken = match text(part, "type") {
                "text" | "refusal" => true,
                "image_url" => is_web_or_data(text(&part["image_url"], "url")),
                "input_audio" => {
                    let audio = &part["input_audio"];
                    matches!(text(audio, "format"), "wav" | "mp3") && !text(audio, "data").is_empty()
                }
                "file" => {
                    let file = &part["file"];
                    text(file, "file_data").starts_with("data:") || !text(file, "file_id").is_empty()
                }
                _ => false,
            };
            let is_user = text(message, "role") == "user" || matches!(text(part, "type"), "text" | "refusal");
            ensure(taken && is_user, || format!("messages[{index}].content[{at}]"))?;
        }
    }
    Ok(())
}

fn strict(request: &Value) -> Result<(), String> {
    let format = &request["response_format"]["json_schema"];
    let format_holds = format["strict"] != true || is_closed_everywhere(&format["schema"]);
    ensure(format_holds, || "response_format".into())?;
    let name_holds = format.is_null() || is_plain_name(text(format, "name"), 64);
    ensure(name_holds, || "response_format.json_schema.name".into())?;
    for (index, tool) in items(request, "tools").iter().enumerate() {
        let function = &tool["function"];
        let holds = function["strict"] != true || is_closed_everywhere(&function["parameters"]);
        ensure(holds, || format!("tools[{index}]"))?;
    }
    Ok(())
}

fn limit(request: &Value) -> Result<(), String> {
    let both = request.get("max_tokens").is_some() && request.get("max_completion_tokens").is_some();
    ensure(!both, || "max_tokens and max_completion_tokens".into())
}
