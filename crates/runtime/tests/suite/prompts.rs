//! Evaluation of prompts: sections that are read and opened, evaluations that supersede others, and resumes.

use std::sync::Arc;

use backstitch_core::journal::{Effect, EvaluationOutcome, RecordBody, Role};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::PolicyAnswer;
use backstitch_core::prompt::{
    BoundPrompt, OPEN_SECTIONS, Output, Prompt, PromptBuilder, READ_SECTION, Section,
};
use backstitch_core::slices::{PromptExecuted, PromptRendered, Visibility, VisibilityOverrides};
use backstitch_core::tool::{Tool, ToolError, ToolResult, WorkspaceUse};
use backstitch_core::view::JournalView;
use backstitch_providers::{Script, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{
    Agent, DriveOutcome, Evaluator, Fidelity, FunctionPolicy, LiveSession, ResumeOptions, Runtime,
    RuntimeError, SessionOptions, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::{Value, json};

use crate::findings::Finding;
use crate::tailor::{self, reply, scripted, started, with_approval};

pub(crate) fn evaluator(replies: Vec<ScriptedReply>) -> Evaluator {
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    Evaluator::new(Arc::new(policy))
}

/// A tool that keeps a finding.
fn keep(name: &str) -> Tool {
    let builder = Tool::builder(name, "Keeps a finding.").unwrap();
    builder.effect(Effect::Workspace).workspace(WorkspaceUse::None).handler(|context, (): ()| async move {
        context.session(|draft| draft.append(Finding("found".into())).map(|_| ()))??;
        Ok(ToolResult::ok("kept"))
    })
}

/// Closed sections: one with a tool and a child section, and one to read.
fn sections() -> PromptBuilder {
    let iron = Section::new("iron", "Iron").body("It is hot.").summarised("An iron.").tool(keep("press"));
    let room =
        Section::new("room", "Room").body("There are machines.").summarised("A room.").tool(keep("sew"));
    let stitches = Section::new("stitches", "Stitches").body("A backstitch goes back.");
    Prompt::builder("tests", "workshop")
        .name("The workshop")
        .section(Section::new("task", "Task").body("Mend the $cloth."))
        .section(room.child(iron))
        .section(stitches.summarised("Which there are."))
}

fn bound(builder: PromptBuilder) -> BoundPrompt {
    builder.build().unwrap().bind(&json!({"cloth": "coat"})).unwrap().asking("begin")
}

pub(crate) fn workshop() -> BoundPrompt {
    bound(sections())
}

/// The workshop with a tear as its structured output.
pub(crate) fn workshop_finding() -> BoundPrompt {
    bound(sections().output(Output::of::<crate::structured::Tear>()))
}

pub(crate) fn open(keys: &[&str]) -> (&'static str, Value) {
    (OPEN_SECTIONS, json!({"section_keys": keys, "reason": "to work"}))
}

pub(crate) async fn begin(evaluator: &Evaluator) -> (Runtime, Arc<LiveSession>) {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let session = evaluator.create_session(&runtime, SessionOptions::default()).await.unwrap();
    (runtime, session)
}

pub(crate) fn outcomes(view: &JournalView) -> Vec<Option<EvaluationOutcome>> {
    view.evaluations().map(|evaluation| evaluation.outcome()).collect()
}

/// The messages of the latest evaluation with a role.
fn said(view: &JournalView, role: Role) -> Vec<String> {
    let latest = view.latest_evaluation().unwrap().evaluation_id;
    let messages = view.transcript().unwrap().inner_messages(latest);
    messages.iter().filter(|message| message.role() == role).map(|message| message.content()).collect()
}

#[tokio::test]
async fn a_prompt_is_rendered_logged_and_driven_to_its_answer() {
    let evaluator = evaluator(vec![reply("done", &[])]);
    let (runtime, session) = begin(&evaluator).await;
    let mut events = session.events();
    let prompt = workshop();
    let answered = evaluator.evaluate(&prompt, &session, false).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    let view = runtime.view(session.id()).await.unwrap();
    let system = said(&view, Role::System).remove(0);
    assert!(system.starts_with("## 1. Task\n\nMend the coat.\n\n## 2. Room\n\nA room."), "{system}");
    assert_eq!(said(&view, Role::User), ["begin"]);
    let evaluation = view.latest_evaluation().unwrap();
    assert_eq!((evaluation.prompt_ns.as_str(), evaluation.prompt_key.as_str()), ("tests", "workshop"));

    let state = session.state().await;
    let rendered = state.session.latest::<PromptRendered>().unwrap().unwrap();
    assert_eq!(rendered.prompt_name, "The workshop");
    assert_eq!(rendered.rendered, backstitch_core::digest::Digest::of(system.as_bytes()));
    assert_eq!(rendered.descriptor, Some(prompt.prompt().descriptor().unwrap()));
    assert_eq!(rendered.render_inputs, Some(json!({"cloth": "coat"})));
    assert_eq!(rendered.run.evaluation_id, evaluation.evaluation_id);
    let executed = state.session.latest::<PromptExecuted>().unwrap().unwrap();
    assert_eq!(executed.prompt_name, "The workshop");
    let (mut seen_rendered, mut seen_executed) = (Vec::new(), Vec::new());
    while let Some(event) = events.ready().await.unwrap() {
        if let Some(RecordBody::SliceChanged(change)) = event.record().map(|record| &record.body) {
            seen_rendered.extend(change.appended::<PromptRendered>());
            seen_executed.extend(change.appended::<PromptExecuted>());
        }
    }
    assert_eq!((seen_rendered, seen_executed), (vec![(*rendered).clone()], vec![(*executed).clone()]));
}

#[tokio::test]
async fn a_closed_section_is_read_without_ending_anything() {
    let read = |key: &str| (READ_SECTION, json!({"section_key": key}));
    let evaluator = evaluator(vec![
        reply("read", &[read("stitches"), read("room"), read("nowhere")]),
        reply("done", &[]),
    ]);
    let (runtime, session) = begin(&evaluator).await;
    evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(outcomes(&view), [Some(EvaluationOutcome::Completed)]);
    let results = said(&view, Role::Tool);
    assert!(results.iter().any(|text| text == "## 3. Stitches\n\nA backstitch goes back."), "{results:?}");
    assert!(
        results.iter().any(|text| text.contains("has tools") && text.contains(OPEN_SECTIONS)),
        "{results:?}"
    );
    assert!(results.iter().any(|text| text.contains("there is no section \"nowhere\"")), "{results:?}");
}

#[tokio::test]
async fn an_evaluation_that_supersedes_another_follows_what_that_one_followed() {
    let evaluator = evaluator(vec![
        reply("first", &[]),
        reply("I need the room", &[open(&["room", "task"])]),
        reply("second", &[]),
    ]);
    let (runtime, session) = begin(&evaluator).await;
    for _ in 0..2 {
        evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    }
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(
        outcomes(&view),
        [
            Some(EvaluationOutcome::Completed),
            Some(EvaluationOutcome::Superseded),
            Some(EvaluationOutcome::Completed)
        ]
    );
    let ids: Vec<_> = view.evaluations().map(|evaluation| evaluation.evaluation_id).collect();
    assert_eq!(view.followed(ids[1]), [ids[0]]);
    assert_eq!(view.followed(ids[2]), [ids[0]], "the superseded evaluation is not followed");
}

#[tokio::test]
async fn opened_sections_start_another_evaluation_with_their_tools() {
    let evaluator = evaluator(vec![
        reply("I need the room", &[open(&["room", "task"])]),
        reply("now", &[("sew", json!({}))]),
        reply("done", &[]),
    ]);
    let (runtime, session) = begin(&evaluator).await;
    evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(outcomes(&view), [Some(EvaluationOutcome::Superseded), Some(EvaluationOutcome::Completed)]);
    let evaluations: Vec<_> = view.evaluations().collect();
    let parent = evaluations[1].start.as_ref().unwrap().parent_evaluation;
    assert_eq!(parent, Some(evaluations[0].evaluation_id));
    assert!(said(&view, Role::System)[0].contains("There are machines."));
    assert_eq!(said(&view, Role::User), ["begin"], "the mission is repeated");
    let state = session.state().await;
    assert_eq!(state.session.all::<Finding>().unwrap().len(), 1, "its tool could be called");
    let overrides = state.session.all::<VisibilityOverrides>().unwrap();
    assert_eq!(overrides.len(), 1);
    let opened: Vec<_> = overrides.get(0).unwrap().iter().map(|(path, how)| (path.to_owned(), how)).collect();
    assert_eq!(opened, [("room".to_owned(), Visibility::Full)], "open sections are left out");

    // The sections are opened in the batch that ends the evaluation, so that no crash can separate the two.
    let records =
        session.store().read(session.id(), backstitch_core::journal::Position::START, 1_000).await.unwrap();
    let ends =
        records.iter().position(|record| matches!(&record.body, RecordBody::EvaluationFinished(_))).unwrap();
    assert!(
        matches!(&records[ends - 1].body, RecordBody::SliceChanged(change) if change.slice == "visibility_overrides")
    );
}

#[tokio::test]
async fn a_section_below_a_closed_one_opens_both() {
    let evaluator = evaluator(vec![
        reply("", &[open(&["room.iron"])]),
        reply("", &[("press", json!({}))]),
        reply("done", &[]),
    ]);
    let (runtime, session) = begin(&evaluator).await;
    evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(outcomes(&view), [Some(EvaluationOutcome::Superseded), Some(EvaluationOutcome::Completed)]);
    assert!(said(&view, Role::System)[0].contains("### 2.1. Iron\n\nIt is hot."));
}

#[tokio::test]
async fn sections_that_cannot_be_opened_are_errors_and_end_nothing() {
    let evaluator = evaluator(vec![
        reply("", &[open(&["task"]), open(&["nowhere"]), open(&[])]),
        reply("", &[("sew", json!({}))]),
        reply("done", &[]),
    ]);
    let (runtime, session) = begin(&evaluator).await;
    evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(outcomes(&view), [Some(EvaluationOutcome::Completed)]);
    let results = said(&view, Role::Tool).join("\n");
    for told in
        ["are open already", "there is no section \"nowhere\"", "at least one", "there is no tool \"sew\""]
    {
        assert!(results.contains(told), "{told}: {results}");
    }
}

/// A prompt with a tool that requires another section with each call, whether it exists or not.
fn greedy() -> BoundPrompt {
    let more =
        Tool::builder("more", "Wants more.").unwrap().effect(Effect::Pure).handler(|_, (): ()| async {
            Err(ToolError::VisibilityExpansionRequired {
                sections: vec!["more".into()],
                reason: "more".into(),
            })
        });
    let section = Section::new("task", "Task").body("Continue.").tool(more);
    Prompt::builder("tests", "greedy").section(section).build().unwrap().bind(&()).unwrap().asking("begin")
}

#[tokio::test]
async fn sections_are_opened_ten_times_and_not_more() {
    let evaluator = evaluator((0..30).map(|_| reply("", &[("more", json!({}))])).collect());
    let (runtime, session) = begin(&evaluator).await;
    let ended = evaluator.evaluate(&greedy(), &session, false).await.unwrap();
    let DriveOutcome::Failed { failure, .. } = &ended else { panic!("{ended:?}") };
    assert_eq!(failure.kind, "visibility_expansion_limit");
    let view = runtime.view(session.id()).await.unwrap();
    let mut expected = vec![Some(EvaluationOutcome::Superseded); 10];
    expected.push(Some(EvaluationOutcome::Failed));
    assert_eq!(outcomes(&view), expected);
    assert_eq!(evaluator.evaluate(&greedy(), &session, true).await.unwrap(), ended, "it stays failed");
}

#[tokio::test]
async fn a_process_that_died_after_an_evaluation_was_superseded_resumes_with_another() {
    let replies = vec![reply("", &[open(&["room"])]), reply("", &[("sew", json!({}))]), reply("done", &[])];
    let evaluator = evaluator(replies.clone());
    let (runtime, session) = begin(&evaluator).await;
    // Driven by hand, so that nothing happens after the end of the first evaluation.
    let prompt = workshop();
    let rendered = prompt.render(&session.state().await.session).unwrap();
    let policy = ScriptedPolicy::new(PolicyName::new("tailor").unwrap(), Script { replies });
    let agent = Agent::new("").policy(Arc::new(policy)).rendered_prompt(&prompt, rendered).unwrap();
    let driver = backstitch_runtime::Driver::new(session.clone(), agent);
    runtime.send(session.id(), "and hurry").await.unwrap();
    let ended = driver.start("begin").await.unwrap();
    assert!(
        matches!(&ended, DriveOutcome::Superseded { sections, .. } if *sections == ["room"]),
        "{ended:?}"
    );
    session.release().await.unwrap();

    let session = evaluator.open_session(&runtime, session.id(), SessionOptions::default()).await.unwrap();
    let answered = evaluator.evaluate(&prompt, &session, true).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(outcomes(&view), [Some(EvaluationOutcome::Superseded), Some(EvaluationOutcome::Completed)]);
    assert_eq!(said(&view, Role::User), ["begin", "and hurry"], "no message is lost");
    let first = view.evaluations().next().unwrap().evaluation_id;
    let again = ResumeOptions { evaluation: Some(first), ..ResumeOptions::default() };
    let again = evaluator.evaluate(&prompt, &session, again).await.unwrap().answer().unwrap();
    assert_eq!(again.text, "done", "the evaluation that superseded it is resumed");
}

/// A prompt whose tool records a finding, and is enabled only while there is none.
fn vanishing() -> BoundPrompt {
    let section = Section::new("search", "Search").body("Find something.").tool(keep("find"));
    let section = section.enabled_when(|session| Ok(session.latest::<Finding>()?.is_none()));
    let task = Section::new("task", "Task").body("Tell.");
    let prompt = Prompt::builder("tests", "vanishing").section(section).section(task).build().unwrap();
    prompt.bind(&()).unwrap().asking("begin")
}

#[tokio::test]
async fn a_resumed_evaluation_has_the_tools_that_it_was_started_with() {
    let short = evaluator(vec![reply("", &[("find", json!({}))])]);
    let (runtime, session) = begin(&short).await;
    // The script ends after the call, which stands for a process that ends there.
    let error = short.evaluate(&vanishing(), &session, false).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Policy(_)), "{error}");
    session.release().await.unwrap();

    let long = evaluator(vec![
        reply("", &[("find", json!({}))]),
        reply("once more", &[("find", json!({}))]),
        reply("done", &[]),
    ]);
    let session = long.open_session(&runtime, session.id(), SessionOptions::default()).await.unwrap();
    let strict = ResumeOptions { fidelity: Fidelity::Strict, ..ResumeOptions::default() };
    let answered = long.evaluate(&vanishing(), &session, strict).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    let findings = |session: &Arc<LiveSession>| {
        let session = session.clone();
        async move { session.state().await.session.all::<Finding>().unwrap().len() }
    };
    assert_eq!(findings(&session).await, 2);
    // A new evaluation is rendered for the session as it is.
    let last = evaluator(vec![reply("told", &[]); 5]);
    last.evaluate(&vanishing(), &session, false).await.unwrap().answer().unwrap();
    let view = runtime.view(session.id()).await.unwrap();
    assert_eq!(said(&view, Role::System), ["## 1. Task\n\nTell."]);
}

