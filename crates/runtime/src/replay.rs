//! Replay: steps through the records of a session. It reads recorded outcomes and runs nothing.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, Record, RecordBody};
use backstitch_core::ports::Store;
use backstitch_core::view::JournalView;

use crate::error::{Result, RuntimeError};
use crate::live::{load_view, read_records};

/// The states of a session after each of its records.
pub struct Replay {
    records: std::vec::IntoIter<Record>,
    /// The views at the cuts of rewinds.
    cuts: std::collections::BTreeMap<Position, Option<JournalView>>,
    base: Option<JournalView>,
    view: Option<JournalView>,
}

impl Replay {
    /// Loads the records of a session.
    pub async fn of(store: &dyn Store, session: SessionId) -> Result<Self> {
        let records = read_records(store, session, Position::START, None).await?;
        let base = match records.first().map(|record| &record.body) {
            Some(RecordBody::SessionCreated(created)) => match created.origin {
                Origin::Fork { session, position } => Some(load_view(store, session, Some(position)).await?),
                Origin::Root | Origin::Call { .. } => None,
            },
            _ => return Err(RuntimeError::SessionNotFound { session }),
        };
        let cuts = records.iter().filter_map(|record| match &record.body {
            RecordBody::Rewound(rewound) => Some((rewound.to, None)),
            _ => None,
        });
        Ok(Self { cuts: cuts.collect(), records: records.into_iter(), base, view: None })
    }

    /// Returns the next record, and the view after it.
    pub fn step(&mut self) -> Result<Option<(Record, &JournalView)>> {
        let Some(record) = self.records.next() else { return Ok(None) };
        match (&mut self.view, &record.body) {
            (None, _) => self.view = Some(JournalView::begin(self.base.as_ref(), &record)?),
            (Some(view), RecordBody::Rewound(rewound)) => match self.cuts.get(&rewound.to) {
                Some(Some(prefix)) => view.rewind(&record, prefix)?,
                _ => view.apply(&record)?,
            },
            (Some(view), _) => view.apply(&record)?,
        }
        if let Some(view) = &self.view
            && let Some(cut) = self.cuts.get_mut(&view.head())
        {
            *cut = Some(view.clone());
        }
        Ok(self.view.as_ref().map(|view| (record, view)))
    }
}
