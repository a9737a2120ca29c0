//! Calls that wait for a time or a signal, and sessions that are driven by the names of their agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::journal::{Effect, InboxItem, PauseReason, RecordBody};
use backstitch_core::ports::ProcessSpec;
use backstitch_core::time::{Clock, FixedClock, Timestamp};
use backstitch_core::tool::{Tool, ToolContext, ToolResult, Wait};
use backstitch_providers::ScriptedPolicy;
use backstitch_runtime::{
    Agent, AgentRegistry, DriveOutcome, EnqueueOptions, Rest, Runtime, RuntimeError, SubAgent,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

/// A tool that does something outside once, and then waits.
fn order(done: &Arc<AtomicUsize>, wait: fn(Timestamp) -> Wait) -> Tool {
    let done = done.clone();
    Tool::builder("order", "Orders cloth, and waits for it.").unwrap().effect(Effect::External).handler(
        move |context: ToolContext, _: NoArguments| {
            let done = done.clone();
            async move {
                let number =
                    context.step("order", async { Ok(done.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
                let latest = context.step("latest", async { Ok(context.clock().now()) }).await?;
                let came = context.wait("delivery", wait(latest)).await?;
                Ok(ToolResult::ok(format!("order {number}: {}", came.unwrap_or("nothing".into()))))
            }
        },
    )
}

const SCRIPT: &str = "
    [[reply]]
    call = [{ name = 'order', arguments = {} }]
    [[reply]]
    text = 'Ordered.'
";

fn agent(tool: Tool) -> Agent {
    Agent::new("buyer").policy(ScriptedPolicy::from_toml(SCRIPT).unwrap()).tools([tool])
}

struct Shop {
    runtime: Runtime,
    clock: Arc<FixedClock>,
    agent: Agent,
}

impl Shop {
    fn new(agent: Agent) -> Self {
        let clock = Arc::new(FixedClock::at("2026-05-04T12:00:00Z".parse().unwrap()));
        let store = Arc::new(MemoryStore::new());
        let agents = AgentRegistry::new([agent.clone()]);
        let runtime = Runtime::new(store.clone()).with_queue(store).with_agents(Arc::new(agents));
        Self { runtime: runtime.with_clock(clock.clone()), clock, agent }
    }

    /// Starts a session, which waits.
    async fn start(&self) -> backstitch_core::id::SessionId {
        let run = self.runtime.start(&self.agent, "Buy cloth.").await.unwrap();
        let ended = run.outcome().await.unwrap();
        assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Wait, .. }), "{ended:?}");
        run.session()
    }

    /// Returns the result of the only call.
    async fn result(&self, session: backstitch_core::id::SessionId) -> Value {
        let records = self.runtime.records(session).await.unwrap();
        let results = records.iter().filter_map(|record| match &record.body {
            RecordBody::MessageAppended(message) => message.message.option_result().cloned(),
            _ => None,
        });
        let results: Vec<_> = results.collect();
        assert_eq!(results.len(), 1);
        results[0].result.inline().cloned().unwrap()
    }
}

#[tokio::test]
async fn a_call_waits_for_its_time_without_a_process() {
    let done = Arc::default();
    let shop = Shop::new(agent(order(&done, |now| Wait::until(now.saturating_add(Duration::from_secs(60))))));
    let session = shop.start().await;
    let at = shop.clock.now().saturating_add(Duration::from_secs(60));
    for _ in 0..2 {
        assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Until { at });
    }
    shop.clock.advance(Duration::from_secs(60));
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
    assert_eq!(done.load(Ordering::SeqCst), 1, "the step before the wait ran once");
    assert!(shop.result(session).await.to_string().contains("order 1: "));
}

#[tokio::test]
async fn a_call_waits_for_a_signal_and_gets_its_value() {
    let done = Arc::default();
    let shop = Shop::new(agent(order(&done, |_| Wait::signal("delivered"))));
    let session = shop.start().await;
    let waits = Rest::Signal { name: "delivered".to_owned() };
    assert_eq!(shop.runtime.drive(session).await.unwrap(), waits);
    shop.runtime.signal(session, "lost", json!(1)).await.unwrap();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), waits);
    shop.runtime.signal(session, "delivered", json!({"parcel": 17})).await.unwrap();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
    assert_eq!(done.load(Ordering::SeqCst), 1);
    assert!(shop.result(session).await.to_string().contains("17"));
}

