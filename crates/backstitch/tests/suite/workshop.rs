//! A whole program from outside: sessions with sub-agents and approvals that outlive their process, go back, and pay once.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch::prelude::*;
use backstitch::tool::ReconcileOutcome;
use backstitch::tools::file_tools;
use tempfile::TempDir;

static PAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);

/// Looks up the price of a cloth.
#[tool(effect = "pure", workspace = "none")]
async fn look_up(cloth: String) -> Result<String, ToolError> {
    LOOKED_UP.fetch_add(1, Ordering::SeqCst);
    Ok(format!("{cloth}: 12"))
}

/// Pays a bill.
#[tool(effect = "external", workspace = "none", approval, reconcile = find_payment)]
async fn pay(context: ToolContext, bill: String) -> Result<String, ToolError> {
    context.output(format!("paying {bill}\n"));
    PAID.lock().unwrap().push(context.idempotency_key().to_string());
    Ok(format!("paid {bill}"))
}

async fn find_payment(
    key: backstitch::journal::IdempotencyKey,
    _: serde_json::Map<String, serde_json::Value>,
) -> Result<ReconcileOutcome, backstitch::session::BoxError> {
    let is_paid = PAID.lock().unwrap().iter().any(|paid| paid == key.as_str());
    Ok(if is_paid { ReconcileOutcome::happened("paid") } else { ReconcileOutcome::DidNotHappen })
}

const BUYER: &str = r#"
[[reply]]
call = [{ name = "look_up", arguments = { cloth = "linen" } }]
[[reply]]
call = [{ name = "pay", arguments = { bill = "linen" } }]
[[reply]]
text = "Bought."
"#;

const TAILOR: &str = r#"
[[reply]]
call = [{ name = "write_file", arguments = { path = "coat.txt", text = "cut" } }]
[[reply]]
call = [{ name = "buy", arguments = { mission = "Buy linen." } }, { name = "buy", arguments = { mission = "Buy linen." } }]
[[reply]]
call = [{ name = "write_file", arguments = { path = "coat.txt", text = "sewn" } }]
[[reply]]
text = "The coat is sewn."
"#;

fn agent(directory: &Path) -> Agent {
    let buyer =
        Agent::new("buyer").policy(ScriptedPolicy::from_toml(BUYER).unwrap()).tools([look_up(), pay()]);
    let buy = SubAgent::new("buy", "Buys something.", buyer).unwrap();
    let policy = ScriptedPolicy::from_toml(TAILOR).unwrap();
    Agent::new("tailor").policy(policy).tools(file_tools()).tools([buy]).workspace(directory)
}

async fn approve(_: &WaitingCall) -> Option<Decision> {
    Some(Decision::Approve)
}

#[tokio::test]
async fn a_shop_restarts_goes_back_and_pays_once() {
    let place = TempDir::new().unwrap();
    let (store, shop) = (place.path().join("store/store.db"), place.path().join("shop"));
    let coat = || std::fs::read_to_string(shop.join("coat.txt")).unwrap();
    let agent = agent(&shop);

    // The first process pauses at the first approval, and is shut down.
    let runtime = Runtime::at(&store).unwrap();
    let id = runtime.new_id().unwrap();
    let options = || SessionOptions { id: Some(id), ..SessionOptions::default() };
    let run = runtime.start_with(&agent, "Sew a coat.", options()).await.unwrap();
    let outcome = run.outcome().await.unwrap();
    assert!(matches!(outcome, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{outcome}");
    let again = runtime.start_with(&agent, "Sew a coat.", options()).await.unwrap_err();
    assert_eq!(again.kind(), "already_exists");
    runtime.shutdown().await;
    drop((run, runtime));

    // The next one decides and drives it to its answer.
    let runtime = Runtime::at(&store).unwrap();
    assert!(runtime.recoverable().await.unwrap().is_empty(), "it waits for a person, not for a process");
    assert_eq!(runtime.waiting_calls(id).await.unwrap().len(), 2);
    let run = runtime.resume(id, &agent).await.unwrap();
    let outcome = run.deciding(&agent, approve).await.unwrap();
    assert_eq!(outcome.answer().unwrap().text, "The coat is sewn.");
    assert_eq!((coat().as_str(), PAID.lock().unwrap().len()), ("sewn", 2));

    // Back to before the purchases: they have happened, and their results are offered in place of new ones.
    let bought = runtime.checkpoints(id).await.unwrap()[1].call_id;
    let report = runtime.rewind(id, PointSpec::Before(bought.to_string())).await.unwrap();
    assert_eq!((coat().as_str(), report.effects.len()), ("cut", 2));
    let run = runtime.resume(id, &agent).await.unwrap();
    let mut offers = 0;
    let outcome = run
        .deciding(&agent, async |call| match (call.reason, call.has_offer) {
            (PauseReason::EffectUnknown, true) => {
                offers += 1;
                let result = backstitch::message::OptionResult::new(call.call, &call.name, "Bought.".into());
                Some(Decision::Happened { result: Box::new(result) })
            }
            _ => Some(Decision::Approve),
        })
        .await
        .unwrap();
    assert_eq!(outcome.answer().unwrap().text, "The coat is sewn.");
    assert_eq!((coat().as_str(), offers, PAID.lock().unwrap().len()), ("sewn", 2, 2));
    assert_eq!(LOOKED_UP.load(Ordering::SeqCst), 2, "the sub-agents are not asked again");

    // A fork works on its own copy.
    let other = place.path().join("other");
    let elsewhere = ForkOptions::within(&*other);
    let fork = runtime.fork_with(id, PointSpec::Before(bought.to_string()), elsewhere).await.unwrap();
    assert_ne!(fork.session, id);
    assert_eq!(std::fs::read_to_string(other.join("coat.txt")).unwrap(), "cut");
    assert_eq!(coat(), "sewn");
}
