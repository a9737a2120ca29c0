//! Sessions by the names that people type: the beginning or the end of an id, or the latest one.

use std::fmt;
use std::str::FromStr;

use super::Runtime;
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::journal::{Origin, Position, RecordBody};
use crate::ports::StoreError;

/// Minimum length of a part of an id. An empty one, such as an unset variable of a script, would match every id.
const SHORTEST: usize = 4;

/// The beginning or the end of an id.
///
/// ```
/// use backstitch::host::IdPart;
///
/// let part: IdPart = "00000000002A".parse()?;
/// assert!(part.matches("01890a5d-ac96-774b-bcce-00000000002a"));
/// assert!("x".parse::<IdPart>().is_err());
/// # Ok::<(), backstitch::host::FindError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPart(String);

impl IdPart {
    /// Returns whether an id begins or ends with this part.
    pub fn matches(&self, id: impl fmt::Display) -> bool {
        let id = id.to_string();
        id.starts_with(&self.0) || id.ends_with(&self.0)
    }
}

impl FromStr for IdPart {
    type Err = FindError;

    fn from_str(name: &str) -> Result<Self, FindError> {
        let is_of_id = name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if name.len() < SHORTEST || !is_of_id {
            return Err(FindError::NotAnId { name: name.to_owned() });
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for IdPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A name does not lead to a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The name cannot be a part of an id.
    #[error("{name:?} is not an id: type at least {SHORTEST} characters of its beginning or its end")]
    NotAnId {
        /// The name.
        name: String,
    },
    /// No session has such an id.
    #[error("there is no session {part}")]
    NotFound {
        /// The part of the id.
        part: IdPart,
    },
    /// More than one session has such an id.
    #[error("`{part}` matches {count} sessions; type more of the id")]
    Ambiguous {
        /// The part of the id.
        part: IdPart,
        /// The number of sessions.
        count: usize,
    },
    /// The store has no sessions.
    #[error("there is no session yet")]
    Empty,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FindError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotAnId { .. } => ErrorCode::Usage,
            Self::NotFound { .. } | Self::Empty => ErrorCode::SessionNotFound,
            Self::Ambiguous { .. } => ErrorCode::SessionAmbiguous,
            Self::Store(error) => error.code(),
        }
    }
}

impl Runtime {
    /// Finds a session by its id, or by at least 4 characters of its beginning or end.
    pub async fn find_session(&self, name: &str) -> Result<SessionId, FindError> {
        let part: IdPart = name.parse()?;
        let sessions = self.store.store.sessions().await?;
        let matching: Vec<SessionId> = sessions.into_iter().filter(|id| part.matches(id)).collect();
        match matching[..] {
            [one] => Ok(one),
            [] => Err(FindError::NotFound { part }),
            ref several => Err(FindError::Ambiguous { part, count: several.len() }),
        }
    }

    /// Returns the session that was created last. Child sessions of calls do not count.
    pub async fn latest_session(&self) -> Result<SessionId, FindError> {
        let store = &self.store.store;
        for session in store.sessions().await?.into_iter().rev() {
            let first = store.read(session, Position::START, 1).await?;
            let is_below = first.first().is_some_and(|record| {
                matches!(&record.body, RecordBody::SessionCreated(created) if matches!(created.origin, Origin::Call { .. }))
            });
            if !is_below {
                return Ok(session);
            }
        }
        Err(FindError::Empty)
    }
}
