//! Workers in one process: what they take, how they give it back, and when they give up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{PauseReason, StopReason};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{BoxFuture, PolicyAnswer, QueueQuery, QueueState};
use backstitch_core::session::BoxError;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, Wait};
use backstitch_providers::ScriptedPolicy;
use backstitch_runtime::{
    Agent, AgentRegistry, AgentSource, Backoff, EnqueueOptions, FunctionPolicy, Rest, Runtime,
    ScheduleOptions, Worker, WorkerEvent, WorkerOptions,
};
use backstitch_store::MemoryStore;
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

fn answering(name: &str) -> Agent {
    Agent::new(name).policy(ScriptedPolicy::from_toml(&"[[reply]]\ntext = 'Mended.'\n".repeat(3)).unwrap())
}

fn runtime(agents: impl IntoIterator<Item = Agent>) -> Runtime {
    let store = Arc::new(MemoryStore::new());
    let agents = Arc::new(AgentRegistry::new(agents));
    Runtime::new(store.clone()).with_queue(store).with_agents(agents)
}

fn quick() -> WorkerOptions {
    let retries = Backoff { retries: 2, first: Duration::from_millis(1), longest: Duration::from_millis(2) };
    WorkerOptions { poll: Duration::from_millis(10), retries, ..WorkerOptions::default() }
}

/// Runs a worker until it has reported an event, and returns all events.
async fn work_until(
    runtime: &Runtime,
    is_last: impl Fn(&WorkerEvent) -> bool + Send + Sync + 'static,
) -> Vec<WorkerEvent> {
    work_with(runtime, quick(), is_last).await
}

async fn work_with(
    runtime: &Runtime,
    options: WorkerOptions,
    is_last: impl Fn(&WorkerEvent) -> bool + Send + Sync + 'static,
) -> Vec<WorkerEvent> {
    let (stop, events) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
    let (reached, kept) = (stop.clone(), events.clone());
    let worker = Worker::new(runtime.clone()).with_options(options).with_report(move |event| {
        if is_last(&event) {
            reached.cancel();
        }
        kept.lock().unwrap().push(event);
    });
    tokio::time::timeout(Duration::from_secs(60), worker.run(stop)).await.unwrap().unwrap();
    std::mem::take(&mut *events.lock().unwrap())
}

async fn in_state(runtime: &Runtime, state: QueueState) -> usize {
    let query = QueueQuery { state: Some(state), limit: 100, ..QueueQuery::default() };
    runtime.queue().unwrap().queued(query).await.unwrap().sessions.len()
}

#[tokio::test]
async fn sessions_are_driven_to_their_answers_and_leave_the_queue() {
    let agent = answering("tailor");
    let runtime = runtime([agent.clone()]);
    let options = |key: &str| EnqueueOptions { key: Some(key.to_owned()), ..EnqueueOptions::default() };
    let first = runtime.enqueue(&agent, "Mend the coat.", options("coat")).await.unwrap();
    let again = runtime.enqueue(&agent, "Mend the coat.", options("coat")).await.unwrap();
    assert!(first.is_new && !again.is_new);
    assert_eq!(first.session, again.session);
    let events = work_until(&runtime, |event| matches!(event, WorkerEvent::Rested { .. })).await;
    assert!(events.contains(&WorkerEvent::Rested { session: first.session, rest: Rest::Finished }));
    assert_eq!(in_state(&runtime, QueueState::Ready).await, 0);

    // A follow-up is answered in the same session.
    let runtime = Runtime::clone(&runtime);
    runtime.enqueue_again(first.session, Some("And the sleeve."), EnqueueOptions::default()).await.unwrap();
    let events = work_until(&runtime, |event| matches!(event, WorkerEvent::Rested { .. })).await;
    assert!(events.contains(&WorkerEvent::Rested { session: first.session, rest: Rest::Finished }));
}

#[tokio::test]
async fn a_message_with_a_key_is_sent_once() {
    let agent = answering("tailor");
    let runtime = runtime([agent.clone()]);
    let session = runtime.enqueue(&agent, "Mend.", EnqueueOptions::default()).await.unwrap().session;
    for is_new in [true, false] {
        let options = EnqueueOptions { key: Some("sleeve".to_owned()), ..EnqueueOptions::default() };
        let again = runtime.enqueue_again(session, Some("And the sleeve."), options).await.unwrap();
        assert_eq!((again.session, again.is_new), (session, is_new));
    }
    assert_eq!(runtime.store().inbox(session).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_stopped_on_a_terminal_rests_until_it_is_enqueued() {
    let (asked, calls) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicUsize::new(0)));
    let notify = asked.clone();
    let policy = FunctionPolicy::new(PolicyName::new("slow").unwrap(), move |_| {
        let (notify, is_first) = (notify.clone(), calls.fetch_add(1, Ordering::SeqCst) == 0);
        async move {
            notify.notify_one();
            if is_first {
                std::future::pending::<()>().await;
            }
            Err::<PolicyAnswer, BoxError>("no thread left".into())
        }
    });
    let agent = Agent::new("tailor").policy(policy).backoff(Backoff::NEVER);
    let store = Arc::new(MemoryStore::new());
    let agents = Arc::new(AgentRegistry::new([agent.clone()]));
    let process = || Runtime::new(store.clone()).with_queue(store.clone()).with_agents(agents.clone());
    let (terminal, runtime) = (process(), process());
    let run = terminal.start(&agent, "Mend.").await.unwrap();
    asked.notified().await;
    terminal.stop(StopReason::Signal);
    run.outcome().await.unwrap();
    for _ in 0..2 {
        let rest = runtime.drive(run.session()).await.unwrap();
        assert!(matches!(rest, Rest::Person { reason: PauseReason::Asked, .. }), "{rest:?}");
    }
    runtime.enqueue_again(run.session(), None, EnqueueOptions::default()).await.unwrap();
    assert!(runtime.drive(run.session()).await.unwrap_err().to_string().contains("no thread left"));
}

