//! Effects outside stay outside: no point of a session lets a call make one again without a question.

use std::sync::{Arc, Mutex};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, Effect, IdempotencyKey, PauseReason, Position, RecordBody};
use backstitch_core::ports::Store;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_runtime::{Agent, DriveOutcome, PointSpec, Runtime, SessionOptions, SubAgent, WaitingCall};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::tailor::{reply, scripted};

/// A bank that counts payments, in a store that several processes use.
struct Bank {
    store: Arc<dyn Store>,
    paid: Arc<Mutex<Vec<IdempotencyKey>>>,
    effect: Effect,
}

impl Bank {
    fn new(effect: Effect) -> Self {
        Self { store: Arc::new(MemoryStore::new()), paid: Arc::default(), effect }
    }

    /// A runtime without memory, as after a restart.
    fn runtime(&self) -> Runtime {
        Runtime::new(self.store.clone())
    }

    fn pay(&self) -> Tool {
        let paid = self.paid.clone();
        let pay = Tool::builder("pay", "Pays.").unwrap().effect(self.effect);
        pay.workspace(WorkspaceUse::None).handler(move |context, _: Value| {
            let mut paid = paid.lock().unwrap();
            paid.push(context.idempotency_key().clone());
            let receipt = format!("receipt {}", paid.len());
            async move { Ok(ToolResult::ok(receipt)) }
        })
    }

    fn look() -> Tool {
        let look = Tool::builder("look", "Looks.").unwrap().effect(Effect::Pure);
        look.workspace(WorkspaceUse::None).handler(|_, _: Value| async { Ok(ToolResult::ok("seen")) })
    }

    /// An agent that looks, pays as often as given, and is done.
    fn agent(&self, times: usize) -> Agent {
        let mut replies = vec![reply("", &[("look", json!({}))])];
        replies
            .extend((0..times).map(|_| reply("", &[("pay", json!({"to": "ada", "sum": {"b": 2, "a": 1}}))])));
        replies.push(reply("done", &[]));
        scripted(replies).tools([self.pay(), Self::look()])
    }

    fn payments(&self) -> usize {
        self.paid.lock().unwrap().len()
    }

    async fn finished(&self, agent: &Agent) -> SessionId {
        let run = self.runtime().start(agent, "pay").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "done");
        run.session()
    }

    /// Continues a session in another process: its evaluation if there is one, and otherwise the mission again.
    async fn continued(&self, session: SessionId, agent: &Agent) -> DriveOutcome {
        let runtime = self.runtime();
        let run = match runtime.view(session).await.unwrap().latest_evaluation() {
            Some(_) => runtime.resume(session, agent).await.unwrap(),
            None => runtime.ask(session, agent, "pay").await.unwrap(),
        };
        run.outcome().await.unwrap()
    }

    /// The only call that waits, with the text of the result on offer.
    async fn waiting(&self, session: SessionId) -> (WaitingCall, String) {
        let waiting = self.runtime().waiting_calls(session).await.unwrap();
        let [waiting] = &waiting[..] else { panic!("{waiting:?}") };
        assert_eq!((waiting.reason, waiting.has_offer), (PauseReason::EffectUnknown, true));
        let live = self.runtime().open_idle(waiting.session, SessionOptions::default()).await.unwrap();
        let offered = live.offered_result(waiting.call).await.unwrap().unwrap();
        live.release().await.unwrap();
        (waiting.clone(), offered.content())
    }

    /// Uses the result on offer. Returns its text.
    async fn use_offer(&self, session: SessionId) -> String {
        let (waiting, text) = self.waiting(session).await;
        let live = self.runtime().open_idle(waiting.session, SessionOptions::default()).await.unwrap();
        let offered = live.offered_result(waiting.call).await.unwrap().unwrap();
        let result = Box::new(offered.message.option_result().unwrap().clone());
        live.resolve(Some(waiting.call), Decision::Happened { result }, None).await.unwrap();
        live.release().await.unwrap();
        text
    }
}

/// The positions up to the first result of the payment, and the one after its start.
async fn points_before_result(bank: &Bank, session: SessionId) -> (Vec<u64>, u64) {
    let records = bank.runtime().records(session).await.unwrap();
    let started = records.iter().find_map(|record| match &record.body {
        RecordBody::CallStarted(started) if started.name == "pay" => Some(record.position.number()),
        _ => None,
    });
    let result = records.iter().find_map(|record| match &record.body {
        RecordBody::MessageAppended(message) if message.tool_name() == Some("pay") => {
            Some(record.position.number())
        }
        _ => None,
    });
    ((1..=result.unwrap()).collect(), started.unwrap())
}

