//! Tags of sessions that are changed after their start.
//!
//! A session begins with the tags of its first record. Each later change is a [`Note`], so tags move with the session to other stores, and a rewind
//! keeps them. Journals come from other people too, so a change is checked where it is read.

use std::collections::BTreeMap;

use super::lifecycle::Note;
use super::record::RecordBody;

/// Keys by which programs recognize their sessions. They are set when a session starts, and never changed.
const RESERVED: [&str; 3] = ["guard", "guard.session", "mcp"];

/// A change of one tag of a session.
///
/// ```
/// use backstitch_core::journal::TagChange;
///
/// assert!(TagChange::set("team", "a").is_ok());
/// assert!(TagChange::set("a=b", "c").is_err());
/// assert!(TagChange::remove("guard").is_err(), "a program recognizes its sessions by it");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagChange {
    key: String,
    /// The new value. `None` removes the tag.
    value: Option<String>,
}

/// Why a tag cannot be set or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TagRefused {
    /// The key or the value is too short or too long.
    #[error(
        "the key of a tag has 1 to {} characters, and its value at most {}",
        TagChange::LONGEST_KEY,
        TagChange::LONGEST_VALUE
    )]
    Length,
    /// The key or the value has a character that tags do not have.
    #[error("a tag is one line, and its key has no `=`")]
    Character,
    /// A program recognizes its sessions by the key.
    #[error("the tag {key} says which program a session belongs to, and is not changed")]
    Reserved {
        /// The key.
        key: String,
    },
}

impl TagChange {
    /// The most characters of a key.
    pub const LONGEST_KEY: usize = 100;

    /// The most characters of a value.
    pub const LONGEST_VALUE: usize = 500;

    /// Topic of the notes that change tags.
    pub const TOPIC: &str = "tag";

    /// A tag that is added, or gets another value.
    pub fn set(key: impl Into<String>, value: impl Into<String>) -> Result<Self, TagRefused> {
        Self::checked(key.into(), Some(value.into()))
    }

    /// A tag that is removed.
    pub fn remove(key: impl Into<String>) -> Result<Self, TagRefused> {
        Self::checked(key.into(), None)
    }

    fn checked(key: String, value: Option<String>) -> Result<Self, TagRefused> {
        let text = value.as_deref().unwrap_or_default();
        if key.is_empty()
            || key.chars().count() > Self::LONGEST_KEY
            || text.chars().count() > Self::LONGEST_VALUE
        {
            return Err(TagRefused::Length);
        }
        if key.contains('=') || key.chars().chain(text.chars()).any(char::is_control) {
            return Err(TagRefused::Character);
        }
        if RESERVED.contains(&key.as_str()) {
            return Err(TagRefused::Reserved { key });
        }
        Ok(Self { key, value })
    }

    /// The key of the tag.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the note that changes the tag: `KEY=VALUE`, or `KEY` if it is removed.
    pub fn note(&self) -> Note {
        let text = match &self.value {
            Some(value) => format!("{}={value}", self.key),
            None => self.key.clone(),
        };
        Note::new(Self::TOPIC, text)
    }

    /// Returns the change that a note describes.
    fn of(note: &Note) -> Option<Self> {
        if note.topic != Self::TOPIC {
            return None;
        }
        match note.text.split_once('=') {
            Some((key, value)) => Self::set(key, value).ok(),
            None => Self::remove(note.text.as_str()).ok(),
        }
    }

    /// Changes tags as a note says, if it is about them.
    pub fn apply_note(note: &Note, tags: &mut BTreeMap<String, String>) {
        match Self::of(note) {
            Some(Self { key, value: Some(value) }) => _ = tags.insert(key, value),
            Some(Self { key, value: None }) => _ = tags.remove(&key),
            None => {}
        }
    }

    /// Returns whether a record changes tags.
    pub(super) fn is_in(body: &RecordBody) -> bool {
        matches!(body, RecordBody::Note(note) if note.topic == Self::TOPIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_change_tags_and_hostile_ones_do_not() {
        let mut tags = BTreeMap::from([("guard".to_owned(), "codex".to_owned())]);
        let mut after = |text: &str| {
            TagChange::apply_note(&Note::new(TagChange::TOPIC, text), &mut tags);
            tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(after("team=a"), "guard=codex team=a");
        assert_eq!(after("team=b=c"), "guard=codex team=b=c");
        assert_eq!(after("empty="), "empty= guard=codex team=b=c");
        assert_eq!(after("team"), "empty= guard=codex");
        for hostile in ["guard", "guard=other", "=x", "", "red=\u{1b}[31m", "two\nlines=1"] {
            assert_eq!(after(hostile), "empty= guard=codex", "{hostile:?}");
        }
        assert_eq!(after(&format!("{}=x", "k".repeat(101))), "empty= guard=codex");
    }

    #[test]
    fn a_note_says_what_the_change_is() {
        let set = TagChange::set("team", "a=b").unwrap();
        assert_eq!(TagChange::of(&set.note()), Some(set));
        let removed = TagChange::remove("team").unwrap();
        assert_eq!(TagChange::of(&removed.note()), Some(removed));
        assert_eq!(TagChange::of(&Note::new("name", "team=a")), None);
    }
}
