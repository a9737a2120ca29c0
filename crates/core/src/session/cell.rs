//! One slice as a value.
//!
//! A [`Cell`] holds its items typed if the type is known, and as plain data otherwise. Data of unknown slices
//! is carried along unchanged. Plain data is decoded once, on first access.

use std::any::{Any, type_name};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::error::SessionError;
use super::items::Items;
use super::op::{self, SliceOp, StoredChange};
use super::slice::{Slice, SlicePolicy};
use crate::extra::Extra;

/// One slice.
#[derive(Clone)]
pub(crate) struct Cell {
    policy: SlicePolicy,
    data: Data,
    /// Fields of the stored slice that this version does not know.
    extra: Extra,
}

#[derive(Clone)]
enum Data {
    Typed(Box<dyn ErasedItems>),
    Plain(Plain),
}

/// Items whose type is not known, and the result of decoding them once it is.
#[derive(Clone, Default)]
struct Plain {
    items: imbl::Vector<Arc<PlainItem>>,
    decoded: OnceLock<Box<dyn ErasedItems>>,
}

/// One item as plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlainItem {
    pub(crate) version: u32,
    pub(crate) value: Value,
}

/// [`Items`] of some type.
trait ErasedItems: Any + Send + Sync {
    fn clone_box(&self) -> Box<dyn ErasedItems>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn len(&self) -> usize;
    fn version(&self) -> u32;
    fn encode(&self, position: usize) -> Option<Result<Value, SessionError>>;
    fn apply_stored(&mut self, change: &StoredChange) -> Result<(), SessionError>;
    /// Returns whether both hold the identical item at `position`, in memory.
    fn shares(&self, other: &dyn ErasedItems, position: usize) -> bool;
    /// Decodes plain data to items of this type.
    fn decode_alike(&self, plain: &Plain) -> Result<Box<dyn ErasedItems>, SessionError>;
}

impl Clone for Box<dyn ErasedItems> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

impl<S: Slice> ErasedItems for Items<S> {
    fn clone_box(&self) -> Box<dyn ErasedItems> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn version(&self) -> u32 {
        S::VERSION
    }

    fn encode(&self, position: usize) -> Option<Result<Value, SessionError>> {
        self.items.get(position).map(|item| op::encode_item(&**item))
    }

    fn apply_stored(&mut self, change: &StoredChange) -> Result<(), SessionError> {
        let op = change.op.try_map(|item| op::decode_item::<S>(change.version, item))?;
        op.apply(S::NAME, change.policy, &mut self.items)
    }

    fn shares(&self, other: &dyn ErasedItems, position: usize) -> bool {
        let other = other.as_any().downcast_ref::<Self>().and_then(|other| other.items.get(position));
        matches!((self.items.get(position), other), (Some(one), Some(other)) if Arc::ptr_eq(one, other))
    }

    fn decode_alike(&self, plain: &Plain) -> Result<Box<dyn ErasedItems>, SessionError> {
        plain.decode::<S>().map(|items| Box::new(items) as Box<dyn ErasedItems>)
    }
}

impl Plain {
    fn decode<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        let items = self.items.iter().map(|item| op::decode_item::<S>(item.version, &item.value));
        Ok(Items { items: items.collect::<Result<_, _>>()? })
    }
}

impl Cell {
    /// Creates a slice of items of a known type.
    pub(crate) fn typed<S: Slice>(policy: SlicePolicy, items: Items<S>) -> Self {
        Self { policy, data: Data::Typed(Box::new(items)), extra: Extra::default() }
    }

    /// Creates a slice of plain data.
    pub(crate) fn plain(
        policy: SlicePolicy,
        items: impl IntoIterator<Item = PlainItem>,
        extra: Extra,
    ) -> Self {
        let items = items.into_iter().map(Arc::new).collect();
        Self { policy, data: Data::Plain(Plain { items, decoded: OnceLock::new() }), extra }
    }

    pub(crate) fn policy(&self) -> SlicePolicy {
        self.policy
    }

    pub(crate) fn set_policy(&mut self, policy: SlicePolicy) {
        self.policy = policy;
    }

    pub(crate) fn extra(&self) -> &Extra {
        &self.extra
    }

    pub(crate) fn len(&self) -> usize {
        match &self.data {
            Data::Typed(items) => items.len(),
            Data::Plain(plain) => plain.items.len(),
        }
    }

