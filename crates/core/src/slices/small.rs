//! Size limits of log items.
//!
//! The full content is in the transcript, under the ids that a log item names. Logs therefore cut long texts
//! and omit large values.

use serde_json::Value;

use crate::object::INLINE_LIMIT;
use crate::storable;

/// Largest number of characters of a text in a log.
pub const EXCERPT_LIMIT: usize = 1_000;

const CUT: char = '…';

/// Returns the text, cut to [`EXCERPT_LIMIT`] characters if it is longer. The last character of a cut text
/// marks the cut.
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_LIMIT) {
        None => text.to_owned(),
        Some(_) => text.chars().take(EXCERPT_LIMIT - 1).chain([CUT]).collect(),
    }
}

/// Returns the value, unless it is too large for a record or not storable. `null` is omitted too, since a
/// field that holds it is decoded as one without a value.
pub fn small(value: Value) -> Option<Value> {
    if value.is_null() {
        return None;
    }
    storable::check(&value).ok()?;
    let bytes = serde_json::to_string(&value).ok()?.len();
    (bytes <= INLINE_LIMIT).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_is_cut_by_characters() {
        let exact = "ä".repeat(EXCERPT_LIMIT);
        assert_eq!(excerpt(&exact), exact);
        let cut = excerpt(&format!("{exact}ä"));
        assert_eq!(cut.chars().count(), EXCERPT_LIMIT);
        assert!(cut.ends_with("ä…"));
    }

    #[test]
    fn a_large_value_is_left_out() {
        assert_eq!(small(json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(small(json!("x".repeat(INLINE_LIMIT - 2))).map(|_| ()), Some(()));
        assert_eq!(small(json!("x".repeat(INLINE_LIMIT - 1))), None);
        assert_eq!(small(Value::Null), None);
        assert_eq!(small(json!({"$serde_json::private::RawValue": "1"})), None);
    }
}
