//! The requests that OpenAI Chat Completions refuses.

use serde_json::Value;

use crate::rules::{
    Rule, check_model, check_unique, each, each_in, ensure, has_text, is_closed_if_strict, is_object_text,
    is_plain_name, is_web_or_data, items, rule, text,
};

pub(super) const RULES: &[Rule] = &[
    rule("chat.model", "a model is named", check_model),
    rule("chat.messages", "there are messages, each with a known role", |request| {
        ensure(!items(request, "messages").is_empty(), || "messages".into())?;
        each(request, "messages[].role", |message| {
            matches!(text(message, "role"), "system" | "developer" | "user" | "assistant" | "tool")
        })
    }),
    rule("chat.asks", "the last message is of a user or a tool", |request| {
        let asks = |message: &Value| matches!(text(message, "role"), "user" | "tool");
        ensure(items(request, "messages").last().is_some_and(asks), || "the last message".into())
    }),
    rule("chat.answered", "each call is answered right after the message that makes it, once", |request| {
        let messages = items(request, "messages");
        for (index, message) in messages.iter().enumerate() {
            let mut open = call_ids(message);
            for answer in &messages[index + 1..] {
                if open.is_empty() || text(answer, "role") != "tool" {
                    break;
                }
                let id = text(answer, "tool_call_id");
                match open.iter().position(|call| *call == id) {
                    Some(place) => open.remove(place),
                    None => return Err(format!("{id} answers nothing or twice, after messages[{index}]")),
                };
            }
            ensure(open.is_empty(), || format!("messages[{index}]: {} has no answer", open.join(", ")))?;
        }
        Ok(())
    }),
    rule("chat.result-has-call", "a tool message answers a call before it", |request| {
        let mut open: Vec<&str> = Vec::new();
        for (index, message) in items(request, "messages").iter().enumerate() {
            if text(message, "role") == "tool" {
                let id = text(message, "tool_call_id");
                ensure(open.contains(&id), || format!("messages[{index}]: {id}"))?;
            } else {
                open = call_ids(message);
            }
        }
        Ok(())
    }),
    rule("chat.arguments", "arguments are the text of a JSON object", |request| {
        each_in(request, CALLS, |_, call| is_object_text(&call["function"]["arguments"]))
    }),
    rule("chat.call-ids", "ids of calls have 1 to 64 characters", |request| {
        each_in(request, CALLS, |_, call| {
            (1..=64).contains(&text(call, "id").len()) && call["type"] == "function"
        })
    }),
    rule("chat.names", "names have 1 to 64 letters, digits, _ or -", |request| {
        let is_named = |tool: &Value| is_plain_name(text(&tool["function"], "name"), 64);
        each_in(request, CALLS, |_, call| is_named(call))?;
        each(request, "tools[]", is_named)
    }),
    rule("chat.tools", "at most 128 tools, no name twice, parameters of an object", |request| {
        let tools = items(request, "tools");
        ensure(tools.len() <= 128, || format!("{} tools", tools.len()))?;
        ensure(request.get("tools").is_none() || !tools.is_empty(), || "an empty list of tools".into())?;
        check_unique(tools.iter().map(|tool| text(&tool["function"], "name")))?;
        each(request, "tools[]", |tool| {
            tool["function"]["parameters"]["type"] == "object" && tool["type"] == "function"
        })
    }),
    rule("chat.tool-text", "results are text", |request| {
        each(request, "messages[].content", |message| {
            let parts = items(message, "content");
            let is_text = !parts.is_empty() && parts.iter().all(|part| part["type"] == "text");
            text(message, "role") != "tool" || message["content"].is_string() || is_text
        })
    }),
    rule("chat.content", "messages say something, and never null", |request| {
        each(request, "messages[]", has_content)
    }),
    rule("chat.media", "media has an accepted form", |request| {
        each_in(request, "messages[].content[]", |message, part| {
            let holds = match text(part, "type") {
                "text" | "refusal" => return true,
                "image_url" => is_web_or_data(text(&part["image_url"], "url")),
                "input_audio" => {
                    let audio = &part["input_audio"];
                    matches!(text(audio, "format"), "wav" | "mp3") && has_text(audio, "data")
                }
                "file" => {
                    let file = &part["file"];
                    text(file, "file_data").starts_with("data:") || has_text(file, "file_id")
                }
                _ => false,
            };
            holds && text(message, "role") == "user"
        })
    }),
    rule("chat.strict", "a strict schema is closed at every object", |request| {
        let format = &request["response_format"]["json_schema"];
        ensure(is_closed_if_strict(&format["strict"], &format["schema"]), || "response_format".into())?;
        let name_holds = format.is_null() || is_plain_name(text(format, "name"), 64);
        ensure(name_holds, || "response_format.json_schema.name".into())?;
        each(request, "tools[]", |tool| {
            is_closed_if_strict(&tool["function"]["strict"], &tool["function"]["parameters"])
        })
    }),
    rule("chat.limit", "the limit of tokens is given once", |request| {
        let both = request.get("max_tokens").is_some() && request.get("max_completion_tokens").is_some();
        ensure(!both, || "max_tokens and max_completion_tokens".into())
    }),
];

const CALLS: &str = "messages[].tool_calls[]";

fn call_ids(message: &Value) -> Vec<&str> {
    items(message, "tool_calls").iter().map(|call| text(call, "id")).collect()
}

fn has_content(message: &Value) -> bool {
    let says = match &message["content"] {
        Value::String(value) => !value.is_empty() || text(message, "role") == "tool",
        Value::Array(parts) => {
            let empty = |part: &Value| part["type"] == "text" && !has_text(part, "text");
            !parts.is_empty() && !parts.iter().any(empty)
        }
        _ => false,
    };
    let has_calls = !items(message, "tool_calls").is_empty();
    let may_be_silent = text(message, "role") == "assistant" && has_calls;
    let no_empty_list = message.get("tool_calls").is_none() || has_calls;
    // Some compatible servers refuse null, and all of them accept an empty text.
    (says || (may_be_silent && message["content"] == "")) && no_empty_list
}
