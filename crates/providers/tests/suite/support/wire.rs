//! The same answer in the format of each provider, complete and streamed.

use backstitch_providers::Provider;
use serde_json::{Value, json};

/// An answer of a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spoken {
    pub(crate) thoughts: String,
    pub(crate) text: String,
    /// Ids, names and arguments. Arguments are texts, which need not parse where a provider sends texts.
    pub(crate) calls: Vec<(String, String, String)>,
    /// The finish reason, in the provider's word; by default, the usual one.
    pub(crate) ended: Option<String>,
}

impl Spoken {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub(crate) fn thinking(mut self, thoughts: &str) -> Self {
        self.thoughts = thoughts.to_owned();
        self
    }

    pub(crate) fn call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.calls.push((id.to_owned(), name.to_owned(), arguments.to_owned()));
        self
    }

    pub(crate) fn ending(mut self, reason: &str) -> Self {
        self.ended = Some(reason.to_owned());
        self
    }

    fn object(arguments: &str) -> Value {
        serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments))
    }

    /// The content, in the provider's own list.
    fn content(&self, provider: Provider) -> Vec<Value> {
        let mut list = Vec::new();
        match provider {
            Provider::OpenAiChat => {}
            Provider::OpenAiResponses => {
                if !self.thoughts.is_empty() {
                    list.push(json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": self.thoughts}], "encrypted_content": "gAAAAB=="}));
                }
                if !self.text.is_empty() {
                    list.push(json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": self.text, "annotations": []}]}));
                }
                for (id, name, arguments) in &self.calls {
                    list.push(json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments, "status": "completed"}));
                }
            }
            Provider::Anthropic => {
                if !self.thoughts.is_empty() {
                    list.push(json!({"type": "thinking", "thinking": self.thoughts, "signature": "EqQB=="}));
                }
                if !self.text.is_empty() {
                    list.push(json!({"type": "text", "text": self.text}));
                }
                for (id, name, arguments) in &self.calls {
                    list.push(
                        json!({"type": "tool_use", "id": id, "name": name, "input": Self::object(arguments)}),
                    );
                }
            }
            Provider::Gemini => {
                if !self.thoughts.is_empty() {
                    list.push(json!({"text": self.thoughts, "thought": true}));
                }
                if !self.text.is_empty() {
                    list.push(json!({"text": self.text}));
                }
                for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
                    let mut part =
                        json!({"functionCall": {"id": id, "name": name, "args": Self::object(arguments)}});
                    if index == 0 {
                        part["thoughtSignature"] = "RXFR".into();
                    }
                    list.push(part);
                }
            }
        }
        list
    }

    fn finish_reason(&self, provider: Provider) -> &str {
        if let Some(reason) = &self.ended {
            return reason;
        }
        match (provider, self.calls.is_empty()) {
            (Provider::OpenAiChat, true) => "stop",
            (Provider::OpenAiChat, false) => "tool_calls",
            (Provider::OpenAiResponses, _) => "completed",
            (Provider::Anthropic, true) => "end_turn",
            (Provider::Anthropic, false) => "tool_use",
            (Provider::Gemini, _) => "STOP",
        }
    }

    /// The answer without streaming.
    pub(crate) fn whole(&self, provider: Provider) -> Value {
        let content = self.content(provider);
        let reason = self.finish_reason(provider);
        match provider {
            Provider::OpenAiChat => {
                let calls: Vec<Value> = self.calls.iter().map(|(id, name, arguments)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})).collect();
                let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
                if !self.thoughts.is_empty() {
                    message["reasoning_content"] = self.thoughts.as_str().into();
                }
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                json!({"id": "chatcmpl-1", "choices": [{"index": 0, "finish_reason": reason, "message": message}], "usage": {"prompt_tokens": 12, "completion_tokens": 6}})
            }
            Provider::OpenAiResponses => {
                let mut response = json!({"id": "resp_1", "error": null, "output": content, "usage": {"input_tokens": 12, "output_tokens": 6}});
                end_response(&mut response, reason);
                response
            }
            Provider::Anthropic => {
                json!({"id": "msg_01", "type": "message", "role": "assistant", "content": content, "stop_reason": reason, "usage": {"input_tokens": 12, "output_tokens": 6}})
            }
            Provider::Gemini => {
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": content}, "finishReason": reason}], "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 6}})
            }
        }
    }

    /// The events of the answer, including the end mark.
    pub(crate) fn events(&self, provider: Provider) -> Vec<Value> {
        let content = self.content(provider);
        let reason = self.finish_reason(provider);
        let mut events = Vec::new();
        match provider {
            Provider::OpenAiChat => {
                let chunk = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
                events.push(chunk(json!({"role": "assistant", "content": ""})));
                events.extend(pieces(&self.thoughts).map(|piece| chunk(json!({"reasoning_content": piece}))));
                events.extend(pieces(&self.text).map(|piece| chunk(json!({"content": piece}))));
                for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
                    events.push(chunk(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})));
                    events.extend(pieces(arguments).map(|piece| {
                        chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
                    }));
                }
                events.push(json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": {"prompt_tokens": 12, "completion_tokens": 6}}));
                events.push(json!("[DONE]"));
            }
            Provider::OpenAiResponses => {
                events.push(json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}));
                events.extend(pieces(&self.thoughts).map(|piece| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": piece})));
                events.extend(pieces(&self.text).map(
                    |piece| json!({"type": "response.output_text.delta", "output_index": 1, "delta": piece}),
                ));
                events.extend(content.iter().enumerate().map(|(index, item)| json!({"type": "response.output_item.done", "output_index": index, "item": item})));
                let mut response =
                    json!({"id": "resp_1", "output": [], "usage": {"input_tokens": 12, "output_tokens": 6}});
                end_response(&mut response, reason);
                let kind = if response["status"] == "incomplete" {
                    "response.incomplete"
                } else {
                    "response.completed"
                };
                events.push(json!({"type": kind, "response": response}));
            }
            Provider::Anthropic => {
                events.push(json!({"type": "message_start", "message": {"id": "msg_01", "role": "assistant", "content": [], "usage": {"input_tokens": 12, "output_tokens": 1}}}));
                for (index, block) in content.iter().enumerate() {
                    let delta =
                        |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
                    let mut start = block.clone();
                    match block["type"].as_str().unwrap() {
                        "thinking" => {
                            start["thinking"] = "".into();
                            start["signature"] = "".into();
                        }
                        "text" => start["text"] = "".into(),
                        _ => start["input"] = json!({}),
                    }
                    events
                        .push(json!({"type": "content_block_start", "index": index, "content_block": start}));
                    match block["type"].as_str().unwrap() {
                        "thinking" => {
                            events
                                .extend(pieces(&self.thoughts).map(|piece| {
                                    delta(json!({"type": "thinking_delta", "thinking": piece}))
                                }));
                            events.push(delta(
                                json!({"type": "signature_delta", "signature": block["signature"]}),
                            ));
                        }
                        "text" => events.extend(
                            pieces(&self.text)
                                .map(|piece| delta(json!({"type": "text_delta", "text": piece}))),
                        ),
                        _ => {
                            let call =
                                self.calls.iter().find(|(id, _, _)| block["id"] == id.as_str()).unwrap();
                            events.extend(pieces(&call.2).map(|piece| {
                                delta(json!({"type": "input_json_delta", "partial_json": piece}))
                            }));
                        }
                    }
                    events.push(json!({"type": "content_block_stop", "index": index}));
                }
                events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 6}}));
                events.push(json!({"type": "message_stop"}));
            }
            Provider::Gemini => {
                let chunk = |part: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});
                for part in content {
                    match part["text"].as_str() {
                        Some(text) => events.extend(pieces(text).map(|piece| {
                            let mut part = part.clone();
                            part["text"] = piece.into();
                            chunk(part)
                        })),
                        None => events.push(chunk(part)),
                    }
                }
                events.push(json!({"candidates": [{"index": 0, "finishReason": reason}], "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 6}}));
            }
        }
        events
    }

    /// The answer as a stream.
    pub(crate) fn streamed(&self, provider: Provider) -> String {
        stream_of(&self.events(provider))
    }
}

