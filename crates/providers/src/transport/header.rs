//! Headers that users add to requests, for gateways and companies.
//!
//! The value of a header may hold secrets, so it is never shown. The secrets in it are removed wherever a
//! server repeats them, as keys are.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// Headers that the format of a request decides about.
const RESERVED: [&str; 7] =
    ["accept", "connection", "content-length", "content-type", "host", "te", "transfer-encoding"];

/// A header of every request to a server. It replaces one of the provider with the same name.
///
/// ```
/// use backstitch_providers::RequestHeader;
///
/// let header = RequestHeader::new("Helicone-Auth", "Bearer token-1234")?.hiding("token-1234");
/// assert_eq!(header.name(), "helicone-auth");
/// assert!(!format!("{header:?}").contains("token"));
/// # Ok::<(), backstitch_providers::InvalidHeader>(())
/// ```
#[derive(Clone)]
pub struct RequestHeader {
    name: String,
    value: SecretString,
    secrets: Vec<SecretString>,
}

/// A header that requests cannot have. The value is not repeated, since it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidHeader {
    reason: String,
}

impl RequestHeader {
    /// Creates a header. Fails if its name or its value is not one of HTTP, or if the format of requests decides
    /// about it.
    pub fn new(name: &str, value: &str) -> Result<Self, InvalidHeader> {
        Self::check_name(name)?;
        let is_text = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        if !value.bytes().all(is_text) {
            let reason = format!("the value of `{name}` has characters that headers do not allow");
            return Err(InvalidHeader { reason });
        }
        let value = SecretString::from(value.to_owned());
        Ok(Self { name: name.to_ascii_lowercase(), value, secrets: Vec::new() })
    }

    /// Refuses a name that a request cannot have.
    pub fn check_name(name: &str) -> Result<(), InvalidHeader> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
        let reason = if name.is_empty() || !name.bytes().all(is_token) {
            "this is not a name of a header".to_owned()
        } else if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            "the format of requests decides about this header".to_owned()
        } else {
            return Ok(());
        };
        Err(InvalidHeader { reason })
    }

    /// Names a part of the value that is a secret.
    #[must_use]
    pub fn hiding(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(SecretString::from(secret.into()));
        self
    }

    /// The name in lower case.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value, which may hold secrets.
    pub fn expose_value(&self) -> &str {
        self.value.expose_secret()
    }

    /// The secrets in the value.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(|secret| secret.expose_secret())
    }
}

impl fmt::Debug for RequestHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RequestHeader").field(&self.name).finish()
    }
}
