//! One slice as a value.
//!
//! A [`Cell`] holds its items typed if the type is known, and as plain data otherwise. Data of unknown slices
//! is carried along unchanged. Plain data is decoded once, on first access.

use std::any::{Any, type_name};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::encode;
use super::error::SessionError;
use super::items::Items;
use super::op::{self, SliceOp, StoredChange};
use super::pages::{LoadedItems, PageHeader, PageWriter, PagedItems};
use super::slice::{Slice, SlicePolicy};
use crate::extra::Extra;
use crate::payload::InnerMessage;

/// One slice.
#[derive(Clone)]
pub(crate) struct Cell {
    policy: SlicePolicy,
    data: Data,
    /// Fields of the stored slice that this version does not know.
    extra: Extra,
    /// Whether the stored items have fields that the type of these items does not know. Encoding these would
    /// lose them.
    is_partial: bool,
}

#[derive(Clone)]
enum Data {
    Typed(Box<dyn ErasedItems>),
    Plain(Plain),
    Paged(PagedItems),
}

impl From<LoadedItems> for Data {
    fn from(items: LoadedItems) -> Self {
        match items {
            LoadedItems::Typed(items) => Self::Typed(items),
            LoadedItems::Plain(items) => Self::Plain(Plain { items, decoded: OnceLock::new() }),
        }
    }
}

/// Items whose type is not known, and the result of decoding them once it is.
#[derive(Clone, Default)]
pub(super) struct Plain {
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
pub(super) trait ErasedItems: Any + Send + Sync {
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
    /// Decodes all items of pages to items of this type.
    fn read_pages(&self, pages: &PagedItems) -> Result<Box<dyn ErasedItems>, SessionError>;
    /// Returns an empty list of the same type.
    fn emptied(&self) -> Box<dyn ErasedItems>;
    /// Writes the item at `position` as the text that it has in a journal.
    fn write(&self, position: usize, text: &mut Vec<u8>) -> Result<(), SessionError>;
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

    fn read_pages(&self, pages: &PagedItems) -> Result<Box<dyn ErasedItems>, SessionError> {
        pages.items::<S>().map(|items| Box::new(items) as Box<dyn ErasedItems>)
    }

    fn emptied(&self) -> Box<dyn ErasedItems> {
        Box::new(Self::default())
    }

    fn write(&self, position: usize, text: &mut Vec<u8>) -> Result<(), SessionError> {
        let Some(item) = self.items.get(position) else { return Ok(()) };
        // A message is a record of its own. All other items are plain data in records.
        let written = match (&**item as &dyn Any).downcast_ref::<InnerMessage>() {
            Some(message) => serde_json::to_writer(text, message),
            None => serde_json::to_writer(text, &op::encode_item(&**item)?),
        };
        written.map_err(|source| SessionError::Encode { slice: S::NAME.to_owned(), source })
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
        Self { policy, data: Data::Typed(Box::new(items)), extra: Extra::default(), is_partial: false }
    }

    /// Creates a slice of plain data.
    pub(crate) fn plain(
        policy: SlicePolicy,
        items: impl IntoIterator<Item = PlainItem>,
        extra: Extra,
    ) -> Self {
        let items = items.into_iter().map(Arc::new).collect();
        let data = Data::Plain(Plain { items, decoded: OnceLock::new() });
        Self { policy, data, extra, is_partial: false }
    }

    /// Creates a slice on pages, whose texts follow each other in `buffer` from `start` on. Returns `None` if
    /// the buffer is too short.
    pub(crate) fn paged(
        name: &Arc<str>,
        policy: SlicePolicy,
        extra: Extra,
        headers: &[PageHeader],
        (buffer, start): (&Arc<Vec<u8>>, usize),
    ) -> Option<Self> {
        let items = PagedItems::new(name, headers, buffer, start)?;
        Some(Self { policy, data: Data::Paged(items), extra, is_partial: false })
    }

    /// Returns whether encoding the items would lose fields that they have in the journal.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Writes the items as pages, and appends their texts to `texts`.
    pub(crate) fn write_pages(&self, texts: &mut Vec<u8>) -> Result<Vec<PageHeader>, SessionError> {
        let mut writer = PageWriter::new(texts);
        match &self.data {
            Data::Typed(items) => writer.write_typed(&**items)?,
            Data::Plain(plain) => plain.items.iter().try_for_each(|item| writer.plain_item(item))?,
            Data::Paged(paged) => paged.write(&mut writer)?,
        }
        Ok(writer.finish())
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
            Data::Paged(paged) => paged.len(),
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
            Data::Paged(paged) => return paged.items::<S>(),
        };
        erased.as_any().downcast_ref::<Items<S>>().cloned().ok_or_else(type_clash::<S>)
    }

    /// Returns the items at those of these positions that exist, as `S`. Of a slice on pages, only their pages
    /// are decoded.
    pub(crate) fn range<S: Slice>(
        &self,
        positions: std::ops::Range<usize>,
    ) -> Result<Vec<Arc<S>>, SessionError> {
        if let Data::Paged(paged) = &self.data {
            return paged.range::<S>(positions);
        }
        let items = self.items::<S>()?;
        Ok(positions.map_while(|place| items.get(place).cloned()).collect())
    }

