//! Lisp agents with sub-agents: inherited options, and a shared budget of turns.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::budget::Limits;
use backstitch_core::journal::{Decision, Effect, PauseReason};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Policy, PolicyAnswer};
use backstitch_core::tool::{Approval, Tool, WorkspaceUse};
use backstitch_repl::compression::SingleUserCoalesced;
use backstitch_repl::{LispAgent, LispOptions};
use backstitch_runtime::{Agent, DriveOutcome, FunctionPolicy, ResumeOptions, SubAgent, Tools};
use serde_json::json;

use crate::lisp::{answers, created, twice};

#[tokio::test]
async fn a_program_may_call_an_agent_that_inherits_its_options() {
    let (ran, shown) = (Arc::new(AtomicUsize::new(0)), Arc::<Mutex<Vec<usize>>>::default());
    let (counted, seen) = (ran.clone(), shown.clone());
    let helper = SubAgent::inheriting("helper", "Doubles.", move |caller: &Agent| {
        let options = caller.lisp_options().unwrap().clone();
        assert_eq!((options.max_turns, options.turn_budget), (2, 20));
        let seen = seen.clone();
        let policy = FunctionPolicy::new(PolicyName::new("helper").unwrap(), move |question| {
            seen.lock().unwrap().push(question.shown.len());
            let program = if question.turn == 1 { "(def x (tool/twice 4))" } else { "(return x)" };
            async move { Ok(PolicyAnswer::text(program)) }
        });
        let tools = Tools::new([twice(Effect::Workspace, counted.clone())]).unwrap();
        let lisp = LispAgent::new().with_options(options);
        Agent::lisp("tests/helper", Arc::new(policy), lisp, tools).unwrap()
    });
    let helper =
        helper.unwrap().described(|tool| tool.effect(Effect::Workspace).workspace(WorkspaceUse::None));
    let tool = helper.into_tool();
    let program = "(return (mapv (fn [n] (tool/helper {:mission (str n)})) [1 2]))";
    let compressed = LispAgent::new().with_compression(Arc::new(SingleUserCoalesced::default()));
    // A successful turn is part of the single user message, or else an answer and its result.
    for (lisp, messages) in [(compressed, [2, 2, 2, 2]), (LispAgent::new(), [2, 4, 2, 4])] {
        let tools = Tools::new([tool.clone()]).unwrap();
        let agent = Agent::lisp("tests/lisp", answers(&[program]), lisp.with_max_turns(2), tools).unwrap();
        let (_, driver) = created(agent).await;
        let answered = driver.start("Double.").await.unwrap().answer().unwrap();
        assert_eq!(answered.output, Some(json!([8, 8])));
        assert_eq!(ran.swap(0, Ordering::SeqCst), 2);
        assert_eq!(std::mem::take(&mut *shown.lock().unwrap()), messages);
    }
}

/// A sub-agent that needs two turns to double four.
fn helper() -> Tool {
    let helper = SubAgent::inheriting("helper", "Doubles.", |caller: &Agent| {
        let options = caller.lisp_options().unwrap().clone();
        let tools = Tools::new([twice(Effect::Workspace, Arc::default())]).unwrap();
        let lisp = LispAgent::new().with_options(options);
        Agent::lisp("tests/helper", answers(&["(def x (tool/twice 4))", "(return x)"]), lisp, tools).unwrap()
    });
    let described = |tool: backstitch_core::tool::ToolBuilder| {
        tool.effect(Effect::Workspace).workspace(WorkspaceUse::None)
    };
    helper.unwrap().described(described).into_tool()
}

fn caller(policy: Arc<dyn Policy>, max_turns: u64, turn_budget: u64) -> Agent {
    let options = LispOptions { max_turns, turn_budget, ..LispOptions::default() };
    let lisp = LispAgent::new().with_options(options);
    Agent::lisp("tests/lisp", policy, lisp, Tools::new([helper()]).unwrap()).unwrap()
}