    /// Returns the items as `S`.
    pub(crate) fn items<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        let erased = match &self.data {
            Data::Typed(items) => items,
            Data::Plain(plain) => match plain.decoded.get() {
                Some(items) => items,
                None => {
                    let items = plain.decode::<S>()?;
                    return Ok(match plain.decoded.set(Box::new(items.clone())) {
                        Ok(()) | Err(_) => items,
                    });
                }
            },
        };
        erased.as_any().downcast_ref::<Items<S>>().cloned().ok_or_else(type_clash::<S>)
    }

    /// Returns all items as plain data.
    pub(crate) fn plain_items(&self) -> impl Iterator<Item = Result<PlainItem, SessionError>> {
        (0..self.len()).filter_map(|position| self.item(position))
    }

    fn item(&self, position: usize) -> Option<Result<PlainItem, SessionError>> {
        match &self.data {
            Data::Typed(items) => {
                let version = items.version();
                items.encode(position).map(|value| value.map(|value| PlainItem { version, value }))
            }
            Data::Plain(plain) => plain.items.get(position).map(|item| Ok(PlainItem::clone(item))),
        }
    }

    /// Returns whether both hold the identical item at `position`, in memory.
    pub(crate) fn shares(&self, other: &Self, position: usize) -> bool {
        match (&self.data, &other.data) {
            (Data::Typed(one), Data::Typed(other)) => one.shares(&**other, position),
            (Data::Plain(one), Data::Plain(other)) => {
                let items = (one.items.get(position), other.items.get(position));
                matches!(items, (Some(one), Some(other)) if Arc::ptr_eq(one, other))
            }
            _ => false,
        }
    }

    /// Returns whether both hold equal items at these positions. If one of them knows the type, the plain
    /// data of the other is upcast to its version first.
    pub(crate) fn agree(
        self: &Arc<Self>,
        other: &Arc<Self>,
        positions: std::ops::Range<usize>,
    ) -> Result<bool, SessionError> {
        let (one, other) = (self.decoded_like(other)?, other.decoded_like(self)?);
        for position in positions {
            let equal = one.shares(&other, position)
                || match (one.item(position), other.item(position)) {
                    (Some(one), Some(other)) => one? == other?,
                    _ => false,
                };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decodes plain data to the type that `model` holds, if `model` is typed and this cell is not.
    pub(crate) fn decoded_like(self: &Arc<Self>, model: &Self) -> Result<Arc<Self>, SessionError> {
        match (&self.data, &model.data) {
            (Data::Plain(plain), Data::Typed(typed)) => Ok(Arc::new(self.with(typed.decode_alike(plain)?))),
            _ => Ok(self.clone()),
        }
    }

    /// Decodes the items as `S`.
    pub(crate) fn decoded<S: Slice>(self: &Arc<Self>) -> Result<Arc<Self>, SessionError> {
        let items = self.items::<S>()?;
        Ok(match &self.data {
            Data::Typed(_) => self.clone(),
            Data::Plain(_) => Arc::new(self.with(Box::new(items))),
        })
    }

    fn with(&self, items: Box<dyn ErasedItems>) -> Self {
        Self { policy: self.policy, data: Data::Typed(items), extra: self.extra.clone() }
    }

    /// Changes the items. On failure the cell is unchanged.
    pub(crate) fn apply<S: Slice>(
        self: &mut Arc<Self>,
        policy: SlicePolicy,
        op: &SliceOp<S>,
    ) -> Result<(), SessionError> {
        let mut changed = self.decoded::<S>()?;
        let cell = Arc::make_mut(&mut changed);
        let Data::Typed(items) = &mut cell.data else { return Err(type_clash::<S>()) };
        let items = items.as_any_mut().downcast_mut::<Items<S>>().ok_or_else(type_clash::<S>)?;
        op.apply(S::NAME, policy, &mut items.items)?;
        cell.policy = policy;
        *self = changed;
        Ok(())
    }

    /// Changes the items by plain data, whether their type is known or not. On failure the cell is unchanged.
    pub(crate) fn apply_stored(self: &mut Arc<Self>, change: &StoredChange) -> Result<(), SessionError> {
        let mut changed = Self::clone(self);
        changed.policy = change.policy;
        match &mut changed.data {
            Data::Typed(items) => items.apply_stored(change)?,
            Data::Plain(plain) => {
                plain_op(change).apply(&change.slice, change.policy, &mut plain.items)?;
                plain.decoded = OnceLock::new();
            }
        }
        *self = Arc::new(changed);
        Ok(())
    }
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} items, {}", self.len(), self.policy)
    }
}

fn plain_op(change: &StoredChange) -> SliceOp<PlainItem> {
    let item = |value: &Value| PlainItem { version: change.version, value: value.clone() };
    let op: Result<_, std::convert::Infallible> = change.op.try_map(|value| Ok(Arc::new(item(value))));
    match op {
        Ok(op) => op,
    }
}

fn type_clash<S: Slice>() -> SessionError {
    SessionError::TypeClash { slice: S::NAME.to_owned(), wanted: type_name::<S>() }
}
