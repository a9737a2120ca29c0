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

/// Returns the first block that is fenced as `json`; else the whole text; else the last object that parses; else
/// the last such array. What a model says first may be what it corrects.
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
    last_value(text).ok_or_else(|| NoJson { reason: fenced.unwrap_or(whole).to_string() })
}

fn last_value(text: &str) -> Option<Value> {
    let (mut object, mut array) = (None, None);
    let (mut tried, mut from) = (0, 0);
    while let Some(at) = text[from..].find(['{', '[']).map(|at| from + at).filter(|_| tried < MOST_TRIED) {
        tried += 1;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                from = at + values.byte_offset();
                let found = if value.is_object() { &mut object } else { &mut array };
                *found = Some(value);
            }
            _ => from = at + 1,
        }
    }
    object.or(array)
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
        assert_eq!(extract("see [the docs] and {\"a\": [1]} in [2]").unwrap(), json!({"a": [1]}));
        assert_eq!(extract("First {\"a\": 1}, no: {\"a\": 2}.").unwrap(), json!({"a": 2}), "a correction");
        assert_eq!(extract("They are [1] or rather [{\"a\": 2}].").unwrap(), json!([{"a": 2}]));
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
