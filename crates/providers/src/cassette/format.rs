//! One exchange, as a line of a cassette.

use backstitch_core::digest::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::transport::HttpRequest;

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// The maximum size of a recorded request body in bytes. Of a longer one only the digest is recorded.
const LONGEST_BODY: usize = 256 * 1024;

/// A request and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) v: u32,
    pub(super) request: Request,
    pub(super) response: Response,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Value>,
}

impl Request {
    pub(super) fn of(request: &HttpRequest) -> Self {
        let text = request.body.text();
        let body = (text.len() <= LONGEST_BODY).then(|| serde_json::from_str(&text).ok());
        Self {
            method: "POST".to_owned(),
            url: request.url.clone(),
            digest: Digest::of(text.as_bytes()),
            body: body.flatten(),
        }
    }
}

/// A recorded response, or the failure to get one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Response {
    /// `None` when the server was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) chunks: Vec<Chunk>,
    /// The transport error, if the response is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) broken: Option<String>,
}

/// A piece of a body: text, or Base64 where the piece is not valid UTF-8 because it was split inside of a
/// character.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Chunk {
    Text(String),
    Bytes { base64: String },
}

impl Chunk {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes { base64: STANDARD.encode(error.as_bytes()) },
        }
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Bytes { base64 } => STANDARD.decode(base64),
        }
    }
}

/// The path of a URL, without the host: a recording of one host may be played for another.
pub(super) fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |start| &rest[start..])
}
