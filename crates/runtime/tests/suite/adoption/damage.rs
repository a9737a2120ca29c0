//! Damaged snapshots and conversations: a typed refusal, no panic, and nothing stored.

use std::sync::Arc;

use backstitch_core::journal::{Effect, MAX_TURN};
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::session::{Snapshot, SnapshotRestoreError};
use backstitch_core::view::ConversationState;
use backstitch_runtime::{ResumeOptions, Runtime, RuntimeError, SessionOptions};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use super::world::{Offer, Process, World};
use crate::tailor::{reply, scripted};

/// A snapshot and a conversation with a pending call, as JSON.
async fn samples() -> (Value, Value) {
    let world = World::stopping(1);
    let stopped = Process::stopped(&world, &world.pay(Effect::External), Offer::Section).await;
    let snapshot = stopped.session.export_snapshot().await.unwrap().to_json().unwrap();
    let conversation = stopped.session.export_conversation(None).await.unwrap().unwrap();
    (serde_json::from_str(&snapshot).unwrap(), serde_json::to_value(&conversation).unwrap())
}

fn messages(snapshot: &mut Value) -> &mut Vec<Value> {
    let slices = snapshot["slices"].as_array_mut().unwrap();
    let transcript = slices.iter_mut().find(|slice| slice["name"] == "inner_message").unwrap();
    transcript["items"].as_array_mut().unwrap()
}

async fn adopted(snapshot: &Value) -> (Result<(), RuntimeError>, usize) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let outcome = match Snapshot::from_json(&snapshot.to_string()) {
        Ok(snapshot) => {
            let agent = scripted(vec![reply("", &[]), reply("", &[])]);
            runtime.adopt_snapshot(agent, &snapshot, SessionOptions::default()).await.map(drop)
        }
        Err(error) => Err(RuntimeError::SnapshotRestore(error)),
    };
    (outcome, runtime.store().sessions().await.unwrap().len())
}

#[tokio::test]
async fn every_kind_of_damage_is_refused_as_such_and_stores_nothing() {
    let (snapshot, _) = samples().await;
    type Damage = fn(&mut Value);
    let kinds: [(&str, Damage); 9] = [
        ("a gap", |snapshot| drop(messages(snapshot).remove(1))),
        ("another order", |snapshot| messages(snapshot).reverse()),
        ("an unknown kind of content", |snapshot| messages(snapshot)[0]["message"] = json!({"kind": "song"})),
        ("a newer version of a slice", |snapshot| {
            let slices = snapshot["slices"].as_array_mut().unwrap();
            slices.iter_mut().for_each(|slice| slice["version"] = json!(99));
        }),
        ("a turn that cannot be", |snapshot| messages(snapshot)[2]["turn"] = json!(u64::MAX)),
        ("a turn just above the limit", |snapshot| messages(snapshot)[2]["turn"] = json!(MAX_TURN + 1)),
        ("content that is nowhere", |snapshot| {
            let id = "1234567890123456789012345678901234567890";
            let sidecar =
                json!({"provider": "p", "model": "m", "payload_object": {"object": id, "length": 9}});
            messages(snapshot)[2]["provider"] = sidecar;
        }),
        ("an evaluation without messages", |snapshot| {
            let id = "0189c5d8-6b1b-7c3e-8f00-000000000001";
            snapshot["provenance"]["evaluations"][0]["evaluation_id"] = json!(id);
        }),
        ("objects with other content", |snapshot| {
            let id = "1234567890123456789012345678901234567890";
            snapshot["objects"] = json!([{"object": id, "base64": "AAAA"}]);
        }),
    ];
    for (what, damage) in kinds {
        let mut snapshot = snapshot.clone();
        damage(&mut snapshot);
        let (outcome, sessions) = adopted(&snapshot).await;
        let error = outcome.expect_err(what);
        assert!(matches!(error, RuntimeError::SnapshotRestore(_)), "{what}: {error:?}");
        assert_eq!(sessions, 0, "{what}");
    }
    assert!(matches!(adopted(&snapshot).await, (Ok(()), 1)));
}

