//! Text encoding of records.
//!
//! A stored record is one line of JSON: `{"v":1,"kind":"call_started","at":"...","data":{...}}`. It can be
//! read with ordinary SQL. `v` is the version of the kind's data. Older data is upcast to the newest version
//! when it is read, by pure functions over plain JSON, so a new program opens old journals. Unknown fields of
//! the data are kept. An unknown kind or version is refused, because a journal must not be folded with gaps.
//!
//! A record that could be written but not read again is refused on encoding. A duplicate field is refused on
//! decoding, except in free-form values, where the last one counts.

use std::ops::Range;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Position;
use super::record::{Record, RecordBody};
use crate::extra::Extra;
use crate::json::{JsonLimits, LimitExceeded, RawFields, from_bytes};
use crate::storable::{self, NotStorable};
use crate::time::Timestamp;

/// A record cannot be encoded, because it could not be decoded again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The record cannot be written as JSON.
    #[error("the record cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The record is too large or too deep.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A value of the record would change in storage.
    #[error("the record cannot be stored")]
    NotStorable(#[from] NotStorable),
    /// An unknown field has the name of a known one.
    #[error("the record has an unknown field with the name {field:?}, which every record has")]
    Ambiguous {
        /// The field.
        field: &'static str,
    },
}

/// A record could not be decoded.
#[derive(Debug, thiserror::Error)]
#[error("the record at position {position} cannot be read")]
pub struct DecodeError {
    /// Position of the record.
    pub position: Position,
    /// Reason for the failure.
    #[source]
    pub problem: DecodeProblem,
}

/// Reasons why a record cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// The record is too large or too deep.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The record is not JSON, or does not have the fields of its kind.
    #[error("it does not parse")]
    Malformed(#[from] serde_json::Error),
    /// A field that every record has is missing.
    #[error("it has no field {field:?}")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field occurs twice.
    #[error("it has the field {field:?} twice")]
    Duplicate {
        /// The field.
        field: String,
    },
    /// The kind is unknown.
    #[error("its kind {kind:?} is not known; a newer program may have written it")]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The version of the kind is unknown.
    #[error("its kind {kind:?} has version {stored}, but this program knows 1 to {known}")]
    UnknownVersion {
        /// The kind.
        kind: String,
        /// Version of the record.
        stored: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// The data could not be upcast to the newest version.
    #[error("its kind {kind:?} could not be brought from version {version} to the next: {reason}")]
    Upcast {
        /// The kind.
        kind: String,
        /// Version whose upcaster failed.
        version: u32,
        /// Explanation of the upcaster.
        reason: String,
    },
    /// An unknown field would change in storage.
    #[error("a field that is not known here cannot be kept")]
    NotStorable(#[from] NotStorable),
}

/// Upcasts the data of one kind from one version to the next.
struct Upcaster {
    kind: &'static str,
    from: u32,
    upcast: fn(Value) -> Result<Value, String>,
}

/// All upcasters. One is added when the version of a kind is raised, and none is ever removed.
const UPCASTERS: &[Upcaster] = &[];

#[derive(Serialize)]
struct StoredRecord<'a> {
    v: u32,
    kind: &'a str,
    at: Timestamp,
    data: Box<RawValue>,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
struct PositionedRecord<'a> {
    position: Position,
    #[serde(flatten)]
    stored: StoredRecord<'a>,
}

/// An encoded record, with the places of its parts, so that a store need not search for them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodedRecord {
    /// The record as one line of JSON.
    pub text: String,
    /// The version of its kind.
    pub version: u32,
    /// The stored name of its kind.
    pub kind: &'static str,
    /// When it was recorded.
    pub at: Timestamp,
    /// Where the time is in the text, without quotes.
    pub time: Range<usize>,
    /// Where the data is in the text. `None` if fields follow that this version does not know.
    pub data: Option<Range<usize>>,
}

