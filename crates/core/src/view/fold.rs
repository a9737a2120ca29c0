//! The fold of records to all derived data.
//!
//! [`JournalView`] can be folded from a whole journal or grown record by record, with the same result. Data
//! that a rewind cuts (state, transcript, evaluations, calls, pauses) is separate from data that it does not
//! cut (logs, the ledger, the lineage, the last stop). A gap, a second beginning, or a message out of place
//! is an error: a journal is never folded with gaps.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::{FoldError, FoldProblem};
use super::isolation::IsolationFacts;
use super::ledger::Ledger;
use super::lineage::Lineage;
use super::summary::{Stops, SummaryFacts};
use super::visible::VisibleState;
use crate::journal::{
    Origin, Position, Record, RecordBody, SessionCreated, SessionRewound, WorkspaceRevision,
};

/// All data that is derived from the records of a journal.
#[derive(Debug, Clone)]
pub struct JournalView {
    pub(super) created: Arc<SessionCreated>,
    pub(super) head: Position,
    pub(super) lineage: Lineage,
    pub(super) ledger: Ledger,
    pub(super) stops: Stops,
    pub(super) isolation: IsolationFacts,
    pub(super) facts: SummaryFacts,
    pub(super) visible: VisibleState,
}

impl JournalView {
    /// Folds a whole journal, or any prefix of one.
    pub fn fold(records: &[Record]) -> Result<Self, FoldError> {
        Self::fold_each(None, records, |_| {})
    }

    /// Folds the journal of a fork. `base` is the parent's view at the fork.
    pub fn fold_fork(base: &Self, records: &[Record]) -> Result<Self, FoldError> {
        Self::fold_each(Some(base), records, |_| {})
    }

    /// Folds a journal, or that of a fork of `base`, and calls `each` with the view after every record.
    /// Cloning a view is cheap.
    pub fn fold_each(
        base: Option<&Self>,
        records: &[Record],
        mut each: impl FnMut(&Self),
    ) -> Result<Self, FoldError> {
        let empty = || FoldError { position: Position::START, problem: FoldProblem::Beginning };
        let (first, rest) = records.split_first().ok_or_else(empty)?;
        let view = Self::begin(base, first)?;
        each(&view);
        view.fold_after(rest, each)
    }

    /// Applies the records that follow, and calls `each` with the view after every one of them. A rewind to a
    /// cut before this view fails with [`FoldProblem::NeedsPrefix`].
    pub fn fold_after(self, records: &[Record], mut each: impl FnMut(&Self)) -> Result<Self, FoldError> {
        let mut view = self;
        let mut cuts = Cuts::of(records);
        for record in records {
            cuts.keep(&view);
            match &record.body {
                RecordBody::Rewound(rewound) => {
                    let prefix = cuts.take(rewound.to, record.position);
                    view.apply_rewind(record, rewound, prefix.as_ref())?;
                }
                _ => view.apply(record)?,
            }
            each(&view);
        }
        Ok(view)
    }

    /// Creates the view of a journal that has only its first record. For a fork, `base` is the parent's view
    /// at the fork.
    pub fn begin(base: Option<&Self>, record: &Record) -> Result<Self, FoldError> {
        let at = |problem| FoldError::at(record, problem);
        let RecordBody::SessionCreated(created) = &record.body else {
            return Err(at(FoldProblem::Beginning));
        };
        if record.position != Position::START {
            return Err(at(FoldProblem::Gap { expected: Position::START }));
        }
        let mut visible = match (base, &created.origin) {
            (Some(base), Origin::Fork { session, position })
                if base.session_id() == *session && base.head == *position =>
            {
                base.visible.forked(*session)
            }
            (_, &Origin::Fork { session, position }) => {
                return Err(at(FoldProblem::NeedsParent { session, position }));
            }
            (Some(_), _) => return Err(at(FoldProblem::NotAFork)),
            (None, _) => VisibleState::default(),
        };
        visible.load(created).map_err(at)?;
        Ok(Self {
            created: created.clone(),
            head: Position::START.next(),
            lineage: Lineage::default(),
            ledger: Ledger::default(),
            stops: Stops::default(),
            isolation: base.map(|base| base.isolation.forked()).unwrap_or_default(),
            facts: SummaryFacts::of(created, base.map(|base| &base.facts), record.at),
            visible,
        })
    }

