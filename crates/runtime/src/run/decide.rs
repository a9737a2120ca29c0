//! Decisions about sessions that wait: about calls, by people and by rules, and about repaired sessions.
//!
//! There is one rule for who records a decision. If a process drives the session, or one that it is a sub-agent of, the
//! decision goes to the inbox, and that process applies it, or the next run if that one pauses first. Otherwise it is recorded at once, with a claim to the session and
//! to the outermost one, so that no process begins to drive them in between. A decision that restores or keeps files which
//! cannot be opened here also goes to the inbox: the next run of the session opens them, and applies it. So does every decision
//! about a session that is in the queue, since that wakes it. No decision runs a call; [`Runtime::resume`] does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use backstitch_core::approval::{ApprovalRule, ApprovalRules, RuleMatch};
use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    ApprovalSubject, Decision, InboxId, InboxItem, InboxKind, Note, PauseReason, PauseResolved, QueueEntry,
};
use backstitch_core::message::OptionResult;
use backstitch_core::ports::{BoxFuture, ClaimMode, QueueQuery, QueueState, Workspace};
use backstitch_core::view::{Call, CallStatus, JournalView};
use futures_util::FutureExt as _;

use super::task::perform;
use crate::error::{Result, RuntimeError};
use crate::history::offered_result;
use crate::live::{LiveSession, callers_of};
use crate::runner::decision_of;
use crate::runtime::{Runtime, SessionOptions};
use crate::waiting::WaitingCall;
use crate::workspace::OperationFiles;

/// Options of a decision.
#[derive(Clone, Default)]
pub struct DecideOptions {
    /// The person who decides. It is recorded.
    pub by: Option<String>,
    /// A rule for later calls, as for "always allow this". It is recorded before the decision, in the outermost session, and
    /// holds for that one and its sub-agents. If another process drives that session, nothing is decided.
    pub rule: Option<ApprovalRule>,
    /// The files of the session, which only decisions about calls that may have happened need.
    pub files: OperationFiles,
    /// What the person was asked about, as [`WaitingCall::subject`] says. An approval of something else than what the call
    /// waits with now is refused. By default it is what the call waits with when the decision is made.
    pub subject: Option<ApprovalSubject>,
}

/// Where a decision is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionState {
    /// It is recorded in the session.
    Recorded,
    /// It waits in the inbox for the process that drives the session, or for the next run.
    Sent(InboxId),
}

impl Runtime {
    /// Approves a call that waits for approval. It runs on [`Runtime::resume`], or at once if its driver waits for the decision,
    /// as with engines.
    pub async fn approve(&self, session: SessionId, call: CallId) -> Result<()> {
        self.decide(session, Some(call), Decision::Approve, None).await.map(|_| ())
    }

    /// Denies a call that waits for approval. The model receives the reason once the session is resumed, or at once if its
    /// driver waits for the decision.
    pub async fn deny(&self, session: SessionId, call: CallId, reason: impl Into<String>) -> Result<()> {
        let decision = Decision::Deny { reason: Some(reason.into()) };
        self.decide(session, Some(call), decision, None).await.map(|_| ())
    }

    /// Decides about a call that waits, or about the session as a whole. `by` names the person. Fails with
    /// [`RuntimeError::Unresolvable`] if there is no such call in this session, if it has its result, or if the decision does
    /// not fit what it waits for.
    pub async fn decide(
        &self,
        session: SessionId,
        call: Option<CallId>,
        decision: Decision,
        by: Option<String>,
    ) -> Result<DecisionState> {
        self.decide_with(session, call, decision, DecideOptions { by, ..DecideOptions::default() }).await
    }

