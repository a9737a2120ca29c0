//! Shares the storage of names that occur more than once in a text.

use std::collections::HashSet;
use std::sync::Arc;

use super::form::Name;

/// The names met so far.
#[derive(Default)]
pub(super) struct Names {
    known: HashSet<Arc<str>>,
}

impl Names {
    /// Returns the name with this text. Equal names share the storage of the first one.
    pub(super) fn share(&mut self, text: &str) -> Name {
        if let Some(known) = self.known.get(text) {
            return Name::new(known.clone());
        }
        let fresh: Arc<str> = text.into();
        self.known.insert(fresh.clone());
        Name::new(fresh)
    }
}