#[tokio::test]
async fn a_conversation_that_was_edited_in_one_of_two_places_is_refused_with_the_message() {
    let (_, conversation) = samples().await;
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 6] = [
        ("content", |state| state["turns"][0]["assistant_message"]["content"] = json!("redacted")),
        ("content", |state| state["turns"][0]["user_messages"][0]["content"] = json!("redacted")),
        ("content", |state| state["system_message"]["content"] = json!("redacted")),
        ("role", |state| state["turns"][0]["user_messages"][0]["role"] = json!("system")),
        ("tool_calls", |state| {
            state["turns"][0]["assistant_message"]["tool_calls"][0]["arguments"] = json!("{\"to\":\"eve\"}");
        }),
        ("tool_calls", |state| state["turns"][0]["assistant_message"]["tool_calls"] = json!([])),
    ];
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let adopt = async |state: &Value| {
        let state: ConversationState = serde_json::from_value(state.clone()).unwrap();
        runtime.adopt_conversation(scripted(vec![]), &state, SessionOptions::default()).await.map(drop)
    };
    for (expected, edit) in edits {
        let mut state = conversation.clone();
        edit(&mut state);
        let error = adopt(&state).await.unwrap_err();
        let RuntimeError::SnapshotRestore(SnapshotRestoreError::Disagreement { message, field }) = &error
        else {
            panic!("{expected}: {error:?}");
        };
        assert_eq!(*field, expected);
        assert!(state.to_string().contains(&message.to_string()));
    }
    let mut state = conversation.clone();
    state["turns"][0]["turn_number"] = json!(u64::MAX);
    for field in ["assistant_message", "user_messages"] {
        let said = &mut state["turns"][0][field];
        let said = if said.is_array() { &mut said[0] } else { said };
        said.as_object_mut().unwrap().remove("inner");
    }
    state["system_message"].as_object_mut().unwrap().remove("inner");
    let error = adopt(&state).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::SnapshotRestore(SnapshotRestoreError::Inconsistent(_))),
        "{error:?}"
    );
    assert_eq!(runtime.store().sessions().await.unwrap(), []);
    adopt(&conversation).await.unwrap();
}

/// Collects the pointers to all values inside of a JSON value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Damages one random place of a value.
fn mutate(value: &mut Value, rng: &mut Rng) {
    let mut all = Vec::new();
    places(value, "", &mut all);
    let pick = |rng: &mut Rng| all[rng.below(all.len() as u64) as usize].clone();
    let (place, other) = (pick(rng), pick(rng));
    let other = value.pointer(&other).cloned().unwrap_or_default();
    let (parent, last) = place.rsplit_once('/').unwrap_or(("", ""));
    let (parent, last) = (parent.to_owned(), last.to_owned());
    match rng.below(8) {
        0 => match value.pointer_mut(&parent) {
            Some(Value::Object(fields)) => drop(fields.remove(&last)),
            Some(Value::Array(items)) => {
                let index = last.parse::<usize>().unwrap_or(0);
                if index < items.len() {
                    items.remove(index);
                }
            }
            _ => {}
        },
        1 => {
            if let Some(Value::Array(items)) = value.pointer_mut(&parent)
                && let Some(item) = items.first().cloned()
            {
                items.push(item);
            }
        }
        kind => {
            let Some(there) = value.pointer_mut(&place) else { return };
            *there = match kind {
                2 => other,
                3 => Value::Null,
                4 => json!(u64::MAX),
                5 => json!(-1),
                6 => json!("song"),
                _ => match there {
                    Value::Number(number) => json!(number.as_u64().unwrap_or(0).wrapping_add(1)),
                    Value::String(text) => json!(format!("{text}x")),
                    _ => json!({}),
                },
            };
        }
    }
}

#[tokio::test]
async fn mutated_exports_are_adopted_or_refused_and_never_left_behind() {
    let (snapshot, conversation) = samples().await;
    let mut rng = Seed::new(11).rng();
    let (mut refused, mut accepted) = (0, 0);
    for round in 0..600 {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let agent = || scripted(vec![reply("", &[]), reply("done", &[]), reply("done", &[])]);
        let options = SessionOptions::default();
        let mut text = if round % 2 == 0 { snapshot.clone() } else { conversation.clone() };
        mutate(&mut text, &mut rng);
        let outcome = if round % 2 == 0 {
            let Ok(snapshot) = Snapshot::from_json(&text.to_string()) else { continue };
            runtime.adopt_snapshot(agent(), &snapshot, options).await
        } else {
            let Ok(state) = serde_json::from_value::<ConversationState>(text.clone()) else { continue };
            runtime.adopt_conversation(agent(), &state, options).await
        };
        let sessions = runtime.store().sessions().await.unwrap();
        match outcome {
            Ok(driver) => {
                accepted += 1;
                assert_eq!(sessions, [driver.session().id()]);
                // Whatever the outcome, nothing panics, and the session can be opened again.
                let _ = driver.resume(ResumeOptions::default()).await;
                driver.session().release().await.unwrap();
                runtime.view(driver.session().id()).await.unwrap();
            }
            Err(RuntimeError::SnapshotRestore(_)) => {
                refused += 1;
                assert_eq!(sessions, []);
            }
            Err(error) => panic!("{error:?}: {text}"),
        }
    }
    assert!(refused > 20 && accepted > 20, "{refused} refused, {accepted} accepted");
}
