//! The items of a slice as JSON texts, in pages that are decoded on first access.
//!
//! A snapshot of a view contains the items of each slice as pages of some dozen items each. Opening a session
//! keeps the texts. A page is decoded once, when one of its items is needed. Later items follow the pages, so
//! appending to a slice decodes at most its last page. Only a change that removes items decodes all pages.
//!
//! The text of an item in a page is its text in the journal, so decoding a page succeeds if and only if the
//! records of its items can be decoded. If it fails, access to the items fails, as for slices of types that
//! are not known here.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use super::cell::{ErasedItems, PlainItem, type_clash};
use super::error::SessionError;
use super::items::Items;
use super::op::{self, SliceOp, StoredChange};
use super::slice::{Slice, SlicePolicy};
use crate::json::from_bytes;
use crate::pack::packed_structs;

/// Maximum number of items of a page.
const PAGE_ITEMS: usize = 64;
/// Length of a text in bytes above which a page gets no more items.
const PAGE_BYTES: usize = 64 * 1024;

/// Metadata of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Version of its items.
    version: u32,
    /// Number of items.
    count: usize,
    /// Length of its text in bytes.
    length: usize,
}

packed_structs! {
    PageHeader { version, count, length }
}

impl PageHeader {
    /// Returns the length of the texts of all pages in bytes, unless it overflows.
    pub(crate) fn total(pages: &[Self]) -> Option<usize> {
        pages.iter().try_fold(0_usize, |sum, page| sum.checked_add(page.length))
    }
}

/// A JSON array of items.
struct Page {
    header: PageHeader,
    /// Number of items on earlier pages.
    first: usize,
    buffer: Arc<Vec<u8>>,
    text: Range<usize>,
    decoded: OnceLock<Box<dyn ErasedItems>>,
}

impl Page {
    fn text(&self) -> &[u8] {
        self.buffer.get(self.text.clone()).unwrap_or_default()
    }

    fn items<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        if let Some(items) = self.decoded.get() {
            return items.as_any().downcast_ref::<Items<S>>().cloned().ok_or_else(type_clash::<S>);
        }
        let malformed = |source| SessionError::Decode { slice: S::NAME.to_owned(), source };
        let items: Items<S> = if self.header.version == S::VERSION {
            self.decode::<Arc<S>>().map_err(malformed)?.into_iter().collect()
        } else {
            let values = self.decode::<Value>().map_err(malformed)?;
            let items = values.iter().map(|value| op::decode_item::<S>(self.header.version, value));
            items.collect::<Result<Items<S>, _>>()?
        };
        let _ = self.decoded.set(Box::new(items.clone()));
        Ok(items)
    }

    fn decode<T: DeserializeOwned>(&self) -> Result<Vec<T>, serde_json::Error> {
        let items: Vec<T> = from_bytes(self.text())?;
        match items.len() == self.header.count {
            true => Ok(items),
            false => Err(serde_json::Error::custom("a page has another number of items than it says")),
        }
    }
}

/// Items on pages, and items that were appended since.
#[derive(Clone)]
pub(super) struct PagedItems {
    /// Stored name of the slice.
    slice: Arc<str>,
    pages: Arc<[Page]>,
    added: LoadedItems,
    /// All items, after the first access to all of them.
    decoded: OnceLock<Box<dyn ErasedItems>>,
}

/// Items in memory.
#[derive(Clone)]
pub(super) enum LoadedItems {
    Typed(Box<dyn ErasedItems>),
    Plain(imbl::Vector<Arc<PlainItem>>),
}

impl LoadedItems {
    fn len(&self) -> usize {
        match self {
            Self::Plain(items) => items.len(),
            Self::Typed(items) => items.len(),
        }
    }
}

impl PagedItems {
    /// Creates a slice whose texts follow each other in a buffer from `start` on. Returns `None` if the buffer
    /// is too short.
    pub(super) fn new(
        slice: &Arc<str>,
        headers: &[PageHeader],
        buffer: &Arc<Vec<u8>>,
        start: usize,
    ) -> Option<Self> {
        let (mut first, mut start) = (0_usize, start);
        let mut pages = Vec::with_capacity(headers.len());
        for header in headers {
            let end = start.checked_add(header.length).filter(|end| *end <= buffer.len())?;
            // An item takes at least one byte. This bounds the number of items by the length of the buffer.
            if header.count > header.length {
                return None;
            }
            let buffer = buffer.clone();
            pages.push(Page { header: *header, first, buffer, text: start..end, decoded: OnceLock::new() });
            first = first.checked_add(header.count)?;
            start = end;
        }
        Some(Self {
            slice: slice.clone(),
            pages: pages.into(),
            added: LoadedItems::Plain(imbl::Vector::new()),
            decoded: OnceLock::new(),
        })
    }

