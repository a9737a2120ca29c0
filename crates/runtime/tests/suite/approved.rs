//! What a person approved is what runs: a call whose arguments or files have changed since is asked about again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::code::ErrorCode;
use backstitch_core::digest::Digest;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{CoveredDigests, Decision, Effect, PauseReason, RecordBody};
use backstitch_core::message::Arguments;
use backstitch_core::ports::BoxFuture;
use backstitch_core::tool::{
    CallInspection, Tool, ToolContext, ToolError, ToolHandler, ToolOutcome, ToolResult, WorkspaceUse,
};
use backstitch_runtime::{
    Agent, CallOutcome, CallRequest, DecideOptions, DriveOutcome, Runtime, SessionOptions, ToolRunner,
    WaitingCall,
};
use serde_json::{Map, Value, json};

use crate::approvals::{results, run_to_rest, runtime};
use crate::tailor::{killed_inside, reply, scripted};

/// A tool that needs approval and starts what a file says. It counts its runs.
struct LoomHandler {
    file: Arc<Mutex<String>>,
    ran: Arc<AtomicUsize>,
}

impl ToolHandler for LoomHandler {
    fn call(&self, context: ToolContext, arguments: Map<String, Value>) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            self.ran.fetch_add(1, Ordering::SeqCst);
            if arguments["text"] == "wait" && context.attempt() == 1 {
                context.cancelled().await;
            }
            Ok(ToolResult::ok(format!("{} with {}", self.file.lock().unwrap(), arguments["text"])))
        })
    }

    fn inspect<'a>(&'a self, _: CallInspection<'a>) -> BoxFuture<'a, Result<CoveredDigests, ToolError>> {
        let text = self.file.lock().unwrap().clone();
        assert_ne!(text, "tear", "the loom is torn");
        let digest = Digest::of(text.as_bytes());
        Box::pin(async move {
            if text == "lock" {
                return Err(ToolError::new("the loom is torn, or locked"));
            }
            Ok(CoveredDigests::from([("the file loom".to_owned(), digest)]))
        })
    }
}

/// What a tool starts, which a test replaces, and the count of its runs.
struct Loom {
    file: Arc<Mutex<String>>,
    ran: Arc<AtomicUsize>,
    agent: Agent,
}

impl Loom {
    /// An agent that calls the tool once with this text.
    fn new(text: &str) -> Self {
        Self::with_effect(text, Effect::Workspace)
    }

    fn with_effect(text: &str, effect: Effect) -> Self {
        let (file, ran) = (Arc::new(Mutex::new("weave".to_owned())), Arc::new(AtomicUsize::new(0)));
        let tool = Tool::builder("loom", "Weaves.").unwrap().effect(effect).needs_approval();
        let tool = tool.workspace(WorkspaceUse::None).parameters(json!({
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]
        }));
        let tool = tool.build(Arc::new(LoomHandler { file: file.clone(), ran: ran.clone() }));
        let replies = vec![reply("", &[("loom", json!({"text": text}))]), reply("done", &[])];
        Self { file, ran, agent: scripted(replies).tools([tool]) }
    }

    fn replace(&self, text: &str) {
        *self.file.lock().unwrap() = text.to_owned();
    }

    fn runs(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }
}

/// Returns the only call that waits.
async fn waiting_call(runtime: &Runtime, session: SessionId) -> WaitingCall {
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let [call] = &waiting[..] else { panic!("{waiting:?}") };
    call.clone()
}

async fn resume_session(runtime: &Runtime, session: SessionId, agent: &Agent) -> DriveOutcome {
    runtime.resume(session, agent).await.unwrap().outcome().await.unwrap()
}

