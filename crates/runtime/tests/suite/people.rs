//! People as policies: what they are asked waits, and what they say is the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{Effect, PauseReason};
use backstitch_core::message::PolicyName;
use backstitch_runtime::{
    Agent, Ended, HumanPolicy, ResumeOptions, Runtime, SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::tailor::{keep, reply, scripted};

fn person() -> Agent {
    Agent::new("tests", "ada", Arc::new(HumanPolicy::new(PolicyName::new("ada").unwrap())))
}

#[tokio::test]
async fn what_a_person_is_asked_waits_for_what_they_say() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = person().with_tools(Tools::new([keep(Effect::Workspace, ran.clone())]).unwrap());
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    let ended = driver.start("which colour?").await.unwrap();
    assert!(matches!(&ended, Ended::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    driver.session().release().await.unwrap();

    // First a call, then, from another process, the answer.
    let calls = json!({"calls": [{"name": "keep", "arguments": {"text": "blue"}}]});
    runtime.send(session, &calls.to_string()).await.unwrap();
    let driver = runtime.open(session, agent.clone(), SessionOptions::default()).await.unwrap();
    let ended = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(&ended, Ended::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    driver.session().release().await.unwrap();
    runtime.send(session, "blue it is").await.unwrap();
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!((answered.text.as_str(), ran.load(Ordering::SeqCst)), ("blue it is", 1));
}

#[tokio::test]
async fn an_agent_asks_a_person_like_any_other_agent() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ada = SubAgent::new("ask_ada", "Asks Ada.", person()).unwrap();
    let replies = vec![reply("", &[("ask_ada", json!({"mission": "which colour?"}))]), reply("done", &[])];
    let agent = scripted(replies).with_tools(Tools::new([ada.into_tool()]).unwrap());
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    let Ended::Paused { reason: PauseReason::Asked, session: Some(child), .. } = ended else {
        panic!("{ended:?}")
    };
    runtime.send(child, "blue").await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    let transcript = driver.session().state().await.view.transcript().unwrap();
    assert!(
        transcript
            .all()
            .iter()
            .any(|message| message.tool_call_id().is_some() && message.content() == "blue")
    );
}
