//! Agents that answer with programs, driven from their mission to their answer.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{Decision, Effect, PauseReason, RecordBody, Role};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::tool::{Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_core::view::{
    CallStatus, ConversationState, DriverPresence as Presence, SessionStatus, Transcript,
};
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_repl::LispAgent;
use backstitch_repl::compression::SingleUserCoalesced;
use backstitch_repl::transcript::{Trim, TrimOptions};
use backstitch_runtime::{
    Agent, DriveOutcome, Driver, FunctionPolicy, PointSpec, ResumeOptions, Runtime, SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::tailor::{keep, kinds, started_until};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: i64,
}

pub(crate) fn twice(effect: Effect, ran: Arc<AtomicUsize>) -> Tool {
    let builder = Tool::builder("twice", "Doubles.").unwrap().effect(effect).workspace(WorkspaceUse::None);
    builder.handler(move |_, number: Number| {
        let ran = ran.clone();
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            if number.n == 13 {
                return Err(ToolError::new("thirteen"));
            }
            Ok(ToolResult::ok("").with_value(number.n * 2).unwrap())
        }
    })
}

pub(crate) fn answers(programs: &[&str]) -> Arc<ScriptedPolicy> {
    let replies = programs.iter().map(|program| ScriptedReply {
        text: Some(format!("```clojure\n{program}\n```")),
        ..ScriptedReply::default()
    });
    Arc::new(ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies: replies.collect() }))
}

fn with_tools(programs: &[&str], lisp: LispAgent, effect: Effect) -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let tools = Tools::new([twice(effect, ran.clone()), keep(Effect::Workspace, Arc::default())]).unwrap();
    (Agent::lisp("tests/lisp", answers(programs), lisp, tools).unwrap(), ran)
}

pub(crate) async fn created(agent: Agent) -> (Runtime, Driver) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    (runtime, driver)
}

/// The conversation that a policy sees.
fn shown_in(question: &PolicyRequest) -> ConversationState {
    let shown = Transcript::new(question.shown.iter().cloned().collect());
    shown.conversation(question.evaluation_id).unwrap()
}

