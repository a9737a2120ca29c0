//! The tool loop, driven event by event and rebuilt at every prefix: both must return the same action.

use std::collections::BTreeSet;
use std::sync::Arc;

use backstitch_core::id::{CallId, IdStream};
use backstitch_core::journal::{EvaluationOutcome, Finish, InnerMessage};
use backstitch_core::machine::{
    EvaluationHistory, Machine, MachineAction, MachineEvent, MachineFactory, ToolLoop, ToolLoopFactory,
};
use backstitch_core::message::{Arguments, OptionResultBuilder, PolicyName, RoleHint};
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::time::FixedClock;
use proptest::prelude::*;

use super::journals::{Writer, parts};

/// A growing conversation, with the machine that drives it.
struct Simulation {
    ids: IdStream,
    machine: ToolLoop,
    said: Vec<Arc<InnerMessage>>,
    open: Vec<Arc<InnerMessage>>,
    max_turns: Option<u64>,
    max_repeats: Option<u64>,
    turns: u64,
}

impl Simulation {
    fn new(max_turns: Option<u64>, max_repeats: Option<u64>) -> Self {
        let ids = IdStream::from_seed([1; 32], Arc::new(FixedClock::default()));
        let machine = ToolLoop::new(max_turns).with_max_repeats(max_repeats);
        let (said, open, turns) = (Vec::new(), Vec::new(), 0);
        let mut this = Self { ids, machine, said, open, max_turns, max_repeats, turns };
        this.user("do something");
        this
    }

    fn push(&mut self, turn: u64, message: backstitch_core::message::Message) -> Arc<InnerMessage> {
        let inner = Arc::new(InnerMessage {
            message_id: self.ids.next(),
            evaluation_id: backstitch_core::id::EvaluationId::from_uuid(uuid::Uuid::from_u128(7)),
            sequence: self.said.len() as u64,
            turn,
            prompt_ns: "test".into(),
            prompt_key: "machine".into(),
            created_at: self.ids.clock().now(),
            message,
            role: None,
            provider: None,
            extra: Default::default(),
        });
        self.said.push(inner.clone());
        inner
    }

    fn user(&mut self, text: &str) {
        let inner = self.push(self.turns, parts(RoleHint::User, text));
        self.machine.handle(MachineEvent::MessageAdded(inner));
    }

    fn answer(&mut self, calls: usize) {
        self.say(
            (0..calls).fold(PolicyAnswer::text("hm"), |answer, _| answer.call("sew", Arguments::none())),
        );
    }

    fn say(&mut self, answer: PolicyAnswer) {
        self.turns += 1;
        let policy = PolicyName::new("tailor").unwrap();
        let messages = answer.into_messages(&policy, self.turns, &self.ids).unwrap();
        let messages: Vec<_> = messages.into_iter().map(|message| self.push(self.turns, message)).collect();
        self.open.extend(messages.iter().filter(|inner| inner.message.option_call().is_some()).cloned());
        self.machine.handle(MachineEvent::Answered { messages, output: None });
    }

    fn end_call(&mut self, index: usize) {
        let call = self.open.remove(index);
        let result = OptionResultBuilder::response_to(&call.message).unwrap().success("sewn");
        let result = self.push(call.turn, result);
        let call = result.tool_call_id().unwrap();
        self.machine.handle(MachineEvent::CallEnded { call, result });
    }

    fn rebuilt(&self) -> ToolLoop {
        ToolLoop::rebuilt(self.max_turns, &self.said).with_max_repeats(self.max_repeats)
    }

