//! The budget and the deadline of a sub-agent are taken from its caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Effect, PauseReason, RecordBody};
use backstitch_core::view::JournalView;
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{Agent, DriveOutcome, Driver, ResumeOptions, SubAgent, Tools};
use proptest::prelude::*;
use serde_json::json;

use super::{Shop, asks, results, sub_agent, with_agent, write, writes};
use crate::tailor::{keep, reply, scripted, started_until};

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
    let caller = with_agent(replies, sub_agent(tailor)).budget(limits(50));
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

/// The budgets that the sub-agents of a session started with, in the order of their calls.
async fn shares(shop: &Shop, session: SessionId) -> Vec<Limits> {
    let mut shares = Vec::new();
    for child in shop.children(session).await {
        let view = shop.runtime.view(child).await.unwrap();
        shares.push(view.latest_evaluation().unwrap().budget.unwrap());
    }
    shares
}

/// A caller whose first turn asks this many sub-agents, and spends one turn and nothing else.
fn asking(count: usize, tailor: Agent) -> Agent {
    let missions = vec![asks("look"); count];
    with_agent(vec![reply("", &missions), reply("done", &[])], sub_agent(tailor))
}

#[tokio::test]
async fn concurrent_sub_agents_get_equal_shares_of_every_limit() {
    let shop = Shop::new();
    let limits = Limits {
        total_tokens: Some(100_000),
        money_micros: Some(8_000),
        turns: Some(41),
        calls: Some(12),
        ..Limits::default()
    };
    let driver = shop.create(asking(4, scripted(vec![reply("looked", &[])])).budget(limits)).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    let share = Limits {
        total_tokens: Some(25_000),
        money_micros: Some(2_000),
        turns: Some(10),
        // Four of the twelve are the calls of the sub-agents themselves.
        calls: Some(2),
        ..Limits::default()
    };
    assert_eq!(shares(&shop, driver.session().id()).await, vec![share; 4]);
}

#[tokio::test]
async fn what_a_sub_agent_leaves_returns_to_its_caller_and_not_to_the_next_one() {
    let shop = Shop::new();
    // They write files, so each one starts after the one before it has ended.
    let tailor =
        shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "mended")]), reply("done", &[])]);
    let limits = Limits { turns: Some(41), ..Limits::default() };
    let driver = shop.create(asking(4, tailor).budget(limits)).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    let share = Limits { turns: Some(10), ..Limits::default() };
    assert_eq!(shares(&shop, driver.session().id()).await, vec![share; 4]);
    let ledger = driver.session().state().await.view.ledger().clone();
    assert_eq!((ledger.charged().turns, ledger.reserved()), (2 + 4 * 2, Amounts::ZERO));
}

#[tokio::test]
async fn sub_agents_that_are_resumed_together_have_the_shares_that_they_had() {
    let shop = Shop::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let waits = reply("", &[("keep", json!({"text": "wait"}))]);
    let tailor = scripted(vec![waits, reply("looked", &[])])
        .tools(Tools::new([keep(Effect::Pure, ran.clone())]).unwrap());
    let limits = Limits { turns: Some(41), total_tokens: Some(100_000), ..Limits::default() };
    let caller = asking(4, tailor).budget(limits);
    let driver = Arc::new(shop.create(caller.clone()).await);
    let running = started_until(&driver, &ran, 4).await;
    driver.stop();
    running.await.unwrap().unwrap();
    let before = shares(&shop, driver.session().id()).await;
    assert_eq!(before.iter().map(|share| share.turns).collect::<Vec<_>>(), vec![Some(10); 4]);
    let reserved = driver.session().state().await.view.ledger().reserved();
    let again = Driver::new(driver.session().clone(), caller);
    again.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(shares(&shop, driver.session().id()).await, before);
    for reserved_again in reservations(&shop, driver.session().id()).await.split_off(4) {
        assert_eq!(reserved_again.turns * 4, reserved.turns);
    }
}

/// The reservations of the calls of a session, in the order in which they started.
async fn reservations(shop: &Shop, session: SessionId) -> Vec<Amounts> {
    let records = shop.runtime.records(session).await.unwrap();
    let reserved = records.iter().filter_map(|record| match &record.body {
        RecordBody::CallStarted(started) => started.reservation.map(|reservation| reservation.amounts),
        _ => None,
    });
    reserved.collect()
}

