//! Going back.
//!
//! A rewind is a record. It is appended first, with the files as they were found kept as a rescue root; then the files are put
//! back, and that is recorded too. A process that dies between leaves a session that owes its files, and whoever opens it next
//! puts them back. Nothing is deleted, so undoing a rewind is another rewind.

use backstitch_core::crash_point;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    ObservationCause, Position, RecordBody, SessionRewound, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::ports::{Store, StoreError};
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use backstitch_core::view::{Call, JournalView};

use super::effects::pauses_for;
use super::locate::{ResolvedPoint, locate};
use crate::error::RuntimeError;
use crate::live::{LiveSession, load_view, read_records, spent_for};
use crate::point::PointSpec;

/// What a rewind did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindReport {
    /// Where the record of it stands.
    pub at: Position,
    /// The cut that is visible now.
    pub to: Position,
    /// What the files were put back to, if they were.
    pub root: Option<WorkspaceRoot>,
    /// What the files were before, if that was something else.
    pub rescue: Option<WorkspaceRoot>,
}

impl LiveSession {
    /// Goes back to a place: state, files, resources and conversation together.
    pub async fn rewind(
        &self,
        point: &PointSpec,
        reason: Option<String>,
    ) -> Result<RewindReport, RuntimeError> {
        self.settle_files().await?;
        // What is gone is nothing to keep: undoing this has to find the files that the session had.
        self.bring_back_files().await?;
        self.flush().await?;
        let view = self.state().await.view.clone();
        let place = locate(&**self.store(), &view, point).await?;
        if place.session != self.id() {
            let reason = format!(
                "it lies in session {}, which this one is a fork of: fork that one there",
                place.session
            );
            return Err(RuntimeError::NoSuchPoint { point: point.to_string(), reason });
        }
        self.rewind_to(&view, place, reason).await
    }

    /// Goes back to before a call, which is then made again. It is a [rewind](Self::rewind) to `before:CALL`, since the journal is
    /// the only way back of a live session.
    pub async fn rollback_to_tool(&self, call: CallId) -> Result<RewindReport, RuntimeError> {
        self.rewind(&PointSpec::Before(call.to_string()), None).await
    }

    /// Takes back the latest rewind: what was visible before it is visible again, and the files are as they were found then.
    pub async fn undo(&self) -> Result<RewindReport, RuntimeError> {
        self.settle_files().await?;
        self.bring_back_files().await?;
        self.flush().await?;
        let view = self.state().await.view.clone();
        let latest = view.lineage().rewinds().last().copied();
        let Some((at, _)) = latest else {
            return Err(RuntimeError::NothingToUndo { session: self.id() });
        };
        let record = read_records(&**self.store(), self.id(), at, Some(at.next())).await?;
        let rescue = match record.first().map(|record| &record.body) {
            Some(RecordBody::Rewound(rewound)) => WorkspaceRevision::of(rewound.rescue, rewound.coverage),
            _ => None,
        };
        let before = load_view(&**self.store(), self.id(), Some(at)).await?;
        let place = ResolvedPoint { session: self.id(), cut: at, files: rescue.or(before.files()) };
        self.rewind_to(&view, place, Some(format!("undoes the rewind at {at}"))).await
    }

    /// Goes back to before the session was asked anything, and leaves the files to whoever lent them. What it has spent stays spent.
    pub(crate) async fn withdraw(&self, why: &str) -> Result<(), RuntimeError> {
        self.flush().await?;
        if self.state().await.view.latest_evaluation().is_none() {
            return Ok(());
        }
        let view = self.state().await.view.clone();
        let place = locate(&**self.store(), &view, &PointSpec::Start).await?;
        let prefix = load_view(&**self.store(), self.id(), Some(place.cut)).await?;
        let rewound = SessionRewound { reason: Some(why.to_owned()), ..SessionRewound::new(place.cut) };
        self.go_back(&prefix, rewound, Vec::new(), Vec::new()).await?;
        self.owes_nothing();
        Ok(())
    }

    /// Takes back what a session has done for a call of this one that failed, if that was not done yet. Files and resources are
    /// this session's business.
    pub(crate) async fn withdraw_child(&self, child: SessionId, why: &str) -> Result<(), RuntimeError> {
        let surroundings = self.lent(WorkspaceUse::None, ResourceUse::None);
        let live = match LiveSession::open(surroundings, child, self.claimed_by(), |_| {}).await {
            // A crash came before it.
            Err(RuntimeError::SessionNotFound { .. }) => return Ok(()),
            other => other?,
        };
        let withdrawn = live.withdraw(why).await;
        live.give_back().await?;
        withdrawn
    }

    async fn rewind_to(
        &self,
        view: &JournalView,
        place: ResolvedPoint,
        reason: Option<String>,
    ) -> Result<RewindReport, RuntimeError> {
        let prefix = load_view(&**self.store(), self.id(), Some(place.cut)).await?;
        check_kept(&**self.store(), place.files).await?;
        let files = place.files.filter(|_| self.workspace().is_some());
        let (rescue, objects) = match files {
            Some(files) => self.rescue(files).await?,
            None => (None, Vec::new()),
        };
        // What the journal knows of the files need not be what they are: those of a call that was stopped are put back.
        let is_there = place.files == view.files() || self.workspace().is_none();
        if place.cut == view.head() && is_there && rescue.is_none() {
            return Err(RuntimeError::NothingToRewind { session: self.id() });
        }
        let mut more = pauses_for(&**self.store(), &prefix, self.id()).await?;
        // Going back gives up what is held back for calls that have not ended; what was spent for them is spent.
        let own = |call: &&Call| {
            call.is_open() && call.intent.as_ref().is_some_and(|intent| intent.point.session == self.id())
        };
        for call in view.calls().filter(own) {
            more.extend(spent_for(self, call).await?.map(RecordBody::from));
        }
        crash_point!("rewind.before");
        let rewound = SessionRewound {
            root: files.map(|files| files.root),
            coverage: files.and_then(|files| files.coverage),
            rescue,
            reason,
            ..SessionRewound::new(place.cut)
        };
        let at = self.go_back(&prefix, rewound, more, objects).await?;
        crash_point!("rewind.recorded");
        self.restore_resources().await?;
        if let Some(files) = files {
            if rescue.is_some() {
                self.put_files_back(files, Some(at)).await?;
            }
            crash_point!("rewind.restored");
            if let Some(found) = self.look_at_files().await? {
                self.observe_files(found, ObservationCause::Restored).await?;
            }
        }
        self.owes_nothing();
        Ok(RewindReport { at, to: place.cut, root: files.map(|files| files.root), rescue })
    }
}

/// Refuses to go to files that retention gave up, before anything is recorded.
pub(super) async fn check_kept(
    store: &dyn Store,
    files: Option<WorkspaceRevision>,
) -> Result<(), RuntimeError> {
    let Some(files) = files else { return Ok(()) };
    for object in [files.root.tree, files.root.manifest] {
        let found = store.object(object).await.map_err(RuntimeError::Store)?;
        found.ok_or(RuntimeError::Store(StoreError::MissingObject { object }))?;
    }
    Ok(())
}
