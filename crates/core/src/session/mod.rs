//! Session: the typed state of an agent.
//!
//! A session is a set of [slices](Slice), ordered sequences of items of one type each. Slices change by
//! *events*: reducers turn an event into changes, which are applied atomically. A [`Snapshot`] is a clone in
//! constant time. A tool call works on a [`Draft`], which is committed or dropped as a whole. The
//! [policy](SlicePolicy) of each slice defines how a rollback and a rewind affect it.
//!
//! ```
//! use std::sync::Arc;
//! use backstitch_core::{id::{IdStream, SessionId}, session::{Session, Slice}, time::FixedClock};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Finding { text: String }
//! impl Slice for Finding { const NAME: &'static str = "finding"; }
//!
//! let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
//! let mut session = Session::new(ids.next::<SessionId>(), ids.clock().clone());
//! session.append(Finding { text: "the seam holds".into() })?;
//! let snapshot = session.snapshot();
//! session.append(Finding { text: "a loose end".into() })?;
//! session.rollback(&snapshot)?;
//! assert_eq!(session.all::<Finding>()?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod draft;
pub(crate) mod encode;
mod error;
mod items;
mod observer;
mod op;
mod pages;
mod provenance;
mod query;
mod reducer;
mod registry;
mod rollback;
mod slice;
mod snapshot;
mod state;
mod stored;
mod transcript;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

pub use draft::{Draft, PendingNotifications, PreparedCommit};
pub use error::{BoxError, SessionError, SnapshotMismatchError, SnapshotRestoreError};
pub use items::Items;
pub use observer::Observation;
pub use op::{ItemsOp, SliceOp, StoredChange, StoredOp};
pub use reducer::{
    Change, ReducerContext, ReducerResult, append_all, replace_latest, replace_latest_by, upsert_by,
};
#[doc(hidden)]
pub use slice::DefaultReducer;
pub use slice::{Event, Slice, SlicePolicy, UpcastError};
pub use snapshot::{CaptureOptions, Snapshot};
pub use stored::{SNAPSHOT_VERSION, StoredSlice};
pub use transcript::{MAX_TURN, SequenceError, inner_message_append};

use crate::id::{IdStream, SessionId};
use crate::time::{Clock, Timestamp};
pub(crate) use cell::Cell;
use observer::Observer;
pub(crate) use pages::PageHeader;
pub(crate) use provenance::{CarriedProvenance, ProvenanceSource};
use query::Memo;
use registry::Registry;
pub(crate) use state::SliceMap;
pub(crate) use transcript::{MessageSlot, place_after, stands_at};

/// Identity and relations of a session. Its fields are stored as a part of snapshots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The session's id.
    #[serde(rename = "session_id")]
    pub id: SessionId,
    /// Time of creation.
    #[serde(rename = "session_created_at")]
    pub created_at: Timestamp,
    /// Free labels.
    #[serde(default, rename = "session_tags")]
    pub tags: BTreeMap<String, String>,
    /// The session that this one was forked from, or whose call it is a child session of.
    #[serde(default, rename = "parent_id")]
    pub parent: Option<SessionId>,
    /// The forks and child sessions of this one.
    #[serde(default, rename = "children_ids")]
    pub children: Vec<SessionId>,
}

/// The typed state of an agent.
///
/// A clone has the same reducers, policies and items, and changes independently from then on. It does not
/// share observers or the provenance of the original's journal.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_core::id::IdStream;
/// use backstitch_core::session::{Session, Slice};
/// use backstitch_core::time::FixedClock;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Finding(String);
/// impl Slice for Finding {
///     const NAME: &'static str = "finding";
/// }
///
/// let ids = IdStream::from_seed([7; 32], Arc::new(FixedClock::default()));
/// let mut session = Session::new(ids.next(), ids.clock().clone());
/// session.append(Finding("the seam holds".into()))?;
/// let snapshot = session.snapshot();
/// session.append(Finding("a loose end".into()))?;
/// session.rollback(&snapshot)?;
/// assert_eq!(session.all::<Finding>()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    info: Arc<SessionInfo>,
    ids: IdStream,
    registry: Arc<Registry>,
    state: SliceMap,
    /// Identifies this state among all states of all sessions of this process, so that equality is one
    /// comparison.
    generation: u64,
    observers: Vec<Observer>,
    /// Provenance that snapshots carry in addition to slices.
    carried: CarriedProvenance,
    memo: Mutex<Memo>,
}

impl Session {
    /// Creates an empty session.
    pub fn new(id: SessionId, clock: Arc<dyn Clock>) -> Self {
        let created_at = clock.now();
        let info = SessionInfo { id, created_at, tags: BTreeMap::new(), parent: None, children: Vec::new() };
        Self::with_state(info, IdStream::new(id, 0, clock), SliceMap::default())
    }

    /// Creates a session with this identity and state. The id stream must be that of the session, opened at
    /// its journal's position.
    pub(crate) fn with_state(info: SessionInfo, ids: IdStream, state: SliceMap) -> Self {
        Self {
            info: Arc::new(info),
            ids,
            registry: Arc::default(),
            state,
            generation: next_generation(),
            observers: Vec::new(),
            carried: CarriedProvenance::Nothing,
            memo: Mutex::default(),
        }
    }

    /// Id of the session.
    pub fn id(&self) -> SessionId {
        self.info.id
    }

    /// Identity and relations of the session.
    pub fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// The stream that creates the session's ids.
    pub fn ids(&self) -> &IdStream {
        &self.ids
    }

    /// Sets a label and replaces an earlier one of the same name.
    pub fn set_tag(&mut self, name: impl Into<String>, value: impl Into<String>) {
        Arc::make_mut(&mut self.info).tags.insert(name.into(), value.into());
    }

    /// Creates an independent session with the current state: another id, another id stream, this session as
    /// its parent.
    #[must_use]
    pub fn fork(&self, id: SessionId) -> Self {
        let mut fork = self.clone();
        fork.ids = IdStream::new(id, 0, self.ids.clock().clone());
        fork.info = Arc::new(SessionInfo {
            id,
            created_at: self.ids.clock().now(),
            tags: self.info.tags.clone(),
            parent: Some(self.info.id),
            children: Vec::new(),
        });
        fork
    }

    /// Records a fork or child session.
    pub fn add_child(&mut self, child: SessionId) {
        if !self.info.children.contains(&child) {
            Arc::make_mut(&mut self.info).children.push(child);
        }
    }

    /// Replaces the whole state by that of a journal.
    pub(crate) fn adopt(&mut self, journaled: &SliceMap) {
        self.forget_computed();
        self.set_state(self.with_policies(journaled));
    }

    /// Returns the state with the policies of the session in place of those at the time of each journaled
    /// change.
    fn with_policies(&self, journaled: &SliceMap) -> SliceMap {
        let mut state = journaled.clone();
        for (name, policy) in self.registry.policies() {
            if state.cell(name).is_some_and(|cell| cell.policy() != policy) {
                state.set_policy(name, policy);
            }
        }
        state
    }

    pub(super) fn set_state(&mut self, state: SliceMap) {
        self.state = state;
        self.generation = next_generation();
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Self {
            info: self.info.clone(),
            ids: self.ids.clone(),
            registry: self.registry.clone(),
            state: self.state.clone(),
            generation: self.generation,
            observers: Vec::new(),
            carried: CarriedProvenance::Nothing,
            memo: Mutex::default(),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Session");
        shown.field("id", &self.info.id).field("slices", &self.state).finish()
    }
}

fn next_generation() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
