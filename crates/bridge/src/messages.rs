//! Parts of the messages of Claude Code, which the lines of a run and the records of a transcript have in common.

use backstitch_core::budget::Amounts;
use backstitch_runtime::ObservedResult;
use serde_json::Value;

use crate::fields::{id, is_set, text};

/// The model of messages that the program writes itself. They cost nothing.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// Tokens of a request. Fields that a message does not have are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
}

impl Usage {
    pub(crate) fn of(value: Option<&Value>) -> Self {
        let number = |name: &str| value?.get(name)?.as_u64();
        Self {
            input: number("input_tokens"),
            cache_read: number("cache_read_input_tokens"),
            cache_write: number("cache_creation_input_tokens"),
            output: number("output_tokens"),
        }
    }

    /// Adds what a later line reports. Its numbers are totals, and the first line reports too few output tokens.
    #[cfg(feature = "engines")]
    pub(crate) fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.cache_read = later.cache_read.or(self.cache_read);
        self.cache_write = later.cache_write.or(self.cache_write);
        self.output = later.output.max(self.output);
    }

    pub(crate) fn amounts(self) -> Amounts {
        let (read, written) = (self.cache_read.unwrap_or(0), self.cache_write.unwrap_or(0));
        Amounts {
            input_tokens: self.input.unwrap_or(0).saturating_add(read).saturating_add(written),
            cache_read_tokens: read,
            cache_write_tokens: written,
            output_tokens: self.output.unwrap_or(0),
            ..Amounts::ZERO
        }
    }
}

/// Returns the blocks of a message, which is in a line or a record. A prompt may be a text without blocks.
pub(crate) fn blocks(record: &Value) -> impl Iterator<Item = &Value> {
    record.pointer("/message/content").and_then(Value::as_array).into_iter().flatten()
}

/// Returns the id and the result of a call, if a block holds them.
pub(crate) fn result_of(block: &Value) -> Option<(String, ObservedResult)> {
    if text(block, "type")? != "tool_result" {
        return None;
    }
    let content = block.get("content").cloned().unwrap_or(Value::Null);
    let outcome = if is_set(block, "is_error") { Err(as_text(&content)) } else { Ok(content) };
    Some((id(block, "tool_use_id")?.to_owned(), ObservedResult { outcome, elapsed_micros: None }))
}

/// Returns a value as the text that a person reads.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Option<Vec<&str>> = parts.iter().map(|part| text(part, "text")).collect();
            texts.map_or_else(|| value.to_string(), |texts| texts.join("\n"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "engines")]
    #[test]
    fn usage_is_counted_once_with_its_last_numbers() {
        let mut usage =
            Usage::of(Some(&json!({"input_tokens": 100, "cache_read_input_tokens": 7, "output_tokens": 1})));
        usage.update(Usage::of(Some(&json!({"output_tokens": 25}))));
        let amounts = usage.amounts();
        assert_eq!((amounts.input_tokens, amounts.cache_read_tokens, amounts.output_tokens), (107, 7, 25));
    }

    #[test]
    fn results_are_texts_or_values() {
        let failed = json!({"type": "tool_result", "tool_use_id": "t", "is_error": true,
            "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "rule"}]});
        assert_eq!(result_of(&failed).unwrap().1.outcome, Err("no\nrule".to_owned()));
        let image = json!([{"type": "image"}]);
        let done = json!({"type": "tool_result", "tool_use_id": "t", "content": image});
        assert_eq!(result_of(&done).unwrap().1.outcome, Ok(image));
        for strange in [json!({"type": "text", "text": "x"}), json!({"type": "tool_result"}), json!(7)] {
            assert_eq!(result_of(&strange), None, "{strange}");
        }
    }
}