#[tokio::test]
async fn a_mission_is_driven_to_its_answer() {
    let lisp = LispAgent::new()
        .with_data("rows", json!([{"id": 1}, {"id": 2}]))
        .with_signature("{total :int, kept [:string]}".parse().unwrap());
    let programs = [
        "(def doubled (map (fn [row] (tool/twice (:id row))) data/rows))",
        "(return {:total (reduce + doubled) :kept (mapv (fn [n] (tool/keep {:text (str n)})) doubled)})",
    ];
    let (agent, ran) = with_tools(&programs, lisp, Effect::Pure);
    let (runtime, driver) = created(agent).await;
    let answered = driver.start("Sum up.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output.unwrap(), json!({"total": 6, "kept": ["kept 2", "kept 4"]}));
    assert_eq!(ran.load(Ordering::SeqCst), 2);

    // Calls of programs are ordinary calls.
    let state = driver.session().state().await;
    let calls: Vec<_> = state.view.calls().map(|call| (call.name.as_str(), call.status())).collect();
    let done = CallStatus::Completed;
    assert_eq!(calls, [("twice", done), ("twice", done), ("keep", done), ("keep", done)]);
    assert_eq!(state.view.checkpoints().len(), 4);
    let transcript = state.view.transcript().unwrap();
    let paths: Vec<_> =
        transcript.all().iter().filter_map(|message| message.message.option_call()?.path.clone()).collect();
    assert_eq!(paths, ["0", "1", "0", "1"]);
    let conversation = transcript.conversation(answered.evaluation).unwrap();
    assert_eq!(conversation.turns.len(), 2);
    assert_eq!(conversation.turns[0].assistant_message.tool_calls.len(), 2);
    drop(state);

    let kinds = kinds(&runtime, driver.session().id()).await;
    let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(at("program_started") < at("call_started"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "program_started").count(), 2);
    assert_eq!(kinds.iter().filter(|kind| **kind == "turn_finished").count(), 2);
    // A resume returns the recorded answer.
    let again = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(again.output.unwrap()["total"], 6);
}

/// The number of options of a request, and its messages.
type Heard = (usize, Vec<(Role, String)>);

#[tokio::test]
async fn the_policy_is_shown_what_its_strategy_makes_of_the_turns() {
    let asked: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let heard = asked.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question| {
        let heard = heard.clone();
        async move {
            let conversation = shown_in(&question);
            let mut said = vec![(Role::System, conversation.system_message.unwrap().content)];
            for turn in conversation.turns {
                said.extend(turn.user_messages.into_iter().map(|message| (message.role, message.content)));
                said.push((turn.assistant_message.role, turn.assistant_message.content));
            }
            said.extend(conversation.unanswered.into_iter().map(|message| (message.role, message.content)));
            heard.lock().unwrap().push((question.options.len(), said));
            let program = ["(def x (tool/twice 4))", "(boom)", "(return x)"][question.turn as usize - 1];
            Ok(PolicyAnswer::text(format!("```clojure\n{program}\n```")))
        }
    });
    let tools = Tools::new([twice(Effect::Pure, Arc::default())]).unwrap();
    let lisp = LispAgent::new().with_compression(Arc::new(SingleUserCoalesced::default()));
    let agent = Agent::lisp("tests/lisp", Arc::new(policy), lisp, tools).unwrap();
    let (runtime, driver) = created(agent).await;
    let answered = driver.start("Double four.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(8)));
    let asked = asked.lock().unwrap().clone();
    assert!(asked.iter().all(|(options, _)| *options == 0), "tools are described in the text");
    let roles: Vec<Vec<Role>> =
        asked.iter().map(|(_, said)| said.iter().map(|(role, _)| *role).collect()).collect();
    let (system, user, assistant) = (Role::System, Role::User, Role::Assistant);
    assert_eq!(roles, [vec![system, user], vec![system, user], vec![system, user, assistant, user]]);
    assert!(asked[0].1[1].1.starts_with("Double four.\n\n;; === tool/ ==="), "{}", asked[0].1[1].1);
    assert!(
        asked[1].1[1].1.contains("x                             ; = integer, sample: 8"),
        "{}",
        asked[1].1[1].1
    );
    assert!(
        asked[2].1[2].1.contains("(boom)") && asked[2].1[3].1.contains("Turns left: 2"),
        "{:?}",
        asked[2]
    );
    for record in runtime.records(driver.session().id()).await.unwrap() {
        if let RecordBody::RequestStarted(request) = &record.body {
            assert!(request.renderer.as_ref().unwrap().starts_with("single_user_coalesced/"), "{request:?}");
        }
    }
}

#[tokio::test]
async fn a_program_that_fails_keeps_nothing_but_its_calls() {
    let programs = [
        "(def a 1) (tool/twice 2) (tool/twice 13)",
        "(def b (task \"t\" (tool/twice 5)))",
        "(return [b (resolve-a)])",
        "(return b)",
    ];
    let (agent, ran) = with_tools(&programs, LispAgent::new(), Effect::Workspace);
    let (_, driver) = created(agent).await;
    let answered = driver.start("Try.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(10)));
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    let state = driver.session().state().await;
    let turns = &state.view.evaluation(answered.evaluation).unwrap().finished_turns;
    let told: Vec<_> =
        turns.iter().map(|turn| turn.data.inline().unwrap()["success"].as_bool().unwrap()).collect();
    assert_eq!(told, [false, true, false, true]);
    assert!(turns[0].data.inline().unwrap()["error"]["message"].as_str().unwrap().contains("thirteen"));
    assert_eq!(turns[0].data.inline().unwrap()["tool_calls"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_call_may_need_approval_in_the_middle_of_a_program() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let builder = Tool::builder("sign", "Signs.").unwrap().effect(Effect::Workspace).needs_approval();
    let sign = builder.workspace(WorkspaceUse::None).handler(move |_, number: Number| {
        let ran = counted.clone();
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(ToolResult::ok("").with_value(number.n).unwrap())
        }
    });
    let before = Arc::new(AtomicUsize::new(0));
    let tools = Tools::new([twice(Effect::Workspace, before.clone()), sign]).unwrap();
    let programs = ["(def x (tool/twice 1)) (def y (tool/sign {:n x})) (return [x y (tool/twice y)])"];
    let agent = Agent::lisp("tests/lisp", answers(&programs), LispAgent::new(), tools).unwrap();
    let (_, driver) = created(agent).await;
    let ended = driver.start("Sign.").await.unwrap();
    let DriveOutcome::Paused { reason: PauseReason::Approval, call: Some(call), .. } = ended else {
        panic!("{ended:?}")
    };
    assert!(matches!(driver.resume(ResumeOptions::default()).await.unwrap(), DriveOutcome::Paused { .. }));
    driver.session().resolve(Some(call), Decision::Approve, None).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!([2, 2, 4])));
    assert_eq!((before.load(Ordering::SeqCst), ran.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn a_rewind_into_a_program_does_not_repeat_external_effects() {
    let programs =
        ["(def a (tool/keep {:text \"a\"})) (def b (tool/twice 1)) (def c (tool/twice 2)) (return [a b c])"];
    let (agent, ran) = with_tools(&programs, LispAgent::new(), Effect::External);
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let answered = driver.start("Do it.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(["kept a", 2, 4])));
    let first = driver.session().state().await.view.calls().next().unwrap().call_id;
    // Rewind to before the first call, so that the external calls are pending again.
    driver.session().rewind(&PointSpec::Before(first.to_string()), None).await.unwrap();
    for _ in 0..2 {
        let ended = driver.resume(ResumeOptions::default()).await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call: Some(call), .. } = ended else {
            panic!("{ended:?}")
        };
        let offered = driver.session().offered_result(call).await.unwrap().unwrap();
        let result = offered.message.option_result().unwrap().clone();
        let decision = Decision::Happened { result: Box::new(result) };
        driver.session().resolve(Some(call), decision, None).await.unwrap();
    }
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(["kept a", 2, 4])));
    assert_eq!(ran.load(Ordering::SeqCst), 2, "no external effect happened twice");
}

#[tokio::test]
async fn large_programs_turns_and_tasks_are_restored() {
    let long = "x".repeat(80_000);
    let first = format!("(def long \"{long}\") (task \"big\" (str long long)) (tool/twice 13)");
    let second = format!("(def kept \"{long}\") (task \"big\" (throw (ex-info \"never\" {{}})))");
    let programs = [first.as_str(), second.as_str(), "(tool/twice 1) (return (+ (count kept) (count *1)))"];
    let (agent, _) = with_tools(&programs, LispAgent::new(), Effect::Workspace);
    let store = Arc::new(MemoryStore::new());
    let runtime = Runtime::new(store.clone());
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    let answered = driver.start("Hold it.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(240_000)));
    let call = driver.session().state().await.view.calls().last().unwrap().call_id;
    driver.session().rewind(&PointSpec::Before(call.to_string()), None).await.unwrap();
    driver.session().release().await.unwrap();
    drop(driver);
    // A process that has only the store resumes in the middle of the last program.
    let driver = Runtime::new(store).open(session, agent, SessionOptions::default()).await.unwrap();
    assert_eq!(driver.session().state().await.view.status(Presence::Absent), SessionStatus::Interrupted);
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(240_000)));
}

#[tokio::test]
async fn a_program_that_is_stopped_in_a_call_resumes_at_that_call() {
    let program = "(return (mapv (fn [text] (tool/keep {:text text})) [\"one\" \"wait\" \"two\"]))";
    let kept = Arc::new(AtomicUsize::new(0));
    let tools = Tools::new([keep(Effect::Workspace, kept.clone())]).unwrap();
    let agent = Agent::lisp("tests/lisp", answers(&[program]), LispAgent::new(), tools).unwrap();
    let (runtime, driver) = created(agent).await;
    let driver = Arc::new(driver);
    let running = started_until(&driver, &kept, 2).await;
    driver.stop();
    let ended = running.await.unwrap().unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    let session = driver.session().id();
    driver.session().release().await.unwrap();
    let agent = driver.agent().clone();
    let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!(["kept one", "kept wait", "kept two"])));
    assert_eq!(kept.load(Ordering::SeqCst), 4, "only the stopped call runs again");
    let turns = runtime.view(session).await.unwrap().latest_evaluation().unwrap().turns;
    assert_eq!(turns, 1, "and the policy was not asked again");
}