    /// Both machines must return the same action, except that the rebuilt one returns running calls again.
    fn check(&self) -> MachineAction {
        let (live, rebuilt) = (self.machine.clone().next(), self.rebuilt().next());
        let open: BTreeSet<CallId> =
            self.open.iter().filter_map(|call| Some(call.message.option_call()?.invocation_id)).collect();
        match &rebuilt {
            MachineAction::Call(wanted) => {
                let wanted: BTreeSet<_> = wanted.iter().map(|wanted| wanted.call_id).collect();
                assert_eq!(wanted, open);
                assert!(matches!(live, MachineAction::Wait | MachineAction::Call(_)), "{live:?}");
            }
            _ => {
                assert!(open.is_empty());
                assert_eq!(live, rebuilt);
            }
        }
        live
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_rebuilt_machine_wants_what_the_live_one_does(
        answers in prop::collection::vec((0_usize..4, any::<u64>(), any::<bool>()), 1..8),
        max_turns in prop::option::of(1_u64..6),
        max_repeats in prop::option::of(1_u64..4),
    ) {
        let mut simulation = Simulation::new(max_turns, max_repeats);
        for (calls, order, interrupt) in answers {
            match simulation.check() {
                MachineAction::Ask => {}
                MachineAction::Finish(ending) => {
                    let over = max_turns.is_some_and(|limit| simulation.turns >= limit);
                    match ending.error.as_ref().map(|error| error.kind.as_str()) {
                        Some("max_turns") => prop_assert!(over),
                        Some("loop_detected") => prop_assert!(max_repeats.is_some() && simulation.turns > 0),
                        other => prop_assert_eq!(other, None),
                    }
                    let expected = if ending.error.is_some() { EvaluationOutcome::Failed } else { EvaluationOutcome::Completed };
                    prop_assert_eq!(ending.outcome, expected);
                    return Ok(());
                }
                other => panic!("nothing is open, so this makes no sense: {other:?}"),
            }
            simulation.answer(calls);
            let issued = simulation.machine.next();
            prop_assert_eq!(matches!(issued, MachineAction::Call(_)), calls > 0);
            simulation.check();
            let mut order = order;
            while !simulation.open.is_empty() {
                let index = (order % simulation.open.len() as u64) as usize;
                order /= 4;
                simulation.end_call(index);
                simulation.check();
            }
            if interrupt {
                simulation.user("and another thing");
            }
        }
    }
}

#[test]
fn a_machine_is_rebuilt_from_a_view() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let machinery = ToolLoopFactory::default();
    let past = |writer: &Writer, evaluation| EvaluationHistory::of(&writer.view(), evaluation);
    assert_eq!(machinery.rebuild(&past(&writer, evaluation).unwrap()).unwrap().next(), MachineAction::Ask);
    writer.answer(evaluation, "done", &[]);
    let next = machinery.rebuild(&past(&writer, evaluation).unwrap()).unwrap().next();
    assert!(matches!(next, MachineAction::Finish(ending) if ending.outcome == EvaluationOutcome::Completed));
    let unknown = backstitch_core::id::EvaluationId::from_uuid(uuid::Uuid::from_u128(99));
    assert!(past(&writer, unknown).is_err());
}

#[test]
fn a_call_that_the_token_limit_cut_off_is_refused_also_once_it_is_rebuilt() {
    let mut simulation = Simulation::new(None, None);
    let mut answer =
        PolicyAnswer::text("hm").call("sew", Arguments::none()).call("sew", Arguments::from_text("{}"));
    answer.calls[1].cut_off = true;
    answer.finish = Finish::Length;
    simulation.say(answer);
    for mut machine in [simulation.rebuilt(), simulation.machine.clone()] {
        let MachineAction::Call(wanted) = machine.next() else { panic!("there are calls") };
        assert_eq!(wanted[0].refusal, None);
        let refusal = wanted[1].refusal.as_deref().unwrap();
        assert!(refusal.contains("token limit"), "{refusal}");
    }
}

#[test]
fn answers_that_make_the_same_calls_again_and_again_end_the_evaluation() {
    let mut simulation = Simulation::new(None, Some(3));
    let turn = |simulation: &mut Simulation, calls| {
        simulation.answer(calls);
        simulation.machine.next();
        while !simulation.open.is_empty() {
            simulation.end_call(0);
        }
        simulation.check()
    };
    assert_eq!(turn(&mut simulation, 1), MachineAction::Ask);
    assert_eq!(turn(&mut simulation, 1), MachineAction::Ask);
    assert_eq!(turn(&mut simulation, 2), MachineAction::Ask, "two calls are another answer than one");
    assert_eq!(turn(&mut simulation, 2), MachineAction::Ask);
    simulation.user("continue");
    assert_eq!(turn(&mut simulation, 2), MachineAction::Ask, "a new message is a reason to try again");
    assert_eq!(turn(&mut simulation, 2), MachineAction::Ask);
    let MachineAction::Finish(ending) = turn(&mut simulation, 2) else { panic!("it goes in circles") };
    assert_eq!(ending.error.unwrap().kind, "loop_detected");
}
