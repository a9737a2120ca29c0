//! Evaluations in sample journals: started, requested, answered, ended.

use backstitch_core::budget::{Limits, Reservation};
use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{
    AfterFailure, BudgetCharged, EvaluationFailure, EvaluationFinished, EvaluationOutcome, EvaluationStarted,
    Finish, InnerMessage, ProviderSidecar, RequestFailed, RequestFinished, RequestStarted, SessionStopped,
};
use backstitch_core::message::{Message, MessageBuilder, PolicyName, RoleHint};
use serde_json::json;

use super::content;
use super::generator::{Generator, OpenCall, OpenEvaluation};

const PROMPT_NS: &str = "samples";
const PROMPT_KEY: &str = "tailor";

impl Generator {
    pub(super) fn start_evaluation(&mut self) {
        let id: EvaluationId = self.ids.next();
        let parent_evaluation = self.here.superseded.take();
        let follows = if parent_evaluation.is_some() { self.here.ended_after } else { self.here.ended };
        self.here.running = Some(OpenEvaluation { id, sequence: 0, turn: 0, calls: Vec::new(), follows });
        self.push(EvaluationStarted {
            fingerprint: Some(Digest::of(b"the tailor's prompt")),
            parent_evaluation,
            follows,
            budget: Some(Limits { total_tokens: Some(1_000_000), ..Limits::default() }),
            deadline_millis: Some(600_000),
            ..EvaluationStarted::new(id, PROMPT_NS, PROMPT_KEY)
        });
        let mut system = self.builder("prompt");
        system.role_hint(RoleHint::System).add_text(content::sentence(&mut self.rng, 40));
        self.say_all(system);
        self.ask_as_user();
        self.commit();
    }

    fn ask_as_user(&mut self) {
        let mut user = self.builder("ada");
        let large = self.one_in(self.shape.large);
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
        let inner = InnerMessage::new(running.id, message, &self.ids).of_prompt(PROMPT_NS, PROMPT_KEY);
        let inner = inner.at(running.sequence, running.turn);
        running.sequence += 1;
        self.push(InnerMessage { provider: provider.map(Box::new), ..inner });
    }

    /// Asks the model, which answers.
    pub(super) fn ask(&mut self) {
        if self.one_in(self.shape.crashes) {
            self.request();
            self.commit();
            if self.rng.below(2) == 0 {
                self.fail_request(1, AfterFailure::Stop);
                let stopped = SessionStopped::error(self.running().id, "network", "the line is dead");
                self.push(stopped);
                self.commit();
            }
        }
        let reservation = self.request();
        self.commit();
        let mut attempt = 1;
        while attempt < 4 && self.one_in(self.shape.failures) {
            self.fail_request(attempt, AfterFailure::Retry { wait_millis: 500 });
            self.commit();
            attempt += 1;
        }
        self.answers += 1;

        let mut answer = self.builder("tailor");
        let plain = self.one_in(self.shape.plain_answers);
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
        self.running().turn += 1;
        for message in answer.into_messages().expect("an answer has parts or calls") {
            if message.option_call().is_some() {
                let message = message.clone();
                let call = OpenCall { message, attempts: 0, approved: false, reservation: None };
                self.running().calls.push(call);
            }
            self.say(message, sidecar.take());
        }
        let finish = if plain { Finish::Stop } else { Finish::Calls };
        let running = self.running();
        let finished = RequestFinished::new(running.id, running.turn, finish);
        self.push(RequestFinished { attempt, usage, ..finished });
        self.push(BudgetCharged::new(Some(reservation.id), usage));
        if plain {
            self.commit();
            if self.one_in(self.shape.endings) {
                self.end();
            } else {
                self.ask_as_user();
            }
            self.commit();
        }
    }

    fn fail_request(&mut self, attempt: u32, then: AfterFailure) {
        let running = self.running();
        let failed = RequestFailed::new(running.id, running.turn + 1, "network", "the line is dead");
        self.push(RequestFailed { attempt, then, ..failed });
    }

    fn request(&mut self) -> Reservation {
        let reservation = Reservation { id: self.ids.next(), amounts: content::amounts(&mut self.rng) };
        let running = self.running();
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

    /// Ends the evaluation with a random outcome.
    fn end(&mut self) {
        match self.rng.below(6) {
            0 => self.finish(EvaluationOutcome::Failed),
            1 => self.finish(EvaluationOutcome::Superseded),
            _ => self.finish(EvaluationOutcome::Completed),
        }
    }

    pub(super) fn finish(&mut self, outcome: EvaluationOutcome) {
        let Some(running) = self.here.running.take() else { return };
        self.here.superseded = (outcome == EvaluationOutcome::Superseded).then_some(running.id);
        (self.here.ended, self.here.ended_after) = (Some(running.id), running.follows);
        let large = self.one_in(self.shape.large);
        let answer =
            if large { content::large_text(&mut self.rng) } else { content::sentence(&mut self.rng, 3) };
        let failure = || EvaluationFailure::new("deadline_exceeded", "too late");
        self.push(EvaluationFinished {
            output: (outcome == EvaluationOutcome::Completed).then(|| json!({ "answer": answer }).into()),
            error: (outcome == EvaluationOutcome::Failed).then(failure),
            ..EvaluationFinished::new(running.id, outcome)
        });
    }
}
