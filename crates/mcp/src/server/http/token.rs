//! The token that a client over HTTP has to send.

use std::fmt;

use subtle::ConstantTimeEq as _;

/// The shortest token that a person may choose, in bytes.
const SHORTEST: usize = 16;

/// The longest one. Headers have limits.
const LONGEST: usize = 512;

/// A secret that clients send with each request. It is not shown by `Debug`.
#[derive(Clone)]
pub struct AccessToken(String);

/// Why a text is not a token. It does not contain the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// It is too short or too long.
    #[error("it has {length} characters; use {SHORTEST} to {LONGEST}")]
    Length {
        /// The number of bytes.
        length: usize,
    },
    /// It has characters that a header cannot hold.
    #[error("it may only have letters, digits and the characters - . _ ~ + / =")]
    Characters,
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(String),
}

impl AccessToken {
    /// Takes a token that was chosen elsewhere.
    pub fn new(text: &str) -> Result<Self, InvalidToken> {
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            return Err(InvalidToken::Length { length: text.len() });
        }
        // The characters of a token in the header, RFC 6750.
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !text.bytes().all(is_allowed) {
            return Err(InvalidToken::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// Creates a token of 256 random bits.
    pub fn random() -> Result<Self, InvalidToken> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| InvalidToken::Random(error.to_string()))?;
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok(Self(digits.collect()))
    }

    /// Returns the text, for the person who starts the server.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares in a time that depends on the lengths only.
    pub(super) fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AccessToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_as_a_whole_and_never_shown() {
        let token = AccessToken::new("thimble-thimble-7").unwrap();
        assert!(token.is("thimble-thimble-7"));
        for wrong in ["", "thimble-thimble-", "thimble-thimble-8", "thimble-thimble-77"] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "AccessToken(..)");
    }

    #[test]
    fn texts_that_no_header_holds_are_refused() {
        for wrong in ["short", "with a space in the middle", "line\nbreak-line-break", "ünïcode-ünïcode"]
        {
            let error = AccessToken::new(wrong).unwrap_err().to_string();
            assert!(!error.contains(wrong), "{error}");
        }
        let made = [AccessToken::random().unwrap(), AccessToken::random().unwrap()];
        assert_eq!(made[0].expose().len(), 64);
        assert_ne!(made[0].expose(), made[1].expose());
    }
}
