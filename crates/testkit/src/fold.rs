//! Comparison of views of journals.
//!
//! A [`JournalView`] can be folded from a whole journal or grown record by record. [`every_cut`] does the
//! latter and keeps the view of each cut; [`assert_same`] compares two views by everything that they show.

use backstitch_core::journal::{Record, RecordBody};
use backstitch_core::view::{Call, DriverPresence, Evaluation, FoldError, JournalView};

use crate::sample;

/// The views of all cuts of a journal, grown record by record: the first is that of the cut after one record.
pub fn every_cut(records: &[Record]) -> Result<Vec<JournalView>, FoldError> {
    let mut views: Vec<JournalView> = Vec::with_capacity(records.len());
    for record in records {
        let view = match (views.last(), &record.body) {
            (None, _) => JournalView::begin(None, record)?,
            (Some(last), RecordBody::Rewound(rewound)) => {
                let mut view = last.clone();
                // The view itself refuses a cut that does not exist.
                let cut = usize::try_from(rewound.to.number()).unwrap_or(usize::MAX);
                let prefix = cut.checked_sub(1).and_then(|index| views.get(index)).unwrap_or(last);
                view.rewind(record, prefix)?;
                view
            }
            (Some(last), _) => {
                let mut view = last.clone();
                view.apply(record)?;
                view
            }
        };
        views.push(view);
    }
    Ok(views)
}

/// Asserts that two views are equal. `what` describes the case in the message of a failure.
pub fn assert_same(one: &JournalView, other: &JournalView, what: &str) {
    let transcript = |view: &JournalView| view.transcript().expect("the transcript of a view can be read");
    let digest = |view: &JournalView| {
        view.content_digest(sample::clock()).expect("what was folded from stored data can be stored")
    };
    let evaluations = |view: &JournalView| view.evaluations().cloned().collect::<Vec<Evaluation>>();
    let calls = |view: &JournalView| view.calls().cloned().collect::<Vec<Call>>();

    assert_eq!(one.head(), other.head(), "{what}: the head");
    assert_eq!(one.created(), other.created(), "{what}: the creation");
    assert_eq!(one.lineage(), other.lineage(), "{what}: the lineage");
    assert_eq!(one.ledger(), other.ledger(), "{what}: the ledger");
    assert_eq!(one.summary(), other.summary(), "{what}: the summary");
    assert_eq!(transcript(one).all(), transcript(other).all(), "{what}: the transcript");
    assert_eq!(evaluations(one), evaluations(other), "{what}: the evaluations");
    assert_eq!(calls(one), calls(other), "{what}: the calls");
    assert_eq!(one.checkpoints(), other.checkpoints(), "{what}: the checkpoints");
    assert_eq!(one.pause(), other.pause(), "{what}: the pause");
    assert_eq!((one.stopped(), one.last_stop()), (other.stopped(), other.last_stop()), "{what}: the stop");
    for driver in [DriverPresence::Present, DriverPresence::Absent] {
        assert_eq!(one.status(driver), other.status(driver), "{what}: the status");
    }
    assert_eq!(digest(one), digest(other), "{what}: the slices");
}
