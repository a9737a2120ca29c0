//! Extraction of JSON from answers.

use serde_json::Value;

/// Largest number of positions at which an object or array may start and is tried.
const MOST_TRIED: usize = 100;

/// Length of the longest answer that is searched, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

const FENCE: &str = "```";

/// An answer holds no JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no JSON in it: {reason}")]
pub struct NoJson {
    /// Parse error of the most likely candidate.
    pub reason: String,
}

/// Returns the first block that is fenced as `json`; else the whole text; else the first object or array that
/// parses.
pub(super) fn extract(text: &str) -> Result<Value, NoJson> {
    if text.len() > LONGEST {
        return Err(NoJson { reason: format!("it is longer than {LONGEST} bytes") });
    }
    let fenced = match first_fenced(text).map(serde_json::from_str) {
        Some(Ok(value)) => return Ok(value),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let whole = match serde_json::from_str(text.trim()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let beginnings = text.char_indices().filter(|(_, character)| matches!(character, '{' | '['));
    for (at, _) in beginnings.take(MOST_TRIED) {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Ok(value);
        }
    }
    Err(NoJson { reason: fenced.unwrap_or(whole).to_string() })
}

/// Returns the content of the first fence marked `json`. A fence that is never closed extends to the end.
fn first_fenced(text: &str) -> Option<&str> {
    let mut start = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (begin, end) = (at, at + line.len());
        at = end;
        let Some(after) = line.trim().strip_prefix(FENCE) else { continue };
        match start {
            None if after.trim().eq_ignore_ascii_case("json") => start = Some(end),
            None => {}
            Some(start) => return Some(&text[start..begin]),
        }
    }
    start.map(|start| &text[start..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_fence_counts_then_the_whole_then_what_can_be_read() {
        let fenced = "Before {\"a\": 0}\n```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```";
        assert_eq!(extract(fenced).unwrap(), json!({"a": 1}));
        assert_eq!(extract("```JSON \n[1]").unwrap(), json!([1]), "a fence may be left open");
        assert_eq!(extract(" [1, 2] \n").unwrap(), json!([1, 2]));
        assert_eq!(extract("see [the docs] and {\"a\": [1]} or {}").unwrap(), json!({"a": [1]}));
        assert_eq!(
            extract("```text\n{\"a\": 1}\n```").unwrap(),
            json!({"a": 1}),
            "another fence is just text"
        );
        assert_eq!(extract("```json\n{oops\n```\n{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(extract("42").unwrap(), json!(42));
    }

    #[test]
    fn where_there_is_none_it_says_why() {
        for text in ["", "nothing", "{", "{\"a\": }", "```json\n{\"a\": tru}\n```"] {
            let error = extract(text).unwrap_err();
            assert!(error.reason.contains("line"), "{text:?}: {error}");
        }
    }

    #[test]
    fn hostile_text_costs_no_more_than_a_few_looks() {
        assert!(extract(&"[".repeat(1_000_000)).is_err());
        assert!(extract(&"{\"a\":".repeat(100_000)).is_err());
        assert!(extract(&" ".repeat(LONGEST + 1)).is_err());
    }
}
