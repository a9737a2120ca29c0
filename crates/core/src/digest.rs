//! Digests of content.
//!
//! A [`Digest`] identifies content: a rendered request, a prompt's contract, a snapshot, a record chained to
//! the one before. It is BLAKE3, written `blake3:<64 hex digits>` so that the text names the algorithm.
//! Stored objects are not named by digests but by git's object ids; see [`crate::object`].

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::text_form::{shown_as_text, stored_as_text};

const PREFIX: &str = "blake3:";

/// The BLAKE3 digest of some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

shown_as_text!(Digest, "pattern": "^blake3:[0-9a-f]{64}$");
stored_as_text!(Digest, "a string");

/// The text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a digest (blake3: and 64 hex digits): {text:?}")]
pub struct InvalidDigest {
    /// The rejected text.
    pub text: String,
}

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Computes the digest of all bytes of a reader.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// Computes the digest of a value's JSON with sorted keys, so that key order and whitespace do not
    /// matter.
    ///
    /// RFC 8785 is not used, because it reads every number as a double: two different large integers would be one.
    pub fn of_json<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let mut value = serde_json::to_value(value)?;
        value.sort_all_objects();
        serde_json::to_vec(&value).map(|bytes| Self::of(&bytes))
    }

    /// Computes the digest of `bytes` chained to this one.
    #[must_use]
    pub fn chain(self, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(bytes);
        Self(*hasher.finalize().as_bytes())
    }

    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Restores a digest from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// Computes the digest of content that comes in pieces. A clone continues from the same place.
#[derive(Debug, Clone, Default)]
pub struct DigestStream(blake3::Hasher);

impl DigestStream {
    /// Adds bytes to the content.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Computes the digest of the content so far.
    pub fn digest(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(PREFIX)?;
        crate::hex::write(formatter, &self.0)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix(PREFIX)
            .and_then(crate::hex::parse)
            .map(Self)
            .ok_or_else(|| InvalidDigest { text: text.chars().take(80).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_change_a_json_digest() {
        let one: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":[2,3]}"#).unwrap();
        let other: serde_json::Value = serde_json::from_str(r#"{ "b": [2, 3], "a": 1 }"#).unwrap();
        assert_eq!(Digest::of_json(&one).unwrap(), Digest::of_json(&other).unwrap());
    }

    #[test]
    fn a_reader_has_the_digest_of_its_bytes() {
        let bytes = vec![7; 300_000];
        assert_eq!(Digest::of_reader(&bytes[..]).unwrap(), Digest::of(&bytes));
    }

    #[test]
    fn pieces_have_the_digest_of_their_content() {
        let mut stream = DigestStream::default();
        [&b"ba"[..], b"s", b"", b"ting"].into_iter().for_each(|piece| stream.push(piece));
        assert_eq!(stream.digest(), Digest::of(b"basting"));
        let mut other = stream.clone();
        other.push(b"!");
        assert_eq!((other.digest(), stream.digest()), (Digest::of(b"basting!"), Digest::of(b"basting")));
    }

    #[test]
    fn large_integers_are_told_apart() {
        let digest = |number: u64| Digest::of_json(&number).unwrap();
        assert_ne!(digest(9_007_199_254_740_993), digest(9_007_199_254_740_992));
    }

    #[test]
    fn a_chain_depends_on_all_before_it() {
        let start = Digest::of(b"");
        assert_ne!(start.chain(b"a").chain(b"b"), start.chain(b"ab"));
        assert_ne!(start.chain(b"a").chain(b"b"), start.chain(b"b").chain(b"a"));
    }

    #[test]
    fn digests_survive_their_text() {
        let digest = Digest::of(b"thread");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(serde_json::from_str::<Digest>(&serde_json::to_string(&digest).unwrap()).unwrap(), digest);
        for text in ["", "blake3:", "blake3:zz", "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
