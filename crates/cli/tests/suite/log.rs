//! What `log` shows of records that the command itself does not write.

use std::sync::Arc;

use backstitch::journal::{Origin, ResourceChanged, SessionCreated};
use backstitch::ports::Owner;
use backstitch::prelude::*;
use backstitch::rng::Seed;
use backstitch::store::SqliteStore;
use backstitch::{LiveSession, Surroundings, SystemClock, entropy};
use serde_json::{Value, json};

use crate::stage::{Stage, last_line};

#[tokio::test]
async fn states_of_resources_are_shown() {
    let stage = Stage::new();
    let store = Arc::new(SqliteStore::open(stage.path("store/store.db")).unwrap());
    let clock = Arc::new(SystemClock::new());
    let ids = entropy::fresh_ids(clock.clone()).unwrap();
    let owner = Owner::new("a test");
    let surroundings = Surroundings { store, clock, owner, resources: Default::default(), workspace: None };
    let created = SessionCreated {
        session_id: ids.next(),
        created_at: ids.clock().now(),
        origin: Origin::Root,
        seed: Seed::new(1),
        agent: json!(null),
        state: Vec::new(),
        adopted: None,
        tags: Default::default(),
        extra: Default::default(),
    };
    let live = LiveSession::create(surroundings, created, |_| {}).await.unwrap();
    let large = "x".repeat(100_000);
    let changed = [("counter", json!({"count": 7})), ("large", json!(large))];
    for (name, state) in changed {
        live.record(vec![ResourceChanged::new(name, state).into()]).await.unwrap();
    }
    live.release().await.unwrap();

    let log = stage.run(&["log"]).worked();
    assert!(log.contains("resource counter: {\"count\":7}\n"), "{log}");
    assert!(log.contains("resource large: 100002 bytes\n"), "{log}");
    let last: Value = last_line(&stage.run(&["log", "--json"]).worked());
    assert_eq!(
        (&last["kind"], &last["text"]),
        (&json!("resource_changed"), &json!("  resource large: 100002 bytes"))
    );
}