#[tokio::test]
async fn another_prompt_cannot_resume_and_one_without_a_mission_cannot_start() {
    let evaluator = evaluator(vec![]);
    let (_, session) = begin(&evaluator).await;
    let nothing = evaluator.evaluate(&workshop(), &session, true).await.unwrap_err();
    assert!(
        matches!(nothing, RuntimeError::ConversationNotFound { session: id } if id == session.id()),
        "{nothing}"
    );
    let silent = workshop().asking_parts(Vec::new());
    let nothing = evaluator.evaluate(&silent, &session, false).await.unwrap_err();
    assert!(matches!(nothing, RuntimeError::EmptyMission), "{nothing}");
    evaluator.evaluate(&workshop(), &session, false).await.unwrap_err();
    let mismatch = evaluator.evaluate(&vanishing(), &session, true).await.unwrap_err();
    assert!(matches!(mismatch, RuntimeError::PromptMismatch { .. }), "{mismatch}");
}

#[tokio::test]
async fn a_policy_is_offered_the_tools_of_open_sections_and_the_agents_own() {
    let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), |question| async move {
        let names: Vec<_> = question.options.iter().map(|tool| tool.name.to_string()).collect();
        Ok(PolicyAnswer::text(names.join(" ")))
    });
    let agent = Agent::new("").policy(Arc::new(policy)).tools(Tools::new([keep("always")]).unwrap());
    let evaluator = Evaluator::of(agent);
    let (_, session) = begin(&evaluator).await;
    let answered = evaluator.evaluate(&workshop(), &session, false).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "always open_sections read_section");
    let clash = Agent::new("")
        .policy(Arc::new(ScriptedPolicy::new(PolicyName::new("x").unwrap(), Script::default())));
    let clash = Evaluator::of(clash.tools(Tools::new([keep("more")]).unwrap()));
    let error = clash.evaluate(&greedy(), &session, false).await.unwrap_err();
    assert!(matches!(error, RuntimeError::DuplicateTool(_)), "{error}");
}