    /// Like [`decide`](Self::decide), with options: a rule for later calls, and the files of the session.
    pub fn decide_with(
        &self,
        session: SessionId,
        call: Option<CallId>,
        decision: Decision,
        options: DecideOptions,
    ) -> BoxFuture<'_, Result<DecisionState>> {
        Box::pin(async move {
            let DecideOptions { by, rule, files, subject } = options;
            let mut resolved = PauseResolved::new(decision).of_call(call).by(by);
            let runtime = self.clone();
            self.in_task(async move {
                let view = runtime.view(session).await?;
                check_pending(&view, call)?;
                resolved.subject = subject.or_else(|| subject_of(&view, call));
                let outermost = *runtime.callers_of(session).await?.first().unwrap_or(&session);
                if let Some(rule) = rule {
                    // If the process dies between the two, the rule decides about the call.
                    runtime.add_approval_rule(outermost, rule).await?;
                }
                if runtime.is_queued(outermost).await? {
                    // Only what reaches the inbox wakes a session that waits for a worker.
                    return runtime.send_decision(session, &resolved).await;
                }
                let _alone = runtime.registry.operation(outermost).await;
                match runtime.record_decision(outermost, &view, resolved.clone(), files).await {
                    Err(error) if error.code() == ErrorCode::SessionHeld => {
                        runtime.send_decision(session, &resolved).await
                    }
                    decided => decided,
                }
            })
            .await
        })
    }

    /// Lets a session continue that a person has repaired, after files or resources could not be restored
    /// ([`RuntimeError::Poisoned`]). Resources are restored again when the session is opened with them. Fails with
    /// [`RuntimeError::Unresolvable`] if the session does not wait for that.
    pub async fn resolve(&self, session: SessionId, by: Option<String>) -> Result<DecisionState> {
        self.decide(session, None, Decision::Continue, by).await
    }

    /// Decides about a call of a session, or of its sub-agents, that waits for approval as rules say: these, and those of the
    /// session and of the sub-agent. Returns the rule that decided, or `None` if a person has to decide.
    pub async fn decide_by_rule(
        &self,
        session: SessionId,
        waiting: &WaitingCall,
        rules: &ApprovalRules,
    ) -> Result<Option<RuleMatch>> {
        let arguments = waiting.arguments.as_object().filter(|_| waiting.reason == PauseReason::Approval);
        let Some(arguments) = arguments else { return Ok(None) };
        let mut rules = rules.clone();
        let mut sessions = self.callers_of(waiting.session).await?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
        for session in sessions {
            let own = self.state(session).await?.all::<ApprovalRule>()?;
            rules = rules.and(own.iter().map(|rule| (**rule).clone()));
        }
        let Some(found) = rules.judge(&waiting.name, arguments) else { return Ok(None) };
        let Some((decision, by)) = decision_of(&found) else { return Ok(None) };
        self.decide(waiting.session, Some(waiting.call), decision, Some(by)).await?;
        Ok(Some(found))
    }

    /// Returns the recorded result that is on offer for a call which may have happened, if there is one.
    pub async fn offered_result(&self, session: SessionId, call: CallId) -> Result<Option<OptionResult>> {
        let view = self.view(session).await?;
        let offered = offered_result(&**self.store(), &view, call).await?;
        Ok(offered.and_then(|message| message.message.option_result().cloned()))
    }

    /// Adds a rule about calls to a session. It holds for the session and for its sub-agents, and a rewind to a point before
    /// it removes it. Fails if another process drives the session.
    pub fn add_approval_rule(&self, session: SessionId, rule: ApprovalRule) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.change(session, move |live| async move { live.add_approval_rule(rule).await }).await
        })
    }

    /// Removes the rules of a session that let calls run without a question, as for one that another person started, and
    /// returns them. A rewind to a point before this restores them. Fails if another process drives the session.
    pub fn remove_allowing_rules(&self, session: SessionId) -> BoxFuture<'_, Result<Vec<ApprovalRule>>> {
        Box::pin(async move {
            self.change(session, |live| async move { live.remove_allowing_rules().await }).await
        })
    }

    /// Asks again about the open calls of a session that a person has approved, as for one that another person started, and
    /// returns how many there are. Fails if another process drives the session.
    pub fn withdraw_approvals(&self, session: SessionId) -> BoxFuture<'_, Result<usize>> {
        Box::pin(
            async move { self.change(session, |live| async move { live.withdraw_approvals().await }).await },
        )
    }

    /// Adds a note to a session. Fails if another process drives it.
    pub async fn add_note(&self, session: SessionId, note: Note) -> Result<()> {
        self.add_notes(session, vec![note]).await
    }

    /// Adds notes to a session, together. Fails if another process drives it.
    pub fn add_notes(&self, session: SessionId, notes: Vec<Note>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let records = move |live: Arc<LiveSession>| async move {
                live.record(notes.into_iter().map(Into::into).collect()).await
            };
            self.change(session, records).await
        })
    }

    /// Changes the records of a session: with the run of this runtime that drives it, or with a claim.
    async fn change<T, F>(
        &self,
        session: SessionId,
        change: impl FnOnce(Arc<LiveSession>) -> F + Clone + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if let Some(live) = self.registry.get(session) {
            match change.clone()(live).await {
                // The run ended meanwhile and released the session.
                Err(RuntimeError::ClaimLost { .. }) => {}
                done => return done,
            }
        }
        self.operate_with(session, OperationFiles::Untouched, change).await
    }

    /// Returns a session and those that it is a sub-agent of, the outermost first.
    pub(super) async fn callers_of(&self, session: SessionId) -> Result<Vec<SessionId>> {
        callers_of(&**self.store(), session).await
    }

    /// Records a decision with the claims to its session and to the outermost one. It is sent if it needs files that cannot
    /// be opened here.
    async fn record_decision(
        &self,
        outermost: SessionId,
        view: &JournalView,
        resolved: PauseResolved,
        files: OperationFiles,
    ) -> Result<DecisionState> {
        let session = view.session_id();
        let workspace = if needs_files(view, &resolved) {
            match self.workspace_to_decide(session, files).await? {
                Some(workspace) => Some(workspace),
                None => return self.send_decision(session, &resolved).await,
            }
        } else {
            None
        };
        let outer = if outermost == session {
            None
        } else {
            let claim = self.store().claim(outermost, self.owner().clone(), ClaimMode::IfFree);
            Some(claim.await?)
        };
        let recording = async {
            let options = SessionOptions { workspace, ..SessionOptions::default() };
            let live = self.open_idle(session, options).await?;
            perform(live, |live| async move { live.apply_decision(resolved).await }).await
        };
        let recorded = AssertUnwindSafe(recording).catch_unwind().await;
        if let Some(outer) = outer {
            self.store().release(outer).await?;
        }
        recorded.unwrap_or(Err(RuntimeError::DriverPanicked))?;
        Ok(DecisionState::Recorded)
    }

    /// Opens the files that a decision restores or keeps. `None` if they are left to the next run of the session.
    async fn workspace_to_decide(
        &self,
        session: SessionId,
        files: OperationFiles,
    ) -> Result<Option<Arc<dyn Workspace>>> {
        let is_recorded = matches!(files, OperationFiles::Recorded);
        match self.session_workspace(session, files).await {
            // The run opens them as its agent says, and returns the reason if it cannot.
            Err(_) if is_recorded => Ok(None),
            Err(error) => Err(self.explain_held(session, error).await),
            opened => opened,
        }
    }

    async fn send_decision(&self, session: SessionId, resolved: &PauseResolved) -> Result<DecisionState> {
        let data =
            serde_json::to_value(resolved).map_err(|error| RuntimeError::Unresolvable(error.to_string()))?;
        let item = InboxItem { kind: InboxKind::Resolution, at: self.clock().now(), data };
        Ok(DecisionState::Sent(self.send_within(session, item).await?))
    }

    /// Sends a decision or a signal to a session or a sub-agent. The queue has only the outermost session, which passes it on.
    pub(super) async fn send_within(&self, session: SessionId, item: InboxItem) -> Result<InboxId> {
        let outermost = *self.callers_of(session).await?.first().unwrap_or(&session);
        if outermost != session && self.is_queued(outermost).await? {
            return Ok(self.store().send(outermost, item.for_sub_agent(session)).await?);
        }
        Ok(self.store().send(session, item).await?)
    }

    /// Makes a session of the queue ready that this process drives without it. Once this process has ended or was killed, a worker looks
    /// at the session: it may have its answer, or wait for something else than before.
    pub(super) async fn give_to_workers(&self, session: SessionId) -> Result<()> {
        let Ok(queue) = self.queue() else { return Ok(()) };
        let query = QueueQuery { session: Some(session), limit: 1, ..QueueQuery::default() };
        if let Some(one) = queue.queued(query).await?.sessions.pop() {
            queue.enqueue(session, QueueEntry { due: None, key: None, ..one.entry }).await?;
        }
        Ok(())
    }

    /// Whether workers drive a session. One that they gave up, they do not.
    pub(super) async fn is_queued(&self, session: SessionId) -> Result<bool> {
        let Ok(queue) = self.queue() else { return Ok(false) };
        let query = QueueQuery { session: Some(session), limit: 1, ..QueueQuery::default() };
        let found = queue.queued(query).await?.sessions;
        Ok(found.iter().any(|one| one.state != QueueState::Failed))
    }
}

/// Fails if a decision is about a call that was not made, or that has its result.
fn check_pending(view: &JournalView, call: Option<CallId>) -> Result<()> {
    let Some(call) = call else { return Ok(()) };
    let why = match view.call(call).map(Call::status) {
        Some(CallStatus::Pending) => return Ok(()),
        None => "there is no such call",
        Some(CallStatus::Completed | CallStatus::Failed) => "it has its result already",
    };
    Err(RuntimeError::Unresolvable(format!("call {call}: {why}")))
}

/// Returns what a person is asked about a call.
fn subject_of(view: &JournalView, call: Option<CallId>) -> Option<ApprovalSubject> {
    let pause = view.pauses().find(|pause| call.is_some() && pause.call_id == call)?;
    pause.subject.clone()
}

/// Whether a decision restores or keeps the files of a call that may have happened.
fn needs_files(view: &JournalView, resolved: &PauseResolved) -> bool {
    let known = resolved.call_id.and_then(|call| view.call(call));
    let wrote =
        known.and_then(|call| call.intent.as_ref()).is_some_and(|intent| intent.record.root.is_some());
    wrote && matches!(resolved.decision, Decision::Happened { .. } | Decision::Fail { .. })
}
