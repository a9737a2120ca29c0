//! What a snapshot carries beside slices.

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

/// Knows where a session comes from.
pub(crate) trait ProvenanceSource: Send + Sync {
    /// What exports of the session carry.
    fn provenance(&self) -> Provenance;
}

/// The provenance of a snapshot. Made from a session it is computed when it is asked for, so that taking a snapshot stays cheap.
#[derive(Clone, Default)]
pub(crate) enum CarriedProvenance {
    #[default]
    Nothing,
    Live(Arc<dyn ProvenanceSource>),
    Stored(Arc<Provenance>),
}

impl CarriedProvenance {
    pub(crate) fn provenance(&self) -> Option<Arc<Provenance>> {
        match self {
            Self::Nothing => None,
            Self::Live(source) => Some(Arc::new(source.provenance())),
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
    /// Makes snapshots carry what this source knows.
    pub(crate) fn attach(&mut self, source: Arc<dyn ProvenanceSource>) {
        self.carried = CarriedProvenance::Live(source);
    }

    /// What snapshots carry.
    pub(crate) fn carried(&self) -> &CarriedProvenance {
        &self.carried
    }

    /// What exports of the session carry beside slices and messages. A session without a journal knows nothing.
    pub fn provenance(&self) -> Option<Arc<Provenance>> {
        self.carried.provenance()
    }
}

impl Snapshot {
    pub(crate) fn carried(&self) -> &CarriedProvenance {
        &self.carried
    }

    /// What the journal of the session knew: where its calls come from, how its evaluations were started and ended. A snapshot
    /// of a session without a journal has none.
    pub fn provenance(&self) -> Option<Arc<Provenance>> {
        self.carried.provenance()
    }

    /// The media that the snapshot brings along.
    pub fn objects(&self) -> &[CarriedObject] {
        &self.objects
    }

    /// The content that the snapshot only refers to. One that refers to nothing can be adopted by any store; one that refers
    /// to something needs a store that holds it.
    pub fn refers_to(&self) -> Result<Vec<ObjectId>, SessionError> {
        let mut wanted: Vec<ObjectId> =
            self.all::<InnerMessage>()?.iter().flat_map(|message| message.object_refs()).collect();
        wanted.extend(self.provenance().iter().flat_map(|provenance| provenance.object_refs()));
        wanted.retain(|id| self.objects.iter().all(|object| object.0.id() != *id));
        wanted.sort();
        wanted.dedup();
        Ok(wanted)
    }

    /// The snapshot with these messages as its transcript, which say the same as its own with their content inlined, and with
    /// the media that they refer to.
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

    /// The snapshot with this provenance in place of its own.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Option<Provenance>) -> Self {
        self.carried = provenance
            .map_or(CarriedProvenance::Nothing, |provenance| CarriedProvenance::Stored(Arc::new(provenance)));
        self
    }
}
