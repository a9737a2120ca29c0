//! Comparison of views.

use crate::session::{Cell, SessionError};
use crate::view::JournalView;

impl JournalView {
    /// Returns the name of the first part in which two views differ, or `None` if they agree. Items of slices
    /// are compared as plain data. Items of different versions are only counted.
    pub fn difference(&self, other: &Self) -> Result<Option<&'static str>, SessionError> {
        let (one, two) = (&self.visible, &other.visible);
        let parts = [
            ("head", self.head == other.head),
            ("creation", self.created == other.created),
            ("lineage", self.lineage == other.lineage),
            ("ledger", self.ledger == other.ledger),
            ("stops", self.stops == other.stops),
            ("isolation", self.isolation == other.isolation),
            ("summary", self.summary() == other.summary()),
            ("evaluations", one.evaluations == two.evaluations),
            ("calls", one.calls == two.calls),
            ("pauses", one.pauses == two.pauses),
            ("time", (one.last_at, one.is_driven) == (two.last_at, two.is_driven)),
            (
                "files",
                (one.files, one.writer, one.files_are_owed) == (two.files, two.writer, two.files_are_owed),
            ),
            ("resources", one.resources == two.resources),
            ("ancestors", one.ancestors == two.ancestors),
        ];
        if let Some((part, _)) = parts.into_iter().find(|(_, agree)| !agree) {
            return Ok(Some(part));
        }
        let mut others = two.state.cells();
        for (name, cell) in one.state.cells() {
            match others.next() {
                Some((other_name, other)) if name == other_name && agree(cell, other)? => {}
                _ => return Ok(Some("slices")),
            }
        }
        Ok(others.next().map(|_| "slices"))
    }
}

fn agree(one: &Cell, other: &Cell) -> Result<bool, SessionError> {
    if one.policy() != other.policy() || one.extra() != other.extra() || one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.plain_items().zip(other.plain_items()) {
        let (one, other) = (one?, other?);
        if one.version == other.version && one.value != other.value {
            return Ok(false);
        }
    }
    Ok(true)
}
