//! Generates a journal step by step.
//!
//! A [`Generator`] keeps the visible state ([`Here`]) at the head and at each cut of the journal, so it can
//! rewind to any cut and continue there. Each step depends only on the visible state and on the random
//! generator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::Reservation;
use backstitch_core::id::{CallId, EvaluationId, IdStream, SessionId};
use backstitch_core::journal::{
    ApplyFinished, Batch, Decision, EvaluationResumed, ObservationCause, PauseReason, PauseResolved,
    Position, RecordBody, RecordsRedacted, SessionPaused, SessionRewound, TurnFinished, WorkspaceObserved,
    WorkspaceRoot,
};
use backstitch_core::message::Message;
use backstitch_core::object::{Object, ObjectKind};
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::time::{Clock, FixedClock};
use serde_json::json;

use super::journal::{Journal, Shape};
use super::{clock, content, created, ids_of, note, slices};

/// The visible state at one cut of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct Here {
    pub(super) running: Option<OpenEvaluation>,
    pub(super) paused: Option<(PauseReason, Option<CallId>)>,
    pub(super) superseded: Option<EvaluationId>,
    /// The evaluation that ended last.
    pub(super) ended: Option<EvaluationId>,
    /// The evaluation that `ended` followed.
    pub(super) ended_after: Option<EvaluationId>,
    /// Number of tasks in the `State` slice.
    pub(super) tasks: usize,
}

/// An evaluation that has not ended.
#[derive(Debug, Clone)]
pub(super) struct OpenEvaluation {
    pub(super) id: EvaluationId,
    pub(super) sequence: u64,
    pub(super) turn: u64,
    /// The calls without a result, in the order in which they were made.
    pub(super) calls: Vec<OpenCall>,
    pub(super) follows: Option<EvaluationId>,
}

/// A call without a result.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    pub(super) message: Message,
    pub(super) attempts: u32,
    pub(super) approved: bool,
    pub(super) reservation: Option<Reservation>,
}

/// Generates a journal.
pub(super) struct Generator {
    pub(super) shape: Shape,
    pub(super) rng: Rng,
    pub(super) clock: Arc<FixedClock>,
    pub(super) ids: IdStream,
    pub(super) session: SessionId,
    pub(super) here: Here,
    /// The visible state at each cut, from the empty journal on.
    cuts: Vec<Here>,
    /// The cuts before and after calls.
    pub(super) boundaries: Vec<Position>,
    batch: Batch,
    batches: Vec<Batch>,
    pub(super) answers: usize,
}

impl Generator {
    pub(super) fn new(seed: u64, shape: Shape) -> Self {
        let clock = clock();
        let ids = ids_of(seed, clock.clone());
        let mut generator = Self {
            shape,
            rng: Seed::new(seed).rng(),
            ids: ids.clone(),
            session: ids.next(),
            here: Here::default(),
            cuts: vec![Here::default()],
            boundaries: Vec::new(),
            batch: Batch::at(clock.now()),
            batches: Vec::new(),
            answers: 0,
            clock,
        };
        generator.create();
        generator
    }

    pub(super) fn into_journal(mut self) -> Journal {
        self.commit();
        Journal { session: self.session, batches: self.batches }
    }

    /// Adds the records of the next random step.
    pub(super) fn step(&mut self) {
        if self.one_in(self.shape.rewinds) {
            return self.rewind();
        }
        if self.one_in(self.shape.asides) {
            self.aside();
        }
        match &self.here {
            Here { paused: Some(_), .. } => self.resolve(),
            Here { running: None, .. } => self.start_evaluation(),
            Here { running: Some(running), .. } if !running.calls.is_empty() => self.step_call(),
            Here { .. } => {
                if self.one_in(self.shape.pauses) {
                    self.pause(PauseReason::Asked, None);
                } else {
                    self.ask();
                }
            }
        }
    }

    /// Runs the calls that are open.
    pub(super) fn finish_calls(&mut self) {
        while self.here.running.as_ref().is_some_and(|running| !running.calls.is_empty()) {
            self.step_call();
        }
    }

    /// The evaluation that runs. There has to be one.
    pub(super) fn running(&mut self) -> &mut OpenEvaluation {
        self.here.running.as_mut().expect("an evaluation runs while it is changed")
    }

    pub(super) fn one_in(&mut self, once_in: u64) -> bool {
        once_in > 0 && self.rng.below(once_in) == 0
    }

    pub(super) fn position(&self) -> Position {
        Position::START.after(self.cuts.len() - 1)
    }

