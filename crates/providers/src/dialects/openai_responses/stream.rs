//! Reads a streamed answer.
//!
//! Deltas are for display only. The answer is assembled from the completed items and the last event.

use std::collections::BTreeMap;

use backstitch_core::ports::PolicyAnswer;
use serde_json::Value;

use super::DIALECT;
use super::response::{End, answer};
use crate::answer::{Delta, Payload, SseEvent, StreamReader, body_of, filled_at, text_at};
use crate::error::{ProviderError, of_event};
use crate::provider::ModelTarget;

/// Reads the events of one answer.
pub(super) struct ResponsesStream {
    target: ModelTarget,
    /// The completed items, by index.
    items: BTreeMap<u64, Value>,
    end: Option<End>,
}

impl ResponsesStream {
    pub(super) fn new(target: ModelTarget) -> Self {
        Self { target, items: BTreeMap::new(), end: None }
    }
}

impl StreamReader for ResponsesStream {
    fn feed(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        if event.data.trim() == "[DONE]" {
            return Ok(self.end.is_some());
        }
        let data: Value = body_of(&event.data, &self.target)?;
        let delta = || text_at(&data, "delta").unwrap_or_default().to_owned();
        match text_at(&data, "type").unwrap_or_default() {
            "response.output_text.delta" | "response.refusal.delta" => deltas.push(Delta::Text(delta())),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.push(Delta::Reasoning(delta()));
            }
            "response.output_item.added" => {
                deltas.extend(filled_at(&data["item"], "name").map(|name| Delta::Call(format!("\n{name} "))));
            }
            "response.function_call_arguments.delta" => deltas.push(Delta::Call(delta())),
            "response.output_item.done" => {
                let next = self.items.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
                let place = data["output_index"].as_u64().unwrap_or(next);
                self.items.insert(place, data["item"].clone());
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = &data["response"];
                // The last event may repeat all items, or none of them.
                if self.items.is_empty() {
                    let items = response["output"].as_array().into_iter().flatten().cloned();
                    self.items = (0..).zip(items).collect();
                }
                self.end = Some(End {
                    status: text_at(response, "status").map(str::to_owned),
                    incomplete_details: response["incomplete_details"].clone(),
                    error: response["error"].clone(),
                    usage: response["usage"].clone(),
                });
            }
            "error" => return Err(of_event(self.target.provider, DIALECT.classify, &data)),
            _ => {}
        }
        Ok(self.end.is_some())
    }

    fn finish(self: Box<Self>) -> Result<PolicyAnswer, ProviderError> {
        let Some(end) = self.end else { return Err(ProviderError::cut_stream(self.target.provider)) };
        let payload = Payload::write(self.items.into_values().collect(), &self.target)?;
        DIALECT.usage.charge(&end.usage, answer(&payload, &end, &self.target))
    }
}
