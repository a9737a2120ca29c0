//! A sub-agent runs in its own session: how it starts, answers, fails, and is resumed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstitch_core::journal::{Effect, Origin, RecordBody};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::slices::ToolInvoked;
use backstitch_core::tool::WorkspaceUse;
use backstitch_core::view::{CallStatus, DriverPresence as Presence, SessionStatus};
use backstitch_runtime::{
    Agent, FunctionPolicy, LiveKind, OutputContract, PointSpec, ResumeOptions, RuntimeError, SessionEvent,
    SubAgent, Tools,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Shop, asks, results, sub_agent, with_agent, writes};
use crate::tailor::{reply, scripted};

#[tokio::test]
async fn a_sub_agent_runs_in_its_own_session_with_the_files_of_its_caller() {
    let shop = Shop::new();
    let tailor = shop.tailor(
        Effect::Workspace,
        vec![reply("first", &[writes("coat", "mended")]), reply("the coat is mended", &[])],
    );
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let runtime = shop.runtime.clone();
    let driver = runtime.create(caller, (shop.options)()).await.unwrap();
    let mut events = driver.events();
    assert_eq!(driver.start("sew").await.unwrap().answer().unwrap().text, "done");
    assert_eq!(results(&driver).await, ["the coat is mended"]);
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));

    let session = driver.session().id();
    let view = runtime.view(session).await.unwrap();
    let call = view.calls().next().unwrap();
    let child = runtime.view(call.session().unwrap()).await.unwrap();
    assert_eq!(child.created().origin, Origin::Call { session, call: call.call_id });
    crate::index::is_current(&runtime).await;
    assert_eq!(child.status(Presence::Absent), SessionStatus::Idle);
    assert_eq!(child.files(), view.files(), "the files after the call are those of the sub-agent");
    let mission = child.transcript().unwrap().all().get(1).unwrap().content();
    assert_eq!(mission, "mend it");
    assert_eq!(runtime.store().holder(child.session_id()).await.unwrap(), None, "it was released");
    let mut heard = Vec::new();
    while let Some(event) = events.ready().await.unwrap() {
        let record = match &event {
            SessionEvent::Record(record) => record,
            SessionEvent::Live(event) => match &event.kind {
                LiveKind::SubAgent(record) => {
                    assert_eq!(event.session, child.session_id());
                    record
                }
                _ => continue,
            },
            other => panic!("{other:?}"),
        };
        if let RecordBody::SliceChanged(change) = &record.body {
            let invoked = change.appended::<ToolInvoked>().into_iter();
            heard.extend(invoked.map(|invoked| (invoked.name, invoked.run.session_id)));
        }
    }
    assert_eq!(heard, [("write".to_owned(), child.session_id()), ("tailor".to_owned(), session)]);
}

#[derive(Deserialize, serde::Serialize, JsonSchema)]
struct Job {
    cloth: String,
    stitches: u32,
}

