//! Addresses of media.
//!
//! A message never contains media, but a [`MediaUrl`]. It is either a web address (`http` or `https`, with a
//! host) or `blob:` with the id of a stored object. The text is kept unchanged, since a signed address is
//! valid only as it was signed.
//!
//! Everything else is refused: other schemes (`data:` would put bytes into the journal, `file:` and
//! `javascript:` would access the machine), relative addresses, and addresses with a user name or password,
//! which must not reach the journal. Addresses that parsers disagree on are refused too, such as
//! `https:host`, `https:///host`, and those with backslashes or spaces: the client that opens the address
//! must see the same host as the check that allowed it.

use std::sync::Arc;

use super::MessageError;
use crate::object::ObjectId;
use crate::text_form::{checked_text, stored_as_text};

const BLOB: &str = "blob:";

/// The address of a media item: `http`, `https` or `blob:`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MediaUrl {
    text: Arc<str>,
    object: Option<ObjectId>,
}

checked_text!(MediaUrl, MessageError);
stored_as_text!(MediaUrl, "a string");

impl MediaUrl {
    /// Largest length of an address, in bytes.
    pub const MAX_BYTES: usize = 8 * 1024;

    /// Checks and creates an address.
    pub fn new(text: impl AsRef<str>) -> Result<Self, MessageError> {
        let text = text.as_ref();
        let object = match text.strip_prefix(BLOB) {
            Some(id) => Some(id.parse().map_err(|source| MessageError::InvalidBlobUrl { source })?),
            None => {
                check_web(text)?;
                None
            }
        };
        Ok(Self { text: text.into(), object })
    }

    /// Creates the address of a stored object.
    pub fn blob(object: ObjectId) -> Self {
        Self { text: format!("{BLOB}{object}").into(), object: Some(object) }
    }

    /// Returns the object that holds the media, if this is a `blob:` address.
    pub fn object_id(&self) -> Option<ObjectId> {
        self.object
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn check_web(text: &str) -> Result<(), MessageError> {
    let illegal = |problem| Err(MessageError::IllegalMediaUrl { problem });
    let parsed = url::Url::parse(text).map_err(|source| MessageError::MalformedMediaUrl { source })?;
    if !matches!(parsed.scheme(), "http" | "https") {
        let scheme = parsed.scheme().chars().take(32).collect();
        return Err(MessageError::UnsupportedMediaUrl { scheme });
    }
    if text.len() > MediaUrl::MAX_BYTES {
        return illegal("is longer than 8 KiB");
    }
    if text.chars().any(|character| character.is_whitespace() || character.is_control() || character == '\\')
    {
        return illegal("holds a space, a control character or a backslash");
    }
    // The parser accepts a missing or a third slash, and then finds a host where other parsers find none.
    let authority =
        text.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        None | Some("") => illegal("has no host"),
        Some(authority) if authority.contains('@') => Err(MessageError::MediaUrlWithCredentials),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;

    #[test]
    fn web_addresses_are_kept_as_they_were_given() {
        for text in [
            "http://example.org",
            "HTTPS://Example.ORG:443/a/../b%20c?sig=AbC%2f#top",
            "https://bücher.example/ö",
            "http://[::1]:8080/x",
            "https://example.org/@name?mail=a@b#c@d",
            "https://example.org?next=http://other.example/",
        ] {
            let url = MediaUrl::new(text).unwrap();
            assert_eq!(url.as_str(), text);
            assert_eq!(url.object_id(), None);
            assert_eq!(serde_json::from_str::<MediaUrl>(&serde_json::to_string(&url).unwrap()).unwrap(), url);
        }
    }

    #[test]
    fn blob_addresses_name_an_object() {
        let id = Object::blob(*b"picture").id();
        let url = MediaUrl::blob(id);
        assert_eq!(url.object_id(), Some(id));
        assert_eq!(MediaUrl::new(url.as_str()).unwrap(), url);
        for text in ["blob:", "blob:1234", "blob:https://example.org/7c1b", &format!("blob: {id}")] {
            assert!(matches!(MediaUrl::new(text), Err(MessageError::InvalidBlobUrl { .. })), "{text}");
        }
        assert!(MediaUrl::new(format!("BLOB:{id}")).is_err());
    }

    #[test]
    fn other_schemes_are_refused_by_name() {
        for (text, scheme) in [
            ("data:image/png;base64,AAAA", "data"),
            ("file:///etc/passwd", "file"),
            ("javascript:alert(1)", "javascript"),
            ("ftp://example.org/x", "ftp"),
            ("s3://bucket/key", "s3"),
        ] {
            let error = MediaUrl::new(text).unwrap_err();
            assert!(
                matches!(&error, MessageError::UnsupportedMediaUrl { scheme: found } if found == scheme),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_absolute_address_is_refused() {
        for text in
            ["", "picture.png", "/picture.png", "//example.org/x", "http://", "https://:80/", "http://[::1"]
        {
            assert!(matches!(MediaUrl::new(text), Err(MessageError::MalformedMediaUrl { .. })), "{text}");
        }
        let long = format!("https://example.org/{}", "a".repeat(MediaUrl::MAX_BYTES));
        for text in [
            "https:example.org",
            "https:/example.org",
            "https:///example.org/x",
            "https:\\\\example.org\\x",
            " https://example.org",
            "https://example.org/a b",
            "https://example.org/\nx-header: y",
            &long,
        ] {
            assert!(matches!(MediaUrl::new(text), Err(MessageError::IllegalMediaUrl { .. })), "{text}");
        }
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        for text in ["https://ada:hunter2@example.org/x", "http://hunter2@example.org", "http://@example.org"]
        {
            let error = MediaUrl::new(text).unwrap_err();
            assert!(matches!(error, MessageError::MediaUrlWithCredentials), "{text}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