#[tokio::test]
async fn a_signal_that_comes_first_is_kept() {
    let done = Arc::default();
    let shop = Shop::new(agent(order(&done, |_| Wait::signal("delivered"))));
    let options = EnqueueOptions::default();
    let session = shop.runtime.enqueue(&shop.agent, "Buy cloth.", options).await.unwrap().session;
    let item = InboxItem::signal("delivered", json!("early"), shop.clock.now());
    assert!(shop.runtime.deliver(session, "one", item.clone()).await.unwrap());
    assert!(!shop.runtime.deliver(session, "one", item).await.unwrap());
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
    assert!(shop.result(session).await.to_string().contains("early"));
}

#[tokio::test]
async fn a_signal_ends_one_of_two_waits() {
    let done = Arc::default();
    let script = "
        [[reply]]
        call = [{ name = 'order', arguments = {} }, { name = 'order', arguments = {} }]
        [[reply]]
        text = 'Ordered.'
    ";
    let tool = order(&done, |_| Wait::signal("delivered"));
    let shop =
        Shop::new(Agent::new("buyer").policy(ScriptedPolicy::from_toml(script).unwrap()).tools([tool]));
    let session = shop.start().await;
    for (number, rest) in [(1, Rest::Signal { name: "delivered".to_owned() }), (2, Rest::Finished)] {
        shop.runtime.signal(session, "delivered", json!(number)).await.unwrap();
        assert_eq!(shop.runtime.drive(session).await.unwrap(), rest);
        let records = shop.runtime.records(session).await.unwrap();
        let is_end =
            |body: &RecordBody| matches!(body, RecordBody::StepFinished(step) if step.name == "delivery");
        assert_eq!(records.iter().filter(|record| is_end(&record.body)).count(), number);
    }
}

#[tokio::test]
async fn a_wait_for_a_signal_can_have_an_end() {
    let done = Arc::default();
    let until =
        |now: Timestamp| Wait::signal("delivered").or_until(now.saturating_add(Duration::from_secs(9)));
    let shop = Shop::new(agent(order(&done, until)));
    let session = shop.start().await;
    shop.clock.advance(Duration::from_secs(9));
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
    assert!(shop.result(session).await.to_string().contains("nothing"));
}

