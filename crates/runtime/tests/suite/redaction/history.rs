//! The history of a redacted session: files, forks, and sessions that share content.

use backstitch_core::ports::{ErasureMode, ForkRemoval, Owner, Removal, Store as _, StoreError};
use backstitch_core::time::Clock as _;
use backstitch_runtime::{
    FilesRestored, PointSpec, ResumeOptions, RewindScope, RewoundFiles, RuntimeError, SessionOptions,
    SystemClock, read_records,
};

use super::Shop;
use super::leaks::{agent, resources};

const VALUE: &str = "AKIA-0123456789-ABCDEF";

/// A rewind restores the other files, and lists the one whose content is gone.
#[tokio::test]
async fn a_rewind_restores_the_other_files() {
    let shop = Shop::new();
    std::fs::write(shop.file("plain.txt"), "plain\n").unwrap();
    let agent = agent(VALUE, &["file", "state"]);
    let options = || SessionOptions { resources: resources(), ..shop.options() };
    let driver = shop.runtime.create(agent.clone(), options()).await.unwrap();
    let session = driver.session().id();
    driver.start("mend").await.unwrap();
    driver.session().release().await.unwrap();
    drop(driver);
    let first = {
        let view = shop.runtime.view(session).await.unwrap();
        view.calls().next().unwrap().call_id
    };
    let report = shop.redact(session, VALUE).await;
    assert_eq!(report.files, ["config.toml"]);
    std::fs::write(shop.file("config.toml"), "scrubbed\n").unwrap();
    std::fs::write(shop.file("plain.txt"), "changed\n").unwrap();

    let driver = shop.runtime.open(session, agent, options()).await.unwrap();
    let scope = RewindScope { files: RewoundFiles::All, ..RewindScope::default() };
    let point = PointSpec::After(first.to_string());
    driver.session().rewind_within(&point, None, scope).await.unwrap();
    assert_eq!(std::fs::read_to_string(shop.file("plain.txt")).unwrap(), "plain\n");
    assert_eq!(std::fs::read_to_string(shop.file("config.toml")).unwrap(), "scrubbed\n");
    let start = backstitch_core::journal::Position::START;
    let records = read_records(&*shop.store, session, start, None).await.unwrap();
    let restored = records.iter().rev().find_map(|record| FilesRestored::of(&record.body)).unwrap();
    let kept: Vec<_> = restored.kept.iter().map(|kept| kept.path.as_str()).collect();
    assert_eq!(kept, ["config.toml"], "{restored:?}");
    driver.session().release().await.unwrap();
}

/// A session outside of the family that shares large content reads a marker in its place.
#[tokio::test]
async fn a_session_that_shares_content_reads_a_marker() {
    let shop = Shop::new();
    let places = ["large", "large value"];
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let options = SessionOptions { resources: resources(), ..shop.options() };
        let driver = shop.runtime.create(agent(VALUE, &places), options).await.unwrap();
        sessions.push(driver.session().id());
        driver.start("mend").await.unwrap();
        driver.session().release().await.unwrap();
    }
    let [one, other] = sessions[..] else { panic!("there are two") };
    let redaction = backstitch_core::ports::Redaction {
        session: one,
        value: backstitch_core::redaction::SensitiveValue::new(VALUE).unwrap(),
        owner: Owner::new("redactor"),
        at: SystemClock::new().now(),
        mode: ErasureMode::Now,
    };
    let report = shop.store.redact(redaction).await.unwrap();
    assert_eq!(report.shared_with, [other]);
    assert_eq!(report.elsewhere, [other], "a log item shows the beginning of the result");
    let requests = super::Requests::default();
    let agent = requests.of(agent(VALUE, &places));
    let options = SessionOptions { resources: resources(), ..shop.options() };
    let driver = shop.runtime.open(other, agent, options).await.unwrap();
    let call = driver.session().state().await.view.pending_calls().next().unwrap().call_id;
    shop.runtime.approve(other, call).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    assert!(requests.take().iter().any(|message| message.contains("[redacted]")));
    driver.session().release().await.unwrap();
}

/// Forks are redacted with their parents, and can be resumed.
#[tokio::test]
async fn a_fork_is_redacted_with_its_parent() {
    let shop = Shop::new();
    let agent = agent(VALUE, &["mission", "state", "large"]);
    let options = || SessionOptions { resources: resources(), ..SessionOptions::default() };
    let driver = shop.runtime.create(agent.clone(), options()).await.unwrap();
    let parent = driver.session().id();
    driver.start(format!("mend {VALUE}")).await.unwrap();
    driver.session().release().await.unwrap();
    drop(driver);
    let fork = shop.runtime.fork_session(parent, PointSpec::Head, options()).await.unwrap();
    let child = fork.id();
    fork.release().await.unwrap();
    drop(fork);
    shop.redact(child, VALUE).await;
    for session in [parent, child] {
        let driver = shop.runtime.open(session, agent.clone(), options()).await.unwrap();
        let call = driver.session().state().await.view.pending_calls().next().unwrap().call_id;
        shop.runtime.approve(session, call).await.unwrap();
        let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(answered.text, "done");
        driver.session().release().await.unwrap();
    }
}

/// A session whose sub-agent was removed opens and resumes.
#[tokio::test]
async fn a_caller_outlives_its_sub_agent() {
    let shop = Shop::new();
    let agent = agent(VALUE, &["sub-agent"]);
    let options = || SessionOptions { resources: resources(), ..shop.options() };
    let driver = shop.runtime.create(agent.clone(), options()).await.unwrap();
    let session = driver.session().id();
    driver.start("mend").await.unwrap();
    driver.session().release().await.unwrap();
    drop(driver);
    let view = shop.runtime.view(session).await.unwrap();
    let child = view.calls().find_map(|call| call.session()).unwrap();
    let removal = |session| Removal {
        sessions: vec![session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: SystemClock::new().now(),
        mode: ErasureMode::Now,
    };
    shop.store.remove(removal(child)).await.unwrap();
    assert!(matches!(shop.runtime.view(child).await, Err(RuntimeError::SessionNotFound { .. })));
    let driver = shop.runtime.open(session, agent, options()).await.unwrap();
    let call = driver.session().state().await.view.pending_calls().next().unwrap().call_id;
    shop.runtime.approve(session, call).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    assert!(shop.store.verify().unwrap().is_sound());
    // While it is held, it is not removed.
    let error = shop.store.remove(removal(session)).await.unwrap_err();
    assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
    driver.session().release().await.unwrap();
    shop.store.remove(removal(session)).await.unwrap();
    super::remains::assert_gone(&shop.store, VALUE);
}
