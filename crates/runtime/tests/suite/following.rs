//! Follow-ups: a later evaluation of a session sees the conversation before it.

use std::sync::{Arc, Mutex};

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{Effect, Finish, Position, RecordBody, Role};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::validate::validate;
use backstitch_providers::{
    HttpRequest, HttpResponse, ModelPolicy, ModelTarget, Provider, Transport, TransportError,
};
use backstitch_repl::LispAgent;
use backstitch_repl::transcript::{Trim, TrimOptions};
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, PointSpec, ResumeOptions, Runtime, RuntimeError, SessionOptions,
    Tools,
};
use backstitch_store::MemoryStore;
use backstitch_testkit::request_form::check_form;
use serde_json::{Value, json};

use crate::history::before;

type Asked = Arc<Mutex<Vec<PolicyRequest>>>;

/// A transport that fails every request, for policies that only render.
struct Nobody;

impl Transport for Nobody {
    fn send(
        &self,
        _: HttpRequest,
    ) -> backstitch_core::ports::BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("this transport answers no requests")) })
    }
}

fn sew() -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Named {
        name: String,
    }
    let builder = Tool::builder("sew", "Sews.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    builder.handler(|_, named: Named| async move { Ok(ToolResult::ok(format!("sewed {}", named.name))) })
}

fn called(name: &str) -> PolicyAnswer {
    let arguments = json!({"name": name}).as_object().cloned().unwrap();
    PolicyAnswer::text(format!("I sew {name}.")).call("sew", Arguments::from_object(arguments))
}

/// The last user message of the request.
fn mission(question: &PolicyRequest) -> String {
    let said = question.shown.iter().filter(|message| message.role() == Role::User);
    said.map(|message| message.content()).next_back().unwrap_or_default()
}

/// Makes a call with the mission, then answers. A mission that starts with "say" is answered at once.
fn tailor(question: &PolicyRequest) -> PolicyAnswer {
    let mission = mission(question);
    match question.shown.latest().map(|last| last.role()) {
        Some(Role::User) if !mission.starts_with("say") => called(&mission),
        _ => PolicyAnswer::text(format!("{mission}, turn {}", question.turn)),
    }
}

/// An agent that decides by this function, and the requests that it received.
fn agent(
    decide: impl Fn(&PolicyRequest) -> Result<PolicyAnswer, &'static str> + Send + Sync + 'static,
) -> (Agent, Asked) {
    let asked = Asked::default();
    let heard = asked.clone();
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question: PolicyRequest| {
        let answer = decide(&question).map_err(Into::into);
        heard.lock().unwrap().push(question);
        async move { answer }
    });
    let agent = Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew.");
    (agent.tools(Tools::new([sew()]).unwrap()), asked)
}

fn runtime() -> Runtime {
    Runtime::new(Arc::new(MemoryStore::new()))
}

/// The messages of a request, a line for each.
fn shown(question: &PolicyRequest) -> Vec<String> {
    let line = |message: &Arc<backstitch_core::journal::InnerMessage>| match message.message.option_call() {
        Some(call) => format!("call {}", call.arguments.text()),
        None => format!("{:?}: {}", message.role(), message.content()).to_lowercase(),
    };
    question.shown.iter().map(line).collect()
}

fn last_shown(asked: &Asked) -> Vec<String> {
    asked.lock().unwrap().last().map(shown).unwrap()
}

/// Asserts that the rendered requests are valid for every provider.
fn check_requests(asked: &Asked) {
    for provider in Provider::ALL {
        let name = PolicyName::new("model").unwrap();
        let policy = ModelPolicy::new(name, ModelTarget::new(provider, "model-1"), None, Arc::new(Nobody));
        for question in asked.lock().unwrap().iter() {
            let body = policy.request(question).unwrap().body;
            validate(provider, &body).unwrap_or_else(|error| panic!("{provider}: {error}\n{body:#}"));
            check_form(provider.as_str(), &body)
                .unwrap_or_else(|error| panic!("{provider}: {error}\n{body:#}"));
        }
    }
}

const FIRST: [&str; 5] = [
    "user: hem",
    "assistant: i sew hem.",
    r#"call {"name":"hem"}"#,
    "tool: sewed hem",
    "assistant: hem, turn 2",
];

fn expected(lines: &[&[&str]]) -> Vec<String> {
    let system = ["system: you sew."];
    system.iter().chain(lines.iter().copied().flatten()).map(|line| (*line).to_owned()).collect()
}

async fn follows(runtime: &Runtime, session: SessionId) -> Vec<Option<EvaluationId>> {
    let view = runtime.view(session).await.unwrap();
    view.evaluations().map(|evaluation| evaluation.start.as_ref().unwrap().follows).collect()
}

