//! Code of users that panics: the session is not blocked by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Effect, PauseReason};
use backstitch_core::tool::{Reconcile, ReconcileOutcome, Tool, ToolResult, WorkspaceUse};
use backstitch_runtime::{Agent, DriveOutcome, Runtime, SubAgent};
use backstitch_store::MemoryStore;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tailor::{killed_inside, reply, scripted};

fn runtime() -> Runtime {
    Runtime::new(Arc::new(MemoryStore::new()))
}

async fn results(runtime: &Runtime, session: SessionId) -> Vec<String> {
    let transcript = runtime.view(session).await.unwrap().transcript().unwrap();
    let results = transcript.all();
    let results = results.iter().filter(|message| message.message.option_result().is_some());
    results.map(|message| message.content()).collect()
}

#[tokio::test]
async fn a_mission_that_panics_is_an_error_for_the_model() {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Bill {
        sum: u64,
    }
    let clerk = SubAgent::new("clerk", "Pays bills.", scripted(vec![reply("paid", &[])])).unwrap();
    let clerk = clerk.asking(|bill: Bill| format!("{} each", 100 / bill.sum));
    let calls = [("clerk", json!({"sum": 0})), ("clerk", json!({"sum": 5}))];
    let agent = scripted(vec![reply("", &calls), reply("done", &[])]).tools([clerk.into_tool()]);
    let runtime = runtime();
    let run = runtime.start(&agent, "pay").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
    let results = results(&runtime, run.session()).await;
    assert!(results.iter().any(|text| text.contains("clerk panicked")), "{results:?}");
    assert!(results.iter().any(|text| text == "paid"), "{results:?}");
}

/// An even number. Reading an odd one panics.
#[derive(Debug, PartialEq, schemars::JsonSchema)]
struct Even {
    number: u64,
}

impl<'de> Deserialize<'de> for Even {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Value::deserialize(deserializer)?["number"].as_u64().unwrap_or_default();
        assert_eq!(number % 2, 0, "an odd number");
        Ok(Self { number })
    }
}

#[tokio::test]
async fn an_answer_whose_type_panics_does_not_fit() {
    let odd = || reply(r#"{"number": 3}"#, &[]);
    let agent = |replies| -> Agent { scripted(replies).answers_with::<Even>() };
    let runtime = runtime();
    let run = runtime.start(&agent(vec![odd(), reply(r#"{"number": 4}"#, &[])]), "count").await.unwrap();
    assert_eq!(run.answer::<Even>().await.unwrap(), Even { number: 4 });
    let run = runtime.start(&agent(vec![odd(), odd()]), "count").await.unwrap();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Failed { .. }), "{ended:?}");
}

/// An agent that pays, and the number of its payments. The process is killed inside of the first one.
fn paying(reconcile: Reconcile) -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let pay = Tool::builder("pay", "Pays.").unwrap().effect(Effect::External);
    let counted = ran.clone();
    let pay = pay.workspace(WorkspaceUse::None).reconcile(reconcile).handler(move |context, _: Value| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            context.cancelled().await;
            Ok(ToolResult::ok("paid"))
        }
    });
    let agent = scripted(vec![reply("", &[("pay", json!({}))]), reply("done", &[])]).tools([pay]);
    (agent, ran)
}

#[tokio::test]
async fn a_call_waits_if_its_tool_cannot_say_whether_it_took_effect() {
    let reconciles: [Reconcile; 4] = [
        Arc::new(|_, _| panic!("the bank is gone")),
        Arc::new(|_, _| Box::pin(async { panic!("the bank is closed") })),
        Arc::new(|_, _| Box::pin(async { Err("the bank does not answer".into()) })),
        Arc::new(|_, _| Box::pin(async { Ok(ReconcileOutcome::Unknown) })),
    ];
    for reconcile in reconciles {
        let (agent, ran) = paying(reconcile);
        let runtime = runtime();
        let session = killed_inside(&runtime, &agent, &ran, None).await;
        let run = runtime.resume(session, &agent).await.unwrap();
        let ended = run.outcome().await.unwrap();
        assert!(
            matches!(ended, DriveOutcome::Paused { reason: PauseReason::EffectUnknown, .. }),
            "{ended:?}"
        );
        let waiting = runtime.waiting_calls(session).await.unwrap();
        assert_eq!(waiting.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["pay"]);
    }
}

#[tokio::test]
async fn a_tool_reports_the_value_of_a_call_that_took_effect() {
    let reconcile: Reconcile = Arc::new(|key, _| {
        Box::pin(async move {
            assert!(key.session().is_some() && key.call().is_some(), "{key}");
            Ok(ReconcileOutcome::happened("paid before"))
        })
    });
    let (agent, ran) = paying(reconcile);
    let runtime = runtime();
    let session = killed_inside(&runtime, &agent, &ran, None).await;
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
    assert_eq!(results(&runtime, session).await, ["paid before"]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}
