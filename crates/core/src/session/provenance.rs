//! The provenance that a snapshot carries in addition to slices.

use std::fmt;
use std::sync::Arc;

use super::Session;
use super::cell::Cell;
use super::error::SessionError;
use super::items::Items;
use super::slice::Slice as _;
use super::snapshot::Snapshot;
use crate::object::{Object, ObjectId};
use crate::payload::{CarriedObject, InnerMessage, Provenance};

/// A source of a session's provenance.
pub(crate) type ProvenanceSource = Arc<dyn Fn() -> Provenance + Send + Sync>;

/// The provenance of a snapshot. That of a session is computed on demand, so that taking a snapshot stays
/// cheap.
#[derive(Clone, Default)]
pub(crate) enum CarriedProvenance {
    #[default]
    Nothing,
    Live(ProvenanceSource),
    Stored(Arc<Provenance>),
}

impl CarriedProvenance {
    pub(crate) fn provenance(&self) -> Option<Arc<Provenance>> {
        match self {
            Self::Nothing => None,
            Self::Live(source) => Some(Arc::new(source())),
            Self::Stored(stored) => Some(stored.clone()),
        }
    }
}

impl fmt::Debug for CarriedProvenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Carried").field(&self.provenance()).finish()
    }
}

impl Session {
    /// Makes snapshots carry the provenance of this source.
    pub(crate) fn attach(&mut self, source: ProvenanceSource) {
        self.carried = CarriedProvenance::Live(source);
    }

    /// The provenance that snapshots carry.
    pub(crate) fn carried(&self) -> &CarriedProvenance {
        &self.carried
    }

    /// Returns the provenance for exports of the session. A session without a journal has none.
    pub fn provenance(&self) -> Option<Arc<Provenance>> {
        self.carried.provenance()
    }
}

impl Snapshot {
    pub(crate) fn carried(&self) -> &CarriedProvenance {
        &self.carried
    }

    /// Returns what the journal of the session knew: the origin of its calls, and how its evaluations started
    /// and ended. A snapshot of a session without a journal has none.
    pub fn provenance(&self) -> Option<Arc<Provenance>> {
        self.carried.provenance()
    }

    /// The media that the snapshot contains.
    pub fn objects(&self) -> &[CarriedObject] {
        &self.objects
    }

    /// Returns the content that the snapshot refers to but does not contain. Any store can adopt a snapshot
    /// without such references; otherwise the store must hold that content.
    pub fn refers_to(&self) -> Result<Vec<ObjectId>, SessionError> {
        let mut wanted: Vec<ObjectId> =
            self.all::<InnerMessage>()?.iter().flat_map(|message| message.object_refs()).collect();
        wanted.extend(self.provenance().iter().flat_map(|provenance| provenance.object_refs()));
        wanted.retain(|id| self.objects.iter().all(|object| object.0.id() != *id));
        wanted.sort();
        wanted.dedup();
        Ok(wanted)
    }

    /// Replaces the transcript by messages of the same meaning whose content is inlined, and adds the media
    /// that they refer to.
    pub fn with_content(
        mut self,
        messages: Vec<Arc<InnerMessage>>,
        provenance: Option<Provenance>,
        objects: Vec<Object>,
    ) -> Self {
        if !messages.is_empty() {
            let mut items = Items::default();
            items.extend(messages);
            self.state.put(InnerMessage::NAME.into(), Arc::new(Cell::typed(InnerMessage::POLICY, items)));
        }
        self.objects = objects.into_iter().map(CarriedObject).collect();
        self.with_provenance(provenance)
    }

    /// Replaces the provenance of the snapshot.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Option<Provenance>) -> Self {
        self.carried = provenance
            .map_or(CarriedProvenance::Nothing, |provenance| CarriedProvenance::Stored(Arc::new(provenance)));
        self
    }
}
