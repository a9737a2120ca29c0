//! Changes of slices.
//!
//! Reducers do not return a new slice but a change of it. The cost of a change, in memory and in the journal,
//! therefore does not depend on the length of the slice. [`SliceOp`] is a change with typed items;
//! [`StoredOp`] is the same as plain data.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::encode;
use super::error::SessionError;
use super::slice::{Slice, SlicePolicy};
use crate::extra::Extra;
use crate::storable;

/// A change of the items of one slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemsOp<T> {
    /// Adds one item at the end.
    Append(T),
    /// Adds items at the end; with none, nothing changes.
    Extend(Vec<T>),
    /// Removes the items at these positions, then adds items at the end.
    Patch {
        /// Positions before the change, in any order.
        remove: Vec<usize>,
        /// Items added at the end.
        append: Vec<T>,
    },
    /// Replaces all items.
    Replace(Vec<T>),
    /// Removes all items.
    Clear,
}

/// A change of one slice.
pub type SliceOp<S> = ItemsOp<Arc<S>>;

/// A [`SliceOp`] with its items as JSON.
pub type StoredOp = ItemsOp<Value>;

impl<T> ItemsOp<T> {
    /// Changes nothing.
    pub fn keep() -> Self {
        Self::Extend(Vec::new())
    }

    /// Returns whether nothing changes.
    pub fn is_keep(&self) -> bool {
        match self {
            Self::Extend(items) => items.is_empty(),
            Self::Patch { remove, append } => remove.is_empty() && append.is_empty(),
            Self::Append(_) | Self::Replace(_) | Self::Clear => false,
        }
    }

    /// Returns whether existing items stay as they are.
    pub(super) fn only_adds(&self) -> bool {
        match self {
            Self::Append(_) | Self::Extend(_) => true,
            Self::Patch { remove, .. } => remove.is_empty(),
            Self::Replace(_) | Self::Clear => false,
        }
    }

    /// Returns whether the result does not depend on existing items.
    pub(super) fn is_absolute(&self) -> bool {
        matches!(self, Self::Replace(_) | Self::Clear)
    }

    /// Maps each item of the change; the first failure ends it.
    pub(super) fn try_map<U, E>(&self, mut item: impl FnMut(&T) -> Result<U, E>) -> Result<ItemsOp<U>, E> {
        let mut all = |items: &[T]| items.iter().map(&mut item).collect::<Result<Vec<_>, E>>();
        Ok(match self {
            Self::Append(one) => ItemsOp::Append(item(one)?),
            Self::Extend(items) => ItemsOp::Extend(all(items)?),
            Self::Patch { remove, append } => ItemsOp::Patch { remove: remove.clone(), append: all(append)? },
            Self::Replace(items) => ItemsOp::Replace(all(items)?),
            Self::Clear => ItemsOp::Clear,
        })
    }
}

impl<S> ItemsOp<Arc<S>> {
    /// Adds one item at the end.
    pub fn append(item: impl Into<Arc<S>>) -> Self {
        Self::Append(item.into())
    }

    /// Adds items at the end.
    pub fn extend(items: impl IntoIterator<Item = S>) -> Self {
        Self::Extend(items.into_iter().map(Arc::new).collect())
    }

    /// Replaces all items.
    pub fn replace(items: impl IntoIterator<Item = S>) -> Self {
        Self::Replace(items.into_iter().map(Arc::new).collect())
    }

    /// Applies the change. On failure nothing is changed.
    pub(super) fn apply(
        &self,
        slice: &str,
        policy: SlicePolicy,
        items: &mut imbl::Vector<Arc<S>>,
    ) -> Result<(), SessionError> {
        if policy == SlicePolicy::Journal && !self.only_adds() {
            return Err(SessionError::JournalOnlyGrows { slice: slice.to_owned() });
        }
        match self {
            Self::Append(item) => items.push_back(item.clone()),
            Self::Extend(more) => items.extend(more.iter().cloned()),
            Self::Patch { remove, append } => {
                remove_positions(slice, items, remove)?;
                items.extend(append.iter().cloned());
            }
            Self::Replace(new) => *items = new.iter().cloned().collect(),
            Self::Clear => *items = imbl::Vector::new(),
        }
        Ok(())
    }
}

