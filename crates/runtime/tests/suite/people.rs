//! People as policies: requests to them pause the session, and their messages are the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{Effect, PauseReason};
use backstitch_core::message::{Content, Message, Part, PolicyName, RoleHint};
use backstitch_core::ports::PolicyAnswer;
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, HumanPolicy, ResumeOptions, Runtime, SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::tailor::{keep, reply, scripted};

fn person() -> Agent {
    Agent::new("tests/ada").policy(Arc::new(HumanPolicy::new(PolicyName::new("ada").unwrap())))
}

#[tokio::test]
async fn a_request_to_a_person_waits_for_their_message() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = person().tools(Tools::new([keep(Effect::Workspace, ran.clone())]).unwrap());
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    let ended = driver.start("which colour?").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    driver.session().release().await.unwrap();

    // First a call, then, from another process, the answer.
    let calls = json!({"calls": [{"name": "keep", "arguments": {"text": "blue"}}]});
    runtime.send(session, &calls.to_string()).await.unwrap();
    let driver = runtime.open(session, agent.clone(), SessionOptions::default()).await.unwrap();
    let ended = driver.resume(ResumeOptions::default()).await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
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
    let agent = scripted(replies).tools(Tools::new([ada.into_tool()]).unwrap());
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    let DriveOutcome::Paused { reason: PauseReason::Asked, session: Some(child), .. } = ended else {
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

#[tokio::test]
async fn a_person_answers_the_same_whatever_the_hints_of_messages_say() {
    for hint in [None, Some(RoleHint::System), Some(RoleHint::Assistant), Some(RoleHint::User)] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = runtime.create(person(), SessionOptions::default()).await.unwrap();
        driver.start("which colour?").await.unwrap();
        let evaluation = driver.session().state().await.view.latest_evaluation().unwrap().evaluation_id;
        let words = Content::Parts(vec![Part::text("blue it is")].into());
        let policy = PolicyName::new("user").unwrap();
        let said = Message { role_hint_for_llm: hint, step_num: Some(1), ..Message::new(policy, words) };
        driver.session().say(evaluation, 0, vec![said]).await.unwrap();
        let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(answered.text, "blue it is", "{hint:?}");
    }
}

#[tokio::test]
async fn what_another_policy_says_is_no_answer_and_the_decider_is_asked_after_it() {
    for hint in [None, Some(RoleHint::Assistant), Some(RoleHint::System), Some(RoleHint::User)] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let is_down = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), {
            let is_down = is_down.clone();
            move |question| {
                let is_down = is_down.load(Ordering::SeqCst);
                let heard: Vec<_> = question.shown.iter().map(|message| message.content()).collect();
                async move {
                    if is_down { Err("not now".into()) } else { Ok(PolicyAnswer::text(heard.join(" | "))) }
                }
            }
        });
        let agent = Agent::new("tests/tailor").policy(Arc::new(policy));
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        driver.start("measure").await.unwrap_err();
        let evaluation = driver.session().state().await.view.latest_evaluation().unwrap().evaluation_id;
        let words = Content::Parts(vec![Part::text("observation: 12 degrees")].into());
        let policy = PolicyName::new("sensor").unwrap();
        let said = Message { role_hint_for_llm: hint, step_num: Some(1), ..Message::new(policy, words) };
        driver.session().say(evaluation, 0, vec![said]).await.unwrap();
        is_down.store(false, Ordering::SeqCst);
        let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(answered.text, "measure | observation: 12 degrees", "{hint:?}");
        let view = runtime.view(driver.session().id()).await.unwrap();
        let known = view.latest_evaluation().unwrap();
        assert_eq!(known.decider.as_ref().map(PolicyName::as_str), Some("tailor"));
        let transitions = view.transcript().unwrap().transitions(evaluation);
        assert_eq!(transitions[0].observed.len(), 2, "{hint:?}");
    }
}
