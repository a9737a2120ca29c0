//! Incomplete answers: truncated, interrupted, withheld or empty. None of them counts as an answer.

use std::sync::{Arc, Mutex};

use backstitch_core::journal::{EvaluationOutcome, Finish, PauseReason, Role};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{PolicyAnswer, PolicyRequest};
use backstitch_core::prompt::Output;
use backstitch_core::rng::Seed;
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_repl::LispAgent;
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, OnTruncation, OutputContract, ResumeOptions, Runtime, RuntimeError,
    SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tailor::{reply, scripted};

/// An answer that ended for a reason.
fn ended_by(text: &str, reason: &str) -> ScriptedReply {
    ScriptedReply { finish_reason: Some(reason.to_owned()), ..reply(text, &[]) }
}

async fn driver(agent: Agent) -> (Runtime, backstitch_runtime::Driver) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    (runtime, driver)
}

fn accepting() -> ResumeOptions {
    ResumeOptions { accept: true, ..ResumeOptions::default() }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_pauses_and_is_continued_or_accepted() {
    for reason in ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens"] {
        for accept in [false, true] {
            let replies = vec![ended_by("The seam is ", reason), reply("12 cm long.", &[])];
            let agent = scripted(replies);
            let (runtime, first) = driver(agent.clone()).await;
            let ended = first.start("measure").await.unwrap();
            let DriveOutcome::Paused { reason: PauseReason::Truncated, partial: Some(partial), .. } = &ended
            else {
                panic!("{ended:?}")
            };
            assert_eq!(partial, "The seam is ");
            let error = ended.answer().unwrap_err();
            assert!(
                matches!(&error, RuntimeError::Truncated { text, session: None } if text == "The seam is "),
                "{error:?}"
            );
            let session = first.session().id();
            first.session().release().await.unwrap();
            let again = runtime.open(session, agent, SessionOptions::default()).await.unwrap();
            let options = if accept { accepting() } else { ResumeOptions::default() };
            let answered = again.resume(options).await.unwrap().answer().unwrap();
            let expected = if accept { "The seam is " } else { "The seam is 12 cm long." };
            assert_eq!(answered.text, expected, "{reason}");
            // After that it is the recorded answer.
            assert_eq!(again.resume(ResumeOptions::default()).await.unwrap().answer().unwrap(), answered);
            let refused = again.resume(accepting()).await;
            assert!(refused.is_ok_and(|ended| ended.answer().unwrap() == answered));
            let view = runtime.view(session).await.unwrap();
            let said = view.transcript().unwrap();
            let told = said.all().iter().filter(|message| message.message.policy.is_reserved()).count();
            assert_eq!(told, usize::from(!accept), "the runtime adds a message only to continue");
        }
    }
}

#[tokio::test]
async fn only_a_truncated_answer_can_be_accepted() {
    let (_, whole) = driver(scripted(vec![])).await;
    whole.start("measure").await.unwrap_err();
    let error = whole.resume(accepting()).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NothingToAccept { .. }), "{error}");
    // Thinking may use up the token limit before there is any text.
    let (_, silent) = driver(scripted(vec![ended_by("", "length"), reply("12 cm", &[])])).await;
    let ended = silent.start("measure").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Truncated, .. }), "{ended:?}");
    let error = silent.resume(accepting()).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NothingToAccept { .. }), "{error}");
    assert_eq!(silent.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "12 cm");
}

#[tokio::test]
async fn an_agent_configures_what_happens_on_truncation() {
    let replies = || vec![ended_by("a", "length"), ended_by("b", "length"), reply("c", &[])];
    let (_, continuing) = driver(scripted(replies()).on_truncation(OnTruncation::Continue)).await;
    assert_eq!(continuing.start("sew").await.unwrap().answer().unwrap().text, "abc");
    let (_, failing) = driver(scripted(replies()).on_truncation(OnTruncation::Fail)).await;
    let ended = failing.start("sew").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "truncated"),
        "{ended:?}"
    );
    // The number of continuations is limited.
    let endless = scripted(vec![ended_by("a", "length"); 30]).on_truncation(OnTruncation::Continue);
    let ended = driver(endless).await.1.start("sew").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Truncated, .. }), "{ended:?}");
    let limited = scripted(vec![ended_by("a", "length"); 30]).on_truncation(OnTruncation::Continue);
    let ended = driver(limited.max_turns(3)).await.1.start("sew").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "max_turns"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_message_sent_during_the_pause_replaces_the_continuation() {
    let (runtime, driver) = driver(scripted(vec![ended_by("A long ", "length"), reply("Short.", &[])])).await;
    driver.start("tell").await.unwrap();
    runtime.send(driver.session().id(), "Shorter, please.").await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "Short.");
    let view = runtime.view(driver.session().id()).await.unwrap();
    let transcript = view.transcript().unwrap();
    assert!(transcript.all().iter().all(|message| !message.message.policy.is_reserved()));
}

