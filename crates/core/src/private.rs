//! What generated code refers to. Nothing here is for people: it changes without notice.

pub use serde::{Deserialize, Serialize};
pub use serde_json::Value;

pub use crate::session::{Slice, SlicePolicy, UpcastError};