#[tokio::test]
async fn a_program_that_computes_for_long_does_not_block_other_tasks() {
    let programs = ["(return (reduce + (map (fn [x] (* x x)) (range 300000))))"];
    let (agent, _) = with_tools(&programs, LispAgent::new(), Effect::Pure);
    let (_, driver) = created(agent).await;
    let ticks = Arc::new(AtomicUsize::new(0));
    let counted = ticks.clone();
    // On the one thread of this test: it ticks only when the program does not hold it.
    let ticking = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    });
    let answered = driver.start("Compute.").await.unwrap().answer().unwrap();
    ticking.abort();
    assert_eq!(answered.output, Some(json!(8_999_955_000_050_000_i64)));
    assert!(ticks.load(Ordering::SeqCst) > 100);
}

#[tokio::test]
async fn agents_that_call_by_json_are_shown_less_too() {
    let shown: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let seen = shown.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question| {
        let seen = seen.clone();
        async move {
            let all = question.transcript.conversation(question.evaluation_id).unwrap().turns.len();
            let conversation = shown_in(&question);
            assert!(
                conversation
                    .turns
                    .iter()
                    .all(|turn| turn.tool_messages.len() == turn.assistant_message.tool_calls.len())
            );
            seen.lock().unwrap().push((all, conversation.turns.len()));
            assert_eq!(question.options.len(), 1);
            Ok(match question.turn {
                7 => PolicyAnswer::text("done"),
                turn => {
                    let arguments: Value = json!({"text": format!("seam {turn}")});
                    PolicyAnswer::text("more").call("keep", arguments.try_into().unwrap())
                }
            })
        }
    });
    let tools = Tools::new([keep(Effect::Workspace, Arc::default())]).unwrap();
    let options = TrimOptions { turns: Some(2), ..TrimOptions::default() };
    let agent = Agent::new("tests/trim")
        .policy(Arc::new(policy))
        .instructions("You sew.")
        .tools(tools)
        .compression(Arc::new(Trim::new(options)));
    let (_, driver) = created(agent).await;
    driver.start("Sew.").await.unwrap().answer().unwrap();
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 7);
    assert!(shown.iter().all(|(_, shown)| *shown <= 2), "{shown:?}");
    assert_eq!(shown[6].0, 6);
}

