//! Names of sessions: words that people choose, and type in place of ids.
//!
//! A name is a [`Note`] of its session, so it moves with the session to other stores, and a later one replaces it. Journals come from
//! other people too, so a name is checked where it is read: one that could be taken for an id, a point or an option, or
//! that could control a terminal, is not a name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::lifecycle::Note;

/// The name of a session.
///
/// ```
/// use backstitch_core::journal::SessionName;
///
/// assert!("hem-of-the-coat".parse::<SessionName>().is_ok());
/// assert!("the hem".parse::<SessionName>().is_err());
/// assert!("4f2a".parse::<SessionName>().is_err(), "it could be a part of an id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionName(Arc<str>);

/// Why a text is not a name of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRefused {
    /// It is too short or too long.
    #[error("a name has {} to {} characters", SessionName::SHORTEST, SessionName::LONGEST)]
    Length,
    /// It has a character that names do not have, or begins with one.
    #[error(
        "a name has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit: write `-` in place of spaces"
    )]
    Character,
    /// It could be a part of an id.
    #[error("a name has a letter that ids do not have: one after f")]
    LikeId,
    /// It is a point of every session.
    #[error("`head` and `start` are points of every session")]
    LikePoint,
}

impl SessionName {
    /// The fewest characters of a name.
    pub const SHORTEST: usize = 2;

    /// The most characters of a name.
    pub const LONGEST: usize = 60;

    /// Topic of the notes that name a session.
    pub const TOPIC: &str = "name";

    /// Returns the name as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the note that gives a session this name.
    pub fn note(&self) -> Note {
        Note::new(Self::TOPIC, self.as_str())
    }

    /// Returns the note that removes the name of a session.
    pub fn removal() -> Note {
        Note::new(Self::TOPIC, "")
    }

    /// Returns the name that a note leaves to its session, if the note is about names.
    pub(crate) fn left_by(note: &Note) -> Option<Option<Arc<str>>> {
        let is_one = note.topic == Self::TOPIC;
        is_one.then(|| note.text.parse().ok().map(|Self(name)| name))
    }
}

impl FromStr for SessionName {
    type Err = NameRefused;

    fn from_str(text: &str) -> Result<Self, NameRefused> {
        if !(Self::SHORTEST..=Self::LONGEST).contains(&text.chars().count()) {
            return Err(NameRefused::Length);
        }
        let is_part = |character: char| character.is_alphanumeric() || "-_.".contains(character);
        if !text.chars().all(is_part) || !text.starts_with(char::is_alphanumeric) {
            return Err(NameRefused::Character);
        }
        if text.chars().all(|character| character.is_ascii_hexdigit() || "-_.".contains(character)) {
            return Err(NameRefused::LikeId);
        }
        if ["head", "start"].contains(&text) {
            return Err(NameRefused::LikePoint);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_taken_for_something_else() {
        let refusal = |text: &str| text.parse::<SessionName>().err();
        for name in ["hem", "Hem_2", "v1.5-release", "größe", "裾上げ", "fix-tests"] {
            assert_eq!(refusal(name), None, "{name}");
        }
        for (text, why) in [
            ("", NameRefused::Length),
            ("x", NameRefused::Length),
            ("--all", NameRefused::Character),
            ("the hem", NameRefused::Character),
            ("turn:2", NameRefused::Character),
            ("red\u{1b}[31m", NameRefused::Character),
            ("up/there", NameRefused::Character),
            ("\u{202e}hem", NameRefused::Character),
            ("4f2a", NameRefused::LikeId),
            ("dead-beef", NameRefused::LikeId),
            ("12", NameRefused::LikeId),
            ("head", NameRefused::LikePoint),
        ] {
            assert_eq!(refusal(text), Some(why), "{text}");
        }
        assert_eq!(refusal(&"z".repeat(61)), Some(NameRefused::Length));
    }
}
