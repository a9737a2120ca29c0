//! Sessions whose work another program does.
//!
//! An outside agent runs its own loop and its own tools. Its hooks report each prompt, each call and each answer, and an
//! [`ObservedSession`] records them as the records of an ordinary session, with the files as they were at that moment.
//! So points, differences, rewinds and forks work as for any other session. Nothing is ever run or repeated here.
//!
//! The reports of such a program are not complete. A call may end without a report, calls may overlap, and a report may be
//! lost. Three rules follow:
//!
//! - a call that is open at a *barrier* (a prompt, an answer, the end of a sub-agent or of the program) is closed there,
//!   with the files as they are then;
//! - a call that ends and was never seen to start gets a record without files before it, and a note names the gap;
//! - calls that were open at the same time share their changes, and a note names them.
//!
//! A program that reports nothing has *boundaries* instead of calls: its files are recorded whenever they have changed.
//!
//! A failed call keeps its changes: the program does not roll back, so the call has succeeded in the sense of
//! [`CallVerdict`](backstitch_core::journal::CallVerdict), and its result is an error.

mod boundary;
mod close;
mod engine;
mod record;
mod rewound;

use backstitch_core::ports::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{
    CallChanges, CallStarted, Decision, Effect, EvaluationFinished, EvaluationOutcome, EvaluationStarted,
    Note, ObservationCause, RecordBody, WorkspaceObserved, WorkspaceRevision, WorkspaceRoot,
};
use backstitch_core::message::{Large, MessageBuilder, OptionCall, PolicyName, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::view::{Call, CallStatus, JournalView};
use serde_json::{Map, Value};

pub(crate) use boundary::is_boundary;
pub use boundary::{ObservedBoundary, changes_line};
use record::observed_call_id;
pub(crate) use record::session_around;
pub use record::{
    OBSERVED_INSIDE, ObservedCall, ObservedPrompt, ObservedRequest, ObservedResult, is_observed,
    observed_agent, observed_conversation, observed_origin, observed_prompt_id,
};
pub use rewound::UnseenRewind;

use self::close::EndedCalls;
use crate::content::call_message;
use crate::error::Result;
use crate::live::{Commit, Durable, LiveSession, recorded};

/// Topic of notes about what was not seen.
const GAP: &str = "gap";

/// A session whose work another program does, and that this process holds for the length of one report.
pub struct ObservedSession {
    live: Arc<LiveSession>,
    /// The program, which decides and whose words are answers.
    program: PolicyName,
    /// Where the program keeps the conversation, in its own words.
    origin: Map<String, Value>,
    /// The conversation that requests belong to, in its own words.
    conversation: Map<String, Value>,
    /// The turn that reports belong to, if the program names its turns; else 0.
    turn: AtomicU64,
}

/// The files at the moment of a report, with the objects that are not stored yet.
struct SeenFiles {
    files: WorkspaceRevision,
    objects: Vec<Object>,
    /// What changed since the roots before calls that are open.
    changes: HashMap<WorkspaceRoot, CallChanges>,
}

impl ObservedSession {
    /// Records reports of a program in a session.
    pub fn new(live: Arc<LiveSession>, program: PolicyName) -> Self {
        Self { live, program, origin: Map::new(), conversation: Map::new(), turn: AtomicU64::new(0) }
    }

    /// Names the conversation of the program, in its own words. Evaluations that begin from now on are recorded with it.
    #[must_use]
    pub fn with_origin(self, origin: Map<String, Value>) -> Self {
        Self { origin, ..self }
    }

    /// Returns the id of the session.
    pub fn id(&self) -> SessionId {
        self.live.id()
    }

    /// Returns the view of the session, with what was reported so far.
    pub async fn view(&self) -> JournalView {
        *self.live.view().await
    }

    /// Stores what was reported, and releases the session.
    pub async fn release(&self) -> Result<()> {
        self.live.release().await
    }

    /// Records that the program starts or continues: files that changed since, and calls that never ended.
    pub async fn record_start(&self) -> Result<()> {
        self.barrier(None).await
    }

    /// Records a prompt. It ends the evaluation before it, if that has not ended.
    pub fn prompt(&self, prompt: ObservedPrompt) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.close_calls().await?;
            self.end(EvaluationOutcome::Cancelled).await?;
            let evaluation = self.begin(prompt.id.as_deref()).await?;
            let ids = self.live.state().await.session.ids().clone();
            let mut builder = MessageBuilder::continue_step(1, &ids);
            builder.person(PolicyName::new("user")?).add_text(prompt.text);
            let message = builder.to_message()?;
            self.live.commit(|commit| commit.say(evaluation, 0, message).map(drop)).await
        })
    }

    /// Records that a call is about to run, with the files before it.
    pub fn record_call_start(&self, call: ObservedCall) -> BoxFuture<'_, Result<CallId>> {
        Box::pin(async move {
            let seen = self.capture().await?;
            let evaluation = self.open_evaluation().await?;
            let id = self.new_call_id(&call.id).await;
            self.live
                .commit(|commit| {
                    // A change before the call is its own only if nothing else could have made it.
                    let none_open = commit.view().calls().all(|call| !call.is_open());
                    let files = seen.as_ref().map(|seen| seen.files);
                    if none_open && commit.view().files().is_some_and(|known| Some(known) != files) {
                        Self::record_drift(commit, seen);
                    } else {
                        commit.add_objects(seen.into_iter().flat_map(|seen| seen.objects));
                    }
                    self.push_start(commit, evaluation, id, &call, files)
                })
                .await?;
            Ok(id)
        })
    }

    /// Records the end of a call, with the files after it.
    pub fn record_call_end(&self, call: ObservedCall, result: ObservedResult) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let seen = self.capture_end().await?;
            let id = self.call_id(&call.id).await;
            let known = self.live.view().await.call(id).map(|call| (call.is_open(), call.evaluation_id));
            if known.is_none() {
                let evaluation = self.open_evaluation().await?;
                self.hold(|commit| {
                    let text =
                        format!("{} was not seen before it ran, so there is no state before it", call.name);
                    commit.push(Note::new(GAP, text));
                    self.push_start(commit, evaluation, id, &call, None)
                })
                .await?;
            }
            self.live
                .commit(|commit| {
                    let view = commit.view();
                    match known {
                        Some((false, _)) => {
                            let text = format!("late end of {}: it was already closed", call.name);
                            commit.push(Note::new("guard", text));
                            Self::record_drift(commit, seen);
                            Ok(())
                        }
                        _ => {
                            let closing = EndedCalls::one(view, id, result);
                            closing.record(commit, seen.as_ref())?;
                            commit.add_objects(seen.into_iter().flat_map(|seen| seen.objects));
                            Ok(())
                        }
                    }
                })
                .await
        })
    }

    /// Closes the calls that are open: all of them, or those of one sub-agent. Records changed files.
    pub fn barrier<'a>(&'a self, agent: Option<&'a str>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let seen = self.capture_end().await?;
            self.live
                .commit(|commit| {
                    let closing = match agent {
                        Some(agent) => EndedCalls::of_agent(commit.view(), agent),
                        None => EndedCalls::all(commit.view()),
                    };
                    closing.record(commit, seen.as_ref())?;
                    Self::record_drift(commit, seen);
                    Ok(())
                })
                .await
        })
    }

    /// Records the end of an evaluation, with the answer if there is one.
    pub fn record_answer(
        &self,
        text: Option<String>,
        outcome: EvaluationOutcome,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.close_calls().await?;
            let text = text.filter(|text| !text.trim().is_empty());
            if let Some(text) = text {
                let evaluation = self.open_evaluation().await?;
                let turn = turns(&*self.live.view().await, evaluation) + 1;
                let ids = self.live.state().await.session.ids().clone();
                let mut builder = MessageBuilder::continue_step(turn, &ids);
                builder.policy(self.program.clone()).role_hint(RoleHint::Assistant).add_text(text);
                let message = builder.to_message()?;
                self.hold(|commit| commit.say(evaluation, turn, message).map(drop)).await?;
            }
            self.end(outcome).await?;
            self.live.flush().await
        })
    }

    /// Closes all open calls with the files as they are now, in the commit of what comes next.
    async fn close_calls(&self) -> Result<()> {
        let seen = self.capture_end().await?;
        self.hold(|commit| {
            EndedCalls::all(commit.view()).record(commit, seen.as_ref())?;
            Self::record_drift(commit, seen);
            Ok(())
        })
        .await
    }

    /// Records something that was not seen.
    pub async fn gap(&self, text: String) -> Result<()> {
        self.live.record_when(vec![Note::new(GAP, text).into()], Durable::WithNext).await
    }

    /// Records how the program is guarded.
    pub async fn note(&self, text: String) -> Result<()> {
        self.live.record_when(vec![Note::new("guard", text).into()], Durable::WithNext).await
    }

    /// Returns the id of the call that a program knows by another id: of the latest one, if the program has used its id
    /// more than once.
    pub async fn call_id(&self, foreign: &str) -> CallId {
        let state = self.live.state().await;
        let id = |count: usize| observed_call_id(self.id(), foreign, count);
        let later = (2..).take_while(|count| state.view.call(id(*count)).is_some());
        id(later.last().unwrap_or(1))
    }

    /// Returns the id of a call that begins. Some models use the id of a call again that has ended, and then it is another
    /// call.
    async fn new_call_id(&self, foreign: &str) -> CallId {
        let state = self.live.state().await;
        let has_ended =
            |id: &CallId| state.view.call(*id).is_some_and(|call| call.status() != CallStatus::Pending);
        let mut ids = (1..).map(|count| observed_call_id(self.id(), foreign, count));
        ids.find(|id| !has_ended(id)).unwrap_or_else(|| observed_call_id(self.id(), foreign, 1))
    }

    async fn capture(&self) -> Result<Option<SeenFiles>> {
        let seen = self.live.capture_files().await?.map(recorded);
        Ok(seen.map(|(files, objects)| SeenFiles { files, objects, changes: HashMap::new() }))
    }

    /// Captures the files where calls may end, with what changed since the start of each call that is open.
    async fn capture_end(&self) -> Result<Option<SeenFiles>> {
        let Some(mut seen) = self.capture().await? else { return Ok(None) };
        let view = self.live.view().await;
        let open = view.calls().filter(|call| call.is_open());
        let roots: HashSet<WorkspaceRoot> =
            open.filter_map(|call| call.intent.as_ref()?.record.root).collect();
        for before in roots {
            let after = Some(seen.files.root);
            let changes = self.live.changes_between(Some(before), after, &seen.objects).await?;
            seen.changes.extend(changes.map(|changes| (before, changes)));
        }
        Ok(Some(seen))
    }

    /// Commits together with the next commit that has to be durable.
    async fn hold<R>(&self, build: impl FnOnce(&mut Commit<'_>) -> Result<R>) -> Result<R> {
        self.live
            .commit(|commit| {
                commit.durable(Durable::WithNext);
                build(commit)
            })
            .await
    }

    /// Records files that differ from those of the journal.
    fn record_drift(commit: &mut Commit<'_>, seen: Option<SeenFiles>) {
        let Some(SeenFiles { files, objects, .. }) = seen else { return };
        let (view, mut known) = (commit.view(), commit.view().files());
        // Calls that this commit closes have the same files.
        let closes = commit.batch().bodies().iter().any(|body| matches!(body, RecordBody::CallFinished(_)));
        if closes {
            known = Some(files);
        }
        let cause = match known {
            None => ObservationCause::Started,
            Some(known) if known.root != files.root || view.owed_files().is_some() => {
                ObservationCause::Drifted
            }
            Some(_) => {
                commit.add_objects(objects);
                return;
            }
        };
        let observed =
            WorkspaceObserved { coverage: files.coverage, ..WorkspaceObserved::new(files.root, cause) };
        commit.push(observed).add_objects(objects);
    }

    /// Returns the open evaluation. If there is none, one begins without a prompt.
    async fn open_evaluation(&self) -> Result<EvaluationId> {
        let state = self.live.state().await;
        match state.view.latest_evaluation().filter(|latest| latest.finished.is_none()) {
            Some(open) => Ok(open.evaluation_id),
            None => self.begin(None).await,
        }
    }

    async fn begin(&self, prompt: Option<&str>) -> Result<EvaluationId> {
        self.hold(|commit| {
            let view = commit.view();
            let evaluation: EvaluationId = commit.session().ids().next();
            commit.push(EvaluationStarted {
                follows: view.to_follow(None),
                directory: self.live.new_directory(view),
                excludes: self.live.new_excludes(view),
                decider: Some(self.program.clone()),
                extra: record::of_prompt(prompt, &self.origin),
                ..EvaluationStarted::new(evaluation, "guard", self.program.as_str())
            });
            Ok(evaluation)
        })
        .await
    }

    /// Ends the open evaluation, if there is one. The record is stored with the next one.
    async fn end(&self, outcome: EvaluationOutcome) -> Result<()> {
        self.hold(|commit| {
            let latest = commit.view().latest_evaluation().filter(|latest| latest.finished.is_none());
            if let Some(latest) = latest {
                commit.push(EvaluationFinished::new(latest.evaluation_id, outcome));
            }
            Ok(())
        })
        .await
    }

    /// Records the start of a call. Its message comes after it, so that the call is not pending at the point before it.
    fn push_start(
        &self,
        commit: &mut Commit<'_>,
        evaluation: EvaluationId,
        id: CallId,
        call: &ObservedCall,
        files: Option<WorkspaceRevision>,
    ) -> Result<()> {
        let view = commit.view();
        let is_beside = view.calls().any(|other| other.evaluation_id == evaluation && other.is_open());
        // Calls that overlap belong to one answer.
        let turn = match self.turn.load(Ordering::SeqCst) {
            0 => (turns(view, evaluation) + u64::from(!is_beside)).max(1),
            named => named,
        };
        let attempt = view.call(id).and_then(Call::latest_intent).map_or(1, |intent| intent.attempt + 1);
        // A call that waited for a person is known already, and may have been edited.
        let waited = view.call(id).filter(|known| known.latest_intent().is_none());
        let is_edited = waited.and_then(|known| known.decision.as_ref());
        let is_edited = is_edited.is_some_and(|by| matches!(by.decision, Decision::Edit { .. }));
        let edited = call.arguments().object().cloned().filter(|_| is_edited);
        commit.push(CallStarted {
            call_id: id,
            evaluation_id: evaluation,
            name: call.name.clone(),
            arguments: edited.map(Large::Inline),
            effect: Effect::External,
            idempotency_key: view.idempotency_key(id),
            attempt,
            root: files.map(|files| files.root),
            coverage: files.and_then(|files| files.coverage),
            reservation: None,
            session: None,
            extra: record::of_call(turn, call.agent.as_deref()),
        });
        if attempt > 1 || waited.is_some() {
            return Ok(());
        }
        self.say_call(commit, evaluation, turn, id, call)
    }

    /// Records the message of a call.
    fn say_call(
        &self,
        commit: &mut Commit<'_>,
        evaluation: EvaluationId,
        turn: u64,
        id: CallId,
        call: &ObservedCall,
    ) -> Result<()> {
        let mut option = OptionCall::new(id, call.name.as_str(), call.arguments());
        option.provider_call_id = Some(call.id.clone());
        commit.say(evaluation, turn, call_message(self.program.clone(), option, Some(turn))).map(drop)
    }
}

fn turns(view: &JournalView, evaluation: EvaluationId) -> u64 {
    view.evaluation(evaluation).map_or(0, |known| known.turns)
}