#[tokio::test]
async fn an_interrupted_answer_is_continued_at_once_and_a_withheld_one_fails() {
    let (runtime, paused) =
        driver(scripted(vec![ended_by("I look ", "pause_turn"), reply("and see.", &[])])).await;
    assert_eq!(paused.start("look").await.unwrap().answer().unwrap().text, "I look and see.");
    let view = runtime.view(paused.session().id()).await.unwrap();
    assert_eq!(view.transcript().unwrap().all().len(), 4, "no message is added between");
    let ended = driver(scripted(vec![ended_by("on", "pause_turn"); 30])).await.1.start("look").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "interrupted"),
        "{ended:?}"
    );
    let (_, withheld) = driver(scripted(vec![ended_by("I must not", "content_filter")])).await;
    let ended = withheld.start("tell").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "content_filter"),
        "{ended:?}"
    );
}

/// An agent with scripted answers, and the requests that it received.
fn telling(answers: Vec<PolicyAnswer>) -> (Agent, Arc<Mutex<Vec<PolicyRequest>>>) {
    let asked: Arc<Mutex<Vec<PolicyRequest>>> = Arc::default();
    let (answers, seen) = (Arc::new(answers), asked.clone());
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |question| {
        let turn = usize::try_from(question.turn).unwrap();
        let answer = answers.get(turn - 1).cloned();
        seen.lock().unwrap().push(question);
        async move { answer.ok_or_else(|| "there are no more answers".into()) }
    });
    let look = Tool::builder("look", "Looks.").unwrap().workspace(WorkspaceUse::None);
    let look = look.effect(backstitch_core::journal::Effect::Pure);
    let look = look.handler(|_, _: Value| async { Ok(ToolResult::ok("a hem")) });
    let agent = Agent::new("tests/tailor").policy(Arc::new(policy)).tools(Tools::new([look]).unwrap());
    (agent.max_repeats(None), asked)
}

#[tokio::test]
async fn an_empty_answer_is_requested_again_once_and_is_never_shown() {
    let call = PolicyAnswer::text("I will delete nothing.").call("look", Arguments::none());
    let (agent, asked) = telling(vec![call.clone(), PolicyAnswer::text(" \n"), PolicyAnswer::text("A hem.")]);
    assert_eq!(driver(agent).await.1.start("look").await.unwrap().answer().unwrap().text, "A hem.");
    let shown = asked.lock().unwrap().last().unwrap().shown.clone();
    assert!(shown.iter().all(|message| message.role() != Role::Assistant || message.turn == 1), "{shown:?}");
    assert!(shown.latest().unwrap().content().contains("empty"));

    let (agent, asked) =
        telling(vec![call, PolicyAnswer::default(), PolicyAnswer::text(""), PolicyAnswer::text("late")]);
    let (_, driver) = driver(agent).await;
    let ended = driver.start("look").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "empty_answer"),
        "{ended:?}"
    );
    assert_eq!(asked.lock().unwrap().len(), 3);
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap(), ended);
}

/// For any sequence of answers: an evaluation completes only with the text of its last answer, together with
/// the parts that it continues, and never with an empty answer.
#[tokio::test]
async fn the_text_of_a_completed_evaluation_is_that_of_its_last_answer() {
    let mut completed = 0;
    for seed in 0..150 {
        let mut rng = Seed::new(seed).rng();
        let answers: Vec<PolicyAnswer> = (0..8)
            .map(|number| {
                let text = format!("{number} ");
                match rng.below(7) {
                    0 => PolicyAnswer::default(),
                    1 => PolicyAnswer { finish: Finish::Length, ..PolicyAnswer::text(text) },
                    2 => PolicyAnswer { finish: Finish::Length, ..PolicyAnswer::default() },
                    3 => PolicyAnswer { finish: Finish::Pause, ..PolicyAnswer::text(text) },
                    4 => PolicyAnswer { finish: Finish::Other("new".into()), ..PolicyAnswer::text(text) },
                    _ => PolicyAnswer::text(text).call("look", Arguments::none()),
                }
            })
            .chain([PolicyAnswer::text("end")])
            .collect();
        let (agent, asked) = telling(answers.clone());
        let (runtime, driver) = driver(agent.on_truncation(OnTruncation::Continue)).await;
        let ended = driver.start("go").await.unwrap();
        let asked = asked.lock().unwrap().len();
        let view = runtime.view(driver.session().id()).await.unwrap();
        let outcome = view.latest_evaluation().unwrap().outcome();
        let said = &answers[..asked];
        let text = |answer: &PolicyAnswer| -> String {
            answer.parts.iter().filter_map(|part| Some(part.as_text()?.text.inline()?.to_string())).collect()
        };
        match ended {
            DriveOutcome::Completed(answered) => {
                completed += 1;
                let last = &said[asked - 1];
                assert!(last.calls.is_empty() && last.finish.is_whole() && !text(last).is_empty(), "{seed}");
                let pieces = said[..asked - 1].iter().rev().take_while(|answer| {
                    answer.calls.is_empty() && matches!(answer.finish, Finish::Length | Finish::Pause)
                });
                let mut pieces: Vec<_> = pieces.map(text).collect();
                pieces.reverse();
                assert_eq!(answered.text, pieces.concat() + &text(last), "{seed}: {said:?}");
                assert_eq!(outcome, Some(EvaluationOutcome::Completed));
            }
            DriveOutcome::Failed { failure, .. } => {
                assert_eq!(failure.kind, "empty_answer", "{seed}");
                let is_empty =
                    |answer: &PolicyAnswer| answer.parts.is_empty() && answer.finish == Finish::Stop;
                assert!(said[asked - 2..].iter().all(is_empty), "{seed}: {said:?}");
            }
            DriveOutcome::Paused { reason: PauseReason::Truncated, .. } => {}
            other => panic!("{seed}: {other:?}"),
        }
    }
    assert!(completed > 50, "{completed}");
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Length {
    #[expect(dead_code, reason = "only its schema is used")]
    centimetres: u32,
}

#[tokio::test]
async fn a_typed_answer_that_was_cut_off_is_continued_to_its_end() {
    let replies = vec![ended_by("{\"centimetres\"", "length"), reply(": 12}", &[])];
    let agent = scripted(replies).output(OutputContract::new(Output::value::<Length>()).unwrap());
    let (_, driver) = driver(agent).await;
    let ended = driver.start("measure").await.unwrap();
    assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Truncated, .. }), "{ended:?}");
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!({"centimetres": 12})));
}

