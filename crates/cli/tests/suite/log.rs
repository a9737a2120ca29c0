//! `log` for records that the command itself does not write.

use std::sync::Arc;

use backstitch::SystemClock;
use backstitch::host::entropy;
use backstitch::journal::{Origin, Position, Record, ResourceChanged, SessionCreated};
use backstitch::ports::{ClaimMode, Owner, Store as _};
use backstitch::rng::Seed;
use backstitch::store::SqliteStore;
use backstitch_runtime::{LiveSession, SessionEnvironment};
use serde_json::{Value, json};

use backstitch_testkit::{block_on, sample};

use crate::stage::{Stage, last_line};

/// The line of a record holds everything that is needed to decode it.
#[test]
fn everything_that_was_appended_comes_back() {
    let stage = Stage::new();
    let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
    let journals: Vec<_> =
        (10..18).map(|seed| sample::journal(seed, 12)).chain([sample::every_kind()]).collect();
    for journal in &journals {
        let held = block_on(store.claim(journal.session, Owner::new("a test"), ClaimMode::IfFree)).unwrap();
        let mut next = Position::START;
        for batch in &journal.batches {
            next = next.after(batch.len());
            let start = Position::new(next.number() - batch.len() as u64);
            block_on(store.append(journal.session, start, held.fence, batch.clone())).unwrap();
        }
        block_on(store.release(held)).unwrap();
    }
    drop(store);
    for journal in &journals {
        let session = journal.session.to_string();
        let printed = stage.run(&["log", &session, "--all", "--json"]).worked();
        let again: Vec<Record> = printed.lines().map(decoded).collect();
        assert_eq!(again, journal.records(), "{session}");
    }
}

/// Decodes the record of a line through its stored form.
fn decoded(line: &str) -> Record {
    let mut line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["v"], 1, "the version of the line");
    let mut stored = json!({
        "v": line["version"], "kind": line["kind"], "at": line["at"], "data": line["data"].take(),
    });
    if let Some(extra) = line["extra"].as_object().cloned() {
        stored.as_object_mut().unwrap().extend(extra);
    }
    let position = serde_json::from_value(line["position"].take()).unwrap();
    Record::decode(position, &stored.to_string()).unwrap()
}

#[tokio::test]
async fn states_of_resources_are_shown() {
    let stage = Stage::new();
    let store = Arc::new(SqliteStore::open(stage.path("store/store.db")).unwrap());
    let clock = Arc::new(SystemClock::new());
    let ids = entropy::fresh_ids(clock.clone()).unwrap();
    let owner = Owner::new("a test");
    let environment = SessionEnvironment {
        store,
        clock,
        owner,
        resources: Default::default(),
        workspace: None,
        snapshot_interval: 1,
    };
    let created = SessionCreated {
        session_id: ids.next(),
        created_at: ids.clock().now(),
        origin: Origin::Root,
        parent_head: None,
        directory: None,
        seed: Seed::new(1),
        agent: json!(null),
        state: Vec::new(),
        adopted: None,
        tags: Default::default(),
        extra: Default::default(),
    };
    let live = LiveSession::create(environment, created, |_| {}).await.unwrap();
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
