//! Values that operations return, in the form in which programs read them.
//!
//! The value of an operation is the JSON that the command prints for it, so its form is a promise: fields may be added, and
//! none changes its name or its meaning under the same version.

use std::borrow::Cow;

use backstitch_core::id::SessionId;
use backstitch_core::journal::InboxId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the form of a value. It is written as the number 1, and no other number is read.
///
/// ```
/// use backstitch_runtime::Version;
///
/// assert_eq!(serde_json::to_string(&Version).unwrap(), "1");
/// assert!(serde_json::from_str::<Version>("2").is_err());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version;

impl Version {
    /// The number.
    pub const NUMBER: u32 = 1;
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::NUMBER)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            Self::NUMBER => Ok(Self),
            other => Err(D::Error::custom(format_args!("version {other} of the report is not known"))),
        }
    }
}

impl JsonSchema for Version {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "const": Self::NUMBER })
    }
}

/// A message or a request that was sent to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SentItem {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The item in its inbox.
    #[schemars(with = "u64")]
    pub item: InboxId,
    /// Whether an evaluation is open, which receives the item. Otherwise it waits until the session is resumed.
    #[serde(default)]
    pub open: bool,
}
