//! Calls keep their identity in a composite snapshot, also if its session was adopted itself.

use std::sync::Arc;

use backstitch_core::execution::{CompositeSnapshot, SnapshotMetadata};
use backstitch_core::journal::Effect;
use backstitch_runtime::{Agent, Driver, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;

use super::world::{World, nameless, replies};

fn elsewhere() -> Runtime {
    Runtime::new(Arc::new(MemoryStore::new()))
}

fn agent(world: &World) -> Agent {
    nameless(replies()).tools(Tools::new([world.pay(Effect::Idempotent)]).unwrap())
}

/// A composite snapshot, as another process decodes it.
async fn everything(driver: &Driver) -> CompositeSnapshot {
    let state = driver.session().state().await;
    let snapshot = state.snapshot(SnapshotMetadata::tag("export")).unwrap();
    CompositeSnapshot::from_json(&snapshot.to_json().unwrap()).unwrap()
}

#[tokio::test]
async fn a_call_keeps_its_key_however_often_its_session_is_adopted() {
    // The number of attempts that the first adopted session makes before its state is captured.
    for attempts_between in [0, 1] {
        let what = format!("{attempts_between} attempts between");
        let world = World::stopping(1 + attempts_between);
        let first = Arc::new(elsewhere().create(agent(&world), SessionOptions::default()).await.unwrap());
        tokio::spawn({
            let first = first.clone();
            async move { first.start("pay").await }
        });
        world.until(1).await;
        let call = first.session().state().await.view.pending_calls().next().unwrap().call_id;

        let options = SessionOptions::default;
        let exported = first.session().export_snapshot().await.unwrap();
        let second = Arc::new(elsewhere().adopt_snapshot(agent(&world), &exported, options()).await.unwrap());
        if attempts_between == 1 {
            let running = second.clone();
            tokio::spawn(async move { running.resume(ResumeOptions::default()).await });
            world.until(2).await;
        }
        let everything = everything(&second).await;
        let third = elsewhere().adopt_state(agent(&world), &everything, options()).await.unwrap();
        {
            let state = third.session().state().await;
            let pending: Vec<_> = state.view.pending_calls().map(|call| call.call_id).collect();
            assert_eq!(pending, [call], "{what}");
            assert!(state.view.call(call).unwrap().may_have_run(), "{what}");
        }
        let ended = third.resume(ResumeOptions::default()).await.unwrap();
        assert_eq!(ended.answer().unwrap().text, "done", "{what}");

        let attempts = world.attempts();
        assert_eq!(attempts.len(), 2 + attempts_between, "{what}: {attempts:?}");
        let key = format!("{}/{call}", first.session().id());
        assert!(attempts.iter().all(|attempt| attempt.key == key), "{what}: {attempts:?}");
        assert!(!attempts[0].is_resume && attempts[1..].iter().all(|attempt| attempt.is_resume), "{what}");
    }
}

#[tokio::test]
async fn an_evaluation_of_a_snapshot_of_everything_knows_how_it_was_started() {
    let world = World::stopping(1);
    let first = Arc::new(elsewhere().create(agent(&world), SessionOptions::default()).await.unwrap());
    let running = first.clone();
    tokio::spawn(async move { running.start("pay").await });
    world.until(1).await;
    let everything = everything(&first).await;
    let adopted =
        elsewhere().adopt_state(agent(&world), &everything, SessionOptions::default()).await.unwrap();
    let started = |view: &backstitch_core::view::JournalView| {
        view.latest_evaluation().unwrap().started_with().map(|started| (**started).clone())
    };
    let before = started(&first.session().state().await.view);
    assert!(before.is_some());
    assert_eq!(started(&adopted.session().state().await.view), before);
}
