//! Rows of a query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ports::SqlValue;
use crate::report::Version;

/// A row of a query. The command prints each as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryRow {
    /// Version of the form.
    pub v: Version,
    /// The values by the names of their columns. Bytes are hexadecimal digits.
    pub row: Map<String, Value>,
}

impl QueryRow {
    /// Creates a row. Of columns with the same name, the last one counts.
    pub fn new(columns: &[String], values: &[SqlValue]) -> Self {
        Self { v: Version, row: columns.iter().cloned().zip(values.iter().map(json)).collect() }
    }
}

fn json(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => (*number).into(),
        SqlValue::Real(number) => (*number).into(),
        SqlValue::Text(text) => text.as_str().into(),
        SqlValue::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_has_a_form() {
        let columns = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let values = [
            SqlValue::Null,
            SqlValue::Integer(-1),
            SqlValue::Real(0.5),
            SqlValue::Text("x".to_owned()),
            SqlValue::Blob(vec![0, 255]),
        ];
        let row = serde_json::to_value(QueryRow::new(&columns, &values)).unwrap();
        assert_eq!(row, json!({"v": 1, "row": {"a": null, "b": -1, "c": 0.5, "d": "x", "e": "00ff"}}));
    }
}
