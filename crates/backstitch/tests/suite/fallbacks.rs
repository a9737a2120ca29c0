//! Fallbacks of agents that are built in Rust.

use backstitch::host::FallbackReason;
use backstitch::prelude::*;
use backstitch::{Backoff, Fallback};

fn scripted(model: &str, replies: &str) -> ScriptedPolicy {
    ScriptedPolicy::from_toml(replies).unwrap().with_model(model)
}

fn failing(model: &str, kind: &str) -> ScriptedPolicy {
    scripted(model, &format!("[[reply]]\n[[reply.fail]]\nkind = '{kind}'\n"))
}

/// The models of the requests of a session.
async fn asked(runtime: &Runtime, session: backstitch::id::SessionId) -> Vec<String> {
    let view = runtime.view(session).await.unwrap();
    let requests = view.evaluations().flat_map(|evaluation| &evaluation.requests);
    requests.map(|request| request.started.record.model.clone()).collect()
}

#[tokio::test]
async fn fallbacks_apply_in_order_and_only_those_below() {
    let agent = Agent::new("tailor")
        .policy(failing("first", "content_filter"))
        .backoff(Backoff::NEVER)
        .fallback(Fallback::policy([FallbackReason::Overload], scripted("unused", "[[reply]]\ntext = 'No.'")))
        .fallback(Fallback::policy([FallbackReason::Refusal], failing("second", "overloaded")))
        .fallback(Fallback::policy(
            [FallbackReason::Credit, FallbackReason::Overload],
            scripted("third", "[[reply]]\ntext = 'Done.'"),
        ));
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent, "Mend").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
    assert_eq!(asked(&runtime, run.session()).await, ["first", "second", "third"]);
}

#[tokio::test]
async fn the_error_of_the_last_model_is_reported() {
    let agent = Agent::new("tailor")
        .policy(failing("first", "overloaded"))
        .backoff(Backoff::NEVER)
        .fallback(Fallback::policy([FallbackReason::Overload], failing("second", "out_of_credit")));
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent, "Mend").await.unwrap();
    let error = run.answer::<String>().await.unwrap_err().to_string();
    assert!(error.contains("out_of_credit"), "{error}");
    assert_eq!(asked(&runtime, run.session()).await, ["first", "second"]);
}

#[tokio::test]
async fn the_model_of_a_fallback_is_opened_before_anything_starts() {
    let agent = Agent::new("tailor")
        .policy(scripted("first", "[[reply]]\ntext = 'Done.'"))
        .fallback(Fallback::model([FallbackReason::Overload], "nowhere:m"));
    let error = Runtime::in_memory().start(&agent, "Mend").await.unwrap_err();
    assert!(matches!(error, RuntimeError::Model { .. }), "{error}");
}
