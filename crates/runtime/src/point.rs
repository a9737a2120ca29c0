//! Points of a session, as people write them.

use std::fmt;
use std::str::FromStr;

use backstitch_core::journal::Position;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most digits of a position.
const POSITION_DIGITS: usize = 9;

/// A point of a session, as people write it.
///
/// ```
/// use backstitch_runtime::PointSpec;
///
/// let point: PointSpec = "before:0198a7c0".parse()?;
/// assert_eq!(point, PointSpec::Before("0198a7c0".into()));
/// assert_eq!(PointSpec::Turn(3).to_string(), "turn:3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointSpec {
    /// Before the first evaluation.
    Start,
    /// The end of the journal.
    Head,
    /// A position of the journal: all records before it.
    Position(Position),
    /// Before a call, which then runs again. The call is named by the beginning or the end of its id.
    Before(String),
    /// After a call.
    After(String),
    /// The end of a turn of the latest evaluation.
    Turn(u64),
    /// The files that a record saved before they were restored. The conversation stays as it is.
    Rescue(Position),
}

/// An error for a text that is not a point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a point: say a position (12), before:CALL, after:CALL, CALL, turn:N, start, head or rescue:POSITION"
)]
pub struct InvalidPoint(String);

impl FromStr for PointSpec {
    type Err = InvalidPoint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidPoint(text.chars().take(80).collect());
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| invalid());
        let call = |name: &str| {
            if is_call_name(name) { Ok(name.to_ascii_lowercase()) } else { Err(invalid()) }
        };
        match text.split_once(':') {
            Some(("before", name)) => call(name).map(Self::Before),
            Some(("after", name)) => call(name).map(Self::After),
            Some(("turn", digits)) => number(digits).map(Self::Turn),
            Some(("rescue", digits)) => number(digits).map(Position::new).map(Self::Rescue),
            Some(_) => Err(invalid()),
            None if text == "start" => Ok(Self::Start),
            None if text == "head" => Ok(Self::Head),
            None if is_position(text) => number(text).map(Position::new).map(Self::Position),
            None => call(text).map(Self::After),
        }
    }
}

impl Serialize for PointSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PointSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// True for a position. A long run of digits is the end of a call id.
fn is_position(text: &str) -> bool {
    (1..=POSITION_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if this may be a part of a call's id. A minimum length is required, since one character would match a
/// sixteenth of all calls.
pub(crate) fn is_call_name(name: &str) -> bool {
    name.len() >= 4 && name.len() <= 36 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

impl fmt::Display for PointSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => formatter.write_str("start"),
            Self::Head => formatter.write_str("head"),
            Self::Position(position) => write!(formatter, "{position}"),
            Self::Before(call) => write!(formatter, "before:{call}"),
            Self::After(call) => write!(formatter, "after:{call}"),
            Self::Turn(turn) => write!(formatter, "turn:{turn}"),
            Self::Rescue(position) => write!(formatter, "rescue:{position}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_and_shown() {
        for text in ["start", "head", "12", "before:0198a", "after:0198a", "turn:3", "rescue:7"] {
            assert_eq!(text.parse::<PointSpec>().unwrap().to_string(), text);
        }
        assert_eq!("0198a".parse::<PointSpec>().unwrap(), PointSpec::After("0198a".into()));
        // Short ids have twelve characters, which may all be digits.
        assert_eq!("907374788406".parse::<PointSpec>().unwrap(), PointSpec::After("907374788406".into()));
        for text in ["", "x", "before:", "turn:x", "after:zz", "side:3", "-1", "ab", &"9".repeat(40)] {
            assert!(text.parse::<PointSpec>().is_err(), "{text}");
        }
    }
}
