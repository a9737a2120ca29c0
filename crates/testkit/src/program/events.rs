//! Answers of models as server-sent events.

use serde_json::{Value, json};

/// Server-sent events.
#[derive(Default)]
struct Events(String);

impl Events {
    fn emit(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        self.0.push_str(&format!("event: {kind}\ndata: {data}\n\n"));
    }
}

/// An answer of Anthropic's Messages API: blocks with text and calls. The number tells answers apart.
pub fn messages_events(number: usize, model: &Value, blocks: &[Value]) -> String {
    let mut events = Events::default();
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1});
    let message = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    events.emit("message_start", json!({ "message": message }));
    let mut stop = "end_turn";
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = if block["type"] == "text" {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]}))
        } else {
            stop = "tool_use";
            let input = block["input"].to_string();
            (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input}),
            )
        };
        events.emit("content_block_start", json!({"index": index, "content_block": start}));
        events.emit("content_block_delta", json!({"index": index, "delta": delta}));
        events.emit("content_block_stop", json!({"index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.emit("message_delta", json!({"delta": delta, "usage": {"output_tokens": 25}}));
    events.emit("message_stop", json!({}));
    events.0
}

/// Whether an item of the Responses API is a call.
pub fn is_call(item: &Value) -> bool {
    matches!(item["type"].as_str(), Some("function_call" | "custom_tool_call"))
}

/// Returns the step of a script that comes after so many calls. A step is an array of items for [`responses_events`].
pub fn step_after(steps: &Value, calls: usize) -> Option<&[Value]> {
    let mut before = 0;
    let mut steps = steps.as_array()?.iter().filter_map(Value::as_array);
    let step = steps.find(|step| {
        let is_next = before == calls;
        before += step.iter().filter(|item| is_call(item)).count();
        is_next
    })?;
    Some(step)
}

/// An answer of OpenAI's Responses API: items with text and calls. The number tells answers apart.
pub fn responses_events(number: usize, items: &[Value]) -> String {
    let mut events = Events::default();
    let id = format!("resp_{number}");
    events.emit("response.created", json!({"response": {"id": id}}));
    for (index, item) in items.iter().enumerate() {
        events.emit("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let usage = json!({"input_tokens": 50, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 59});
    events.emit("response.completed", json!({"response": {"id": id, "usage": usage}}));
    events.0
}
