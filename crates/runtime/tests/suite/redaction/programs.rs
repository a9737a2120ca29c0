//! Redaction of programs: their texts, what they print, remember and return.

use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_repl::LispAgent;
use backstitch_runtime::{Agent, DriveOutcome, ResumeOptions, SessionOptions, Tools};

use super::Shop;
use crate::lisp::answers;
use crate::tailor::{keep, with_approval};

const VALUE: &str = "AKIA-0123-\"quoted\"-4567";

#[tokio::test]
async fn programs_are_redacted_and_resume() {
    let shop = Shop::new();
    let quoted = serde_json::to_string(VALUE).unwrap();
    let programs = [
        format!("(def secret {quoted}) (println secret) (task \"find\" (str secret \"!\"))"),
        format!("(def long (apply str (repeat 9000 {quoted}))) (println (count long))"),
        "(tool/keep {:text \"thread\"}) (return (count long))".to_owned(),
        "(return 42)".to_owned(),
    ];
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    let keep = with_approval(keep(Effect::Workspace, Arc::default()));
    let tools = Tools::new([keep]).unwrap();
    let agent = Agent::lisp("tests/lisp", answers(&programs), LispAgent::new(), tools).unwrap();
    let driver = shop.runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    let ended = driver.start(format!("count {VALUE}")).await.unwrap();
    let DriveOutcome::Paused { call: Some(call), .. } = ended else { panic!("{ended:?}") };
    driver.session().release().await.unwrap();
    drop(driver);

    let report = shop.redact(session, VALUE).await;
    assert!(!report.objects.is_empty(), "what is remembered is large: {report:?}");
    shop.runtime.approve(session, call).await.unwrap();
    let driver = shop.runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert!(answered.output.is_some(), "{answered:?}");
    driver.session().release().await.unwrap();
    assert!(shop.store.verify().unwrap().is_sound());
}