#[tokio::test]
async fn what_changed_after_the_question_does_not_run_before_a_person_is_asked_again() {
    let (runtime, loom) = (runtime(), Loom::new("silk"));
    let (session, _) = run_to_rest(&runtime, &loom.agent).await;
    let first = waiting_call(&runtime, session).await;
    assert_eq!(first.detail, "loom needs approval");
    runtime.approve(session, first.call).await.unwrap();
    loom.replace("burn");
    let ended = resume_session(&runtime, session, &loom.agent).await;
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
    assert_eq!(loom.runs(), 0);
    let second = waiting_call(&runtime, session).await;
    assert_eq!(second.detail, "loom needs approval again, because this has changed since: the file loom");
    assert_ne!(second.subject, first.subject);

    // It changes once more, also back to what was approved first.
    for text in ["rip", "weave"] {
        runtime.approve(session, first.call).await.unwrap();
        loom.replace(text);
        resume_session(&runtime, session, &loom.agent).await;
        assert_eq!(loom.runs(), 0, "{text}");
    }
    runtime.approve(session, first.call).await.unwrap();
    assert_eq!(resume_session(&runtime, session, &loom.agent).await.answer().unwrap().text, "done");
    assert_eq!((loom.runs(), results(&runtime, session).await), (1, vec!["weave with \"silk\"".to_owned()]));

    // The question and the decision have the same digests.
    let records = runtime.records(session).await.unwrap();
    let subjects: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Paused(paused) => paused.subject.clone(),
            RecordBody::Resolved(resolved) => resolved.subject.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(subjects.len(), 8);
    assert!(subjects.chunks(2).all(|pair| pair[0] == pair[1]), "{subjects:?}");
}

#[tokio::test]
async fn a_call_that_was_interrupted_is_compared_with_its_approval_too() {
    for changes in [false, true] {
        let (runtime, loom) = (runtime(), Loom::new("wait"));
        let (session, _) = run_to_rest(&runtime, &loom.agent).await;
        runtime.approve(session, waiting_call(&runtime, session).await.call).await.unwrap();
        killed_inside(&runtime, &loom.agent, &loom.ran, Some(session)).await;
        if changes {
            loom.replace("burn");
            let ended = resume_session(&runtime, session, &loom.agent).await;
            assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
            assert_eq!(loom.runs(), 1);
            runtime.approve(session, waiting_call(&runtime, session).await.call).await.unwrap();
        }
        assert_eq!(resume_session(&runtime, session, &loom.agent).await.answer().unwrap().text, "done");
        assert_eq!(loom.runs(), 2);
    }
}

#[tokio::test]
async fn a_denial_after_an_interruption_says_that_it_may_have_happened() {
    let (runtime, loom) = (runtime(), Loom::with_effect("wait", Effect::Idempotent));
    let (session, _) = run_to_rest(&runtime, &loom.agent).await;
    runtime.approve(session, waiting_call(&runtime, session).await.call).await.unwrap();
    killed_inside(&runtime, &loom.agent, &loom.ran, Some(session)).await;
    loom.replace("burn");
    resume_session(&runtime, session, &loom.agent).await;
    runtime.deny(session, waiting_call(&runtime, session).await.call, "not this one").await.unwrap();
    assert_eq!(resume_session(&runtime, session, &loom.agent).await.answer().unwrap().text, "done");
    assert_eq!(loom.runs(), 1);
    let results = results(&runtime, session).await;
    let words = ["not this one", "may have had an effect"];
    assert!(words.iter().all(|words| results[0].contains(words)), "{results:?}");
}

#[tokio::test]
async fn a_question_that_comes_back_is_decided_again() {
    let (runtime, loom) = (runtime(), Loom::new("silk"));
    let mut later = vec!["weave", "burn"];
    let run = runtime.start(&loom.agent, "sew").await.unwrap();
    let decide = async |_: &WaitingCall| {
        if let Some(text) = later.pop() {
            loom.replace(text);
        }
        Some(Decision::Approve)
    };
    let ended = run.deciding(&loom.agent, decide).await.unwrap();
    assert_eq!(ended.answer().unwrap().text, "done");
    assert_eq!((loom.runs(), later.len()), (1, 0));
}

