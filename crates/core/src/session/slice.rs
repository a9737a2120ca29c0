//! Types of slices and events.
//!
//! A slice is an ordered, immutable sequence of items of one type. The type defines the name, the version and
//! the [`SlicePolicy`] of the stored items; `#[derive(Slice)]` implements it. The name is a promise:
//! snapshots and journals hold it, and never the name of a Rust type.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text_form::words;

words! {
    /// The effect of a failed call and of a rewind on a slice.
    SlicePolicy = "policy" {
        /// Working state: rolled back with a failed call, restored by a rewind. The default.
        State = "state",
        /// An accurate log of events: kept by both.
        Log = "log",
        /// Derived data that can be recomputed: not captured by default, dropped by both.
        Cache = "cache",
        /// The transcript: kept by a failed call, cut only by a rewind. It only grows.
        Journal = "journal",
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
    /// The stored name of the slice. It must never change, and no other type may use it.
    const NAME: &'static str;

    /// Version of the stored form. If older items no longer parse, raise it and implement [`Slice::upcast`].
    const VERSION: u32 = 1;

    /// The policy, unless a session sets another one.
    const POLICY: SlicePolicy = SlicePolicy::State;

    /// Upcasts an item of an older version to the next one, as plain data. It is applied until
    /// [`Slice::VERSION`] is reached.
    fn upcast(version: u32, item: Value) -> Result<Value, UpcastError> {
        let _ = item;
        Err(UpcastError::new(format!("there is no upcaster from version {version}")))
    }
}

/// An upcaster failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UpcastError {
    reason: String,
}

impl UpcastError {
    /// Creates an error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// An event: a value that reducers turn into changes of slices. Routing is by the exact type.
///
/// Every slice item is an event as well. Without a registered reducer it is appended to its own slice. Other
/// types implement the trait by `impl Event for MyEvent {}`; dispatching one without a registered reducer is
/// an error.
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
    /// The reducer that applies if none is registered.
    #[doc(hidden)]
    fn default_reducer() -> Option<DefaultReducer> {
        None
    }
}

impl<S: Slice> Event for S {
    fn default_reducer() -> Option<DefaultReducer> {
        Some(DefaultReducer(Arc::new(super::reducer::Reducer::append::<S>())))
    }
}

/// The default reducer of an event type. Only slices have one.
#[doc(hidden)]
pub struct DefaultReducer(pub(super) Arc<super::reducer::Reducer>);