    /// Returns the number of items on pages.
    fn on_pages(&self) -> usize {
        self.pages.last().map_or(0, |page| page.first + page.header.count)
    }

    pub(super) fn len(&self) -> usize {
        self.on_pages() + self.added.len()
    }

    /// Returns whether all items are in memory.
    pub(super) fn is_read(&self) -> bool {
        self.decoded.get().is_some()
    }

    /// Returns all items.
    pub(super) fn items<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        if let Some(items) = self.decoded.get() {
            return items.as_any().downcast_ref::<Items<S>>().cloned().ok_or_else(type_clash::<S>);
        }
        let mut items = Items::default();
        for page in &*self.pages {
            items.items.append(page.items::<S>()?.items);
        }
        items.items.append(self.added::<S>()?.items);
        let _ = self.decoded.set(Box::new(items.clone()));
        Ok(items)
    }

    /// Returns the items at those of these positions that exist. Only their pages are decoded.
    pub(super) fn range<S: Slice>(&self, positions: Range<usize>) -> Result<Vec<Arc<S>>, SessionError> {
        let end = positions.end.min(self.len());
        let mut found = Vec::with_capacity(end.saturating_sub(positions.start));
        let mut take = |items: Items<S>, first: usize| {
            let from = positions.start.saturating_sub(first);
            let until = end.saturating_sub(first).min(items.len());
            found.extend((from..until).filter_map(|place| items.get(place).cloned()));
        };
        if self.is_read() {
            take(self.items::<S>()?, 0);
            return Ok(found);
        }
        let before = self.pages.partition_point(|page| page.first + page.header.count <= positions.start);
        for page in self.pages.iter().skip(before).take_while(|page| page.first < end) {
            take(page.items::<S>()?, page.first);
        }
        if end > self.on_pages() {
            take(self.added::<S>()?, self.on_pages());
        }
        Ok(found)
    }

    fn added<S: Slice>(&self) -> Result<Items<S>, SessionError> {
        match &self.added {
            LoadedItems::Plain(items) => {
                let items = items.iter().map(|item| op::decode_item::<S>(item.version, &item.value));
                items.collect()
            }
            LoadedItems::Typed(items) => {
                items.as_any().downcast_ref::<Items<S>>().cloned().ok_or_else(type_clash::<S>)
            }
        }
    }

    /// Returns all items as plain data.
    pub(super) fn plain(&self) -> Result<imbl::Vector<Arc<PlainItem>>, SessionError> {
        let malformed = |source| SessionError::Decode { slice: self.slice.to_string(), source };
        let mut plain = imbl::Vector::new();
        for page in &*self.pages {
            let version = page.header.version;
            let values = page.decode::<Value>().map_err(malformed)?.into_iter();
            plain.extend(values.map(|value| Arc::new(PlainItem { version, value })));
        }
        match &self.added {
            LoadedItems::Plain(items) => plain.append(items.clone()),
            LoadedItems::Typed(items) => {
                for value in (0..items.len()).filter_map(|place| items.encode(place)) {
                    plain.push_back(Arc::new(PlainItem { version: items.version(), value: value? }));
                }
            }
        }
        Ok(plain)
    }

    /// Returns all items, typed if the type is known.
    pub(super) fn read(&self) -> Result<LoadedItems, SessionError> {
        match (self.decoded.get(), &self.added) {
            (Some(items), _) => Ok(LoadedItems::Typed(items.clone())),
            (None, LoadedItems::Typed(items)) => items.read_pages(self).map(LoadedItems::Typed),
            (None, LoadedItems::Plain(_)) => self.plain().map(LoadedItems::Plain),
        }
    }

    /// Returns whether both hold the identical item at `position`, in memory or on a page.
    pub(super) fn shares(&self, other: &Self, position: usize) -> bool {
        if !Arc::ptr_eq(&self.pages, &other.pages) {
            return false;
        }
        let Some(position) = position.checked_sub(self.on_pages()) else { return true };
        match (&self.added, &other.added) {
            (LoadedItems::Typed(one), LoadedItems::Typed(other)) => one.shares(&**other, position),
            (LoadedItems::Plain(one), LoadedItems::Plain(other)) => {
                matches!((one.get(position), other.get(position)), (Some(one), Some(other)) if Arc::ptr_eq(one, other))
            }
            _ => false,
        }
    }

    /// Returns whether both hold the identical item at `position`, in memory.
    pub(super) fn shares_with(&self, typed: &dyn ErasedItems, position: usize) -> bool {
        self.decoded.get().is_some_and(|items| items.shares(typed, position))
    }

    /// Sets the type of the slice, so that later items are typed. Only the last page is decoded, to check the
    /// type.
    pub(super) fn set_type<S: Slice>(&mut self) -> Result<(), SessionError> {
        if let LoadedItems::Plain(_) = self.added {
            if let Some(last) = self.pages.last() {
                last.items::<S>()?;
            }
            self.added = LoadedItems::Typed(Box::new(self.added::<S>()?));
        }
        Ok(())
    }

    /// Appends items. `op` must not remove any.
    pub(super) fn add<S: Slice>(&mut self, policy: SlicePolicy, op: &SliceOp<S>) -> Result<(), SessionError> {
        self.set_type::<S>()?;
        let LoadedItems::Typed(items) = &mut self.added else { return Err(type_clash::<S>()) };
        let items = items.as_any_mut().downcast_mut::<Items<S>>().ok_or_else(type_clash::<S>)?;
        op.apply(S::NAME, policy, &mut items.items)?;
        self.decoded = OnceLock::new();
        Ok(())
    }

    /// Appends plain data, whether its type is known or not. The change must not remove any item.
    pub(super) fn add_stored(&mut self, change: &StoredChange) -> Result<(), SessionError> {
        match &mut self.added {
            LoadedItems::Typed(items) => items.apply_stored(change)?,
            LoadedItems::Plain(items) => {
                super::cell::plain_op(change).apply(&change.slice, change.policy, items)?;
            }
        }
        self.decoded = OnceLock::new();
        Ok(())
    }

    /// Returns an empty slice of the same type, without decoding any page.
    pub(super) fn emptied(&self) -> LoadedItems {
        match (self.decoded.get(), &self.added) {
            (Some(items), _) | (None, LoadedItems::Typed(items)) => LoadedItems::Typed(items.emptied()),
            (None, LoadedItems::Plain(_)) => LoadedItems::Plain(imbl::Vector::new()),
        }
    }

    /// Writes all items. The texts of pages are copied.
    pub(super) fn write(&self, writer: &mut PageWriter<'_>) -> Result<(), SessionError> {
        self.pages.iter().for_each(|page| writer.page(page.header, page.text()));
        match &self.added {
            LoadedItems::Plain(items) => items.iter().try_for_each(|item| writer.plain_item(item)),
            LoadedItems::Typed(items) => writer.write_typed(&**items),
        }
    }
}

