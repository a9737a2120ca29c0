//! Lines of a log, and rows of a query.

use backstitch_runtime::describe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;
use crate::journal::{Position, Record};
use crate::ports::SqlValue;
use crate::report::Version;
use crate::time::Timestamp;

/// A record as it was appended, and where it stands in the history of its session. The command prints each as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Version of the form.
    pub v: Version,
    /// Its position.
    pub position: Position,
    /// When it was made.
    pub at: Timestamp,
    /// Its kind.
    pub kind: String,
    /// Version of the kind's data.
    pub version: u32,
    /// Its data, exactly. Large content is named by its object.
    pub data: Value,
    /// Fields of the record that this version does not know. Left out if there are none.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
    /// Its branch.
    pub branch: u64,
    /// Whether it is still visible.
    pub visible: bool,
    /// The line for people. Its wording is not stable.
    pub text: String,
    /// The tool of the call that a pause is about. Left out of other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments of the call that a pause is about. Left out of other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// A record as it is published when it was appended. Later records may hide it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordLine {
    /// Version of the form.
    pub v: Version,
    /// Its position.
    pub position: Position,
    /// When it was made.
    pub at: Timestamp,
    /// Its kind.
    pub kind: String,
    /// Version of the kind's data.
    pub version: u32,
    /// Its data, exactly. Large content is named by its object.
    pub data: Value,
    /// The line for people; `null` for a record that only programs need. Its wording is not stable.
    pub text: Option<String>,
}

impl RecordLine {
    /// Describes a record.
    pub fn of(record: &Record) -> Self {
        let mut stored = serde_json::to_value(record).unwrap_or_default();
        Self {
            v: Version,
            position: record.position,
            at: record.at,
            kind: record.body.kind().to_owned(),
            version: record.version(),
            data: stored["data"].take(),
            text: describe(record),
        }
    }
}

/// A row of a query. The command prints each as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryRow {
    /// Version of the form.
    pub v: Version,
    /// The values by the names of their columns. Bytes are hexadecimal digits.
    pub row: JsonObject,
}

impl QueryRow {
    /// Creates a row. Of columns with the same name, the last one counts.
    pub fn new(columns: &[String], values: &[SqlValue]) -> Self {
        Self { v: Version, row: columns.iter().cloned().zip(values.iter().map(sql_json)).collect() }
    }
}

/// Returns the JSON of a value of a row.
pub(crate) fn sql_json(value: &SqlValue) -> Value {
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