#[tokio::test]
async fn errors_are_retried_and_then_given_up_with_their_reason() {
    let failing = FunctionPolicy::new(PolicyName::new("broken").unwrap(), |_| async {
        Err::<PolicyAnswer, BoxError>("no thread left".into())
    });
    let agent = Agent::new("tailor").policy(failing).backoff(Backoff::NEVER);
    let runtime = runtime([agent.clone()]);
    let session = runtime.enqueue(&agent, "Mend.", EnqueueOptions::default()).await.unwrap().session;
    let events = work_until(&runtime, |event| matches!(event, WorkerEvent::GaveUp { .. })).await;
    let retried = events.iter().filter(|event| matches!(event, WorkerEvent::Retried { .. })).count();
    assert_eq!(retried, 2, "{events:?}");
    let query = QueueQuery { session: Some(session), limit: 1, ..QueueQuery::default() };
    let failed = runtime.queue().unwrap().queued(query).await.unwrap().sessions.remove(0);
    assert_eq!(failed.state, QueueState::Failed);
    assert!(failed.reason.unwrap().contains("no thread left"));
    assert!(runtime.queue().unwrap().retry(session).await.unwrap());
}

#[tokio::test]
async fn an_approval_wakes_a_session_that_no_worker_holds() {
    let publish = Tool::builder("publish", "Publishes.").unwrap().needs_approval();
    let publish = publish.handler(|_, _: NoArguments| async { Ok(ToolResult::ok("it is out")) });
    let script = "
        [[reply]]
        call = [{ name = 'publish', arguments = {} }]
        [[reply]]
        text = 'Published.'
    ";
    let agent = Agent::new("editor").policy(ScriptedPolicy::from_toml(script).unwrap()).tools([publish]);
    let runtime = runtime([agent.clone()]);
    let session = runtime.enqueue(&agent, "Publish.", EnqueueOptions::default()).await.unwrap().session;
    let is_rest = |event: &WorkerEvent| matches!(event, WorkerEvent::Rested { .. });
    let events = work_until(&runtime, is_rest).await;
    assert!(
        matches!(events.last(), Some(WorkerEvent::Rested { rest: Rest::Person { .. }, .. })),
        "{events:?}"
    );
    assert_eq!(in_state(&runtime, QueueState::Waiting).await, 1);
    // A run without the queue leaves it to the workers.
    runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
    assert_eq!(in_state(&runtime, QueueState::Ready).await, 1);
    let call = runtime.waiting_calls(session).await.unwrap()[0].call;
    runtime.approve(session, call).await.unwrap();
    let events = work_until(&runtime, is_rest).await;
    assert!(events.contains(&WorkerEvent::Rested { session, rest: Rest::Finished }), "{events:?}");
}

#[tokio::test]
async fn unknown_agents_are_reported_once_and_left_alone() {
    let (known, other) = (answering("tailor"), answering("stranger"));
    let runtime = runtime([known.clone()]);
    for _ in 0..2 {
        runtime.enqueue(&other, "Hello.", EnqueueOptions::default()).await.unwrap();
    }
    runtime.enqueue(&known, "Mend.", EnqueueOptions::default()).await.unwrap();
    let events = work_until(&runtime, |event| matches!(event, WorkerEvent::Rested { .. })).await;
    let unknown = events.iter().filter(|event| matches!(event, WorkerEvent::UnknownAgent { .. })).count();
    assert_eq!(unknown, 1, "{events:?}");
    assert_eq!(in_state(&runtime, QueueState::Ready).await, 2);
}

/// Knows one agent, but not for one session of its name.
struct Choosy {
    agent: Agent,
    unknown: SessionId,
}

impl AgentSource for Choosy {
    fn names(&self) -> Option<Vec<String>> {
        None
    }

    fn agent<'a>(&'a self, _: &'a str, session: SessionId) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        Box::pin(async move { Ok((session != self.unknown).then(|| self.agent.clone())) })
    }

    fn defined<'a>(
        &'a self,
        _: &'a str,
        _: &'a serde_json::Value,
    ) -> BoxFuture<'a, Result<Option<Agent>, BoxError>> {
        Box::pin(async { Ok(None) })
    }
}

