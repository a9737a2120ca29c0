//! The body of a request, and what a policy keeps of it for the next request.
//!
//! A request repeats most of the request before it. A [`RequestBody`] is a text in pieces, so that the repeated ones are
//! shared, and a [`RequestMemo`] is the place where a policy keeps them.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A text in pieces. A clone is cheap.
#[derive(Clone, Default)]
pub struct RequestBody(Arc<[Arc<str>]>);

impl RequestBody {
    /// Joins pieces, without copying their text.
    pub fn new(pieces: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(pieces.into_iter().collect())
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|piece| piece.is_empty())
    }

    /// Copies the whole text.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.len());
        self.0.iter().for_each(|piece| text.push_str(piece));
        text
    }
}

impl<T: Into<Arc<str>>> From<T> for RequestBody {
    fn from(text: T) -> Self {
        Self::new([text.into()])
    }
}

/// Bodies are equal if their texts are, whatever their pieces.
impl PartialEq for RequestBody {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.text() == other.text()
    }
}

impl Eq for RequestBody {}

impl fmt::Display for RequestBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| formatter.write_str(piece))
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), formatter)
    }
}

/// What a policy keeps from one request to the next of the same driver. It only saves work: without it, or with another
/// one, a request is the same byte for byte. Clones share it.
#[derive(Clone, Default)]
pub struct RequestMemo(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl RequestMemo {
    /// Takes what was kept, if it has this type. What another policy kept is dropped.
    pub fn take<T: Any>(&self) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept?.downcast().ok().map(|kept| *kept)
    }

    /// Keeps a value for the next request.
    pub fn keep<T: Any + Send>(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(value));
    }
}

impl fmt::Debug for RequestMemo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RequestMemo").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_text_of_its_pieces() {
        let pieces = RequestBody::new(["{".into(), "\"a\":1".into(), "}".into()]);
        let whole = RequestBody::from(r#"{"a":1}"#);
        assert_eq!(pieces, whole);
        assert_eq!((pieces.len(), pieces.to_string()), (whole.len(), whole.text()));
        assert!(RequestBody::default().is_empty() && RequestBody::from("").is_empty() && !whole.is_empty());
    }

    #[test]
    fn a_memo_gives_each_value_once_and_only_as_its_type() {
        let memo = RequestMemo::default();
        memo.clone().keep(7_u32);
        assert_eq!((memo.take::<u32>(), memo.take::<u32>()), (Some(7), None));
        memo.keep(7_u32);
        assert_eq!((memo.take::<String>(), memo.take::<u32>()), (None, None));
    }
}