impl EncodedRecord {
    /// Creates the text of a record without unknown fields from its parts: the version and the name of its kind, its time, also as
    /// text, and its data.
    pub fn new(
        version: u32,
        kind: &'static str,
        (at, time_text): (Timestamp, &str),
        data_text: &str,
    ) -> Self {
        let before = format!(r#"{{"v":{version},"kind":"{kind}","at":""#);
        let time = before.len()..before.len() + time_text.len();
        let data = time.end + BEFORE_DATA.len();
        let text = [before.as_str(), time_text, BEFORE_DATA, data_text, "}"].concat();
        let data = Some(data..text.len() - 1);
        Self { text, version, kind, at, time, data }
    }

    /// Decodes the record at its position, like [`Record::decode`].
    pub fn decode(&self, position: Position) -> Result<Record, DecodeError> {
        let Some(data) = &self.data else { return Record::decode(position, &self.text) };
        let checked = JsonLimits::default().check(self.text.as_bytes()).map_err(DecodeProblem::from);
        let body = checked.and_then(|()| decode_body(self.kind, self.version, &self.text[data.clone()]));
        let body = body.map_err(|problem| DecodeError { position, problem })?;
        Ok(Record { position, at: self.at, body, extra: Extra::default() })
    }
}

/// What is between the time and the data of a record.
const BEFORE_DATA: &str = r#"","data":"#;

/// Bytes that the data of most records takes.
const USUAL_BYTES: usize = 512;

/// The fields that every record has.
const FIELDS: [&str; 4] = ["v", "kind", "at", "data"];

impl Record {
    /// Encodes the record as one line of JSON with the version of the kind (`v`), `kind`, `at` and `data`.
    /// The position is not part of it: it is the key of the stored text. Serde adds it as `position`.
    pub fn encode(&self) -> Result<String, EncodeError> {
        Ok(self.encode_parts()?.text)
    }

    /// Encodes the record as [`encode`](Self::encode) does, and returns where its parts are.
    pub fn encode_parts(&self) -> Result<EncodedRecord, EncodeError> {
        if let Some(field) = FIELDS.into_iter().find(|field| self.extra.get(field).is_some()) {
            return Err(EncodeError::Ambiguous { field });
        }
        let (version, kind, at) = (self.version(), self.body.kind(), self.at.to_string());
        let before = format!(r#"{{"v":{version},"kind":"{kind}","at":""#);
        let time = before.len()..before.len() + at.len();
        let mut bytes = [before.as_str(), &at, BEFORE_DATA].concat().into_bytes();
        bytes.reserve(USUAL_BYTES);
        let data = bytes.len();
        self.body.write_data(&mut bytes)?;
        let data = self.extra.is_empty().then_some(data..bytes.len());
        for (name, value) in self.extra.iter() {
            bytes.push(b',');
            serde_json::to_writer(&mut bytes, name)?;
            bytes.push(b':');
            serde_json::to_writer(&mut bytes, value)?;
        }
        bytes.push(b'}');
        let text = String::from_utf8(bytes).expect("invariant: JSON is UTF-8");
        JsonLimits::default().check(text.as_bytes())?;
        // Decoding shows whether this is a key or part of a text.
        if text.contains(storable::PRIVATE_KEYS)
            && !Self::decode(self.position, &text).is_ok_and(|again| again == *self)
        {
            return Err(NotStorable::PrivateKey.into());
        }
        Ok(EncodedRecord { text, version, kind, at: self.at, time, data })
    }

    /// Returns the version of the kind that this program writes.
    pub fn version(&self) -> u32 {
        version_of(self.body.kind()).unwrap_or(1)
    }

    fn stored(&self) -> Result<StoredRecord<'_>, serde_json::Error> {
        let (v, kind, data) = (self.version(), self.body.kind(), self.body.to_data()?);
        Ok(StoredRecord { v, kind, at: self.at, data, extra: &self.extra })
    }

    /// Decodes a record within the default limits.
    pub fn decode(position: Position, text: &str) -> Result<Self, DecodeError> {
        Self::decode_within(position, text.as_bytes(), JsonLimits::default())
    }

