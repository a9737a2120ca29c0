//! A sub-agent that is paused or interrupted pauses its caller: decisions, cancels, and files that stay lent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstitch_core::journal::{CallStarted, Decision, Effect, EvaluationOutcome, PauseReason, RecordBody};
use backstitch_core::tool::ToolName;
use backstitch_runtime::{
    Agent, DriveOutcome, ResumeOptions, RuntimeError, SessionOptions, Tools, read_records,
};
use serde_json::json;

use super::{Shop, asks, results, sub_agent, with_agent, write, writes};
use crate::tailor::{reply, scripted, started, started_until, with_approval};

#[tokio::test]
async fn a_pause_of_a_sub_agent_pauses_its_caller_and_a_decision_about_it_resumes_both() {
    for (decision, expected) in [
        (Decision::Approve, Some("mended")),
        (Decision::Deny { reason: Some("not now".into()) }, None),
        (
            Decision::Edit {
                arguments: json!({"path": "coat", "text": "darned"}).as_object().cloned().unwrap(),
            },
            Some("darned"),
        ),
    ] {
        let shop = Shop::new();
        let tool = with_approval(write(Effect::External, &shop.ran));
        let replies = vec![reply("", &[writes("coat", "mended")]), reply("as you like", &[])];
        let mut tailor = scripted(replies).tools(Tools::new([tool]).unwrap());
        tailor.key = "helper".into();
        let caller = with_agent(vec![reply("help", &[asks("mend")]), reply("done", &[])], sub_agent(tailor));
        let driver = shop.create(caller.clone()).await;
        let (session, ended) = (driver.session().id(), driver.start("sew").await.unwrap());
        let children = shop.children(session).await;
        let DriveOutcome::Paused {
            reason: PauseReason::Approval, session: Some(waiting), detail, call, ..
        } = &ended
        else {
            panic!("{ended:?}")
        };
        assert_eq!((*waiting, children.len()), (children[0], 1));
        assert!(detail.contains(&waiting.to_string()), "{detail}");
        // It stays paused, and nothing is recorded, however often it is resumed.
        let before = shop.kinds(session).await.len();
        assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap(), ended);
        assert_eq!(shop.kinds(session).await.len(), before);
        // A decision in the caller's session does not apply to it.
        let own = shop.runtime.view(session).await.unwrap().calls().next().unwrap().call_id;
        let refused = driver.session().resolve(Some(own), Decision::Approve, None).await.unwrap_err();
        assert!(refused.to_string().contains(&waiting.to_string()), "{refused}");
        driver.session().release().await.unwrap();

        shop.runtime.decide(*waiting, *call, decision, Some("ada".into())).await.unwrap();
        let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(results(&driver).await, ["as you like"]);
        assert_eq!(shop.file("coat").as_deref(), expected);
        assert_eq!(shop.ran.load(Ordering::SeqCst), usize::from(expected.is_some()));
        assert_eq!(shop.children(session).await, children, "the same session was resumed");
    }
}

#[tokio::test]
async fn cancelling_the_caller_cancels_the_sub_agent() {
    let shop = Shop::new();
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "wait")]), reply("x", &[])]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = Arc::new(shop.create(caller).await);
    let session = driver.session().id();
    let running = started_until(&driver, &shop.ran, 1).await;
    shop.runtime.cancel(session).await.unwrap();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
    assert_eq!(shop.file("coat"), None);
    let start = backstitch_core::journal::Position::START;
    let child = shop.children(session).await[0];
    let records = read_records(&**shop.runtime.store(), child, start, None).await.unwrap();
    let outcomes = records.iter().filter_map(|record| match &record.body {
        RecordBody::EvaluationFinished(finished) => Some(finished.outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [EvaluationOutcome::Cancelled]);
}

#[tokio::test]
async fn stopping_the_caller_pauses_both_and_the_sub_agent_resumes_where_it_was() {
    let shop = Shop::new();
    let replies =
        vec![reply("", &[writes("hem", "done")]), reply("", &[writes("coat", "wait")]), reply("mended", &[])];
    let tailor = shop.tailor(Effect::Workspace, replies);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = Arc::new(shop.create(caller.clone()).await);
    let session = driver.session().id();
    let running = started_until(&driver, &shop.ran, 2).await;
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(
        matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, session: Some(_), .. }),
        "{ended:?}"
    );
    assert_eq!(shop.file("hem").as_deref(), Some("done"), "the finished call is not undone");
    assert_eq!(shop.file("coat"), None, "the interrupted call is rolled back");
    driver.session().release().await.unwrap();
    let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 3, "only the interrupted call runs again");
    assert_eq!(shop.file("coat").as_deref(), Some("wait"));
    assert_eq!(shop.children(session).await.len(), 1);
}

/// A sub-agent that waits for approval after it has written half of a file.
fn half_way(shop: &Shop) -> Agent {
    let mut tool = with_approval(write(Effect::Workspace, &shop.ran));
    Arc::make_mut(&mut tool.spec).name = ToolName::new("finish").unwrap();
    let replies = vec![
        reply("", &[writes("coat", "half")]),
        reply("", &[("finish", json!({"path": "coat", "text": "whole"}))]),
        reply("mended", &[]),
    ];
    scripted(replies).tools(Tools::new([write(Effect::Workspace, &shop.ran), tool]).unwrap())
}