#[tokio::test]
async fn what_is_not_shown_is_recorded_and_limits_of_calls_change_nothing_about_programs() {
    let printing = "(dotimes [n 40] (println n))";
    let lisp = LispAgent::new().with_compression(Arc::new(SingleUserCoalesced::default()));
    let (agent, _) = with_tools(&[printing, "(return {:n 1})"], lisp, Effect::Pure);
    let (runtime, driver) = created(agent.max_turns(1).max_repeats(2)).await;
    let answered = driver.start("Count.").await.unwrap().answer().unwrap();
    assert_eq!(answered.output.unwrap(), json!({"n": 1}));
    let mut notes = Vec::new();
    for record in runtime.records(driver.session().id()).await.unwrap() {
        if let RecordBody::Note(note) = record.body {
            notes.push(note.data.inline().unwrap()["departures"].clone());
        }
    }
    assert_eq!(notes, [json!(["not shown: 25 prints"])]);
}

#[tokio::test]
async fn an_answer_is_checked_against_its_schema_as_it_is_written() {
    let choice =
        json!({"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "required": ["size"]});
    let open =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": true});
    let cases = [
        (choice, "{:size \"XXL\"}", "{:size \"M\"}", json!({"size": "M"})),
        (json!({"type": "integer", "minimum": 3}), "1", "3", json!(3)),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), "[1]", "\"x\"", json!("x")),
        (open, "{:a \"x\"}", "{:a 1 :more 2}", json!({"a": 1, "more": 2})),
    ];
    for (schema, refused, accepted, output) in cases {
        let lisp = LispAgent::new().with_signature(schema.to_string().parse().unwrap());
        let programs = [format!("(return {refused})"), format!("(return {accepted})")];
        let (agent, _) = with_tools(&[&programs[0], &programs[1]], lisp, Effect::Pure);
        let (_runtime, driver) = created(agent).await;
        let answered = driver.start("Answer.").await.unwrap().answer().unwrap();
        assert_eq!(answered.output.unwrap(), output, "{schema}");
    }
    let invalid = LispAgent::new().with_signature(r#"{"type": "nothing"}"#.parse().unwrap());
    let tools = Tools::new(Vec::<Tool>::new()).unwrap();
    assert!(Agent::lisp("tests/lisp", answers(&[]), invalid, tools).is_err());
}