#[tokio::test]
async fn the_remaining_time_and_budget_carry_over() {
    use backstitch_core::budget::{Amounts, Limits};
    let mut first = reply("", &[open(&["room"])]);
    first.usage = Some(Amounts { input_tokens: 80, ..Amounts::ZERO });
    let mut second = reply("", &[("sew", json!({}))]);
    second.usage = Some(Amounts { input_tokens: 80, ..Amounts::ZERO });
    let policy = ScriptedPolicy::new(
        PolicyName::new("tailor").unwrap(),
        Script { replies: vec![first, second, reply("done", &[])] },
    );
    let limits = Limits { input_tokens: Some(100), ..Limits::default() };
    let agent = Agent::new("")
        .policy(Arc::new(policy))
        .budget(limits)
        .deadline(std::time::Duration::from_secs(3_600));
    let evaluator = Evaluator::of(agent);
    let (runtime, session) = begin(&evaluator).await;
    let ended = evaluator.evaluate(&workshop(), &session, false).await.unwrap();
    assert!(
        matches!(ended, DriveOutcome::Paused { reason: backstitch_core::journal::PauseReason::Budget, .. }),
        "both together have spent it: {ended:?}"
    );
    let view = runtime.view(session.id()).await.unwrap();
    let starts: Vec<_> = view.evaluations().map(|evaluation| evaluation.start.clone().unwrap()).collect();
    let left = Limits { input_tokens: Some(20), ..limits };
    assert_eq!(starts[1].budget, Some(left), "the remaining budget of the first evaluation");
    assert!(starts[1].deadline_millis.unwrap() <= starts[0].deadline_millis.unwrap());
}