#[tokio::test]
async fn waits_of_sub_agents_are_those_of_their_callers() {
    let done = Arc::default();
    let buyer =
        SubAgent::new("buy", "Buys cloth.", agent(order(&done, |_| Wait::signal("delivered")))).unwrap();
    let script = "
        [[reply]]
        call = [{ name = 'buy', arguments = { mission = 'Buy cloth.' } }]
        [[reply]]
        text = 'Bought.'
    ";
    let tailor =
        Agent::new("tailor").policy(ScriptedPolicy::from_toml(script).unwrap()).tools([buyer.into_tool()]);
    let shop = Shop::new(tailor);
    let session = shop.start().await;
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Signal { name: "delivered".to_owned() });
    shop.runtime.signal(session, "delivered", json!(3)).await.unwrap();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_is_addressed_to_a_session_that_is_not_a_sub_agent_is_not_passed_on() {
    let shop = Shop::new(agent(order(&Arc::default(), |_| Wait::signal("delivered"))));
    let session = shop.start().await;
    let other = shop.runtime.enqueue(&shop.agent, "Buy cloth.", EnqueueOptions::default()).await.unwrap();
    let other = other.session;
    let signal = InboxItem::signal("delivered", json!(3), shop.clock.now());
    for stranger in [other, session] {
        let item = signal.clone().for_sub_agent(stranger);
        shop.runtime.store().send(session, item).await.unwrap();
    }
    assert!(matches!(shop.runtime.drive(session).await.unwrap(), Rest::Signal { .. }));
    assert!(shop.runtime.store().inbox(other).await.unwrap().is_empty());
    assert!(shop.runtime.store().inbox(session).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_process_outside_of_a_step_refuses_the_wait() {
    let tool = Tool::builder("order", "Orders cloth.").unwrap().effect(Effect::External).handler(
        |context: ToolContext, _: NoArguments| async move {
            context.run_process(ProcessSpec::new("true").without_files()).await?;
            context.wait("delivery", Wait::signal("delivered")).await?;
            Ok(ToolResult::ok("it waited"))
        },
    );
    let shop = Shop::new(agent(tool));
    let run = shop.runtime.start(&shop.agent, "Buy cloth.").await.unwrap();
    assert!(matches!(run.outcome().await.unwrap(), DriveOutcome::Completed(_)));
    let records = shop.runtime.records(run.session()).await.unwrap();
    let refused = records.iter().any(|record| format!("{:?}", record.body).contains("is not in a step"));
    assert!(refused);
}

#[tokio::test]
async fn a_call_that_was_approved_is_not_asked_about_again_after_its_wait() {
    let tool = Tool::builder("order", "Orders cloth.").unwrap().effect(Effect::External).needs_approval();
    let tool = tool.handler(|context: ToolContext, _: NoArguments| async move {
        context.wait("delivery", Wait::signal("delivered")).await?;
        Ok(ToolResult::ok("it waited"))
    });
    let shop = Shop::new(agent(tool));
    let run = shop.runtime.start(&shop.agent, "Buy cloth.").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let call = shop.runtime.waiting_calls(session).await.unwrap()[0].call;
    shop.runtime.approve(session, call).await.unwrap();
    let waits = Rest::Signal { name: "delivered".to_owned() };
    assert_eq!(shop.runtime.drive(session).await.unwrap(), waits);
    let head = shop.runtime.records(session).await.unwrap().len();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), waits);
    assert_eq!(
        shop.runtime.records(session).await.unwrap().len(),
        head,
        "a session that waits is left as it is"
    );
    shop.runtime.signal(session, "delivered", json!(null)).await.unwrap();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
}

#[tokio::test]
async fn cancelling_ends_a_wait() {
    let done = Arc::default();
    let shop = Shop::new(agent(order(&done, |_| Wait::signal("delivered"))));
    let session = shop.start().await;
    shop.runtime.cancel(session).await.unwrap();
    assert_eq!(shop.runtime.drive(session).await.unwrap(), Rest::Finished);
}

#[tokio::test]
async fn sessions_of_unknown_agents_are_left_alone() {
    let shop = Shop::new(agent(order(&Arc::default(), |_| Wait::signal("delivered"))));
    let other = Agent::new("stranger").policy(ScriptedPolicy::from_toml(SCRIPT).unwrap());
    let session = shop.runtime.enqueue(&other, "Hello.", EnqueueOptions::default()).await.unwrap().session;
    let head = shop.runtime.records(session).await.unwrap().len();
    let refused = shop.runtime.drive(session).await;
    assert!(
        matches!(refused, Err(RuntimeError::UnknownAgent { agent: Some(name), .. }) if name == "stranger")
    );
    assert_eq!(shop.runtime.records(session).await.unwrap().len(), head);
}

#[tokio::test]
async fn signals_have_sensible_names_and_sizes() {
    let shop = Shop::new(agent(order(&Arc::default(), |_| Wait::signal("delivered"))));
    let session = shop.start().await;
    for (name, value) in [("", json!(1)), ("a\nb", json!(1)), ("big", json!("x".repeat(70_000)))] {
        let refused = shop.runtime.signal(session, name, value).await;
        assert!(matches!(refused, Err(RuntimeError::InvalidSignal { .. })), "{name:?}");
    }

    // A name that no signal can have is not waited for: the model gets the reason.
    let shop = Shop::new(agent(order(&Arc::default(), |_| Wait::signal("a\nb"))));
    let run = shop.runtime.start(&shop.agent, "Buy cloth.").await.unwrap();
    assert!(matches!(run.outcome().await.unwrap(), DriveOutcome::Completed(_)));
    let records = shop.runtime.records(run.session()).await.unwrap();
    assert!(records.iter().any(|record| format!("{:?}", record.body).contains("the name of a signal needs")));
}