#[tokio::test]
async fn parameters_and_answers_may_be_data() {
    let shop = Shop::new();
    let output = backstitch_core::prompt::Output::value::<Job>();
    let tailor = shop
        .tailor(Effect::Workspace, vec![reply(r#"{"cloth": "coat", "stitches": 7}"#, &[])])
        .output(OutputContract::new(output).unwrap());
    let agent =
        sub_agent(tailor).asking(|job: Job| format!("{} stitches for the {}", job.stitches, job.cloth));
    let caller = with_agent(
        vec![
            reply("", &[("tailor", json!({"cloth": "coat", "stitches": "many"}))]),
            reply("", &[("tailor", json!({"cloth": "coat", "stitches": 3}))]),
            reply("done", &[]),
        ],
        agent,
    );
    let driver = shop.create(caller).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    let results = results(&driver).await;
    assert!(results[0].contains("/stitches"), "{results:?}");
    assert_eq!(results[1], r#"{"cloth":"coat","stitches":7}"#);
    let children = shop.children(driver.session().id()).await;
    assert_eq!(children.len(), 1, "a refused call starts no session");
    let child = shop.runtime.view(children[0]).await.unwrap();
    assert_eq!(child.transcript().unwrap().all().get(1).unwrap().content(), "3 stitches for the coat");
}

/// An agent that calls itself without end.
fn matryoshka(max_depth: u32) -> Agent {
    let policy = FunctionPolicy::new(PolicyName::new("doll").unwrap(), |question| async move {
        let told = question.transcript.all().iter().rev().find(|message| message.tool_call_id().is_some());
        Ok(match told {
            Some(told) => PolicyAnswer::text(told.content()),
            None => PolicyAnswer::text("deeper").call("doll", Arguments::from_text(r#"{"mission": "open"}"#)),
        })
    });
    let inner = || {
        SubAgent::inheriting("doll", "Opens.", |caller: &Agent| caller.clone())
            .unwrap()
            .described(|tool| tool.effect(Effect::Workspace).workspace(WorkspaceUse::None))
    };
    Agent::new("tests/doll")
        .policy(Arc::new(policy))
        .tools(Tools::new([inner().into_tool()]).unwrap())
        .max_depth(max_depth)
}

#[tokio::test]
async fn the_depth_of_nested_agents_is_limited() {
    for (limit, sessions) in [(0, 1), (2, 3), (3, 4)] {
        let shop = Shop::new();
        let driver = shop.create(matryoshka(limit)).await;
        let answered = driver.start("open").await.unwrap().answer().unwrap();
        assert!(answered.text.contains(&format!("nested {limit} deep")), "{}", answered.text);
        assert_eq!(shop.runtime.store().sessions().await.unwrap().len(), sessions);
    }
}

/// A chain of agents, each with the next one as its sub-agent. The limits are those of the agents, from the outermost on.
fn chain(limits: &[Option<u32>]) -> Agent {
    let mut below: Option<Agent> = None;
    for limit in limits.iter().rev() {
        let mut agent = match below.take() {
            None => scripted(vec![reply("the innermost", &[])]),
            Some(next) => {
                let next = SubAgent::new("next", "The next one.", next).unwrap();
                let asks = reply("", &[("next", json!({"mission": "go"}))]);
                scripted(vec![asks, reply("done", &[])]).tools([next.into_tool()])
            }
        };
        if let Some(limit) = limit {
            agent = agent.max_depth(*limit);
        }
        below = Some(agent);
    }
    below.unwrap()
}

#[tokio::test]
async fn the_lowest_limit_of_depth_on_the_way_applies() {
    let cases: [(Vec<Option<u32>>, usize); 4] = [
        // By default three.
        (vec![None; 6], 4),
        // The outermost agent alone cannot raise it.
        (vec![Some(6), None, None, None, None, None], 4),
        (vec![Some(6); 6], 6),
        // It can lower it.
        (vec![Some(1), Some(6), Some(6), Some(6)], 2),
    ];
    for (limits, sessions) in cases {
        let shop = Shop::new();
        let driver = shop.create(chain(&limits)).await;
        driver.start("go").await.unwrap().answer().unwrap();
        assert_eq!(shop.runtime.store().sessions().await.unwrap().len(), sessions, "{limits:?}");
    }
}

#[tokio::test]
async fn a_sub_agent_that_fails_leaves_no_trace_in_the_files_and_is_rewound() {
    let shop = Shop::new();
    let tailor = shop
        .tailor(
            Effect::Workspace,
            vec![
                reply("", &[writes("coat", "torn")]),
                reply("", &[writes("hem", "torn")]),
                reply("", &[writes("more", "x")]),
            ],
        )
        .max_turns(2);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    driver.start("sew").await.unwrap().answer().unwrap();
    assert_eq!(results(&driver).await, ["there was no answer after 2 turns"]);
    assert_eq!((shop.file("coat"), shop.file("hem")), (None, None));
    let view = shop.runtime.view(driver.session().id()).await.unwrap();
    let call = view.calls().next().unwrap();
    assert_eq!(call.status(), CallStatus::Failed);
    assert!(call.finished.as_ref().unwrap().record.rescue.is_some(), "its changes are kept as a rescue");
    let child = shop.runtime.view(call.session().unwrap()).await.unwrap();
    assert!(child.latest_evaluation().is_none(), "it was rewound to before its mission");
    assert_eq!(shop.kinds(child.session_id()).await.last(), Some(&"rewound"));
}

#[tokio::test]
async fn a_sub_agent_whose_policy_fails_is_resumed_and_not_started_again() {
    let shop = Shop::new();
    let short = shop.tailor(Effect::External, vec![reply("", &[writes("coat", "mended")])]);
    let replies = vec![reply("help", &[asks("mend it")]), reply("done", &[])];
    let driver = shop.create(with_agent(replies.clone(), sub_agent(short))).await;
    let session = driver.session().id();
    let error = driver.start("sew").await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Policy(error) if error.kind == "script_ended"), "{error}");
    driver.session().release().await.unwrap();
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));

    let long = vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])];
    let caller = with_agent(replies, sub_agent(shop.tailor(Effect::External, long)));
    let driver = shop.runtime.open(session, caller, (shop.options)()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1, "an external effect happens once");
    assert_eq!(results(&driver).await, ["mended"]);
}

#[tokio::test]
async fn after_a_rewind_to_before_the_call_another_session_is_started() {
    let shop = Shop::new();
    let tailor =
        shop.tailor(Effect::Workspace, vec![reply("", &[writes("coat", "mended")]), reply("mended", &[])]);
    let caller = with_agent(vec![reply("help", &[asks("mend it")]), reply("done", &[])], sub_agent(tailor));
    let driver = shop.create(caller).await;
    let session = driver.session().id();
    driver.start("sew").await.unwrap().answer().unwrap();
    let first = shop.children(session).await;
    let call = shop.runtime.view(session).await.unwrap().calls().next().unwrap().call_id;
    driver.session().rewind(&PointSpec::Before(call.to_string()), None).await.unwrap();
    assert_eq!(shop.file("coat"), None);
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(shop.file("coat").as_deref(), Some("mended"));
    assert_eq!(shop.ran.load(Ordering::SeqCst), 2);
    assert_ne!(shop.children(session).await, first);
}
