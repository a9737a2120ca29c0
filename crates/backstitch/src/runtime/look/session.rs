//! A session as it is, or as it was at a point.

use std::ops::Range;
use std::sync::Arc;

use backstitch_runtime::{
    KeptAttempt, PointSpec, RuntimeError, SystemClock, load_kept_attempts, readable_message,
};
use serde::Serialize;
use serde_json::Value;

use super::files::paths;
use super::request::build_to_look;
use super::view_at;
use crate::agent_file::recorded_definition;
use crate::approval::ApprovalRule;
use crate::journal::{Finish, InnerMessage, WorkspaceRevision};
use crate::machine::MachineError;
use crate::message::Large;
use crate::ports::{IndexedStatus, SessionPresence, fetch_large};
use crate::repl::{LispMachinery, Turn};
use crate::report::{
    CallLine, EvaluationReport, LastStop, PendingDecision, RecordEntry, RequestEntry, SessionParts,
    SessionReport, Version,
};
use crate::runtime::Runtime;
use crate::session::{CaptureOptions, Session};
use crate::view::{DriverPresence, Evaluation, JournalEntry, JournalView, Request};

/// A session at a point. Each part is read when it is asked for, so that a program can show the beginning of a long session at
/// once; [`SessionAt::report`] returns all of it.
pub struct SessionAt {
    runtime: Runtime,
    view: JournalView,
    files: Option<WorkspaceRevision>,
    driver: DriverPresence,
}

/// The turns of one evaluation.
pub struct EvaluationTurns {
    /// The turns that have ended.
    pub turns: Vec<Turn>,
    /// The program of a turn that has not ended.
    pub unfinished: Option<OpenProgram>,
}

/// A program that has not ended.
pub struct OpenProgram {
    /// The turn.
    pub turn: u64,
    /// The text of the program.
    pub source: String,
    /// Whether the evaluation has ended, so that the program never will.
    pub is_over: bool,
}

impl Runtime {
    /// Finds a session at a point, or at its head. `head` is its view there.
    pub async fn session_at(
        &self,
        head: &JournalView,
        point: Option<&PointSpec>,
    ) -> Result<SessionAt, RuntimeError> {
        let store = &*self.store.store;
        let (view, files) = match point {
            None => (head.clone(), head.files()),
            Some(point) => view_at(store, head, point).await?,
        };
        let holder = store.holder(head.session_id()).await?;
        let driver = if holder.is_some() { DriverPresence::Present } else { DriverPresence::Absent };
        Ok(SessionAt { runtime: self.clone(), view, files, driver })
    }

    /// Reports a session at a point, or at its head. `head` is its view there.
    pub async fn show(
        &self,
        head: &JournalView,
        point: Option<&PointSpec>,
        parts: SessionParts,
    ) -> Result<SessionReport, RuntimeError> {
        self.session_at(head, point).await?.report(parts).await
    }
}

impl SessionAt {
    /// Returns the view at the point.
    pub fn view(&self) -> &JournalView {
        &self.view
    }

    /// Returns what the session is doing. Items that wait in its inbox do not count.
    pub fn status(&self) -> IndexedStatus {
        let is_held = self.driver == DriverPresence::Present;
        IndexedStatus::of(self.view.journal_state(), SessionPresence { is_held, has_waiting: false })
    }

    /// Returns the messages at these places of the conversation, with content that is too large for their records.
    pub async fn messages(&self, places: Range<usize>) -> Result<Vec<Arc<InnerMessage>>, RuntimeError> {
        let mut messages = self.view.messages(places)?;
        for message in &mut messages {
            *message = readable_message(&*self.runtime.store.store, message).await?;
        }
        Ok(messages)
    }

    /// Returns what arrived of the attempts of a request that did not come to their end. The text of an answer that a person
    /// stopped is a message, and not among it.
    pub async fn kept_attempts(&self, request: &Request) -> Result<Vec<KeptAttempt>, RuntimeError> {
        let (answered, stopped) = match &request.finished {
            Some(finished) if finished.record.finish == Finish::Interrupted => {
                (None, Some(finished.record.attempt))
            }
            Some(finished) => (Some(finished.record.attempt), None),
            None => (None, None),
        };
        if answered.is_some() && request.failures.is_empty() {
            return Ok(Vec::new());
        }
        let mut kept = load_kept_attempts(&*self.runtime.store.store, request.started.point).await?;
        for one in kept.iter_mut().filter(|one| Some(one.attempt) == stopped) {
            one.text.clear();
        }
        kept.retain(|one| Some(one.attempt) != answered && !one.is_empty());
        Ok(kept)
    }

    /// Lists the decisions that it waits for, including those of child sessions.
    pub async fn waiting(&self) -> Result<Vec<PendingDecision>, RuntimeError> {
        self.runtime.waiting(&self.view).await
    }

    /// Describes what its agent may do. Empty for a session of another program.
    pub async fn rights(&self) -> Vec<String> {
        if self.view.created().agent.is_null() {
            return Vec::new();
        }
        let definition = recorded_definition(&*self.runtime.store.store, &self.view, None).await;
        definition.map(|definition| definition.rights()).unwrap_or_default()
    }

    /// Lists the rules about approvals that were made in the session.
    pub fn rules(&self) -> Result<Vec<Arc<ApprovalRule>>, RuntimeError> {
        Ok(self.session().all::<ApprovalRule>()?.iter().cloned().collect())
    }

