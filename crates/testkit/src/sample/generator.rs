//! Makes a journal step by step.
//!
//! A [`Generator`] remembers what is visible ([`Here`]) and, for each cut of the journal, what was visible there; so it can
//! go back to any cut and go on. Each step looks only at what is visible and at chance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::budget::{Limits, Reservation};
use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, IdStream, SessionId};
use backstitch_core::journal::{
    Batch, BudgetCharged, Decision, EvaluationFailure, EvaluationFinished, EvaluationStarted, InnerMessage,
    Outcome, PauseReason, Paused, Position, ProviderSidecar, RecordBody, RequestStarted, Resolved, Rewound,
    TurnFinished,
};
use backstitch_core::message::{Message, MessageBuilder, PolicyName, RoleHint};
use backstitch_core::object::Object;
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::session::{Slice, StoredSlice};
use backstitch_core::time::{Clock, FixedClock};
use serde_json::json;

use super::journal::{Journal, Shape};
use super::slices::{self, Task};
use super::{clock, content, created, ids_of, note};

const PROMPT_NS: &str = "samples";
const PROMPT_KEY: &str = "tailor";

/// What is visible at one cut of a journal.
#[derive(Debug, Clone, Default)]
pub(super) struct Here {
    pub(super) running: Option<Running>,
    pub(super) paused: Option<(PauseReason, Option<CallId>)>,
    superseded: Option<EvaluationId>,
    /// How many tasks the State slice holds.
    pub(super) tasks: usize,
}

/// An evaluation that has not ended.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) id: EvaluationId,
    sequence: u64,
    pub(super) turn: u64,
    /// The calls without a result, in the order in which they were made.
    pub(super) calls: Vec<OpenCall>,
}

/// A call without a result.
#[derive(Debug, Clone)]
pub(super) struct OpenCall {
    pub(super) message: Message,
    pub(super) attempts: u32,
    pub(super) approved: bool,
    pub(super) reservation: Option<Reservation>,
}

/// Makes a journal.
pub(super) struct Generator {
    pub(super) shape: Shape,
    pub(super) rng: Rng,
    clock: Arc<FixedClock>,
    pub(super) ids: IdStream,
    pub(super) session: SessionId,
    pub(super) here: Here,
    /// What was visible at each cut, from the empty journal on.
    cuts: Vec<Here>,
    /// The cuts before and after calls.
    pub(super) boundaries: Vec<Position>,
    batch: Batch,
    batches: Vec<Batch>,
    answers: usize,
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

    pub(super) fn answers(&self) -> usize {
        self.answers
    }

    pub(super) fn into_journal(mut self) -> Journal {
        self.commit();
        Journal { session: self.session, batches: self.batches }
    }

    /// Does what is next, given what is visible.
    pub(super) fn step(&mut self) {
        if self.by_chance(self.shape.rewinds) {
            return self.rewind();
        }
        if self.by_chance(self.shape.asides) {
            self.aside();
        }
        match &self.here {
            Here { paused: Some(_), .. } => self.resolve(),
            Here { running: None, .. } => self.start_evaluation(),
            Here { running: Some(running), .. } if !running.calls.is_empty() => self.step_call(),
            Here { .. } => match self.by_chance(self.shape.pauses) {
                true => self.pause(PauseReason::Asked, None),
                false => self.ask(),
            },
        }
    }

    /// Runs the calls that are open.
    pub(super) fn finish_calls(&mut self) {
        while self.here.running.as_ref().is_some_and(|running| !running.calls.is_empty()) {
            self.step_call();
        }
    }

    pub(super) fn by_chance(&mut self, once_in: u64) -> bool {
        once_in > 0 && self.rng.below(once_in) == 0
    }

    pub(super) fn position(&self) -> Position {
        Position::START.after(self.cuts.len() - 1)
    }