/// Sets the finish of a response: by its status, or by the reason why it is incomplete.
fn end_response(response: &mut Value, reason: &str) {
    let statuses = ["completed", "incomplete", "cancelled", "in_progress", "queued", "failed"];
    if statuses.contains(&reason) {
        response["status"] = reason.into();
    } else {
        response["status"] = "incomplete".into();
        response["incomplete_details"] = json!({"reason": reason});
    }
}

/// The text of a stream with these events.
pub(crate) fn stream_of(events: &[Value]) -> String {
    let mut text = String::from(": a comment\n\n");
    for event in events {
        if let Some(kind) = event["type"].as_str() {
            text.push_str(&format!("event: {kind}\n"));
        }
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        text.push_str(&format!("data: {data}\n\n"));
    }
    text
}

/// A text in two pieces or more; long ones in pieces of some KiB.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let size = (characters.len() / 2).clamp(1, 8_000);
    let pieces: Vec<String> = characters.chunks(size).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// An error event of an overloaded provider.
pub(crate) fn overloaded_event(provider: Provider) -> Value {
    match provider {
        Provider::OpenAiChat => {
            json!({"error": {"message": "busy", "type": "service_unavailable_error", "code": "server_is_overloaded"}})
        }
        Provider::OpenAiResponses => {
            json!({"type": "error", "code": "server_is_overloaded", "message": "busy", "param": null})
        }
        Provider::Anthropic => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
        }
        Provider::Gemini => json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}),
    }
}