    /// Decodes a record within these limits.
    pub fn decode_within(position: Position, text: &[u8], limits: JsonLimits) -> Result<Self, DecodeError> {
        decode(position, text, limits).map_err(|problem| DecodeError { position, problem })
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = self.stored().map_err(serde::ser::Error::custom)?;
        PositionedRecord { position: self.position, stored }.serialize(serializer)
    }
}

fn decode(position: Position, text: &[u8], limits: JsonLimits) -> Result<Record, DecodeProblem> {
    limits.check(text)?;
    let RawFields(fields) = from_bytes(text)?;
    let (mut known, mut unknown) = ([None; FIELDS.len()], Vec::new());
    for (field, raw) in fields {
        match FIELDS.iter().position(|name| *name == field) {
            Some(index) if known[index].is_some() => return Err(DecodeProblem::Duplicate { field }),
            Some(index) => known[index] = Some(raw.get()),
            None => unknown.push((field, raw.get())),
        }
    }
    let [v, kind, at, data] = known;
    let stored: u32 = serde_json::from_str(required("v", v)?)?;
    let kind: String = serde_json::from_str(required("kind", kind)?)?;
    let at: Timestamp = serde_json::from_str(required("at", at)?)?;
    let data = required("data", data)?;

    let body = decode_body(&kind, stored, data)?;

    // Read last, so that a record of a newer program is refused because of its kind or version.
    let mut extra = serde_json::Map::new();
    for (field, raw) in unknown {
        if extra.insert(field.clone(), serde_json::from_str(raw)?).is_some() {
            return Err(DecodeProblem::Duplicate { field });
        }
    }
    Ok(Record { position, at, body, extra: extra.try_into()? })
}

/// Decodes the data of a record of this kind, which has this version.
fn decode_body(kind: &str, stored: u32, data: &str) -> Result<RecordBody, DecodeProblem> {
    let unknown = || DecodeProblem::UnknownKind { kind: kind.to_owned() };
    let upcast = upcast(UPCASTERS, kind, stored, version_of(kind).ok_or_else(unknown)?, data)?;
    let data = upcast.as_deref().unwrap_or(data);
    Ok(RecordBody::from_data(kind, data).ok_or_else(unknown)??)
}

fn required<'a>(field: &'static str, raw: Option<&'a str>) -> Result<&'a str, DecodeProblem> {
    raw.ok_or(DecodeProblem::Missing { field })
}

fn version_of(kind: &str) -> Option<u32> {
    RecordBody::KINDS.iter().find(|(name, _)| *name == kind).map(|(_, version)| *version)
}

/// Upcasts data to version `known`; `None` if it has that version already.
fn upcast(
    upcasters: &[Upcaster],
    kind: &str,
    stored: u32,
    known: u32,
    data: &str,
) -> Result<Option<String>, DecodeProblem> {
    if stored == known {
        return Ok(None);
    }
    if stored == 0 || stored > known {
        return Err(DecodeProblem::UnknownVersion { kind: kind.to_owned(), stored, known });
    }
    let mut value: Value = serde_json::from_str(data)?;
    for version in stored..known {
        let failed = |reason| DecodeProblem::Upcast { kind: kind.to_owned(), version, reason };
        let upcaster = upcasters.iter().find(|upcaster| upcaster.kind == kind && upcaster.from == version);
        let upcaster = upcaster.ok_or_else(|| failed("there is no upcaster".to_owned()))?;
        value = (upcaster.upcast)(value).map_err(failed)?;
    }
    Ok(Some(value.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A kind with two older versions: `text` was called `body`, and before that it was a list of lines.
    const OLDER: &[Upcaster] = &[
        Upcaster {
            kind: "note",
            from: 1,
            upcast: |mut data| {
                let lines = data["lines"].as_array().ok_or("lines are not a list")?;
                let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
                data["body"] = lines.join("\n").into();
                Ok(data)
            },
        },
        Upcaster {
            kind: "note",
            from: 2,
            upcast: |mut data| {
                data["text"] = data["body"].take();
                Ok(data)
            },
        },
    ];

    #[test]
    fn older_data_is_brought_up_version_by_version() {
        let data = json!({"topic": "t", "lines": ["a", "b"]}).to_string();
        let text = upcast(OLDER, "note", 1, 3, &data).unwrap().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["text"], "a\nb");
        assert!(upcast(OLDER, "note", 3, 3, &data).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_brought_up_is_refused() {
        let data = json!({"lines": 1}).to_string();
        let problem = upcast(OLDER, "note", 1, 3, &data).unwrap_err();
        assert!(matches!(problem, DecodeProblem::Upcast { version: 1, .. }), "{problem:?}");
        let problem = upcast(OLDER, "call_started", 1, 3, &data).unwrap_err();
        assert!(matches!(problem, DecodeProblem::Upcast { version: 1, .. }), "{problem:?}");
        for stored in [0, 4] {
            let problem = upcast(OLDER, "note", stored, 3, &data).unwrap_err();
            assert!(matches!(problem, DecodeProblem::UnknownVersion { .. }), "{problem:?}");
        }
    }
}