    /// Returns the names and items of its slices that are not empty, without the transcript.
    pub fn state(&self) -> Result<Vec<(String, Vec<Value>)>, RuntimeError> {
        let stored = self.session().snapshot_with(CaptureOptions::include_all()).stored_slices()?;
        let others =
            stored.into_iter().filter(|slice| slice.name != "inner_message" && !slice.items.is_empty());
        Ok(others.map(|slice| (slice.name, slice.items)).collect())
    }

    /// Lists the paths of its files.
    pub fn files(&self) -> Result<Vec<String>, RuntimeError> {
        Ok(paths(&*self.runtime.store.objects, self.files)?)
    }

    /// Reports all of it, with these parts.
    pub async fn report(&self, parts: SessionParts) -> Result<SessionReport, RuntimeError> {
        let view = &self.view;
        let (waiting, rights) = (self.waiting().await?, self.rights().await);
        let turns = match parts.turns {
            true => Some(self.turns().await?.into_iter().flat_map(|of_one| of_one.turns).collect()),
            false => None,
        };
        let messages = self.messages(0..view.message_count()).await?;
        let calls = view.calls().map(|call| CallLine {
            call: call.call_id,
            name: call.name.clone(),
            status: call.status(),
            checkpoint: call.checkpoint(),
        });
        let current = view.stopped().is_some();
        let last_stop = view.last_stop().map(record).transpose()?;
        Ok(SessionReport {
            v: Version,
            session: view.session_id(),
            records: view.head(),
            status: view.status(self.driver),
            pauses: view.pauses().cloned().collect(),
            spent: view.ledger().charged(),
            messages,
            calls: calls.collect(),
            root: self.files.map(|files| files.root),
            failure: view.failure(),
            last_stop: last_stop.map(|record| LastStop { record, current }),
            evaluations: self.evaluations().await?,
            waiting,
            rights,
            state: parts.state.then(|| self.state()).transpose()?.map(|slices| slices.into_iter().collect()),
            files: parts.files.then(|| self.files()).transpose()?,
            turns,
        })
    }

    async fn evaluations(&self) -> Result<Vec<EvaluationReport>, RuntimeError> {
        let mut all = Vec::new();
        for evaluation in self.view.evaluations() {
            let mut requests = Vec::new();
            for request in &evaluation.requests {
                requests.push(RequestEntry {
                    attempts: request.attempts(),
                    started: record(&request.started)?,
                    failures: request.failures.iter().map(record).collect::<Result<_, _>>()?,
                    finished: request.finished.as_ref().map(record).transpose()?,
                    kept: self.kept_attempts(request).await?,
                });
            }
            all.push(EvaluationReport {
                evaluation: evaluation.evaluation_id,
                turns: evaluation.turns,
                outcome: evaluation.outcome(),
                error: evaluation.finished.as_ref().and_then(|finished| finished.record.error.clone()),
                requests,
            });
        }
        Ok(all)
    }

    /// Loads the turns of all evaluations. Those of agents that answer with text and calls are empty.
    pub async fn turns(&self) -> Result<Vec<EvaluationTurns>, RuntimeError> {
        let mut all = Vec::new();
        for evaluation in self.view.evaluations() {
            let mut turns = Vec::new();
            for finished in &evaluation.finished_turns {
                let mut finished = finished.clone();
                fetch_large(&*self.runtime.store.store, &mut finished).await?;
                let data = finished.data.inline().cloned().unwrap_or_default();
                let damaged = |error: serde_json::Error| MachineError::Damaged {
                    evaluation: evaluation.evaluation_id,
                    what: format!("turn {}", finished.turn),
                    reason: error.to_string(),
                };
                turns.push(serde_json::from_value(data).map_err(damaged)?);
            }
            all.push(EvaluationTurns { turns, unfinished: self.open_program_of(evaluation).await? });
        }
        Ok(all)
    }

    /// Builds the machinery that computes the full results of turns which hold a sample; `None` if the agent cannot be
    /// built here.
    pub async fn machinery(&self) -> Option<LispMachinery> {
        let definition = recorded_definition(&*self.runtime.store.store, &self.view, None).await.ok()?;
        let built = build_to_look(&definition).ok()?;
        let tools = built.agent.tools.iter().map(|tool| tool.spec.clone());
        LispMachinery::new(built.lisp?.with_tools(tools)).ok()
    }

    async fn open_program_of(&self, evaluation: &Evaluation) -> Result<Option<OpenProgram>, RuntimeError> {
        let done = evaluation.finished_turns.last().map_or(0, |turn| turn.turn);
        let latest = evaluation.programs.last().filter(|program| program.turn > done);
        let Some(mut program) = latest.cloned() else { return Ok(None) };
        fetch_large(&*self.runtime.store.store, &mut program).await?;
        let source = program.source.as_ref().and_then(Large::inline).map(ToString::to_string);
        let (source, is_over) = (source.unwrap_or_default(), evaluation.finished.is_some());
        Ok(Some(OpenProgram { turn: program.turn, source, is_over }))
    }

    fn session(&self) -> Session {
        self.view.session(Arc::new(SystemClock::new()))
    }
}

fn record<T: Serialize>(recorded: &JournalEntry<T>) -> Result<RecordEntry, RuntimeError> {
    let JournalEntry { point, at, record } = recorded;
    let data = serde_json::to_value(&**record)
        .map_err(|error| RuntimeError::Internal { reason: format!("a record has no JSON: {error}") })?;
    Ok(RecordEntry { session: point.session, position: point.position, at: *at, data })
}
