//! Snapshotable resources are lent with the hold of a call.

use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::tool::ResourceUse;
use backstitch_providers::ScriptedReply;
use backstitch_runtime::{Agent, DriveOutcome, Driver, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use backstitch_testkit::tool::{Act, Counter, Outcome, Script, tools};
use serde_json::{Value, json};

use super::{asks, results, sub_agent};
use crate::tailor::{reply, scripted};

fn counts(by: u64) -> (&'static str, Value) {
    ("count", serde_json::to_value(Script::new([Act::Count(by)], Outcome::Success)).unwrap())
}

fn with_count(replies: Vec<ScriptedReply>) -> Agent {
    scripted(replies).tools(Tools::new(tools()).unwrap())
}

fn helper(replies: Vec<ScriptedReply>) -> Agent {
    let mut agent = with_count(replies);
    agent.key = "helper".into();
    agent
}

fn caller(replies: Vec<ScriptedReply>, agent: backstitch_runtime::SubAgent) -> Agent {
    let tools = tools().into_iter().chain([agent.into_tool()]);
    scripted(replies).tools(Tools::new(tools).unwrap())
}

fn options(resources: Resources) -> SessionOptions {
    SessionOptions { resources, ..SessionOptions::default() }
}

async fn create(runtime: &Runtime, caller: Agent) -> Driver {
    runtime.create(caller, options(Counter::default().resources())).await.unwrap()
}

async fn number(driver: &Driver) -> u64 {
    let state = driver.session().state().await;
    state.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap()
}

async fn recorded(runtime: &Runtime, session: backstitch_core::id::SessionId) -> Value {
    runtime.view(session).await.unwrap().resource(Counter::NAME).unwrap().state.inline().unwrap().clone()
}

#[tokio::test]
async fn what_a_sub_agent_changes_is_recorded_by_its_caller() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let helper = helper(vec![reply("", &[counts(1)]), reply("", &[counts(2)]), reply("counted", &[])]);
    let replies = vec![reply("", &[counts(1)]), reply("", &[asks("count"), counts(3)]), reply("done", &[])];
    let driver = create(&runtime, caller(replies, sub_agent(helper))).await;
    driver.start("count").await.unwrap().answer().unwrap();
    let by_helper = (3 + 1) * 3 + 2;
    assert_eq!(number(&driver).await, by_helper * 3 + 3, "the call beside it comes after it");
    assert_eq!(recorded(&runtime, driver.session().id()).await, json!(by_helper * 3 + 3));
    let view = runtime.view(driver.session().id()).await.unwrap();
    let child = view.calls().find_map(|call| call.session()).unwrap();
    assert_eq!(recorded(&runtime, child).await, json!(by_helper));

    // Another process that opens the session finds the same.
    driver.session().release().await.unwrap();
    let idle = runtime.open_idle(driver.session().id(), options(Counter::at(99).resources())).await.unwrap();
    let state = idle.state().await;
    let found = state.resources.inspect(|counter: &Counter| counter.number).unwrap().unwrap();
    assert_eq!(found, by_helper * 3 + 3);
}

#[tokio::test]
async fn a_sub_agent_that_fails_leaves_no_trace() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let clumsy = helper(vec![reply("", &[counts(5)]), reply("", &[counts(6)]), reply("", &[])]);
    let replies = vec![reply("", &[counts(1)]), reply("", &[asks("spoil")]), reply("done", &[])];
    let driver = create(&runtime, caller(replies, sub_agent(clumsy.max_turns(2)))).await;
    driver.start("count").await.unwrap().answer().unwrap();
    assert_eq!(number(&driver).await, 1);
    assert_eq!(recorded(&runtime, driver.session().id()).await, json!(1));
}

#[tokio::test]
async fn a_sub_agent_changes_only_resources_that_it_was_lent_for_writing() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let helper = helper(vec![reply("", &[counts(5)]), reply("tried", &[])]);
    let agent = sub_agent(helper).described(|tool| tool.resources(ResourceUse::Read));
    let driver = create(&runtime, caller(vec![reply("", &[asks("try")]), reply("done", &[])], agent)).await;
    let ended = driver.start("count").await.unwrap();
    assert!(matches!(ended, DriveOutcome::Completed(_)), "{ended:?}");
    assert_eq!(number(&driver).await, 0);
    assert_eq!(results(&driver).await, ["tried"]);
    let view = runtime.view(driver.session().id()).await.unwrap();
    let child = view.calls().find_map(|call| call.session()).unwrap();
    let said = runtime.view(child).await.unwrap().transcript().unwrap();
    assert!(said.all().iter().any(|message| message.content().contains("is lent")), "the helper sees it");
}