    /// Adds a record to the batch. Its effect on the visible state has to be in `here` before.
    pub(super) fn push(&mut self, body: impl Into<RecordBody>) {
        self.batch.push(body);
        self.cuts.push(self.here.clone());
    }

    pub(super) fn add_objects(&mut self, objects: Vec<Object>) {
        for object in objects {
            self.batch.add_object(object);
        }
    }

    /// Ends the batch.
    pub(super) fn commit(&mut self) {
        self.clock.advance(Duration::from_micros(1 + self.rng.below(2_000_000)));
        let next = Batch::at(self.clock.now());
        let batch = std::mem::replace(&mut self.batch, next);
        if !batch.is_empty() {
            self.batches.push(batch);
        }
    }

    fn create(&mut self) {
        let mut first = created(self.session);
        first.agent = json!({ "model": "sample-1", "tools": ["read_file", "write_file"] });
        first.tags = BTreeMap::from([("made_by".into(), "sample".into())]);
        self.here.tasks = self.rng.below(3) as usize;
        if self.here.tasks > 0 {
            let tasks = (0..self.here.tasks).map(|_| slices::task(&mut self.rng)).collect();
            first.state.push(slices::stored_tasks(tasks));
        }
        self.push(first);
        self.commit();
    }

    pub(super) fn pause(&mut self, reason: PauseReason, call_id: Option<CallId>) {
        self.commit();
        self.here.paused = Some((reason, call_id));
        let detail = Some(content::sentence(&mut self.rng, 4));
        self.push(SessionPaused { call_id, detail, ..SessionPaused::new(reason) });
        self.commit();
    }

    pub(super) fn add_resolution(&mut self, call_id: Option<CallId>, decision: Decision) {
        self.here.paused = None;
        self.push(PauseResolved { call_id, by: Some("ada".into()), ..PauseResolved::new(decision) });
        if let Some(evaluation_id) = self.here.running.as_ref().map(|running| running.id) {
            let resumed = EvaluationResumed::new(evaluation_id);
            self.push(EvaluationResumed { owner: Some("ada".into()), ..resumed });
        }
    }

    /// Adds records that no view needs, or only a view of programs.
    fn aside(&mut self) {
        let text = content::sentence(&mut self.rng, 6);
        match &self.here.running {
            Some(running) if running.turn > 0 => {
                let (evaluation_id, turn) = (running.id, running.turn);
                let source = format!("(print {text:?})");
                let data = json!({ "program": source, "prints": [text] });
                let now = self.clock.now();
                self.push(content::program_started(evaluation_id, turn, &source, now));
                self.push(content::task_finished(evaluation_id, turn, "1", turn));
                self.push(TurnFinished::new(evaluation_id, turn, data));
            }
            // Chosen by the text, so that other records stay the same.
            _ if text.len().is_multiple_of(4) => self.push(RecordsRedacted {
                positions: vec![Position::START],
                replacements: 1,
                ..RecordsRedacted::default()
            }),
            _ if text.len() % 4 == 1 => self.isolation(),
            _ => self.push(note(text)),
        }
    }

    /// Adds the records of a copy of a project whose changes are applied.
    fn isolation(&mut self) {
        let (tree, manifest) = (Object::new(ObjectKind::Tree, Vec::new()), Object::blob(*br#"{"v":1}"#));
        let root = WorkspaceRoot { tree: tree.id(), manifest: manifest.id() };
        self.add_objects(vec![tree, manifest]);
        self.push(content::isolated(root));
        let started = self.position();
        self.push(content::apply_started(root));
        self.push(ApplyFinished::new(started));
    }

    /// Rewinds to a cut: mostly to the boundary of a call, sometimes to any cut.
    fn rewind(&mut self) {
        self.commit();
        let anywhere = 1 + self.rng.below(self.position().number());
        let to = match self.boundaries.len() as u64 {
            boundaries if boundaries > 0 && self.rng.below(4) > 0 => {
                self.boundaries[self.rng.below(boundaries) as usize]
            }
            _ => Position::new(anywhere),
        };
        let (rescue, objects) = content::workspace(&mut self.rng);
        self.add_objects(objects);
        self.here = self.cuts[to.number() as usize].clone();
        let reason = Some("a better way".to_owned());
        let root = Some(rescue).filter(|_| self.rng.below(2) == 0);
        self.push(SessionRewound { root, rescue: Some(rescue), reason, ..SessionRewound::new(to) });
        self.commit();
        if let Some(root) = root {
            let cause = ObservationCause::Restored;
            self.push(WorkspaceObserved::new(root, cause));
            self.commit();
        }
    }
}