#[tokio::test]
async fn a_second_mission_sees_the_conversation_of_the_first_and_answers_for_itself() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    // Two turns are enough for each mission, and too few for both.
    let agent = agent.max_turns(2);
    let run = runtime.start(&agent, "hem").await.unwrap();
    run.answer::<String>().await.unwrap();
    let session = run.session();
    assert_eq!(last_shown(&asked), expected(&[&FIRST[..4]]));
    let run = runtime.ask(session, &agent, "sleeve").await.unwrap();
    let answer = run.answer::<String>().await.unwrap();
    assert_eq!(answer, "sleeve, turn 2", "nothing of the first evaluation is in the answer");
    let sleeve =
        ["user: sleeve", "assistant: i sew sleeve.", r#"call {"name":"sleeve"}"#, "tool: sewed sleeve"];
    assert_eq!(last_shown(&asked), expected(&[&FIRST, &sleeve]));
    runtime.ask(session, &agent, "say bye").await.unwrap().answer::<String>().await.unwrap();
    let answered = ["assistant: sleeve, turn 2", "user: say bye"];
    assert_eq!(last_shown(&asked), expected(&[&FIRST, &sleeve, &answered]));
    assert_eq!(asked.lock().unwrap().last().unwrap().turn, 1, "turns are those of the evaluation");
    let view = runtime.view(session).await.unwrap();
    let ids: Vec<_> = view.evaluations().map(|evaluation| evaluation.evaluation_id).collect();
    assert_eq!(follows(&runtime, session).await, [None, Some(ids[0]), Some(ids[1])]);
    assert_eq!(view.followed(ids[2]), ids[..2]);
    check_requests(&asked);
}

#[tokio::test]
async fn a_message_to_an_idle_session_follows_what_came_before() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("hem").await.unwrap().answer().unwrap();
    runtime.send(driver.session().id(), "say what").await.unwrap();
    runtime.send(driver.session().id(), "say more").await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(last_shown(&asked), expected(&[&FIRST, &["user: say what", "user: say more"]]));
    check_requests(&asked);
}

#[tokio::test]
async fn rewound_messages_are_not_shown() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    let session = driver.session().id();
    driver.start("hem").await.unwrap().answer().unwrap();
    let after_first = driver.session().state().await.view.head();
    driver.start("say lost").await.unwrap().answer().unwrap();
    // To the end of the first evaluation.
    driver.session().rewind(&PointSpec::Position(after_first), None).await.unwrap();
    driver.start("say found").await.unwrap().answer().unwrap();
    assert_eq!(last_shown(&asked), expected(&[&FIRST, &["user: say found"]]));
    // Into the middle of the first: it has to be resumed, and its new messages are shown.
    let call = runtime.view(session).await.unwrap().calls().next().unwrap().call_id;
    driver.session().rewind(&before(call), None).await.unwrap();
    assert!(matches!(driver.start("say no").await, Err(RuntimeError::EvaluationOpen { .. })));
    runtime.send(session, "say instead").await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    driver.start("say last").await.unwrap().answer().unwrap();
    let changed =
        ["user: say instead", "tool: sewed hem", "assistant: say instead, turn 2", "user: say last"];
    assert_eq!(last_shown(&asked), expected(&[&FIRST[..3], &changed]));
    check_requests(&asked);
}

#[tokio::test]
async fn a_fork_follows_what_its_point_shows() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    driver.start("hem").await.unwrap().answer().unwrap();
    let after_first = driver.session().state().await.view.head();
    driver.start("say parent").await.unwrap().answer().unwrap();
    let fork = runtime.fork(driver.session().id(), PointSpec::Position(after_first)).await.unwrap();
    runtime.ask(fork.session, &agent, "say fork").await.unwrap().answer::<String>().await.unwrap();
    assert_eq!(last_shown(&asked), expected(&[&FIRST, &["user: say fork"]]));
}

