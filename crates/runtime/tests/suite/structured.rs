//! Structured answers: extracted, validated, requested again, and passed to their reducers. And policies that
//! repeat their calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::journal::{Effect, EvaluationOutcome, Position, RecordBody, Role};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::prompt::{BoundPrompt, Output, Prompt, Section};
use backstitch_core::session::{BoxError, Slice};
use backstitch_core::slices::PromptExecuted;
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{
    Agent, DriveOutcome, Evaluator, FunctionPolicy, LiveSession, OutputContract, Runtime, SessionOptions,
    Tools,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::prompts::{begin, evaluator};
use crate::tailor::{keep, reply, scripted};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tear {
    place: String,
    length: u8,
}

impl Slice for Tear {
    const NAME: &'static str = "tear";
}

fn asking(output: Output) -> BoundPrompt {
    let section = Section::new("task", "Task").body("Find tears.");
    let prompt = Prompt::builder("tests", "finder").section(section).output(output).build().unwrap();
    prompt.bind(&()).unwrap().asking("look")
}

async fn tears(session: &Arc<LiveSession>) -> Vec<Tear> {
    let state = session.state().await;
    state.session.all::<Tear>().unwrap().iter().map(|tear| Tear::clone(tear)).collect()
}

pub(crate) fn hem() -> Tear {
    Tear { place: "hem".into(), length: 3 }
}

pub(crate) const HEM: &str = "Here it is:\n```json\n{\"place\": \"hem\", \"length\": 3}\n```\nGood luck.";

async fn evaluated(output: Output, replies: Vec<ScriptedReply>) -> (Runtime, Arc<LiveSession>, DriveOutcome) {
    let evaluator = evaluator(replies);
    let (runtime, session) = begin(&evaluator).await;
    let ended = evaluator.evaluate(&asking(output), &session, false).await.unwrap();
    (runtime, session, ended)
}

#[tokio::test]
async fn an_answer_is_extracted_from_the_text_and_stored_in_the_batch_that_ends_the_evaluation() {
    let (_, session, ended) = evaluated(Output::of::<Tear>(), vec![reply(HEM, &[])]).await;
    let answered = ended.answer().unwrap();
    assert_eq!(answered.output_as::<Tear>().unwrap(), Some(hem()));
    assert_eq!(answered.text, HEM, "the text is not changed");
    assert_eq!(tears(&session).await, [hem()]);
    let records = session.store().read(session.id(), Position::START, 1_000).await.unwrap();
    let changed = records.iter().position(
        |record| matches!(&record.body, RecordBody::SliceChanged(change) if change.slice == Tear::NAME),
    );
    let ended = records.iter().position(|record| matches!(&record.body, RecordBody::EvaluationFinished(_)));
    // Only the log of the answer is between them.
    assert_eq!(changed.unwrap() + 2, ended.unwrap());
    let state = session.state().await;
    let executed = state.session.latest::<PromptExecuted>().unwrap().unwrap();
    assert_eq!(executed.output, Some(json!({"place": "hem", "length": 3})));
}

#[tokio::test]
async fn an_answer_with_structured_output_is_used_unchanged() {
    let mut given = reply("I found one.", &[]);
    given.output = Some(json!({"items": [{"place": "hem", "length": 3}]}));
    let (_, session, ended) = evaluated(Output::list_of::<Tear>(), vec![given]).await;
    assert_eq!(ended.answer().unwrap().output, Some(json!([{"place": "hem", "length": 3}])));
    assert_eq!(tears(&session).await, [hem()]);
}

#[tokio::test]
async fn an_invalid_answer_is_requested_again_once() {
    let replies = vec![reply(r#"{"place": 7, "lenght": 3}"#, &[]), reply(HEM, &[])];
    let (runtime, session, ended) = evaluated(Output::of::<Tear>(), replies).await;
    assert_eq!(ended.answer().unwrap().output_as::<Tear>().unwrap(), Some(hem()));
    assert_eq!(tears(&session).await, [hem()], "the first answer leaves no trace");
    let view = runtime.view(session.id()).await.unwrap();
    let transcript = view.transcript().unwrap();
    let told = transcript.all().iter().rev().find(|message| message.role() == Role::User).unwrap();
    assert!(told.message.policy.is_reserved(), "the message is the runtime's");
    let text = told.content();
    for part in ["/place", "got 7", "lenght", "\"length\" is a required property"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_second_invalid_answer_fails_the_evaluation() {
    let replies = vec![reply("I found nothing.", &[]), reply("Really.", &[]), reply(HEM, &[])];
    let (runtime, session, ended) = evaluated(Output::of::<Tear>(), replies).await;
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "invalid_output"),
        "{ended:?}"
    );
    assert!(tears(&session).await.is_empty());
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(view.latest_evaluation().unwrap().outcome(), Some(EvaluationOutcome::Failed));
}

#[tokio::test]
async fn a_process_that_dies_between_two_answers_does_not_reset_the_limit_of_one_retry() {
    let first = evaluator(vec![reply("nothing", &[])]);
    let (runtime, session) = begin(&first).await;
    let prompt = asking(Output::of::<Tear>());
    // The script ends after the first answer, which stands for a process that ends there.
    first.evaluate(&prompt, &session, false).await.unwrap_err();
    session.release().await.unwrap();
    let second = evaluator(vec![reply("nothing", &[]), reply("still nothing", &[]), reply(HEM, &[])]);
    let session = second.open_session(&runtime, session.id(), SessionOptions::default()).await.unwrap();
    let ended = second.evaluate(&prompt, &session, true).await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "invalid_output"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn an_answer_that_a_reducer_refuses_fails_the_evaluation() {
    let policy =
        ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies: vec![reply(HEM, &[])] });
    let agent = Agent::new("").policy(Arc::new(policy)).set_up(|session| {
        session.register::<Tear, Tear>(|_, _, _| Err(BoxError::from("the cloth is whole")));
    });
    let evaluator = Evaluator::of(agent);
    let (_, session) = begin(&evaluator).await;
    let ended = evaluator.evaluate(&asking(Output::of::<Tear>()), &session, false).await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "output_refused"),
        "{ended:?}"
    );
    assert!(tears(&session).await.is_empty());
}