/// Writes the pages of one slice.
pub(super) struct PageWriter<'a> {
    texts: &'a mut Vec<u8>,
    headers: Vec<PageHeader>,
}

impl<'a> PageWriter<'a> {
    /// Creates a writer that appends to `texts`.
    pub(super) fn new(texts: &'a mut Vec<u8>) -> Self {
        Self { texts, headers: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<PageHeader> {
        self.headers
    }

    fn page(&mut self, header: PageHeader, text: &[u8]) {
        self.texts.extend_from_slice(text);
        self.headers.push(header);
    }

    /// Writes an item to the last page, or to a new page if that is full or of another version.
    fn item<E>(&mut self, version: u32, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let has_room = |page: &PageHeader| {
            page.version == version && page.count < PAGE_ITEMS && page.length < PAGE_BYTES
        };
        let before = self.texts.len();
        if self.headers.last().is_some_and(has_room) && self.texts.last() == Some(&b']') {
            self.texts.pop();
            self.texts.push(b',');
        } else {
            self.texts.push(b'[');
            self.headers.push(PageHeader { version, count: 0, length: 0 });
        }
        write(self.texts)?;
        self.texts.push(b']');
        if let Some(page) = self.headers.last_mut() {
            page.count += 1;
            page.length += self.texts.len() - before;
        }
        Ok(())
    }

    pub(super) fn plain_item(&mut self, item: &PlainItem) -> Result<(), SessionError> {
        self.item(item.version, |texts| {
            let slice = || "(snapshot)".to_owned();
            serde_json::to_writer(texts, &item.value)
                .map_err(|source| SessionError::Encode { slice: slice(), source })
        })
    }

    pub(super) fn write_typed(&mut self, items: &dyn ErasedItems) -> Result<(), SessionError> {
        for place in 0..items.len() {
            self.item(items.version(), |texts| items.write(place, texts))?;
        }
        Ok(())
    }
}