/// Some limits, each of which may be absent.
fn some_limits() -> impl Strategy<Value = Limits> {
    let limit = |most: u64| proptest::option::of(2..most);
    (limit(1_000), limit(1_000), limit(60), limit(60)).prop_map(|(tokens, money, turns, calls)| Limits {
        total_tokens: tokens,
        money_micros: money,
        turns,
        calls,
        ..Limits::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the limits are, and whether sub-agents run concurrently, one after another, or beside other calls.
    #[test]
    fn the_shares_of_a_turn_never_exceed_what_is_left(
        limits in some_limits(),
        calls in proptest::collection::vec(0..3_usize, 1..7),
        spent in 0..40_u64,
    ) {
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tasks.block_on(async {
            let shop = Shop::new();
            let usage = Some(Amounts { input_tokens: spent, ..Amounts::ZERO });
            let mut replies = vec![reply("", &[writes("coat", "mended")]), reply("done", &[])];
            replies.iter_mut().for_each(|reply| reply.usage = usage);
            let writer = sub_agent(shop.tailor(Effect::Workspace, replies)).into_tool();
            let reader = scripted(vec![ScriptedReply { usage, ..reply("looked", &[]) }]);
            let reader = SubAgent::new("reader", "Looks.", reader).unwrap().into_tool();
            let names = [asks("sew"), ("reader", json!({"mission": "look"})), writes("hat", "sewn")];
            let made: Vec<_> = calls.iter().map(|kind| names[*kind].clone()).collect();
            let caller = scripted(vec![reply("", &made), reply("done", &[])])
                .tools(Tools::new([writer, reader, write(Effect::Workspace, &shop.ran)]).unwrap());
            let driver = shop.create(caller.budget(limits)).await;
            // It may pause at a limit.
            driver.start("sew").await.unwrap();
            let records = shop.runtime.records(driver.session().id()).await.unwrap();
            for (index, record) in records.iter().enumerate() {
                if matches!(record.body, RecordBody::CallStarted(_)) {
                    let committed = JournalView::fold(&records[..=index]).unwrap().ledger().committed();
                    assert_eq!(limits.check(committed), Ok(()), "at {}", record.position);
                }
            }
        });
    }
}

/// Whether the sub-agent's call has written its file.
async fn has_written(shop: &Shop, driver: &Driver) -> bool {
    let Some(child) = shop.children(driver.session().id()).await.pop() else { return false };
    let transcript = shop.runtime.view(child).await.unwrap().transcript().unwrap();
    transcript.all().iter().any(|message| message.content().contains("wrote coat"))
}

#[tokio::test]
async fn a_sub_agent_has_no_more_time_than_its_caller() {
    // The deadline has to pass after the sub-agent's call. On a busy machine it may pass before.
    for limit in (0..8).map(|doublings| 300_u64 << doublings) {
        let shop = Shop::new();
        let mut slow = reply("late", &[]);
        slow.delay_ms = Some(3 * limit);
        let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "half")]), slow]);
        let caller =
            with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
        let driver = shop.create(caller.deadline(Duration::from_millis(limit))).await;
        let ended = driver.start("sew").await.unwrap();
        let is_late = matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Deadline, .. });
        assert!(is_late, "{ended:?}");
        if !has_written(&shop, &driver).await {
            continue;
        }
        // With more time, both resume where they were.
        let more = ResumeOptions { deadline: Some(Duration::from_secs(600)), ..ResumeOptions::default() };
        assert_eq!(driver.resume(more).await.unwrap().answer().unwrap().text, "done");
        assert_eq!(shop.file("coat").as_deref(), Some("half"));
        assert_eq!(shop.ran.load(Ordering::SeqCst), 1, "the finished call does not run again");
        return;
    }
    panic!("every deadline passed before the sub-agent had written");
}

#[tokio::test]
async fn a_sub_agent_that_exceeds_its_own_deadline_fails_its_call_and_its_caller_continues() {
    let shop = Shop::new();
    let mut slow = reply("late", &[]);
    slow.delay_ms = Some(60_000);
    let tailor = shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "half")]), slow]);
    let tailor = tailor.deadline(Duration::from_millis(300));
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
    assert!(results(&driver).await[0].contains("within its time"));
    assert_eq!(shop.file("coat"), None);
}