fn program(text: &str, reason: Option<&str>) -> ScriptedReply {
    ScriptedReply { finish_reason: reason.map(str::to_owned), ..reply(text, &[]) }
}

/// A Lisp agent whose model answers with so many halves of a program, and then with a whole one.
async fn halving(halves: usize) -> (Runtime, backstitch_runtime::Driver) {
    let half = "```clojure\n(return {:n 1})\n(def rest ";
    let whole = "```clojure\n(return {:n 2})\n```";
    let mut replies = vec![program(half, Some("length")); halves];
    replies.push(program(whole, None));
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    let lisp = LispAgent::new().with_max_turns(20);
    driver(Agent::lisp("tests/lisp", Arc::new(policy), lisp, Tools::default()).unwrap()).await
}

async fn first_turn(runtime: &Runtime, driver: &backstitch_runtime::Driver) -> String {
    let view = runtime.view(driver.session().id()).await.unwrap();
    view.latest_evaluation().unwrap().finished_turns[0].data.inline().unwrap().to_string()
}

#[tokio::test]
async fn a_truncated_program_does_not_run_and_the_model_is_asked_for_a_shorter_one() {
    let (runtime, driver) = halving(1).await;
    let answered = driver.start("count").await.unwrap().answer().unwrap();
    assert_eq!(answered.output, Some(json!({"n": 2})));
    let first = first_turn(&runtime, &driver).await;
    assert!(first.contains("truncated"), "{first}");
}

#[tokio::test]
async fn a_model_that_only_writes_halves_of_programs_pauses_its_agent() {
    for accept in [false, true] {
        let (_, driver) = halving(9).await;
        let ended = driver.start("count").await.unwrap();
        assert!(matches!(&ended, DriveOutcome::Paused { reason: PauseReason::Truncated, .. }), "{ended:?}");
        let options = if accept { accepting() } else { ResumeOptions::default() };
        let answered = driver.resume(options).await.unwrap().answer().unwrap();
        assert_eq!(answered.output, Some(json!({"n": 2})), "what was accepted does not compile");
    }
}

#[tokio::test]
async fn a_truncated_answer_of_a_sub_agent_pauses_its_caller_and_resumes_with_it() {
    for accept in [false, true] {
        let mut helper = scripted(vec![ended_by("12 ", "length"), reply("cm", &[])]);
        helper.key = "helper".into();
        let helper = SubAgent::new("helper", "Helps.", helper).unwrap().into_tool();
        let replies = vec![reply("", &[("helper", json!({"mission": "measure"}))]), reply("done", &[])];
        let (_, driver) = driver(scripted(replies).tools(Tools::new([helper]).unwrap())).await;
        let ended = driver.start("measure").await.unwrap();
        let error = ended.answer().unwrap_err();
        assert!(
            matches!(&error, RuntimeError::Truncated { text, session: Some(_) } if text == "12 "),
            "{error:?}"
        );
        let options = if accept { accepting() } else { ResumeOptions::default() };
        assert_eq!(driver.resume(options).await.unwrap().answer().unwrap().text, "done");
        let transcript = driver.session().state().await.view.transcript().unwrap();
        let result =
            transcript.all().iter().find(|message| message.tool_call_id().is_some()).unwrap().content();
        assert_eq!(result, if accept { "12 " } else { "12 cm" });
    }
}