/// Above this number of removals it is cheaper to rebuild the vector than to cut it at each position.
const FEW_REMOVALS: usize = 16;

fn remove_positions<T: Clone>(
    slice: &str,
    items: &mut imbl::Vector<T>,
    positions: &[usize],
) -> Result<(), SessionError> {
    let positions: BTreeSet<usize> = positions.iter().copied().collect();
    if let Some(&position) = positions.last()
        && position >= items.len()
    {
        let length = items.len();
        return Err(SessionError::PatchOutOfRange { slice: slice.to_owned(), position, length });
    }
    if positions.len() <= FEW_REMOVALS {
        for &position in positions.iter().rev() {
            items.remove(position);
        }
    } else {
        *items = items
            .iter()
            .enumerate()
            .filter(|(position, _)| !positions.contains(position))
            .map(|(_, item)| item.clone())
            .collect();
    }
    Ok(())
}

/// A change of one slice as plain data, as journal records hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredChange {
    /// The slice's stored name.
    pub slice: String,
    /// Version of the items in the change.
    pub version: u32,
    /// Policy of the slice at the time of the change.
    pub policy: SlicePolicy,
    /// The change itself.
    pub op: StoredOp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl StoredChange {
    /// Decodes the items that the change appends to this slice. Returns none for a change of another slice,
    /// or if the items are not of the version that this program writes.
    pub fn appended<S: Slice>(&self) -> Vec<S> {
        if self.slice != S::NAME || self.version != S::VERSION {
            return Vec::new();
        }
        let items = match &self.op {
            StoredOp::Append(item) => std::slice::from_ref(item),
            StoredOp::Extend(items) | StoredOp::Patch { append: items, .. } => items,
            StoredOp::Replace(_) | StoredOp::Clear => &[],
        };
        items.iter().filter_map(|item| S::deserialize(item).ok()).collect()
    }
}

/// Encodes one item as plain data. Fails for values that JSON would change.
pub(super) fn encode_item<S: Slice>(item: &S) -> Result<Value, SessionError> {
    let slice = || S::NAME.to_owned();
    let refused = |source| SessionError::Encode { slice: slice(), source };
    let (value, some_null) = encode::to_json(item).map_err(refused)?;
    storable::check_item(&value).map_err(|source| SessionError::NotStorable { slice: slice(), source })?;
    if some_null && !encode::keeps_nulls(item, &*read_back::<S>(&value)?).map_err(refused)? {
        let problem = "`Some` of something that is written as `null` would be read as `None`";
        return Err(refused(serde::ser::Error::custom(problem)));
    }
    Ok(value)
}

/// Decodes an item from its own encoding.
fn read_back<S: Slice>(value: &Value) -> Result<Arc<S>, SessionError> {
    decode_item(S::VERSION, value).map_err(|error| match error {
        SessionError::Decode { slice, source } => SessionError::Unreadable { slice, source },
        other => other,
    })
}

impl StoredOp {
    /// Refuses items that can be written but not read again.
    pub(super) fn check_readable<S: Slice>(&self) -> Result<(), SessionError> {
        self.try_map(read_back::<S>).map(drop)
    }
}

/// Decodes one item from plain data of any supported version.
pub(super) fn decode_item<S: Slice>(version: u32, item: &Value) -> Result<Arc<S>, SessionError> {
    if version > S::VERSION {
        return Err(SessionError::NewerVersion {
            slice: S::NAME.to_owned(),
            stored: version,
            known: S::VERSION,
        });
    }
    let decoded = if version == S::VERSION {
        S::deserialize(item)
    } else {
        let mut item = item.clone();
        for version in version..S::VERSION {
            item = S::upcast(version, item).map_err(|source| SessionError::Upcast {
                slice: S::NAME.to_owned(),
                version,
                source,
            })?;
        }
        S::deserialize(&item)
    };
    decoded.map(Arc::new).map_err(|source| SessionError::Decode { slice: S::NAME.to_owned(), source })
}