#[tokio::test]
async fn a_policy_receives_the_schema_of_an_object() {
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), |question| async move {
        let schema = question.output.map(|schema| Value::clone(&schema)).unwrap_or_default();
        Ok(PolicyAnswer {
            output: Some(json!([])),
            ..PolicyAnswer::text(schema["properties"]["items"]["type"].to_string())
        })
    });
    let evaluator = Evaluator::new(Arc::new(policy));
    let (_, session) = begin(&evaluator).await;
    let ended = evaluator.evaluate(&asking(Output::list_of::<Tear>()), &session, false).await.unwrap();
    let answered = ended.answer().unwrap();
    assert_eq!((answered.text.as_str(), answered.output), ("\"array\"", Some(json!([]))));
}

#[tokio::test]
async fn a_schema_without_a_type_and_an_agent_without_a_prompt_are_enough() {
    let schema = json!({"type": "integer", "minimum": 2});
    assert!(OutputContract::new(Output::schema_only(json!({"type": 7}))).is_err());
    let contract = || OutputContract::new(Output::schema_only(schema.clone())).unwrap();
    let agent = scripted(vec![reply("1", &[]), reply("2", &[])]).output(contract());
    let plain = scripted(Vec::new());
    assert_ne!(
        agent.fingerprint().unwrap(),
        plain.fingerprint().unwrap(),
        "the output is part of the contract"
    );
    let runtime = Runtime::new(Arc::new(backstitch_store::MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    assert_eq!(driver.start("count").await.unwrap().answer().unwrap().output, Some(json!(2)));
}

#[tokio::test]
async fn a_large_answer_is_read_whole_after_a_resume() {
    let long = json!({"place": "x".repeat(200_000), "length": 3}).to_string();
    let (runtime, session, ended) = evaluated(Output::of::<Tear>(), vec![reply(&long, &[])]).await;
    let output = ended.answer().unwrap().output;
    session.release().await.unwrap();
    let evaluator = evaluator(Vec::new());
    let session = evaluator.open_session(&runtime, session.id(), SessionOptions::default()).await.unwrap();
    let again = evaluator.evaluate(&asking(Output::of::<Tear>()), &session, true).await.unwrap();
    assert_eq!(again.answer().unwrap().output, output);
}

#[tokio::test]
async fn a_policy_that_repeats_its_calls_is_stopped() {
    let replies = (0..9).map(|_| reply("again", &[("keep", json!({"text": "a stitch"}))])).collect();
    let ran = Arc::new(AtomicUsize::new(0));
    let tools = Tools::new([keep(Effect::Workspace, ran.clone())]).unwrap();
    let agent = scripted(replies).tools(tools).max_turns(8).max_repeats(3);
    let runtime = Runtime::new(Arc::new(backstitch_store::MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    let ended = driver.start("sew").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Failed { failure, .. } if failure.kind == "loop_detected"),
        "{ended:?}"
    );
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    let view = runtime.view(driver.session().id()).await.unwrap();
    assert_eq!(view.pending_calls().count(), 0, "every call has its result");
}
