//! Assembly of JSON that arrives in pieces.
//!
//! Streams of compatible servers have fields that only their server understands, such as signatures. They are
//! assembled without knowing them, and sent back.

use serde_json::Value;

/// Names of texts that are repeated and not continued.
const FIXED: [&str; 5] = ["id", "type", "format", "name", "role"];

/// Adds a piece to a value: texts are joined, objects are merged, and items of lists are merged if they have the
/// same `index`. Of other values the last one counts.
pub(crate) fn merge(whole: &mut Value, piece: &Value) {
    match (whole, piece) {
        (_, Value::Null) => {}
        (whole @ Value::Null, piece) => *whole = piece.clone(),
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                let known = fields.entry(name).or_insert(Value::Null);
                if known.is_null() || !FIXED.contains(&name.as_str()) {
                    merge(known, value);
                }
            }
        }
        (Value::Array(items), Value::Array(more)) => {
            for item in more {
                match items.iter().rposition(|known| is_same(known, item)) {
                    Some(place) => merge(&mut items[place], item),
                    None => items.push(item.clone()),
                }
            }
        }
        (whole, piece) => *whole = piece.clone(),
    }
}

/// Whether an item continues another one: it has the same index, and no other type or id.
fn is_same(known: &Value, item: &Value) -> bool {
    let agree = |name: &str| {
        let (known, item) = (&known[name], &item[name]);
        known.is_null() || item.is_null() || known == item
    };
    known["index"].is_u64() && known["index"] == item["index"] && agree("type") && agree("id")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(pieces: &[Value]) -> Value {
        let mut whole = Value::Null;
        pieces.iter().for_each(|piece| merge(&mut whole, piece));
        whole
    }

    #[test]
    fn pieces_are_assembled() {
        let thoughts =
            |text: &str| json!([{"type": "reasoning.text", "text": text, "format": "f", "index": 0}]);
        let pieces = [
            thoughts("Hm"),
            thoughts("."),
            json!([{"type": "reasoning.text", "signature": "s", "index": 0}]),
            json!([{"type": "reasoning.encrypted", "data": "d", "id": "call_a", "index": 0}]),
            json!([{"type": "reasoning.encrypted", "data": "e", "id": "call_b", "index": 0}]),
            json!(null),
        ];
        let whole = json!([
            {"type": "reasoning.text", "text": "Hm.", "format": "f", "index": 0, "signature": "s"},
            {"type": "reasoning.encrypted", "data": "d", "id": "call_a", "index": 0},
            {"type": "reasoning.encrypted", "data": "e", "id": "call_b", "index": 0},
        ]);
        assert_eq!(merged(&pieces), whole);
        assert_eq!(
            merged(&[json!({"a": {"b": "c"}, "n": 1}), json!({"a": {"b": "d"}, "n": 2})]),
            json!({"a": {"b": "cd"}, "n": 2})
        );
        assert_eq!(merged(&[json!([1]), json!([1])]), json!([1, 1]));
    }
}
