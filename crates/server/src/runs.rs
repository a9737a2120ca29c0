//! What this server drives, and how that ended.
//!
//! A session that a client starts is driven in the background. How it ended is recorded in its journal; what could not be recorded there, such
//! as a store that is full, is kept here and logged, so that no error is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch::id::SessionId;
use backstitch::report::Version;
use backstitch::time::{Clock, Timestamp};
use backstitch::{DriveOutcome, Run, Runtime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// The most runs that are listed.
const MOST_RUNS: usize = 1_000;

/// What a server drives or drove, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunsReport {
    /// Version of the form.
    pub v: Version,
    /// The runs.
    pub runs: Vec<RunEntry>,
}

/// A session that a server drives or drove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunEntry {
    /// The session.
    pub session: SessionId,
    /// When the server began to drive it.
    pub started_at: Timestamp,
    /// When that ended.
    pub ended_at: Option<Timestamp>,
    /// How far it has come.
    pub state: RunState,
    /// Why it failed.
    pub error: Option<Problem>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is driven.
    Running,
    /// It has answered.
    Answered,
    /// It waits for a decision, or was paused.
    Paused,
    /// It ended without an answer, which its journal explains.
    Ended,
    /// An error ended it.
    Failed,
}

/// The runs of a server.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<VecDeque<RunEntry>>>);

impl Runs {
    /// Follows a run to its end.
    pub(crate) fn follow(&self, runtime: &Runtime, run: Run) {
        let (session, clock) = (run.session(), runtime.clock().clone());
        let started_at = clock.now();
        let entry = RunEntry { session, started_at, ended_at: None, state: RunState::Running, error: None };
        self.with(|runs| {
            runs.push_front(entry);
            runs.truncate(MOST_RUNS);
        });
        let runs = self.clone();
        tokio::spawn(async move {
            let (state, error) = match run.outcome().await {
                Ok(DriveOutcome::Completed(_)) => (RunState::Answered, None),
                Ok(DriveOutcome::Paused { .. }) => (RunState::Paused, None),
                Ok(_) => (RunState::Ended, None),
                Err(error) => {
                    let problem = Problem::from(error);
                    tracing::warn!(%session, code = problem.code, detail = problem.detail, "a run failed");
                    (RunState::Failed, Some(problem))
                }
            };
            runs.end(session, started_at, state, error, &*clock);
        });
    }

    fn end(
        &self,
        session: SessionId,
        started_at: Timestamp,
        state: RunState,
        error: Option<Problem>,
        clock: &dyn Clock,
    ) {
        self.with(|runs| {
            let is_this = |run: &&mut RunEntry| run.session == session && run.started_at == started_at;
            if let Some(run) = runs.iter_mut().find(is_this) {
                (run.state, run.error, run.ended_at) = (state, error, Some(clock.now()));
            }
        });
    }

    /// Lists the runs.
    pub(crate) fn report(&self) -> RunsReport {
        RunsReport { v: Version, runs: self.with(|runs| runs.iter().cloned().collect()) }
    }

    /// Returns the number of runs that are driven, and of those that failed.
    pub(crate) fn count(&self) -> (usize, usize) {
        let of = |state| self.with(|runs| runs.iter().filter(|run| run.state == state).count());
        (of(RunState::Running), of(RunState::Failed))
    }

    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<RunEntry>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