#[tokio::test]
async fn a_person_may_fail_a_paused_call_and_its_session_is_rewound() {
    let shop = Shop::new();
    let tailor = half_way(&shop);
    let caller = with_agent(vec![reply("help", &[asks("mend")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    let DriveOutcome::Paused { session: Some(child), .. } = driver.start("sew").await.unwrap() else {
        panic!("it waits")
    };
    assert_eq!(shop.file("coat").as_deref(), Some("half"));
    let call = shop.runtime.view(driver.session().id()).await.unwrap().calls().next().unwrap().call_id;
    let fail = Decision::Fail { reason: Some("enough".into()) };
    driver.session().resolve(Some(call), fail, None).await.unwrap();
    assert_eq!(shop.file("coat"), None);
    assert!(shop.runtime.view(child).await.unwrap().latest_evaluation().is_none());
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(results(&driver).await, ["enough"]);
}

/// A caller whose sub-agent pauses half-way, with another call of the same turn that writes as well.
fn waiting(shop: &Shop) -> Agent {
    let tools = [sub_agent(half_way(shop)).into_tool(), write(Effect::Workspace, &shop.ran)];
    let replies = vec![reply("help", &[asks("mend"), writes("beside", "x")]), reply("done", &[])];
    scripted(replies).tools(Tools::new(tools).unwrap())
}

#[tokio::test]
async fn a_paused_sub_agent_keeps_its_exclusive_hold_of_the_files() {
    let shop = Shop::new();
    let driver = shop.create(waiting(&shop)).await;
    let ended = driver.start("sew").await.unwrap();
    let DriveOutcome::Paused { session: Some(child), .. } = ended else { panic!("{ended:?}") };
    assert_eq!((shop.file("coat").as_deref(), shop.file("beside")), (Some("half"), None));
    let pause = shop.runtime.view(child).await.unwrap().pause().cloned().unwrap();
    shop.runtime.decide(child, pause.call_id, Decision::Approve, None).await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!((shop.file("coat").as_deref(), shop.file("beside").as_deref()), (Some("whole"), Some("x")));
}

#[tokio::test]
async fn an_evaluation_that_is_cancelled_while_a_sub_agent_is_paused_is_rolled_back() {
    let shop = Shop::new();
    let driver = shop.create(waiting(&shop)).await;
    let session = driver.session().id();
    let ended = driver.start("sew").await.unwrap();
    let DriveOutcome::Paused { session: Some(child), .. } = ended else { panic!("{ended:?}") };
    let pause = shop.runtime.view(child).await.unwrap().pause().cloned().unwrap();
    shop.runtime.decide(child, pause.call_id, Decision::Approve, None).await.unwrap();
    shop.runtime.cancel(session).await.unwrap();
    let ended = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
    assert_eq!((shop.file("coat"), shop.file("beside")), (None, None));
    assert!(shop.runtime.view(child).await.unwrap().latest_evaluation().is_none());
}

#[tokio::test]
async fn the_error_of_an_unknown_effect_names_the_session_to_decide_in_at_any_depth() {
    for depth in 1..=3 {
        let shop = Shop::new();
        let replies = vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])];
        let tool = with_approval(write(Effect::External, &shop.ran));
        let mut agent = scripted(replies).tools(Tools::new([tool]).unwrap());
        for _ in 0..depth {
            agent = with_agent(vec![reply("help", &[asks("mend")]), reply("done", &[])], sub_agent(agent));
        }
        let driver = shop.create(agent.clone()).await;
        let session = driver.session().id();
        let ended = driver.start("sew").await.unwrap();
        let DriveOutcome::Paused { session: Some(inner), call: Some(call), .. } = ended else {
            panic!("{ended:?}")
        };
        driver.session().release().await.unwrap();
        // The call is approved, and the process dies inside of it.
        let live = shop.runtime.open_idle(inner, SessionOptions::default()).await.unwrap();
        live.resolve(Some(call), Decision::Approve, None).await.unwrap();
        let evaluation = live.state().await.view.latest_evaluation().unwrap().evaluation_id;
        let intent = CallStarted {
            name: "write".into(),
            effect: Effect::External,
            ..started(inner, evaluation, call)
        };
        live.record(vec![intent.into()]).await.unwrap();
        live.release().await.unwrap();

        let driver = shop.runtime.open(session, agent, (shop.options)()).await.unwrap();
        for _ in 0..2 {
            let error = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap_err();
            let RuntimeError::ToolIdempotencyError { call: unknown, tool, session: Some(waiting) } = &error
            else {
                panic!("{depth}: {error:?}")
            };
            assert_eq!((*unknown, tool.as_str(), *waiting), (call, "write", inner), "{error}");
            assert!(error.to_string().contains(&inner.to_string()), "{error}");
        }
        assert_eq!(shop.ran.load(Ordering::SeqCst), 0, "it did not run again");
        shop.runtime.decide(inner, Some(call), Decision::Retry, None).await.unwrap();
        assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
        assert_eq!(shop.ran.load(Ordering::SeqCst), 1);
    }
}