#[tokio::test]
async fn a_session_that_is_not_known_does_not_block_others_of_its_name() {
    let agent = answering("tailor");
    let runtime = runtime([]);
    let first = EnqueueOptions { priority: 1, ..EnqueueOptions::default() };
    let unknown = runtime.enqueue(&agent, "Mend.", first).await.unwrap().session;
    let session = runtime.enqueue(&agent, "Mend.", EnqueueOptions::default()).await.unwrap().session;
    let runtime = runtime.with_agents(Arc::new(Choosy { agent: agent.clone(), unknown }));
    let options = WorkerOptions { concurrency: 1, ..quick() };
    let events = work_with(&runtime, options, |event| matches!(event, WorkerEvent::Rested { .. })).await;
    assert_eq!(events[0], WorkerEvent::UnknownAgent { agent: "tailor".to_owned() });
    assert_eq!(events.last(), Some(&WorkerEvent::Rested { session, rest: Rest::Finished }));
    // Nothing was driven, so nothing else is reported about it.
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, WorkerEvent::Taken { session, .. } if *session == unknown))
    );
    assert_eq!(in_state(&runtime, QueueState::Waiting).await, 1);
    assert_eq!(runtime.queue().unwrap().dequeue(unknown).await.ok(), Some(true));
}

#[tokio::test]
async fn a_schedule_leaves_out_times_at_which_its_last_session_has_not_ended() {
    let order = Tool::builder("order", "Orders cloth.").unwrap().handler(
        |context: ToolContext, _: NoArguments| async move {
            context.wait("delivery", Wait::signal("delivered")).await?;
            Ok(ToolResult::ok("it came"))
        },
    );
    let script = "
        [[reply]]
        call = [{ name = 'order', arguments = {} }]
        [[reply]]
        text = 'Ordered.'
    ";
    let agent =
        Agent::new("buyer").policy(ScriptedPolicy::from_toml(&script.repeat(3)).unwrap()).tools([order]);
    let clock = Arc::new(backstitch_core::time::FixedClock::at("2026-05-04T12:00:30Z".parse().unwrap()));
    let runtime = runtime([agent.clone()]).with_clock(clock.clone());
    let options = ScheduleOptions::new("hourly", "0 * * * *");
    assert!(!runtime.add_schedule(&agent, "Buy.", options.clone()).await.unwrap().overlaps);
    let hour = Duration::from_secs(3600);
    clock.advance(hour);
    work_until(&runtime, |event| matches!(event, WorkerEvent::Rested { .. })).await;
    let session = runtime.schedules().await.unwrap().schedules[0].last.unwrap();

    clock.advance(hour);
    let is_skipped = |event: &WorkerEvent| matches!(event, WorkerEvent::ScheduleSkipped { .. });
    let events = work_until(&runtime, is_skipped).await;
    assert!(events.contains(&WorkerEvent::ScheduleSkipped { schedule: "hourly".to_owned(), session }));
    let listed = runtime.schedules().await.unwrap().schedules.remove(0);
    assert_eq!((listed.last, listed.next), (Some(session), "2026-05-04T15:00:00Z".parse().unwrap()));
    assert_eq!(runtime.store().sessions().await.unwrap().len(), 1);

    // Unless they may overlap.
    runtime.add_schedule(&agent, "Buy.", ScheduleOptions { overlaps: true, ..options }).await.unwrap();
    for sessions in [2, 3] {
        clock.advance(hour);
        work_until(&runtime, |event| matches!(event, WorkerEvent::Scheduled { .. })).await;
        assert_eq!(runtime.store().sessions().await.unwrap().len(), sessions);
    }
}

#[tokio::test]
async fn a_time_of_a_schedule_starts_one_session() {
    let agent = answering("tailor");
    let clock = Arc::new(backstitch_core::time::FixedClock::at("2026-05-04T12:00:30Z".parse().unwrap()));
    let runtime = runtime([agent.clone()]).with_clock(clock.clone());
    let added =
        runtime.add_schedule(&agent, "Mend.", ScheduleOptions::new("daily", "*/5 * * * *")).await.unwrap();
    assert_eq!(added.next, "2026-05-04T12:05:00Z".parse().unwrap());
    clock.advance(Duration::from_secs(3600));
    // Either of two workers may be the first to see it.
    let stop = CancellationToken::new();
    let working: Vec<_> = (0..2)
        .map(|_| tokio::spawn(Worker::new(runtime.clone()).with_options(quick()).run(stop.clone())))
        .collect();
    let is_applied = async {
        while runtime.schedules().await.unwrap().schedules[0].last.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_applied).await.unwrap();
    stop.cancel();
    for worker in working {
        worker.await.unwrap().unwrap();
    }
    let sessions = runtime.store().sessions().await.unwrap();
    assert_eq!(sessions.len(), 1);
    let schedule = runtime.schedules().await.unwrap().schedules.remove(0);
    assert_eq!((schedule.last, schedule.next), (Some(sessions[0]), "2026-05-04T13:05:00Z".parse().unwrap()));
    assert!(runtime.remove_schedule("daily").await.unwrap());
    assert!(!runtime.remove_schedule("daily").await.unwrap());
}
