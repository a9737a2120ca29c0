//! Reads a streamed answer.
//!
//! The blocks are assembled into the content of an equivalent answer without streaming, which is then parsed
//! as such.

use std::collections::BTreeMap;

use backstitch_core::ports::PolicyAnswer;
use serde_json::{Map, Value};

use super::DIALECT;
use super::response::{End, answer};
use crate::answer::{Delta, Payload, SseEvent, StreamReader, body_of, merge, text_at};
use crate::error::{ProviderError, of_event};
use crate::provider::ModelTarget;
use crate::request::legal;

/// Reads the events of one answer.
pub(super) struct MessagesStream {
    target: ModelTarget,
    blocks: BTreeMap<u64, Value>,
    /// The received texts of arguments, by the index of the block.
    inputs: BTreeMap<u64, String>,
    end: End,
    is_done: bool,
}

impl MessagesStream {
    pub(super) fn new(target: ModelTarget) -> Self {
        let (blocks, inputs, end) = (BTreeMap::new(), BTreeMap::new(), End::default());
        Self { target, blocks, inputs, end, is_done: false }
    }

    fn take_delta(&mut self, index: u64, delta: &Value, deltas: &mut Vec<Delta>) {
        let Some(block) = self.blocks.get_mut(&index) else { return };
        let text = |name| text_at(delta, name).unwrap_or_default();
        match text_at(delta, "type").unwrap_or_default() {
            "text_delta" => {
                join(block, "text", text("text"));
                deltas.push(Delta::Text(text("text").to_owned()));
            }
            "thinking_delta" => {
                join(block, "thinking", text("thinking"));
                deltas.push(Delta::Reasoning(text("thinking").to_owned()));
            }
            "signature_delta" => join(block, "signature", text("signature")),
            "input_json_delta" => {
                self.inputs.entry(index).or_default().push_str(text("partial_json"));
                deltas.push(Delta::Call(text("partial_json").to_owned()));
            }
            "citations_delta" => {
                if let Some(fields) = block.as_object_mut()
                    && let Value::Array(citations) =
                        fields.entry("citations").or_insert_with(|| Value::Array(Vec::new()))
                {
                    citations.push(delta["citation"].clone());
                }
            }
            _ => {}
        }
    }
}

fn join(block: &mut Value, name: &str, piece: &str) {
    if let Some(fields) = block.as_object_mut() {
        merge(fields.entry(name).or_insert(Value::Null), &piece.into());
    }
}

/// Replaces the fields that are present: counts are totals and not differences.
fn replace(usage: &mut Value, newer: &Value) {
    if !usage.is_object() {
        *usage = Value::Object(Map::new());
    }
    if let (Some(usage), Some(newer)) = (usage.as_object_mut(), newer.as_object()) {
        let present = newer.iter().filter(|(_, value)| !value.is_null());
        usage.extend(present.map(|(name, value)| (name.clone(), value.clone())));
    }
}

impl StreamReader for MessagesStream {
    fn feed(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let data: Value = body_of(&event.data, &self.target)?;
        match text_at(&data, "type").unwrap_or_default() {
            "message_start" => replace(&mut self.end.usage, &data["message"]["usage"]),
            "content_block_start" => {
                let index = data["index"].as_u64().unwrap_or(self.blocks.len() as u64);
                let block = data["content_block"].clone();
                if block["type"] == "tool_use" {
                    let name = text_at(&block, "name").unwrap_or_default();
                    deltas.push(Delta::Call(format!("\n{name} ")));
                    self.inputs.insert(index, String::new());
                } else {
                    self.inputs.remove(&index);
                }
                self.blocks.insert(index, block);
            }
            "content_block_delta" => {
                if let Some(index) = data["index"].as_u64() {
                    self.take_delta(index, &data["delta"], deltas);
                }
            }
            "message_delta" => {
                if let Some(reason) = text_at(&data["delta"], "stop_reason") {
                    self.end.stop_reason = Some(reason.to_owned());
                }
                if !data["delta"]["stop_details"].is_null() {
                    self.end.stop_details = data["delta"]["stop_details"].clone();
                }
                replace(&mut self.end.usage, &data["usage"]);
            }
            "message_stop" => self.is_done = true,
            "error" => return Err(of_event(self.target.provider, DIALECT.classify, &data)),
            _ => {}
        }
        Ok(self.is_done)
    }

    fn finish(mut self: Box<Self>) -> Result<PolicyAnswer, ProviderError> {
        if !self.is_done {
            return Err(ProviderError::cut_stream(self.target.provider));
        }
        let mut texts = BTreeMap::new();
        for (place, (index, block)) in self.blocks.iter_mut().enumerate() {
            let (Some(text), Some(fields)) = (self.inputs.remove(index), block.as_object_mut()) else {
                continue;
            };
            let given = fields.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
            // A call without deltas has its whole input in the start event.
            let came_whole = text.trim().is_empty();
            let input = match serde_json::from_str::<Map<String, Value>>(&text) {
                Ok(input) => input,
                Err(_) if came_whole => given,
                Err(_) => legal::wrapped(&text),
            };
            let text =
                if came_whole && !input.is_empty() { Value::from(input.clone()).to_string() } else { text };
            texts.insert(place, text);
            fields.insert("input".to_owned(), input.into());
        }
        let payload = Payload::write(self.blocks.into_values().collect(), &self.target)?;
        DIALECT.usage.charge(&self.end.usage, answer(&payload, &self.end, &texts, &self.target))
    }
}
