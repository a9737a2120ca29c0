//! Rewinds.
//!
//! A rewind is a record. It is appended first, together with the current files as a rescue root. Then the
//! files are restored, and that is recorded too. If the process dies in between, the files are still owed,
//! and the next process that opens the session restores them. Nothing is deleted, so undoing a rewind is
//! another rewind.

use backstitch_core::crash_point;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    ObservationCause, Position, RecordBody, SessionRewound, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::object::Object;
use backstitch_core::ports::{ReversalPlan, Store, StoreError, UncoveredPath};
use backstitch_core::tool::{ResourceUse, WorkspaceUse};
use backstitch_core::view::{Call, JournalView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effects::DiscardedEffect;
use super::locate::{ResolvedPoint, locate};
use super::own::{RewindScope, RewindTarget, RewoundHalf, StepsSince};
use super::repeats::{effects_after, pauses_for};
use crate::error::{Result, RuntimeError};
use crate::live::{LiveSession, RestoredFiles, charge_for, load_view};
use crate::point::PointSpec;
use crate::report::Version;

/// The result of a rewind, or of undoing or repeating one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RewindReport {
    /// The version of this form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The position of its record.
    pub at: Position,
    /// The cut that is visible now.
    pub to: Position,
    /// The root that the files were restored to, if they were.
    pub root: Option<WorkspaceRoot>,
    /// The root of the files before, if it was a different one.
    pub rescue: Option<WorkspaceRoot>,
    /// The restores of files that were recorded meanwhile: that of the rewind, and before it that of an interrupted call.
    #[serde(default)]
    pub restored: Vec<RestoredFiles>,
    /// Paths that are not covered, so that the files there are as they were.
    #[serde(default)]
    pub left_alone: Vec<UncoveredPath>,
    /// What has moved in the workspace's own repository since the point, one change per text. It is not undone.
    #[serde(default)]
    pub repository_changes: Vec<String>,
    /// What happened to the files that the session changed, or what would happen. Empty for a rewind of all files.
    #[serde(default)]
    pub own_files: ReversalPlan,
    /// Whether this only says what would be done. Then nothing was recorded, and `at` is where it would be.
    #[serde(default)]
    pub dry_run: bool,
    /// The calls with an effect outside that lie after the point. Their effects are not undone: a call that would
    /// repeat one waits for a decision, or has the same idempotency key.
    pub effects: Vec<DiscardedEffect>,
}

/// Why a rewind happens.
#[derive(Default)]
pub(super) struct RewindCause {
    pub(super) reason: Option<String>,
    /// The rewind that it undoes.
    pub(super) undoes: Option<Position>,
    /// The rewind that it repeats.
    pub(super) redoes: Option<Position>,
    /// The call of a caller outside that asked for it.
    pub(super) call: Option<CallId>,
    /// Whether it undoes what open calls did, although it restores files alone.
    pub(super) ends_calls: bool,
}

impl RewindReport {
    /// Returns the report of a rewind that was recorded before.
    pub(crate) fn of_record(
        session: SessionId,
        (at, rewound): (Position, &SessionRewound),
        effects: Vec<DiscardedEffect>,
    ) -> Self {
        Self {
            v: Version,
            session,
            at,
            to: rewound.to,
            root: rewound.root,
            rescue: rewound.rescue,
            restored: Vec::new(),
            left_alone: Vec::new(),
            repository_changes: Vec::new(),
            own_files: ReversalPlan::default(),
            dry_run: false,
            effects,
        }
    }
}

impl LiveSession {
    /// Rewinds to a point: state, resources, conversation, and the files that the session changed.
    pub async fn rewind(&self, point: &PointSpec, reason: Option<String>) -> Result<RewindReport> {
        self.rewind_within(point, reason, RewindScope::default()).await
    }

    /// Like [`rewind`](Self::rewind), for one half of the session, for all files, or without doing it.
    pub async fn rewind_within(
        &self,
        point: &PointSpec,
        reason: Option<String>,
        scope: RewindScope,
    ) -> Result<RewindReport> {
        self.rewind_for(None, point, reason, scope).await
    }