/// Goes back to a point by a rewind, or by a fork there. Returns the session to continue.
async fn gone_back(bank: &Bank, session: SessionId, point: &PointSpec, forks: bool) -> SessionId {
    let runtime = bank.runtime();
    let (session, effects) = if forks {
        let forked = runtime.fork(session, point.clone()).await.unwrap();
        (forked.session, forked.effects)
    } else {
        (session, runtime.rewind(session, point.clone()).await.unwrap().effects)
    };
    for effect in &effects {
        assert_eq!((effect.name.as_str(), effect.effect), ("pay", bank.effect), "{point}");
        assert_eq!(effect.arguments["to"], "ada");
        assert!(effect.result.as_deref().unwrap().starts_with("receipt"), "{effect:?}");
    }
    session
}

#[tokio::test]
async fn no_point_lets_an_external_call_happen_again_without_a_question() {
    let measured = Bank::new(Effect::External);
    let session = measured.finished(&measured.agent(1)).await;
    let (points, started) = points_before_result(&measured, session).await;
    for number in points {
        for forks in [false, true] {
            let bank = Bank::new(Effect::External);
            let agent = bank.agent(1);
            let session = bank.finished(&agent).await;
            let point = PointSpec::Position(Position::new(number));
            let what = format!("{point}, forks: {forks}");
            let effects = if forks {
                bank.runtime().fork(session, point.clone()).await.unwrap().effects.len()
            } else {
                1
            };
            // A call whose start is visible is open, and not discarded.
            assert!(effects == usize::from(number <= started) || !forks, "{what}: {effects}");
            let session = gone_back(&bank, session, &point, forks).await;
            let ended = bank.continued(session, &agent).await;
            let reason = match ended {
                DriveOutcome::Paused { reason, .. } => reason,
                // The request is recorded as answered there, so the model does not make the call again.
                ended => {
                    assert_eq!(
                        (ended.answer().unwrap().text.as_str(), bank.payments()),
                        ("done", 1),
                        "{what}"
                    );
                    continue;
                }
            };
            assert_eq!((reason, bank.payments()), (PauseReason::EffectUnknown, 1), "{what}");
            assert_eq!(bank.use_offer(session).await, "receipt 1", "{what}");
            let ended = bank.continued(session, &agent).await;
            assert_eq!(ended.answer().unwrap().text, "done", "{what}");
            assert_eq!(bank.payments(), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn an_idempotent_call_has_the_key_of_the_discarded_one_at_every_point() {
    let measured = Bank::new(Effect::Idempotent);
    let session = measured.finished(&measured.agent(1)).await;
    let (points, _) = points_before_result(&measured, session).await;
    for number in points {
        for forks in [false, true] {
            let bank = Bank::new(Effect::Idempotent);
            let agent = bank.agent(1);
            let session = bank.finished(&agent).await;
            let point = PointSpec::Position(Position::new(number));
            let session = gone_back(&bank, session, &point, forks).await;
            let mut ended = bank.continued(session, &agent).await;
            if matches!(ended, DriveOutcome::Paused { .. }) {
                // The call itself is pending again, and its result is on offer.
                let (waiting, _) = bank.waiting(session).await;
                bank.runtime().decide(session, Some(waiting.call), Decision::Retry, None).await.unwrap();
                ended = bank.continued(session, &agent).await;
            }
            assert_eq!(ended.answer().unwrap().text, "done", "{point}, forks: {forks}");
            let paid = bank.paid.lock().unwrap().clone();
            assert!(paid.iter().all(|key| *key == paid[0]), "{point}, forks: {forks}: {paid:?}");
        }
    }
}

#[tokio::test]
async fn each_discarded_effect_is_offered_once_and_then_a_call_is_new() {
    let bank = Bank::new(Effect::External);
    let agent = bank.agent(3);
    // Two payments, and then the session is stopped by its script.
    let session = bank.finished(&bank.agent(2)).await;
    let session = gone_back(&bank, session, &PointSpec::Start, false).await;
    for receipt in ["receipt 1", "receipt 2"] {
        let ended = bank.continued(session, &agent).await;
        assert!(matches!(ended, DriveOutcome::Paused { .. }), "{ended:?}");
        assert_eq!(bank.use_offer(session).await, receipt);
    }
    assert_eq!(bank.continued(session, &agent).await.answer().unwrap().text, "done");
    assert_eq!(bank.payments(), 3, "the third call is a new one");
    // All three are discarded now, and are offered in their order.
    let session = gone_back(&bank, session, &PointSpec::Start, true).await;
    for receipt in ["receipt 1", "receipt 2", "receipt 3"] {
        bank.continued(session, &agent).await;
        assert_eq!(bank.use_offer(session).await, receipt);
    }
    assert_eq!(bank.continued(session, &agent).await.answer().unwrap().text, "done");
    assert_eq!(bank.payments(), 3);
}

#[tokio::test]
async fn a_decision_to_run_again_is_an_effect_of_its_own_and_undo_makes_the_first_visible_again() {
    let bank = Bank::new(Effect::External);
    let agent = bank.agent(1);
    let session = bank.finished(&agent).await;
    gone_back(&bank, session, &PointSpec::Turn(1), false).await;
    bank.continued(session, &agent).await;
    let (waiting, _) = bank.waiting(session).await;
    bank.runtime().decide(session, Some(waiting.call), Decision::Retry, None).await.unwrap();
    assert_eq!(bank.continued(session, &agent).await.answer().unwrap().text, "done");
    assert_eq!(bank.payments(), 2, "a person decided so");
    let undone = bank.runtime().undo(session).await.unwrap();
    let results: Vec<_> = undone.effects.iter().map(|effect| effect.result.clone().unwrap()).collect();
    assert_eq!(results, ["receipt 2"], "the branch of the second payment is discarded");
    // The first payment is visible, so only the second one is on offer.
    let again = scripted(vec![
        reply("", &[]),
        reply("", &[]),
        reply("", &[]),
        reply("", &[("pay", json!({"sum": {"a": 1, "b": 2}, "to": "ada"}))]),
        reply("paid again", &[]),
    ])
    .tools([bank.pay(), Bank::look()]);
    let run = bank.runtime().ask(session, &again, "once more").await.unwrap();
    assert!(matches!(run.outcome().await.unwrap(), DriveOutcome::Paused { .. }));
    assert_eq!(bank.use_offer(session).await, "receipt 2");
    let ended = bank.continued(session, &again).await;
    assert_eq!(ended.answer().unwrap().text, "paid again");
    assert_eq!(bank.payments(), 2);
}

#[tokio::test]
async fn effects_of_a_discarded_sub_agent_are_offered_to_the_next_one() {
    let bank = Bank::new(Effect::External);
    let clerk = SubAgent::new("clerk", "Pays bills.", bank.agent(1)).unwrap();
    let replies = vec![reply("", &[("clerk", json!({"mission": "pay ada"}))]), reply("all paid", &[])];
    let agent = scripted(replies).tools([clerk.into_tool()]);
    let run = bank.runtime().start(&agent, "pay").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "all paid");
    let session = run.session();
    let rewound = bank.runtime().rewind(session, PointSpec::Start).await.unwrap();
    let [effect] = &rewound.effects[..] else { panic!("{:?}", rewound.effects) };
    assert_eq!((effect.name.as_str(), effect.result.as_deref()), ("pay", Some("receipt 1")));
    assert_ne!(effect.session, session, "the sub-agent made it");
    let ended = bank.continued(session, &agent).await;
    assert!(matches!(ended, DriveOutcome::Paused { .. }), "{ended:?}");
    assert_eq!(bank.use_offer(session).await, "receipt 1");
    assert_eq!(bank.continued(session, &agent).await.answer().unwrap().text, "all paid");
    assert_eq!(bank.payments(), 1);
}

#[tokio::test]
async fn other_arguments_and_what_a_parent_does_later_are_new_calls() {
    let bank = Bank::new(Effect::External);
    let agent = bank.agent(1);
    let session = bank.finished(&agent).await;
    // The fork is made before its parent pays again.
    let fork = gone_back(&bank, session, &PointSpec::Head, true).await;
    let next = |sum: u64| {
        let pay = reply("", &[("pay", json!({"to": "ada", "sum": sum}))]);
        let silent = || reply("", &[]);
        scripted(vec![silent(), silent(), silent(), pay, reply("done", &[])])
            .tools([bank.pay(), Bank::look()])
    };
    for session in [session, fork] {
        let run = bank.runtime().ask(session, &next(7), "pay 7").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "done");
    }
    assert_eq!(bank.payments(), 3);
}
