//! Any value, in any places: after the redaction nothing of it is left, and the session resumes and answers.

use backstitch_core::journal::{Decision, Note, PauseReason};
use backstitch_core::redaction::SensitiveValue;
use backstitch_runtime::{DriveOutcome, ResumeOptions, SessionOptions};
use proptest::prelude::*;
use serde_json::json;

use super::leaks::{PLACES, agent, resources};
use super::remains::{assert_gone, holds};
use super::{Requests, Shop};

/// Values of ordinary and of troublesome characters, some of which look like JSON.
fn values() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "sk-", "key", "Z", "7", " ", "\"", "\\", "\n", "\t", "\u{1}", "/", "{", "}", "[", "]", ":", ",", "é",
        "🧵", "n", "\\u0041", "\\\"", "null", "{\"a\":", "'", "`", "%41",
    ]);
    let made = prop::collection::vec(parts, 5..14).prop_map(|parts| format!("x{}", parts.concat()));
    let given = prop::sample::select(vec![
        "AKIA-0123456789-ABCDEF".to_owned(),
        "{\"token\":\"abc\",\"n\":1}".to_owned(),
        "-----BEGIN KEY-----\nabc\\def\n-----END KEY-----".to_owned(),
        "correct \"horse\" battery".to_owned(),
    ]);
    prop_oneof![made, given].prop_filter("too short", |value| SensitiveValue::new(value).is_ok())
}

fn places() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(PLACES.to_vec(), 1..=PLACES.len()).prop_shuffle()
}

async fn check(value: &str, places: &[&str]) {
    let shop = Shop::new();
    let requests = Requests::default();
    let agent = requests.of(agent(value, places));
    let options = || SessionOptions { resources: resources(), ..shop.options() };
    let driver = shop.runtime.create(agent.clone(), options()).await.unwrap();
    let session = driver.session().id();
    let has = |place: &str| places.contains(&place);
    let mission = if has("mission") { format!("mend {value}") } else { "mend".to_owned() };
    let ended = driver.start(mission).await.unwrap();
    let DriveOutcome::Paused { reason: PauseReason::Approval, call: Some(call), .. } = ended else {
        panic!("{ended:?}")
    };
    if has("note") {
        let note = Note::new("note", format!("noted {value}")).with_data(json!({ value: [value] }));
        driver.session().record(vec![note.into()]).await.unwrap();
    }
    driver.session().release().await.unwrap();
    drop(driver);
    // The decision waits in the inbox, with other arguments.
    let text = if has("inbox") { format!("thread of {value}") } else { "cord".to_owned() };
    let arguments = json!({ "text": text }).as_object().cloned().unwrap();
    shop.runtime.decide(session, Some(call), Decision::Edit { arguments }, None).await.unwrap();
    if has("inbox") {
        shop.runtime.send(session, &format!("also {value}")).await.unwrap();
    }
    requests.take();

    let report = shop.redact(session, value).await;
    assert!(!report.sessions.is_empty() || !report.objects.is_empty(), "{report:?}");

    // The command reports the files, and a person removes the value there.
    for path in &report.files {
        std::fs::write(shop.file(path), "scrubbed\n").unwrap();
    }
    let driver = shop.runtime.open(session, agent, options()).await.unwrap();
    let mut resumed = driver.resume(ResumeOptions::default()).await.unwrap();
    if matches!(resumed, DriveOutcome::Paused { reason: PauseReason::Approval, .. }) {
        // The arguments that were approved are no longer those of the call.
        driver.session().resolve(Some(call), Decision::Approve, None).await.unwrap();
        resumed = driver.resume(ResumeOptions::default()).await.unwrap();
    }
    let answered = resumed.answer().unwrap();
    assert_eq!(answered.text, "done");
    driver.session().release().await.unwrap();
    drop(driver);
    let shown = requests.take();
    assert!(!shown.is_empty());
    for message in shown {
        // The system message comes from the agent, which has the value.
        let is_system = has("system") && message.contains("You sew. The key is");
        assert!(is_system || !holds(message.as_bytes(), value), "{message}");
    }
    assert!(shop.store.verify().unwrap().is_sound());
    assert_gone(&shop.store, value);
}

#[test]
fn nothing_is_left_of_any_value_in_any_place() {
    let config = ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runner
        .run(&(values(), places()), |(value, places)| {
            runtime.block_on(check(&value, &places));
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_a_value_that_is_everywhere() {
    check("the \"leaked\"\n\\ key: {\"a\": 1}", &PLACES).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_value_that_is_in_one_place() {
    for place in PLACES {
        check("AKIA-0123456789-\"ABCDEF\"", &[place]).await;
    }
}
