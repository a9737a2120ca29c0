//! Decisions and messages of people: the values that these operations return.

use std::path::Path;
use std::time::Duration;

use backstitch::code::ErrorCode;
use backstitch::prelude::*;
use backstitch::report::{ApprovalOutcome, RestoredChange};
use serde_json::json;
use tempfile::TempDir;

use crate::going_back::round_trip;

/// Sends a coat.
#[tool(approval, workspace = "none")]
async fn send(
    /// The coat.
    coat: String,
) -> Result<String, ToolError> {
    Ok(format!("sent {coat}"))
}

const SENDING: &str = r#"
[[reply]]
call = [
    { name = "send", arguments = { coat = "red" } },
    { name = "send", arguments = { coat = "blue" } },
    { name = "send", arguments = { coat = "green" } },
]
[[reply]]
text = "Done."
"#;

#[tokio::test]
async fn calls_are_decided_together_or_not_at_all() {
    let runtime = Runtime::in_memory();
    let agent = Agent::new("tailor").policy(ScriptedPolicy::from_toml(SENDING).unwrap()).tools([send()]);
    let run = runtime.start(&agent, "Send them").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let calls: Vec<CallId> = waiting.iter().map(|call| call.call).collect();
    let head = runtime.view(session).await.unwrap().head();

    let unknown = CallId::of_foreign(session, "unknown");
    let refused = runtime.decide_calls(session, &[calls[0], unknown], Decision::Approve, None).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::DecisionRefused);
    assert_eq!(runtime.view(session).await.unwrap().head(), head, "nothing is recorded");

    let by = Some("ada".to_owned());
    let twice = [calls[1], calls[0], calls[1]];
    let approved = runtime.decide_calls(session, &twice, Decision::Approve, by.clone()).await.unwrap();
    let json = round_trip(&approved);
    assert_eq!((&json["session"], &json["decision"]), (&json!(session), &json!("approved")));
    let decided = json["decided"].as_array().unwrap();
    assert_eq!(decided.len(), 2, "{json}");
    let red = json!({"session": session, "call": calls[0], "name": "send", "arguments": {"coat": "red"}});
    assert_eq!(decided[0], red);
    assert_eq!((approved.waiting, approved.sent), (1, false));

    let deny = Decision::Deny { reason: Some("not today".to_owned()) };
    let denied = runtime.decide_calls(session, &calls[2..], deny, by).await.unwrap();
    assert_eq!((denied.decision, denied.waiting), (ApprovalOutcome::Denied, 0));
    assert_eq!(round_trip(&denied)["decision"], "denied");
    let again = runtime.decide_calls(session, &calls[..1], Decision::Approve, None).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::DecisionRefused);
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
}

/// Pays. It leaves half of a bill, and does not return.
#[tool(effect = "external")]
async fn pay(context: ToolContext) -> Result<String, ToolError> {
    context.filesystem()?.write_bytes(&"bill.txt".parse()?, b"half", WriteMode::Overwrite)?;
    std::future::pending().await
}

const PAYING: &str = r#"
[[reply]]
call = [{ name = "pay", arguments = {} }]
[[reply]]
text = "Done."
"#;

fn clerk(shop: &Path) -> Agent {
    let policy = ScriptedPolicy::from_toml(PAYING).unwrap();
    Agent::new("clerk").policy(policy).tools([pay()]).workspace(shop)
}

#[test]
fn a_decision_reports_the_files_that_it_restores() {
    let place = TempDir::new().unwrap();
    let [store, shop] = ["store/store.db", "shop"].map(|name| place.path().join(name));
    let bill = shop.join("bill.txt");
    let process = tokio::runtime::Runtime::new().unwrap();
    let session = process.block_on(async {
        let run = Runtime::at(&store).unwrap().start(&clerk(&shop), "Pay").await.unwrap();
        while !bill.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        run.session()
    });
    // The process dies inside of the call.
    drop(process);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let runtime = Runtime::at(&store).unwrap();
        let ended = runtime.resume(session, &clerk(&shop)).await.unwrap().outcome().await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call, .. } = ended else {
            panic!("{ended:?}")
        };
        let options = DecideOptions { by: Some("ada".to_owned()), ..DecideOptions::default() };
        let fail = Decision::Fail { reason: None };
        let resolved = runtime.resolve_with(session, call, fail, options).await.unwrap();
        assert!(!bill.exists());
        let [restored] = &resolved.restored[..] else { panic!("{resolved:?}") };
        let [file] = &restored.files[..] else { panic!("{restored:?}") };
        assert_eq!((file.path.as_str(), file.change), ("bill.txt", RestoredChange::Removed));
        let json = round_trip(&resolved);
        assert_eq!(
            (&json["call"], &json["decided"], &json["sent"]),
            (&json!(call), &json!(true), &json!(false))
        );
        assert!(json["restored"][0]["rescue"].as_str().unwrap().starts_with("rescue:"), "{json}");
    });
}

#[tokio::test]
async fn what_is_sent_to_a_session_says_whether_an_evaluation_receives_it() {
    let policy = |script: &str| ScriptedPolicy::from_toml(script).unwrap();
    let quick = Agent::new("tailor").policy(policy("[[reply]]\ntext = \"Done.\"\n"));
    let runtime = Runtime::in_memory();
    let idle = runtime.start(&quick, "Sew").await.unwrap();
    idle.outcome().await.unwrap();
    let sent = runtime.send(idle.session(), "And the sleeve?").await.unwrap();
    let json = round_trip(&sent);
    assert_eq!((&json["session"], &json["open"]), (&json!(idle.session()), &json!(false)));
    assert!(json["item"].is_u64(), "{json}");
    assert_eq!(runtime.cancel(idle.session()).await.unwrap_err().code(), ErrorCode::NothingToCancel);
    assert_eq!(runtime.pause(idle.session()).await.unwrap_err().code(), ErrorCode::NothingToPause);

    // Its evaluation is open while a call waits for approval.
    let waiting = Agent::new("tailor").policy(policy(SENDING)).tools([send()]);
    let waiting = runtime.start(&waiting, "Send them").await.unwrap();
    waiting.outcome().await.unwrap();
    let paused = runtime.pause(waiting.session()).await.unwrap();
    assert!(paused.open && paused.item > sent.item);
    round_trip(&paused);
    assert!(runtime.send(waiting.session(), "And the sleeve?").await.unwrap().open);
    assert!(runtime.cancel(waiting.session()).await.unwrap().open);
}