#[tokio::test]
async fn a_call_fails_if_it_is_not_known_what_it_starts() {
    for (asks, text) in [(false, "tear"), (true, "tear"), (false, "lock"), (true, "lock")] {
        let (runtime, loom) = (runtime(), Loom::new("silk"));
        if !asks {
            loom.replace(text);
        }
        let (session, mut ended) = run_to_rest(&runtime, &loom.agent).await;
        if asks {
            runtime.approve(session, waiting_call(&runtime, session).await.call).await.unwrap();
            loom.replace(text);
            ended = resume_session(&runtime, session, &loom.agent).await;
        }
        assert_eq!(ended.answer().unwrap().text, "done");
        let results = results(&runtime, session).await;
        assert!(results[0].contains("the loom is torn"), "{results:?}");
        assert_eq!(loom.runs(), 0);
    }
}

#[tokio::test]
async fn an_answer_to_an_earlier_question_decides_nothing() {
    let (runtime, loom) = (runtime(), Loom::new("silk"));
    let (session, _) = run_to_rest(&runtime, &loom.agent).await;
    let first = waiting_call(&runtime, session).await;
    runtime.approve(session, first.call).await.unwrap();
    loom.replace("burn");
    resume_session(&runtime, session, &loom.agent).await;

    // A person who still sees the first question answers it.
    let late = || DecideOptions { subject: first.subject.clone(), ..DecideOptions::default() };
    let edit = Decision::Edit { arguments: json!({"text": "wool"}).as_object().cloned().unwrap() };
    for decision in [Decision::Approve, edit] {
        let refused = runtime.decide_with(session, Some(first.call), decision, late()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::DecisionRefused);
        assert!(refused.to_string().contains("has changed since the question"), "{refused}");
    }
    // Denying is always possible.
    let deny = Decision::Deny { reason: None };
    runtime.decide_with(session, Some(first.call), deny, late()).await.unwrap();
    assert_eq!(resume_session(&runtime, session, &loom.agent).await.answer().unwrap().text, "done");
    assert_eq!(loom.runs(), 0);
}

#[tokio::test]
async fn edited_arguments_stay_when_a_person_is_asked_again() {
    let (runtime, loom) = (runtime(), Loom::new("silk"));
    let (session, _) = run_to_rest(&runtime, &loom.agent).await;
    let call = waiting_call(&runtime, session).await.call;
    let arguments = json!({"text": "wool"});
    let edit = Decision::Edit { arguments: arguments.as_object().cloned().unwrap() };
    runtime.decide(session, Some(call), edit, None).await.unwrap();
    loom.replace("burn");
    resume_session(&runtime, session, &loom.agent).await;
    assert_eq!(loom.runs(), 0);
    // What is shown is what would run, and then runs.
    assert_eq!(waiting_call(&runtime, session).await.arguments, arguments);
    runtime.approve(session, call).await.unwrap();
    resume_session(&runtime, session, &loom.agent).await.answer().unwrap();
    assert_eq!(results(&runtime, session).await, ["burn with \"wool\""]);
}

#[tokio::test]
async fn other_arguments_than_the_approved_ones_do_not_run() {
    let (runtime, loom) = (runtime(), Loom::new("silk"));
    let (session, _) = run_to_rest(&runtime, &loom.agent).await;
    let waiting = waiting_call(&runtime, session).await;
    runtime.approve(session, waiting.call).await.unwrap();
    // What a person approved is replaced in the journal, as a redaction does.
    let view = runtime.view(session).await.unwrap();
    let evaluation = view.call(waiting.call).unwrap().evaluation_id;
    let driver = runtime.open(session, loom.agent.clone(), SessionOptions::default()).await.unwrap();
    let runner = ToolRunner::new(driver.session().clone(), loom.agent.tools.clone());
    let arguments = Arguments::from(json!({"text": "wool"}).as_object().cloned().unwrap());
    let mut request = CallRequest::new(waiting.call, evaluation, "loom", arguments);
    (request.approved, request.subject) = (true, waiting.subject.map(Arc::new));
    assert!(matches!(runner.run(request).await.unwrap(), CallOutcome::NeedsApproval));
    assert_eq!(loom.runs(), 0);
    driver.session().release().await.unwrap();
    let again = waiting_call(&runtime, session).await;
    assert_eq!(again.detail, "loom needs approval again, because this has changed since: its arguments");
}