    /// Like [`rewind_within`](Self::rewind_within), for a call of a caller outside.
    pub(crate) async fn rewind_for(
        &self,
        call: Option<CallId>,
        point: &PointSpec,
        reason: Option<String>,
        scope: RewindScope,
    ) -> Result<RewindReport> {
        self.settle_files().await?;
        // Missing files are restored first, so that undoing this rewind finds the files that the session had.
        self.restore_missing_files().await?;
        self.flush().await?;
        let view = self.view().await;
        let place = locate(&**self.store(), &view, point).await?;
        if place.session != self.id() {
            let reason = format!(
                "it lies in session {}, which this one is a fork of: fork that one there",
                place.session
            );
            return Err(RuntimeError::NoSuchPoint { point: point.to_string(), reason });
        }
        let cause = RewindCause { reason, call, ..RewindCause::default() };
        let since = StepsSince::of(point, place.cut);
        self.rewind_with_files(&view, (place, since), cause, scope).await
    }

    /// Rewinds to before a call, which then runs again. It is a [rewind](Self::rewind) to `before:CALL`,
    /// since a live session changes only through its journal.
    pub async fn rollback_to_tool(&self, call: CallId) -> Result<RewindReport> {
        self.rewind(&PointSpec::Before(call.to_string()), None).await
    }

    /// Rewinds to before the first evaluation, and leaves the files to the parent session. The ledger is not
    /// rolled back.
    pub(crate) async fn withdraw(&self, why: &str) -> Result<()> {
        self.flush().await?;
        if self.view().await.latest_evaluation().is_none() {
            return Ok(());
        }
        let view = self.view().await;
        let place = locate(&**self.store(), &view, &PointSpec::Start).await?;
        let prefix = load_view(&**self.store(), self.id(), Some(place.cut)).await?;
        let rewound = SessionRewound { reason: Some(why.to_owned()), ..SessionRewound::new(place.cut) };
        self.commit_rewind(&prefix, rewound, Vec::new(), Vec::new()).await?;
        self.condition().settle_files();
        Ok(())
    }

    /// Rolls back the child session of a failed call, unless that was done before. Files and resources are
    /// restored by this session.
    pub(crate) async fn withdraw_child(&self, child: SessionId, why: &str) -> Result<()> {
        let environment = self.lent(WorkspaceUse::None, ResourceUse::None);
        let live = match LiveSession::open(environment, child, self.mode, |_| {}).await {
            // The process crashed before the child session was created.
            Err(RuntimeError::SessionNotFound { .. }) => return Ok(()),
            other => other?,
        };
        let withdrawn = live.withdraw(why).await;
        live.release_claim().await?;
        withdrawn
    }

    /// Rewinds to a cut, with the files that the scope says. The steps of the session since `since` are undone in them.
    pub(super) async fn rewind_with_files(
        &self,
        view: &JournalView,
        (place, since): (ResolvedPoint, StepsSince),
        mut cause: RewindCause,
        scope: RewindScope,
    ) -> Result<RewindReport> {
        let is_undo = cause.undoes.is_some() || cause.redoes.is_some();
        cause.ends_calls = scope.only == Some(RewoundHalf::Files) && !is_undo;
        let at_point = place.files.filter(|_| scope.only != Some(RewoundHalf::Conversation));
        check_kept(&**self.store(), at_point).await?;
        let coverage = at_point.and_then(|files| files.coverage);
        let repository_changes =
            self.compare_repository(coverage, |workspace, then| workspace.repository_moves(then)).await?;
        let cut = if scope.only == Some(RewoundHalf::Files) { view.head() } else { place.cut };
        let target = self.rewind_target(at_point, since, scope).await?;
        let report = self.rewind_to_target(view, (cut, target), cause, scope.dry_run).await?;
        Ok(RewindReport { repository_changes, ..report })
    }