#[tokio::test]
async fn a_call_that_a_cancelled_evaluation_left_open_makes_no_request_invalid() {
    let runtime = runtime();
    let session: Arc<Mutex<Option<(Runtime, SessionId)>>> = Arc::default();
    let asked = Asked::default();
    let (heard, known) = (asked.clone(), session.clone());
    // Cancels its evaluation with its first answer, so that the call of that answer never runs.
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question: PolicyRequest| {
        let to_cancel = known.lock().unwrap().take();
        let answer = tailor(&question);
        heard.lock().unwrap().push(question);
        async move {
            if let Some((runtime, session)) = to_cancel {
                runtime.cancel(session).await.unwrap();
                // The answer arrives before the cancellation is noticed.
            }
            Ok(answer)
        }
    });
    let agent = Agent::new("tests/tailor").policy(Arc::new(policy)).instructions("You sew.");
    for compressed in [false, true] {
        let mut agent = agent.clone().tools(Tools::new([sew()]).unwrap());
        if compressed {
            agent = agent.compression(Arc::new(Trim::new(TrimOptions::default())));
        }
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        *session.lock().unwrap() = Some((runtime.clone(), driver.session().id()));
        assert!(matches!(driver.start("hem").await.unwrap(), DriveOutcome::Cancelled { .. }));
        let view = runtime.view(driver.session().id()).await.unwrap();
        assert_eq!(view.pending_calls().count(), 1, "the call is open");
        driver.start("sleeve").await.unwrap().answer().unwrap();
        let sleeve =
            ["user: sleeve", "assistant: i sew sleeve.", r#"call {"name":"sleeve"}"#, "tool: sewed sleeve"];
        assert_eq!(last_shown(&asked), expected(&[&FIRST[..3], &sleeve]));
        check_requests(&asked);
    }
}

#[tokio::test]
async fn an_answer_that_a_filter_withheld_is_not_shown_to_a_follow_up() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| match mission(question).as_str() {
        "say it" => Ok(PolicyAnswer { finish: Finish::Filter, ..PolicyAnswer::text("withheld") }),
        _ => Ok(tailor(question)),
    });
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    assert!(matches!(driver.start("say it").await.unwrap(), DriveOutcome::Failed { .. }));
    driver.start("say else").await.unwrap().answer().unwrap();
    assert_eq!(last_shown(&asked), expected(&[&["user: say it", "user: say else"]]));
    check_requests(&asked);
}

#[tokio::test]
async fn a_follow_up_that_was_killed_sees_the_same_wherever_it_is_resumed() {
    let store = Arc::new(MemoryStore::new());
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let down = is_down.clone();
    let (agent, asked) = agent(move |question| {
        let is_down = down.load(std::sync::atomic::Ordering::SeqCst);
        // The second request of the second mission fails.
        if is_down && question.turn == 2 { Err("killed") } else { Ok(tailor(question)) }
    });
    let text = |question: &PolicyRequest| {
        let shown: Vec<Value> =
            question.shown.iter().map(|message| serde_json::to_value(message).unwrap()).collect();
        serde_json::to_string(&shown).unwrap()
    };
    for compressed in [false, true] {
        let mut agent = agent.clone();
        if compressed {
            let options = TrimOptions { turns: Some(1), ..TrimOptions::default() };
            agent = agent.compression(Arc::new(Trim::new(options)));
        }
        let runtime = Runtime::new(store.clone());
        let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
        let session = driver.session().id();
        driver.start("hem").await.unwrap().answer().unwrap();
        is_down.store(true, std::sync::atomic::Ordering::SeqCst);
        driver.start("sleeve").await.unwrap_err();
        is_down.store(false, std::sync::atomic::Ordering::SeqCst);
        driver.session().release().await.unwrap();
        let before = text(asked.lock().unwrap().last().unwrap());
        // A snapshot adopted by another store shows the same.
        let driver = runtime.open(session, agent.clone(), SessionOptions::default()).await.unwrap();
        let snapshot = driver.session().export_snapshot().await.unwrap();
        driver.session().release().await.unwrap();
        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let adopted =
            elsewhere.adopt_snapshot(agent.clone(), &snapshot, SessionOptions::default()).await.unwrap();
        adopted.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(text(asked.lock().unwrap().last().unwrap()), before, "adopted");
        // An adopted conversation is followed as well.
        adopted.start("say more").await.unwrap().answer().unwrap();
        assert_eq!(elsewhere.view(adopted.session().id()).await.unwrap().evaluations().count(), 3);
        let seen = last_shown(&asked);
        assert!(seen.iter().any(|line| line.starts_with("user: hem")), "{seen:?}");
        assert_eq!(seen.last().unwrap(), "user: say more");

        let runtime = Runtime::new(store.clone());
        let driver = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(text(asked.lock().unwrap().last().unwrap()), before, "resumed");
        check_requests(&asked);
    }
}

