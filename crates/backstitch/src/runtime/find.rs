//! Sessions by the words that people type: the beginning or the end of an id, a name, or none for the latest one.

use std::fmt;
use std::str::FromStr;

use super::Runtime;
use crate::RuntimeError;
use crate::code::ErrorCode;
use crate::id::SessionId;
use crate::journal::{Origin, Position, RecordBody, SessionName, TagChange};
use crate::ports::{SessionQuery, StoreError};
use crate::report::{NamedSession, TaggedSession, Version};

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
    /// No session has this name.
    #[error("there is no session with the name {name}")]
    NotNamed {
        /// The name.
        name: SessionName,
    },
    /// More than one session has this name, because some were imported.
    #[error("{count} sessions have the name {name}; type an id")]
    SharedName {
        /// The name.
        name: SessionName,
        /// The number of sessions.
        count: usize,
    },
    /// The store has no sessions.
    #[error("there is no session yet")]
    Empty,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sessions could not be listed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl FindError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotAnId { .. } => ErrorCode::Usage,
            Self::NotFound { .. } | Self::NotNamed { .. } | Self::Empty => ErrorCode::SessionNotFound,
            Self::Ambiguous { .. } | Self::SharedName { .. } => ErrorCode::SessionAmbiguous,
            Self::Store(error) => error.code(),
            Self::Runtime(error) => error.code(),
        }
    }
}

/// A session cannot get a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Another session of the store has the name.
    #[error("session {session} has the name {name}")]
    Taken {
        /// The name.
        name: SessionName,
        /// The other session.
        session: SessionId,
    },
    /// The session or the store failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl NameError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Taken { .. } => ErrorCode::AlreadyExists,
            Self::Runtime(error) => error.code(),
        }
    }
}

impl Runtime {
    /// Finds a session by its id, by at least 4 characters of its beginning or end, or by its name.
    pub async fn find_session(&self, name: &str) -> Result<SessionId, FindError> {
        if let Ok(name) = name.parse::<SessionName>() {
            return match self.named_sessions(&name).await?[..] {
                [one] => Ok(one),
                [] => Err(FindError::NotNamed { name }),
                ref several => Err(FindError::SharedName { name, count: several.len() }),
            };
        }
        let part: IdPart = name.parse()?;
        let sessions = self.store.store.sessions().await?;
        let matching: Vec<SessionId> = sessions.into_iter().filter(|id| part.matches(id)).collect();
        match matching[..] {
            [one] => Ok(one),
            [] => Err(FindError::NotFound { part }),
            ref several => Err(FindError::Ambiguous { part, count: several.len() }),
        }
    }

    /// Gives a session a name, which leads to it wherever its id does, or removes its name. A fork does not inherit it. Fails if
    /// another session has the name, or if another process drives the session.
    ///
    /// ```
    /// use backstitch::journal::SessionName;
    /// use backstitch::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::in_memory();
    /// let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = 'Done.'")?;
    /// let run = runtime.start(&Agent::new("tailor").policy(policy), "Mend the coat.").await?;
    /// run.outcome().await?;
    /// let name: SessionName = "coat".parse()?;
    /// runtime.name_session(run.session(), Some(&name)).await?;
    /// assert_eq!(runtime.find_session("coat").await?, run.session());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn name_session(
        &self,
        session: SessionId,
        name: Option<&SessionName>,
    ) -> Result<NamedSession, NameError> {
        if let Some(name) = name {
            self.check_name(name, Some(session)).await?;
        }
        let note = name.map_or_else(SessionName::removal, SessionName::note);
        self.add_note(session, note).await?;
        Ok(NamedSession { v: Version, session, name: name.map(ToString::to_string) })
    }

    /// Fails if a session has a name already, other than this one.
    pub async fn check_name(&self, name: &SessionName, session: Option<SessionId>) -> Result<(), NameError> {
        match self.named_sessions(name).await?.into_iter().find(|other| Some(*other) != session) {
            Some(session) => Err(NameError::Taken { name: name.clone(), session }),
            None => Ok(()),
        }
    }

    /// Sets and removes tags of a session, together. A fork that is made later has them too, and a rewind keeps them. Fails if another process
    /// drives the session.
    ///
    /// ```
    /// use backstitch::journal::TagChange;
    /// use backstitch::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::in_memory();
    /// let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = 'Done.'")?;
    /// let run = runtime.start(&Agent::new("tailor").policy(policy), "Mend the coat.").await?;
    /// run.outcome().await?;
    /// let tagged = runtime.tag_session(run.session(), &[TagChange::set("customer", "ada")?]).await?;
    /// assert_eq!(tagged.tags["customer"], "ada");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn tag_session(
        &self,
        session: SessionId,
        changes: &[TagChange],
    ) -> Result<TaggedSession, RuntimeError> {
        if !changes.is_empty() {
            self.add_notes(session, changes.iter().map(TagChange::note).collect()).await?;
        }
        let tags = self.view(session).await?.tags().clone();
        Ok(TaggedSession { v: Version, session, tags })
    }

    async fn named_sessions(&self, name: &SessionName) -> Result<Vec<SessionId>, RuntimeError> {
        let page = self.sessions(SessionQuery::new().with_name(name.as_str())).await?;
        Ok(page.sessions.iter().map(|session| session.id()).collect())
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
