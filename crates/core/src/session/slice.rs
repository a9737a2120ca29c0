//! What a slice is made of.
//!
//! A slice is an ordered, immutable sequence of items of one type. The type says under which name, in which version and
//! with which [`SlicePolicy`] the items are stored; `#[derive(Slice)]` writes that down. The name is a promise: it is what
//! snapshots and journals hold, and no Rust type name ever reaches them.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a slice when a call fails, and when a session is rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlicePolicy {
    /// Working state: rolled back with a failed call, restored by a rewind. The default.
    State,
    /// A truthful record of what happened: kept by both.
    Log,
    /// What can be computed again: never captured by default, dropped by both.
    Cache,
    /// The transcript: kept when a call fails, cut only by a rewind. It only ever grows by appending.
    Journal,
}

impl SlicePolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::State, Self::Log, Self::Cache, Self::Journal];
}

impl fmt::Display for SlicePolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::State => "state",
            Self::Log => "log",
            Self::Cache => "cache",
            Self::Journal => "journal",
        })
    }
}

/// A type whose values are the items of a slice.
///
/// ```
/// use backstitch_core::session::{Slice, SlicePolicy};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Measured {
///     centimetres: u32,
/// }
///
/// // `#[derive(Slice)] #[slice(name = "measured", policy = "log")]` of the crate `backstitch` writes this.
/// impl Slice for Measured {
///     const NAME: &'static str = "measured";
///     const POLICY: SlicePolicy = SlicePolicy::Log;
/// }
/// ```
pub trait Slice: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name under which the slice is stored. It must never change, and no other type may use it.
    const NAME: &'static str;

    /// The version of the stored form. Raise it when older items no longer parse, and give an upcaster.
    const VERSION: u32 = 1;

    /// The policy that holds unless a session says otherwise.
    const POLICY: SlicePolicy = SlicePolicy::State;

    /// Brings an item of an older version to the next one, as plain data. It is applied until [`Slice::VERSION`] is reached.
    fn upcast(version: u32, item: Value) -> Result<Value, UpcastError> {
        let _ = item;
        Err(UpcastError::new(format!("there is no upcaster from version {version}")))
    }
}

/// An upcaster could not bring an item to the next version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UpcastError {
    reason: String,
}

impl UpcastError {
    /// An error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// An event: a value that reducers turn into changes of slices. Routing is by the exact type.
///
/// Every slice item is an event as well, and without a reducer of its own it is appended to its own slice. Other types say
/// `impl Event for MyEvent {}`; dispatching one for which no reducer is registered is an error.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_core::id::IdStream;
/// use backstitch_core::session::{Event, Session, Slice, SliceOp};
/// use backstitch_core::time::FixedClock;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Row(u32);
/// impl Slice for Row {
///     const NAME: &'static str = "row";
/// }
///
/// struct Sewn {
///     rows: u32,
/// }
/// impl Event for Sewn {}
///
/// let ids = IdStream::from_seed([7; 32], Arc::new(FixedClock::default()));
/// let mut session = Session::new(ids.next(), ids.clock().clone());
/// session.register::<Row, Sewn>(|_, sewn, _| Ok(SliceOp::Append(Arc::new(Row(sewn.rows)))));
/// session.dispatch(Sewn { rows: 3 })?;
/// assert_eq!(session.latest::<Row>()?.map(|row| row.0), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Event: Send + Sync + 'static {
    /// The reducer that holds when none is registered.
    #[doc(hidden)]
    fn default_reducer() -> Option<DefaultReducer> {
        None
    }
}

impl<S: Slice> Event for S {
    fn default_reducer() -> Option<DefaultReducer> {
        Some(DefaultReducer(Arc::new(super::reducer::TypedReducer::<S, S, _>::new(
            super::reducer::append_all::<S>,
        ))))
    }
}

/// The reducer that an event type brings along. Only slices have one.
#[doc(hidden)]
pub struct DefaultReducer(pub(super) Arc<dyn super::reducer::ErasedReducer>);