    /// Adds a record to the batch. What it makes visible has to be noted in `here` before.
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
            first.state.push(StoredSlice {
                name: Task::NAME.into(),
                version: Task::VERSION,
                policy: Task::POLICY,
                items: (0..self.here.tasks).map(|_| slices::task(&mut self.rng)).collect(),
                item_versions: Vec::new(),
                extra: Extra::default(),
            });
        }
        self.push(first);
        self.commit();
    }

    fn start_evaluation(&mut self) {
        let id: EvaluationId = self.ids.next();
        let parent_evaluation = self.here.superseded.take();
        self.here.running = Some(Running { id, sequence: 0, turn: 0, calls: Vec::new() });
        self.push(EvaluationStarted {
            evaluation_id: id,
            prompt_ns: PROMPT_NS.into(),
            prompt_key: PROMPT_KEY.into(),
            fingerprint: Some(Digest::of(b"the tailor's prompt")),
            parent_evaluation,
            budget: Some(Limits { total_tokens: Some(1_000_000), ..Limits::default() }),
            deadline_millis: Some(600_000),
            extra: Extra::default(),
        });
        let mut system = self.builder("prompt");
        system.role_hint(RoleHint::System).add_text(content::sentence(&mut self.rng, 40));
        self.say_all(system);
        self.ask_as_user();
        self.commit();
    }

    fn ask_as_user(&mut self) {
        let mut user = self.builder("ada");
        let large = self.by_chance(self.shape.large);
        let text =
            if large { content::large_text(&mut self.rng) } else { content::sentence(&mut self.rng, 15) };
        user.person(PolicyName::new("ada").expect("this is a name")).add_text(text);
        if self.rng.below(8) == 0 {
            user.add_image("the cloth", "https://example.org/cloth.png").expect("this is an address");
        }
        self.say_all(user);
    }

    fn builder(&self, policy: &str) -> MessageBuilder {
        let step = self.here.running.as_ref().map_or(0, |running| running.turn);
        let mut builder = MessageBuilder::continue_step(step, &self.ids);
        builder.policy(PolicyName::new(policy).expect("this is a name"));
        builder
    }

    fn say_all(&mut self, builder: MessageBuilder) {
        for message in builder.into_messages().expect("something was said") {
            self.say(message, None);
        }
    }

    /// Adds a message to the evaluation, which must be running.
    pub(super) fn say(&mut self, message: Message, provider: Option<ProviderSidecar>) {
        let running = self.here.running.as_mut().expect("an evaluation runs while something is said");
        let inner = InnerMessage {
            message_id: self.ids.next(),
            evaluation_id: running.id,
            sequence: running.sequence,
            turn: running.turn,
            prompt_ns: PROMPT_NS.into(),
            prompt_key: PROMPT_KEY.into(),
            created_at: self.clock.now(),
            message,
            provider,
            extra: Extra::default(),
        };
        running.sequence += 1;
        self.push(inner);
    }

    /// Asks the model, which answers.
    fn ask(&mut self) {
        if self.by_chance(self.shape.crashes) {
            self.request();
            self.commit();
        }
        let reservation = self.request();
        self.commit();
        self.answers += 1;

        let mut answer = self.builder("tailor");
        let plain = self.by_chance(self.shape.plain_answers);
        let calls = if plain { 0 } else { 1 + self.rng.below(self.shape.calls.max(1)) };
        if plain || self.rng.below(3) > 0 {
            answer.add_text(content::sentence(&mut self.rng, 20));
        }
        for _ in 0..calls {
            let arguments = content::arguments(&mut self.rng, self.shape.unparsable);
            answer
                .add_option_call(content::option_name(&mut self.rng), arguments)
                .and_then(|answer| answer.provider_call_id(format!("call_{}", self.rng.below(1 << 40))))
                .expect("the builder has a policy");
        }

        let usage = content::amounts(&mut self.rng);
        let mut sidecar = Some(ProviderSidecar {
            provider: "sample".into(),
            model: "sample-1".into(),
            payload: Some(format!("{{\"signature\":\"{:016x}\"}}", self.rng.next_u64()).into()),
            finish_reason: Some(if plain { "stop" } else { "tool_calls" }.into()),
            usage: Some(usage),
            ..ProviderSidecar::default()
        });
        if let Some(running) = &mut self.here.running {
            running.turn += 1;
        }
        for message in answer.into_messages().expect("an answer has parts or calls") {
            if let (Some(running), Some(_)) = (&mut self.here.running, message.option_call()) {
                let message = message.clone();
                running.calls.push(OpenCall { message, attempts: 0, approved: false, reservation: None });
            }
            self.say(message, sidecar.take());
        }
        self.push(BudgetCharged {
            reservation: Some(reservation.id),
            amounts: usage,
            extra: Extra::default(),
        });
        if plain {
            self.commit();
            if self.by_chance(self.shape.endings) {
                self.end();
            } else {
                self.ask_as_user();
            }
            self.commit();
        }
    }

    fn request(&mut self) -> Reservation {
        let reservation = Reservation { id: self.ids.next(), amounts: content::amounts(&mut self.rng) };
        let running = self.here.running.as_ref().expect("an evaluation runs while a model is asked");
        let (evaluation_id, turn) = (running.id, running.turn + 1);
        let rendered = self.rng.next_u64().to_string();
        self.push(RequestStarted {
            evaluation_id,
            turn,
            provider: "sample".into(),
            model: "sample-1".into(),
            digest: Some(Digest::of(rendered.as_bytes())),
            length: rendered.len() as u64,
            renderer: Some("sample/1".into()),
            reservation: Some(reservation),
            extra: Extra::default(),
        });
        reservation
    }

    /// Ends the evaluation, in one of the four ways.
    fn end(&mut self) {
        match self.rng.below(6) {
            0 => self.finish(Outcome::Failed),
            1 => self.finish(Outcome::Superseded),
            _ => self.finish(Outcome::Completed),
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome) {
        let Some(running) = self.here.running.take() else { return };
        self.here.superseded = (outcome == Outcome::Superseded).then_some(running.id);
        let large = self.by_chance(self.shape.large);
        let answer = match large {
            true => content::large_text(&mut self.rng),
            false => content::sentence(&mut self.rng, 3),
        };
        let failure = || EvaluationFailure {
            kind: "deadline_exceeded".into(),
            message: "too late".into(),
            extra: Extra::default(),
        };
        self.push(EvaluationFinished {
            evaluation_id: running.id,
            outcome,
            output: (outcome == Outcome::Completed).then(|| json!({ "answer": answer })),
            output_object: None,
            error: (outcome == Outcome::Failed).then(failure),
            extra: Extra::default(),
        });
    }

    pub(super) fn pause(&mut self, reason: PauseReason, call_id: Option<CallId>) {
        self.commit();
        self.here.paused = Some((reason, call_id));
        let detail = Some(content::sentence(&mut self.rng, 4));
        self.push(Paused { reason, call_id, detail, extra: Extra::default() });
        self.commit();
    }

    pub(super) fn resolved(&mut self, call_id: Option<CallId>, decision: Decision) {
        self.here.paused = None;
        self.push(Resolved { call_id, decision, by: Some("ada".into()), extra: Extra::default() });
    }

    /// Something that no view needs, or that only a view of programs does.
    fn aside(&mut self) {
        let text = content::sentence(&mut self.rng, 6);
        match &self.here.running {
            Some(running) if running.turn > 0 => {
                let (evaluation_id, turn) = (running.id, running.turn);
                let data = json!({ "program": format!("(print {text:?})"), "prints": [text] });
                self.push(TurnFinished {
                    evaluation_id,
                    turn,
                    data,
                    data_object: None,
                    extra: Extra::default(),
                });
            }
            _ => self.push(note(text)),
        }
    }

    /// Goes back to a cut: mostly to the boundary of a call, sometimes to anywhere.
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
        self.push(Rewound { to, rescue: Some(rescue), reason, extra: Extra::default() });
        self.commit();
    }
}