#[tokio::test]
async fn an_open_call_whose_arguments_its_tool_no_longer_accepts_cannot_be_resumed() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let agent = |schema: Option<Value>| {
        let mut tool = with_approval(tailor::keep(Effect::Workspace, Arc::default()));
        if let Some(schema) = schema {
            Arc::make_mut(&mut tool.spec).parameters = schema;
        }
        let replies = vec![reply("may I", &[("keep", json!({"text": "x"}))]), reply("done", &[])];
        scripted(replies).tools(Tools::new([tool]).unwrap())
    };
    let driver = runtime.create(agent(None), SessionOptions::default()).await.unwrap();
    let DriveOutcome::Paused { call: Some(call), evaluation, .. } = driver.start("sew").await.unwrap() else {
        panic!("it waits")
    };
    let session = driver.session().id();
    let started = started(session, evaluation, call);
    driver.session().record(vec![started.into()]).await.unwrap();
    driver.session().release().await.unwrap();
    let other = json!({"type": "object", "properties": {"text": {"type": "integer"}}});
    let driver = runtime.open(session, agent(Some(other)), SessionOptions::default()).await.unwrap();
    let error = driver.resume(ResumeOptions::default()).await.unwrap_err();
    assert!(
        matches!(&error, RuntimeError::PromptMismatch { reason, .. } if reason.contains("/text")),
        "{error}"
    );
}
