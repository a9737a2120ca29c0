//! The budget and the deadline of a sub-agent are taken from its caller.

use std::sync::atomic::Ordering;
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::journal::{Effect, PauseReason};
use backstitch_runtime::{DriveOutcome, ResumeOptions};

use super::{Shop, asks, results, sub_agent, with_agent, writes};
use crate::tailor::{reply, scripted};

#[tokio::test]
async fn a_sub_agent_spends_its_reservation_and_its_caller_is_charged() {
    let usage = |tokens| Some(Amounts { input_tokens: tokens, ..Amounts::ZERO });
    let shop = Shop::new();
    let mut replies = vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage(40));
    let tailor = shop.tailor(Effect::Workspace, replies);
    let mut replies = vec![reply("help", &[asks("mend it")]), reply("done", &[])];
    replies.iter_mut().for_each(|reply| reply.usage = usage(10));
    let limits = |tokens| Limits { total_tokens: Some(tokens), ..Limits::default() };
    let caller = with_agent(replies, sub_agent(tailor)).with_budget(limits(50));
    let driver = shop.create(caller).await;
    let ended = driver.start("sew").await.unwrap();
    let DriveOutcome::Paused { reason: PauseReason::Budget, session: Some(child), .. } = ended else {
        panic!("{ended:?}")
    };
    let view = shop.runtime.view(child).await.unwrap();
    assert_eq!(view.latest_evaluation().unwrap().budget, Some(limits(40)), "the caller's remaining budget");
    let held = driver.session().state().await.view.ledger().reserved();
    assert_eq!((held.total_tokens(), held.calls), (40, 1));

    let again = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(again, DriveOutcome::Paused { reason: PauseReason::Budget, .. }), "{again:?}");
    let more = ResumeOptions { budget: Some(limits(100)), ..ResumeOptions::default() };
    let ended = driver.resume(more).await.unwrap();
    assert_eq!(ended.answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1);
    let state = driver.session().state().await;
    let (charged, reserved) = (state.view.ledger().charged(), state.view.ledger().reserved());
    assert_eq!((charged.total_tokens(), charged.calls, reserved), (100, 2, Amounts::ZERO));
}

#[tokio::test]
async fn concurrent_sub_agents_share_the_remaining_budget() {
    let shop = Shop::new();
    let tailor = scripted(vec![reply("looked", &[])]);
    let caller =
        with_agent(vec![reply("", &[asks("look"), asks("look too")]), reply("done", &[])], sub_agent(tailor));
    let limits = Limits { total_tokens: Some(100), ..Limits::default() };
    let driver = shop.create(caller.with_budget(limits)).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    for child in shop.children(driver.session().id()).await {
        let view = shop.runtime.view(child).await.unwrap();
        let budget = view.latest_evaluation().unwrap().budget.unwrap();
        assert!(budget.total_tokens.unwrap() <= 50, "{budget:?}");
    }
}

#[tokio::test]
async fn a_sub_agent_has_no_more_time_than_its_caller() {
    let shop = Shop::new();
    let mut slow = reply("late", &[]);
    slow.delay_ms = Some(1_000);
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "half")]), slow]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller.with_deadline(Duration::from_millis(300))).await;
    let ended = driver.start("sew").await.unwrap();
    let is_late = matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. });
    assert!(is_late, "{ended:?}");
    // With more time, both resume where they were.
    let more = ResumeOptions { deadline: Some(Duration::from_secs(60)), ..ResumeOptions::default() };
    assert_eq!(driver.resume(more).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(shop.file("coat").as_deref(), Some("half"));
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1, "the finished call does not run again");
}

#[tokio::test]
async fn a_sub_agent_that_exceeds_its_own_deadline_fails_its_call_and_its_caller_continues() {
    let shop = Shop::new();
    let mut slow = reply("late", &[]);
    slow.delay_ms = Some(60_000);
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "half")]), slow]);
    let tailor = tailor.with_deadline(Duration::from_millis(300));
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
    assert!(results(&driver).await[0].contains("within its time"));
    assert_eq!(shop.file("coat"), None);
}