#[tokio::test]
async fn an_agent_and_its_sub_agents_share_their_turns() {
    let programs = ["(return (mapv (fn [n] (tool/helper {:mission (str n)})) [1 2 3]))"];
    let (runtime, driver) = created(caller(answers(&programs), 5, 6)).await;
    let ended = driver.start("Double.").await.unwrap();
    let DriveOutcome::Paused { reason: PauseReason::Budget, detail, session: Some(child), .. } = &ended
    else {
        panic!("{ended:?}")
    };
    assert!(detail.contains("the budget of 1 turns would be exceeded: 2 in all"), "{detail}");
    let waiting = runtime.view(*child).await.unwrap();
    assert_eq!(waiting.latest_evaluation().unwrap().turns, 1, "the last helper got the remaining turn");

    let more = Limits { turns: Some(7), ..Limits::default() };
    let options = ResumeOptions { budget: Some(more), ..ResumeOptions::default() };
    let answered = driver.resume(options).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!([8, 8, 8])));
    let state = driver.session().state().await;
    assert_eq!(state.view.ledger().charged().turns, 7, "one of its own, and two of each helper");
    assert_eq!(state.view.ledger().reserved().turns, 0);
}

#[tokio::test]
async fn a_model_sees_how_many_turns_its_sub_agents_leave() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question| {
        let last = question.shown.latest().unwrap().content();
        heard.lock().unwrap().push(last.lines().last().unwrap_or_default().to_owned());
        let program = match question.turn {
            1 => "(def a (tool/helper {:mission \"a\"}))",
            2 => "(def b (tool/helper {:mission \"b\"}))",
            _ => "(return (+ a b))",
        };
        async move { Ok(PolicyAnswer::text(program)) }
    });
    let (runtime, driver) = created(caller(Arc::new(policy), 10, 7)).await;
    let answered = driver.start("Double.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(16)));
    let told = told.lock().unwrap().clone();
    assert_eq!(told[..2], ["Turns left: 6", "Turns left: 3"]);
    assert!(told[2].starts_with("FINAL TURN"), "{told:?}");
    let view = runtime.view(driver.session().id()).await.unwrap();
    assert_eq!(view.ledger().charged().turns, 7);
}

#[tokio::test]
async fn concurrent_sub_agents_of_a_program_pause_fail_and_resume() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let helper = SubAgent::inheriting("helper", "Doubles.", move |caller: &Agent| {
        let options = caller.lisp_options().unwrap().clone();
        let mut twice = twice(Effect::Workspace, counted.clone());
        Arc::make_mut(&mut twice.spec).approval = Approval::Needed;
        let policy = FunctionPolicy::new(PolicyName::new("helper").unwrap(), |question| {
            let asked = question.shown.latest().unwrap().content();
            let program = if asked.starts_with("fail") {
                "(fail {:_key \"hidden\" :why \"no thread\"})"
            } else {
                "(return (tool/twice 4))"
            };
            async move { Ok(PolicyAnswer::text(program)) }
        });
        let lisp = LispAgent::new().with_options(options);
        Agent::lisp("tests/helper", Arc::new(policy), lisp, Tools::new([twice]).unwrap()).unwrap()
    });
    let helper =
        helper.unwrap().described(|tool| tool.effect(Effect::Workspace).workspace(WorkspaceUse::None));
    let programs = ["(defn ask [m] (try (tool/helper {:mission m}) (catch Exception e (ex-message e))))
         (return (pmap ask [\"sew\" \"fail\" \"hem\"]))"];
    let tools = Tools::new([helper.into_tool()]).unwrap();
    let agent = Agent::lisp("tests/lisp", answers(&programs), LispAgent::new(), tools).unwrap();
    let (runtime, driver) = created(agent).await;
    let mut ended = driver.start("Double.").await.unwrap();
    for _ in 0..2 {
        let DriveOutcome::Paused { reason: PauseReason::Approval, session: Some(child), .. } = &ended else {
            panic!("{ended:?}")
        };
        let pause = runtime.view(*child).await.unwrap().pause().cloned().unwrap();
        runtime.decide(*child, pause.call_id, Decision::Approve, None).await.unwrap();
        ended = driver.resume(ResumeOptions::default()).await.unwrap();
    }
    let output = ended.answer().unwrap().output.unwrap();
    assert_eq!((&output[0], &output[2]), (&json!(8), &json!(8)));
    let failed = output[1].as_str().unwrap();
    assert!(failed.contains("no thread") && !failed.contains("hidden"), "{failed}");
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}