    /// Applies the next record. A rewind needs [`Self::rewind`] instead. On failure the view is unchanged.
    pub fn apply(&mut self, record: &Record) -> Result<(), FoldError> {
        if let RecordBody::Rewound(rewound) = &record.body {
            return self.apply_rewind(record, rewound, None);
        }
        self.check_place(record)?;
        let session = self.session_id();
        self.visible.fold_record(session, record).map_err(|problem| FoldError::at(record, problem))?;
        self.fold_parts(record);
        Ok(())
    }

    /// Applies a rewind, given the view of the journal up to its cut. On failure the view is unchanged.
    pub fn rewind(&mut self, record: &Record, prefix: &Self) -> Result<(), FoldError> {
        let RecordBody::Rewound(rewound) = &record.body else { return self.apply(record) };
        let fits = prefix.head == rewound.to && prefix.session_id() == self.session_id();
        self.apply_rewind(record, rewound, fits.then_some(&prefix.visible))
    }

    fn apply_rewind(
        &mut self,
        record: &Record,
        rewound: &SessionRewound,
        prefix: Option<&VisibleState>,
    ) -> Result<(), FoldError> {
        self.check_place(record)?;
        let to = rewound.to;
        if to == Position::START || to > record.position {
            return Err(FoldError::at(record, FoldProblem::NoSuchCut { to }));
        }
        let prefix = prefix.ok_or_else(|| FoldError::at(record, FoldProblem::NeedsPrefix { to }))?;
        self.visible = self.visible.rewound_to(prefix, WorkspaceRevision::of(rewound.root, rewound.coverage));
        // A restore of single files ends no call, and an undo brings back what an open call did.
        let is_undo = rewound.undoes.is_some() || rewound.redoes.is_some();
        let is_rewind = to < record.position && rewound.root.is_some() && !is_undo;
        if is_rewind || rewound.ends_calls {
            self.visible.part_from_open_calls();
        }
        self.lineage.add(record.position, to);
        self.fold_parts(record);
        Ok(())
    }

    fn check_place(&self, record: &Record) -> Result<(), FoldError> {
        if record.position == self.head {
            Ok(())
        } else {
            Err(FoldError::at(record, FoldProblem::Gap { expected: self.head }))
        }
    }

    fn fold_parts(&mut self, record: &Record) {
        self.ledger.fold_record(record);
        self.stops.fold_record(self.created.session_id, record);
        self.isolation.fold_record(self.created.session_id, record);
        self.facts.fold_record(record);
        self.head = self.head.next();
    }
}

/// Views at the cuts of later rewinds, each kept until its last use.
struct Cuts(BTreeMap<Position, CutView>);

struct CutView {
    last_use: Position,
    visible: Option<VisibleState>,
}

impl Cuts {
    fn of(records: &[Record]) -> Self {
        let rewinds = records.iter().filter_map(|record| match &record.body {
            RecordBody::Rewound(rewound) => Some((rewound.to, record.position)),
            _ => None,
        });
        Self(rewinds.map(|(to, last_use)| (to, CutView { last_use, visible: None })).collect())
    }

    fn keep(&mut self, view: &JournalView) {
        if let Some(cut) = self.0.get_mut(&view.head) {
            cut.visible = Some(view.visible.clone());
        }
    }

    fn take(&mut self, to: Position, at: Position) -> Option<VisibleState> {
        if self.0.get(&to)?.last_use == at {
            self.0.remove(&to)?.visible
        } else {
            self.0.get(&to)?.visible.clone()
        }
    }
}
