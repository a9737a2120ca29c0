//! The session and the points of a command line, both of which may be left out.

use backstitch::PointSpec;
use backstitch::host::IdPart;
use backstitch::journal::SessionName;

use crate::usage::Usage;

/// A session and points of it, as they were typed. A first word that cannot name a session is a point of the latest one.
#[derive(Debug, PartialEq)]
pub(crate) struct SessionPoints {
    pub(crate) session: Option<String>,
    pub(crate) points: Vec<PointSpec>,
}

impl SessionPoints {
    /// Reads the words. Fails if one of them is not a point.
    pub(crate) fn of(words: impl IntoIterator<Item = Option<String>>) -> Result<Self, Usage> {
        let mut words = words.into_iter().flatten().peekable();
        let session = words.next_if(|word| is_session(word));
        let point = |word: String| word.parse().map_err(|error| Usage(format!("{error}")));
        Ok(Self { session, points: words.map(point).collect::<Result<_, _>>()? })
    }
}

/// Whether a word may be the id or the name of a session.
pub(crate) fn is_session(word: &str) -> bool {
    word.parse::<IdPart>().is_ok() || word.parse::<SessionName>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> (Option<String>, Vec<String>) {
        let words = words.iter().map(|word| Some((*word).to_owned()));
        let SessionPoints { session, points } = SessionPoints::of(words).unwrap();
        (session, points.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_first_word_is_a_session_unless_it_is_a_point() {
        let session = |name: &str| Some(name.to_owned());
        assert_eq!(read(&[]), (None, vec![]));
        assert_eq!(read(&["4f2a"]), (session("4f2a"), vec![]));
        assert_eq!(read(&["hem", "start"]), (session("hem"), vec!["start".to_owned()]));
        assert_eq!(read(&["start", "head"]), (None, vec!["start".to_owned(), "head".to_owned()]));
        assert_eq!(read(&["turn:2"]), (None, vec!["turn:2".to_owned()]));
        assert_eq!(read(&["12"]), (None, vec!["12".to_owned()]));
        assert!(SessionPoints::of([Some("4f2a".to_owned()), Some("no point".to_owned())]).is_err());
    }
}