    /// Returns all items as plain data.
    pub(crate) fn plain_items(&self) -> Box<dyn Iterator<Item = Result<PlainItem, SessionError>> + '_> {
        match &self.data {
            Data::Typed(_) | Data::Plain(_) => {
                Box::new((0..self.len()).filter_map(|position| self.item(position)))
            }
            Data::Paged(paged) => match paged.plain() {
                Ok(items) => Box::new(items.into_iter().map(|item| Ok(Arc::unwrap_or_clone(item)))),
                Err(error) => Box::new(std::iter::once(Err(error))),
            },
        }
    }

    fn item(&self, position: usize) -> Option<Result<PlainItem, SessionError>> {
        match &self.data {
            Data::Typed(items) => {
                let version = items.version();
                items.encode(position).map(|value| value.map(|value| PlainItem { version, value }))
            }
            Data::Plain(plain) => plain.items.get(position).map(|item| Ok(PlainItem::clone(item))),
            Data::Paged(paged) => {
                paged.plain().map(|items| items.get(position).map(|item| PlainItem::clone(item))).transpose()
            }
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
            (Data::Paged(one), Data::Paged(other)) => one.shares(other, position),
            (Data::Paged(paged), Data::Typed(typed)) | (Data::Typed(typed), Data::Paged(paged)) => {
                paged.shares_with(&**typed, position)
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
        let (one, other) = (self.read()?, other.read()?);
        let (one, other) = (one.decoded_like(&other)?, other.decoded_like(&one)?);
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
            (Data::Paged(paged), Data::Typed(typed)) => Ok(Arc::new(self.with(typed.read_pages(paged)?))),
            _ => Ok(self.clone()),
        }
    }

    /// Returns the cell with its items in memory.
    fn read(self: &Arc<Self>) -> Result<Arc<Self>, SessionError> {
        match &self.data {
            Data::Typed(_) | Data::Plain(_) => Ok(self.clone()),
            Data::Paged(paged) => Ok(Arc::new(self.holding(paged.read()?.into()))),
        }
    }

    /// Returns the cell as one of `S`. Items on pages are not decoded.
    pub(crate) fn of_type<S: Slice>(self: &Arc<Self>) -> Result<Arc<Self>, SessionError> {
        match &self.data {
            Data::Paged(paged) if !paged.is_read() => {
                let mut paged = paged.clone();
                paged.set_type::<S>()?;
                Ok(Arc::new(self.holding(Data::Paged(paged))))
            }
            _ => self.decoded::<S>(),
        }
    }

    /// Decodes the items as `S`.
    pub(crate) fn decoded<S: Slice>(self: &Arc<Self>) -> Result<Arc<Self>, SessionError> {
        let items = self.items::<S>()?;
        Ok(match &self.data {
            Data::Typed(_) => self.clone(),
            Data::Plain(_) | Data::Paged(_) => {
                let is_partial = self.is_partial || self.holds_more_than(&items)?;
                Arc::new(Self { is_partial, ..self.with(Box::new(items)) })
            }
        })
    }

    /// Returns whether the stored items have fields that are missing in the items decoded from them. Messages
    /// keep all fields.
    fn holds_more_than<S: Slice>(&self, items: &Items<S>) -> Result<bool, SessionError> {
        if S::NAME == InnerMessage::NAME {
            return Ok(false);
        }
        for (stored, item) in self.plain_items().zip(items.iter()) {
            let stored = stored?;
            // Upcasters drop fields on purpose.
            if stored.version == S::VERSION && !encode::holds(&op::encode_item(&**item)?, &stored.value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn with(&self, items: Box<dyn ErasedItems>) -> Self {
        self.holding(Data::Typed(items))
    }

    fn holding(&self, data: Data) -> Self {
        Self { policy: self.policy, data, extra: self.extra.clone(), is_partial: self.is_partial }
    }

    /// Changes the items. On failure the cell is unchanged.
    pub(crate) fn apply<S: Slice>(
        self: &mut Arc<Self>,
        policy: SlicePolicy,
        op: &SliceOp<S>,
    ) -> Result<(), SessionError> {
        let mut changed = match &self.data {
            Data::Paged(paged) if op.is_absolute() => {
                Arc::new(self.holding(paged.emptied().into())).decoded::<S>()?
            }
            Data::Paged(paged) if op.only_adds() && !paged.is_read() => {
                let mut paged = paged.clone();
                paged.add(policy, op)?;
                *self = Arc::new(Self { policy, ..self.holding(Data::Paged(paged)) });
                return Ok(());
            }
            _ => self.decoded::<S>()?,
        };
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
        if let Data::Paged(paged) = &changed.data {
            if change.op.is_absolute() {
                changed.data = paged.emptied().into();
            } else if paged.is_read() || !change.op.only_adds() {
                changed.data = paged.read()?.into();
            }
        }
        match &mut changed.data {
            Data::Paged(paged) => paged.add_stored(change)?,
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

pub(super) fn plain_op(change: &StoredChange) -> SliceOp<PlainItem> {
    let item = |value: &Value| PlainItem { version: change.version, value: value.clone() };
    let op: Result<_, std::convert::Infallible> = change.op.try_map(|value| Ok(Arc::new(item(value))));
    match op {
        Ok(op) => op,
    }
}

pub(super) fn type_clash<S: Slice>() -> SessionError {
    SessionError::TypeClash { slice: S::NAME.to_owned(), wanted: type_name::<S>() }
}