    /// Rewinds to a cut with these files, or only reports what that would do.
    pub(super) async fn rewind_to_target(
        &self,
        view: &JournalView,
        (cut, target): (Position, RewindTarget),
        cause: RewindCause,
        dry_run: bool,
    ) -> Result<RewindReport> {
        let RewindTarget { files, objects, found, plan } = target;
        if dry_run {
            let effects = effects_after(&**self.store(), view, (self.id(), cut)).await?;
            let root = files.filter(|_| self.workspace().is_some()).map(|files| files.root);
            let rewound = SessionRewound { root, ..SessionRewound::new(cut) };
            let report = RewindReport::of_record(self.id(), (view.head(), &rewound), effects);
            return Ok(RewindReport { own_files: plan, dry_run, ..report });
        }
        let place = ResolvedPoint { session: self.id(), cut, files };
        let report = self.rewind_to(view, place, cause, (objects, found)).await?;
        Ok(RewindReport { own_files: plan, ..report })
    }

    /// Rewinds to a cut and its files. `brought` are objects of these files that are not stored yet; `found` are
    /// the current files, if these objects are enough to keep them.
    pub(super) async fn rewind_to(
        &self,
        view: &JournalView,
        place: ResolvedPoint,
        cause: RewindCause,
        (brought, found): (Vec<Object>, Option<WorkspaceRoot>),
    ) -> Result<RewindReport> {
        let prefix = load_view(&**self.store(), self.id(), Some(place.cut)).await?;
        if brought.is_empty() {
            check_kept(&**self.store(), place.files).await?;
        }
        let files = place.files.filter(|_| self.workspace().is_some());
        let (rescue, mut objects) = match (files, found) {
            (Some(files), Some(found)) => ((found != files.root).then_some(found), Vec::new()),
            // Everything is saved: a person has asked for this, and it is not worth losing content for.
            (Some(files), None) => self.rescue(files, u64::MAX).await?,
            (None, _) => (None, Vec::new()),
        };
        objects.extend(brought);
        // The actual files may differ from those in the journal: a stopped call restores its files.
        let is_recorded = files.map(|files| files.root) == view.files().map(|files| files.root);
        let is_there = files.is_none() || found.is_some() || is_recorded;
        if place.cut == view.head() && is_there && rescue.is_none() {
            return Err(RuntimeError::NothingToRewind { session: self.id() });
        }
        let effects = effects_after(&**self.store(), view, (self.id(), place.cut)).await?;
        let coverage = files.and_then(|files| files.coverage);
        let mut more = pauses_for(&**self.store(), &prefix, self.id()).await?;
        // A rewind releases the reservations of open calls, but charges what was spent for them.
        let own = |call: &&Call| {
            call.is_open() && call.intent.as_ref().is_some_and(|intent| intent.point.session == self.id())
        };
        for call in view.calls().filter(own) {
            more.extend(charge_for(self, call).await?.map(RecordBody::from));
        }
        crash_point!("rewind.before");
        let rewound = SessionRewound {
            root: files.map(|files| files.root),
            coverage,
            rescue,
            reason: cause.reason,
            undoes: cause.undoes,
            redoes: cause.redoes,
            call_id: cause.call,
            ends_calls: cause.ends_calls,
            ..SessionRewound::new(place.cut)
        };
        let at = self.commit_rewind(&prefix, rewound.clone(), more, objects).await?;
        crash_point!("rewind.recorded");
        self.restore_resources().await?;
        if let Some(files) = files {
            if let Some(found) = rescue {
                self.restore_since(found, files, Some(at)).await?;
            }
            crash_point!("rewind.restored");
            if let Some(found) = self.capture_files().await? {
                self.observe_files(found, ObservationCause::Restored).await?;
            }
        }
        self.condition().settle_files();
        let uncovered = files.and(self.workspace()).map(|workspace| workspace.uncovered());
        let left_alone = uncovered.into_iter().flatten().filter(|path| !path.reason.covers_content());
        let left_alone = left_alone.collect();
        let report = RewindReport::of_record(self.id(), (at, &rewound), effects);
        Ok(RewindReport { left_alone, ..report })
    }
}

/// Fails if retention has removed these files, before anything is recorded.
pub(super) async fn check_kept(store: &dyn Store, files: Option<WorkspaceRevision>) -> Result<()> {
    let Some(files) = files else { return Ok(()) };
    for object in [files.root.tree, files.root.manifest] {
        let found = store.object(object).await?;
        found.ok_or(StoreError::MissingObject { object })?;
    }
    Ok(())
}