#[tokio::test]
async fn a_follow_up_of_a_long_conversation_is_trimmed_like_any_other() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let options = TrimOptions { turns: Some(1), ..TrimOptions::default() };
    let agent = agent.compression(Arc::new(Trim::new(options)));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("hem").await.unwrap().answer().unwrap();
    driver.start("say it").await.unwrap().answer().unwrap();
    let first = "user: hem\n[answer 1, with its calls and results, is not shown.]";
    assert_eq!(last_shown(&asked), expected(&[&[first, FIRST[4], "user: say it"]]));
    driver.start("say more").await.unwrap().answer().unwrap();
    // The second mission is turn 3 of the conversation, and its answer turn 4.
    let first = "user: hem\n[2 answers, 1 to 2, with their calls and results, are not shown.]";
    let second = ["user: say it", "assistant: say it, turn 1", "user: say more"];
    assert_eq!(last_shown(&asked), expected(&[&[first], &second]));
    check_requests(&asked);
}

/// Journals of older versions do not record what an evaluation follows.
#[tokio::test]
async fn an_evaluation_that_names_none_is_shown_alone() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let driver = runtime.create(agent.clone(), SessionOptions::default()).await.unwrap();
    driver.start("hem").await.unwrap().answer().unwrap();
    let latest = driver.session().state().await.view.latest_evaluation().unwrap().clone();
    let mut started = (**latest.start.as_ref().unwrap()).clone();
    started.evaluation_id = driver.session().state().await.session.ids().next();
    let (id, system) =
        (started.evaluation_id, asked.lock().unwrap()[0].shown.get(0).unwrap().message.clone());
    driver.session().record(vec![RecordBody::from(started)]).await.unwrap();
    driver.session().say(id, 0, vec![system]).await.unwrap();
    runtime.send(driver.session().id(), "say old").await.unwrap();
    driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(last_shown(&asked), expected(&[&["user: say old"]]));
    assert_eq!(follows(&runtime, driver.session().id()).await, [None, None]);
    // The next evaluation follows this one, which follows none.
    driver.start("say new").await.unwrap().answer().unwrap();
    let old = ["user: say old", "assistant: say old, turn 1", "user: say new"];
    assert_eq!(last_shown(&asked), expected(&[&old]));
    assert!(driver.session().state().await.view.head() > Position::START);
}

#[tokio::test]
async fn a_lisp_agent_sees_the_missions_and_answers_before_its_own() {
    let asked = Asked::default();
    let heard = asked.clone();
    let policy = FunctionPolicy::new(PolicyName::new("clerk").unwrap(), move |question: PolicyRequest| {
        let program = match (question.transcript.evaluations().len(), question.turn) {
            (1, 1) => "(def total 42)",
            (1, _) => "(return {:total total :_secret 7})",
            (2, _) => "(fail \"no idea\")",
            (_, 1) => "(return {:total total})",
            _ => "(return {:total 43})",
        };
        heard.lock().unwrap().push(question);
        async move { Ok(PolicyAnswer::text(format!("```clojure\n{program}\n```"))) }
    });
    let agent = Agent::lisp("tests/clerk", Arc::new(policy), LispAgent::new(), Tools::default()).unwrap();
    let runtime = runtime();
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("Add up.").await.unwrap().answer().unwrap();
    let user = |question: &PolicyRequest| question.shown.get(1).unwrap().content();
    assert!(!user(&asked.lock().unwrap()[1]).contains("earlier"));
    assert!(matches!(driver.start("Guess.").await.unwrap(), DriveOutcome::Failed { .. }));
    let answer = driver.start("One more.").await.unwrap().answer().unwrap();
    assert_eq!(answer.output, Some(json!({"total": 43})), "the memory of the first is not that of the third");
    let asked = asked.lock().unwrap();
    let first = user(&asked[3]);
    let section = ";; === earlier missions and answers ===\nMission: Add up.\nAnswer: {\"total\":42}\n\n\
                   Mission: Guess.\nIt failed: no idea";
    assert!(first.starts_with(&format!("One more.\n\n{section}")), "{first}");
    assert!(!first.contains("_secret"), "firewalled values are not shown");
    assert_eq!(asked[3].shown.iter().filter(|message| message.role() == Role::System).count(), 1);
}

/// Unlike turn numbers, the ids of calls do not change.
#[tokio::test]
async fn the_calls_of_followed_evaluations_keep_their_ids_and_results() {
    let runtime = runtime();
    let (agent, asked) = agent(|question| Ok(tailor(question)));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    driver.start("hem").await.unwrap().answer().unwrap();
    driver.start("sleeve").await.unwrap().answer().unwrap();
    let asked = asked.lock().unwrap();
    let shown = &asked.last().unwrap().shown;
    let made: Vec<CallId> =
        shown.iter().filter_map(|message| Some(message.message.option_call()?.invocation_id)).collect();
    let results: Vec<CallId> = shown.iter().filter_map(|message| message.tool_call_id()).collect();
    assert_eq!((made.len(), &made), (2, &results));
}
