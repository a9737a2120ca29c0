//! Claims and inboxes beside the index: who holds a session, and whether something waits for it.
//!
//! A short page looks up each of its sessions. A long one reads all claims that are held and all inboxes first:
//! few sessions have either, and one pass over both is cheaper than two lookups for each session.

use std::collections::{HashMap, HashSet};

use backstitch_core::ports::Owner;
use rusqlite::{Connection, Row};

use super::error::Failure;
use super::sql::{first, rows};

/// How many sessions a page has at least if claims and inboxes are read first.
const MANY: usize = 500;

/// A claim that was not given back.
#[derive(Clone)]
pub(super) struct HeldClaim {
    pub(super) fence: i64,
    pub(super) owner: Owner,
}

impl HeldClaim {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { fence: row.get(0)?, owner: Owner::new(row.get::<_, String>(1)?) })
    }
}

/// Where the presence of sessions is looked up.
pub(super) enum Presences<'a> {
    /// In the store.
    Stored(&'a Connection),
    /// In what was read first.
    Loaded { held: HashMap<String, HeldClaim>, waiting: HashSet<String> },
}

impl<'a> Presences<'a> {
    /// Prepares the lookups for so many sessions.
    pub(super) fn of(connection: &'a Connection, sessions: usize) -> Result<Self, Failure> {
        if sessions < MANY {
            return Ok(Self::Stored(connection));
        }
        let sql = "SELECT fence, owner, session FROM claims WHERE owner IS NOT NULL";
        let held = rows(connection, sql, [], |row| Ok((row.get(2)?, HeldClaim::read(row)?)))?;
        let waiting = rows(connection, "SELECT DISTINCT session FROM inbox", [], |row| Ok(row.get(0)?))?;
        Ok(Self::Loaded { held, waiting })
    }

    /// The claim of a session, given by its id in the stored form.
    pub(super) fn claim(&self, session: &str) -> Result<Option<HeldClaim>, Failure> {
        match self {
            Self::Loaded { held, .. } => Ok(held.get(session).cloned()),
            Self::Stored(connection) => {
                let sql = "SELECT fence, owner FROM claims WHERE session = ?1 AND owner IS NOT NULL";
                first(connection, sql, [session], HeldClaim::read)
            }
        }
    }

    /// Whether something waits for a session.
    pub(super) fn is_waited_for(&self, session: &str) -> Result<bool, Failure> {
        match self {
            Self::Loaded { waiting, .. } => Ok(waiting.contains(session)),
            Self::Stored(connection) => {
                let sql = "SELECT EXISTS (SELECT 1 FROM inbox WHERE session = ?1)";
                Ok(connection.prepare_cached(sql)?.query_row([session], |row| row.get(0))?)
            }
        }
    }
}
