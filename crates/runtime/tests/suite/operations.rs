//! Operations on sessions that open, claim and release them by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::approval::{ApprovalRule, ApprovalRules, ApprovalVerdict};
use backstitch_core::code::ErrorCode;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Decision, Effect, PauseReason, RecordBody};
use backstitch_core::ports::{ClaimMode, Filesystem as _, Owner, Store, WriteMode};
use backstitch_core::tool::{Tool, ToolResult, WorkspaceUse};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    Agent, DecideOptions, DecisionState, DriveOutcome, OperationFiles, PointSpec, RewindOptions, Runtime,
    SubAgent, WaitingCall,
};
use backstitch_store::{MemoryStore, SqliteStore};
use serde_json::json;

use crate::dropped::polled;
use crate::history::{Setting, before, call};
use crate::tailor::{keep, killed_inside, reply, scripted, until, with_approval};

fn path(name: &str) -> FilePath {
    FilePath::new(name).unwrap()
}

/// A finished session with files in memory, which no process holds.
async fn idle(setting: &Setting) -> SessionId {
    let driver = setting.finished(Effect::Workspace).await;
    driver.session().release().await.unwrap();
    driver.session().id()
}

async fn assert_free(runtime: &Runtime, session: SessionId) {
    assert_eq!(runtime.store().holder(session).await.unwrap(), None);
}

#[tokio::test]
async fn the_history_of_an_idle_session_changes_with_its_files() {
    let setting = Setting::new();
    let session = idle(&setting).await;
    let runtime = &setting.runtime;
    let files = || {
        RewindOptions::within(Arc::new(MemoryWorkspace::new(setting.files.clone(), setting.store.clone())))
    };
    let second = call(runtime, session, 1).await;
    let options = RewindOptions { reason: Some("too hot".into()), ..files() };
    let rewound = runtime.rewind_with(session, before(second), options).await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    let record = &runtime.records(session).await.unwrap()[usize::try_from(rewound.at.number()).unwrap()];
    let RecordBody::Rewound(recorded) = &record.body else { panic!("{record:?}") };
    assert_eq!(recorded.reason.as_deref(), Some("too hot"));
    assert_free(runtime, session).await;
    runtime.undo_with(session, files()).await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    runtime.redo_with(session, files()).await.unwrap();
    assert_eq!(setting.names(), ["one"]);
    runtime.undo_with(session, files()).await.unwrap();
    setting.files.write_bytes(&path("one"), b"by hand", WriteMode::Overwrite).unwrap();
    runtime.restore_with(session, before(second), [path("one"), path("three")], files()).await.unwrap();
    assert_eq!(setting.names(), ["one", "two"]);
    assert_eq!(setting.files.read_bytes(&path("one")).unwrap(), b"sewn");
    assert_free(runtime, session).await;
    // What cannot be done leaves the session free, too.
    let nowhere = runtime.rewind_with(session, PointSpec::Turn(99), files()).await.unwrap_err();
    assert_eq!(nowhere.code(), ErrorCode::PointNotFound);
    assert_free(runtime, session).await;
}

#[tokio::test]
async fn files_that_the_journal_does_not_locate_have_to_be_given_or_left_alone() {
    let setting = Setting::new();
    let session = idle(&setting).await;
    let runtime = &setting.runtime;
    let head = runtime.view(session).await.unwrap().head();
    let codes = [
        runtime.rewind(session, PointSpec::Start).await.unwrap_err().code(),
        runtime.undo(session).await.unwrap_err().code(),
        runtime.redo(session).await.unwrap_err().code(),
        runtime.restore(session, PointSpec::Start, [path("one")]).await.unwrap_err().code(),
        runtime.fork(session, PointSpec::Head).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::Workspace; 5]);
    assert_eq!(runtime.view(session).await.unwrap().head(), head, "nothing was recorded");
    let untouched = RewindOptions { files: OperationFiles::Untouched, ..RewindOptions::default() };
    runtime.rewind_with(session, PointSpec::Start, untouched).await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    assert_free(runtime, session).await;
}

#[tokio::test]
async fn a_session_that_another_process_holds_is_refused_and_decisions_wait_for_it() {
    let place = tempfile::tempdir().unwrap();
    let store = || Arc::new(SqliteStore::open(place.path().join("store.db")).unwrap());
    let (runtime, agent) = (Runtime::new(store()), asking(&Arc::default()));
    let run = runtime.start(&agent, "sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let other = store();
    let held = other.claim(session, Owner::new("another"), ClaimMode::IfFree).await.unwrap();
    let codes = [
        runtime.rewind(session, PointSpec::Start).await.unwrap_err().code(),
        runtime.undo(session).await.unwrap_err().code(),
        runtime.redo(session).await.unwrap_err().code(),
        runtime.restore(session, PointSpec::Start, []).await.unwrap_err().code(),
        runtime.remove_allowing_rules(session).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::SessionHeld; 5]);
    // A rule cannot be sent, so a decision with one is refused as a whole.
    let always = DecideOptions { rule: Some(allow("keep")), ..DecideOptions::default() };
    let refused = runtime.decide_with(session, Some(waiting[0].call), Decision::Approve, always).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::SessionHeld);
    assert_eq!(other.inbox(session).await.unwrap(), []);
    let decided = runtime.decide(session, Some(waiting[0].call), Decision::Approve, None).await.unwrap();
    assert!(matches!(decided, DecisionState::Sent(_)), "{decided:?}");
    assert_eq!(runtime.waiting_calls(session).await.unwrap(), waiting, "the other process decides");
    other.release(held).await.unwrap();
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
}

/// An agent whose call waits for approval.
fn asking(ran: &Arc<AtomicUsize>) -> Agent {
    let replies = vec![reply("", &[("keep", json!({"text": "x"}))]), reply("done", &[])];
    scripted(replies).tools([with_approval(keep(Effect::External, ran.clone()))])
}

fn allow(scope: &str) -> ApprovalRule {
    ApprovalRule::new(ApprovalVerdict::Allow, scope.parse().unwrap())
}

/// A session whose sub-agent waits for approval of its call, and its agent.
async fn waiting_below(runtime: &Runtime) -> (SessionId, Agent, WaitingCall) {
    let helper = SubAgent::new("helper", "Helps.", asking(&Arc::default())).unwrap();
    let replies = vec![reply("", &[("helper", json!({"mission": "help"}))]), reply("done", &[])];
    let agent = scripted(replies).tools([helper.into_tool()]);
    let run = runtime.start(&agent, "sew").await.unwrap();
    run.outcome().await.unwrap();
    let waiting = runtime.waiting_calls(run.session()).await.unwrap();
    assert_ne!(waiting[0].session, run.session());
    (run.session(), agent, waiting[0].clone())
}

#[tokio::test]
async fn a_decision_about_an_idle_session_is_recorded_at_once() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let ran = Arc::new(AtomicUsize::new(0));
    let agent = asking(&ran);
    let run = runtime.start(&agent, "sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let waiting = runtime.waiting_calls(session).await.unwrap()[0].call;
    // One that does not fit is refused, and leaves nothing.
    let refused = runtime.decide(session, Some(waiting), Decision::Retry, None).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::DecisionRefused);
    assert_eq!(runtime.store().inbox(session).await.unwrap(), []);
    let decided = runtime.decide(session, Some(waiting), Decision::Approve, Some("ada".into())).await;
    assert_eq!(decided.unwrap(), DecisionState::Recorded);
    assert_eq!(runtime.waiting_calls(session).await.unwrap(), []);
    assert_eq!(ran.load(Ordering::SeqCst), 0, "deciding runs nothing");
    assert_free(&runtime, session).await;
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
}

#[tokio::test]
async fn a_decision_about_a_sub_agent_depends_on_who_drives_the_outermost_session() {
    for is_held in [false, true] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let (session, agent, waiting) = waiting_below(&runtime).await;
        let store = runtime.store();
        let held = match is_held {
            true => Some(store.claim(session, Owner::new("another"), ClaimMode::IfFree).await.unwrap()),
            false => None,
        };
        let decided =
            runtime.decide(waiting.session, Some(waiting.call), Decision::Approve, None).await.unwrap();
        assert_eq!(decided != DecisionState::Recorded, is_held, "{decided:?}");
        if let Some(held) = held {
            store.release(held).await.unwrap();
        }
        for session in [session, waiting.session] {
            assert_free(&runtime, session).await;
        }
        let run = runtime.resume(session, &agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "done");
    }
}

#[tokio::test]
async fn a_rule_that_comes_with_a_decision_holds_for_the_outermost_session() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (session, agent, waiting) = waiting_below(&runtime).await;
    let always =
        DecideOptions { rule: Some(allow("keep")), by: Some("ada".into()), ..DecideOptions::default() };
    runtime.decide_with(waiting.session, Some(waiting.call), Decision::Approve, always).await.unwrap();
    assert_eq!(runtime.state(session).await.unwrap().all::<ApprovalRule>().unwrap().len(), 1);
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
}

/// The model reads the same about a denied call, whether the rule was there before it or came while it waited.
#[tokio::test]
async fn rules_deny_with_one_text() {
    let deny = || ApprovalRule::new(ApprovalVerdict::Deny, "keep".parse().unwrap());
    let mut texts = Vec::new();
    for comes_later in [false, true] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let mut agent = asking(&Arc::default());
        if !comes_later {
            agent = agent.approval_rules([deny()].into_iter().collect());
        }
        let run = runtime.start(&agent, "sew").await.unwrap();
        run.outcome().await.unwrap();
        let session = run.session();
        if comes_later {
            let waiting = runtime.waiting_calls(session).await.unwrap()[0].clone();
            let asks = ApprovalRule::new(ApprovalVerdict::Ask, "keep".parse().unwrap());
            for undecided in [ApprovalRules::default(), [asks].into_iter().collect()] {
                assert_eq!(runtime.decide_by_rule(session, &waiting, &undecided).await.unwrap(), None);
            }
            let rules = [deny()].into_iter().collect();
            let found = runtime.decide_by_rule(session, &waiting, &rules).await.unwrap().unwrap();
            assert_eq!(found.verdict, ApprovalVerdict::Deny);
            runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
        }
        let view = runtime.view(session).await.unwrap();
        let transcript = view.transcript().unwrap();
        let result = transcript.all().iter().find(|message| message.tool_call_id().is_some());
        texts.push(result.unwrap().content());
    }
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].contains("denied again if it is repeated"), "{texts:?}");
}

/// Rules of the sessions above decide about the calls of a sub-agent.
#[tokio::test]
async fn rules_of_a_session_decide_about_its_sub_agents() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let (session, agent, waiting) = waiting_below(&runtime).await;
    runtime.add_approval_rule(session, allow("keep")).await.unwrap();
    let found = runtime.decide_by_rule(session, &waiting, &ApprovalRules::default()).await.unwrap().unwrap();
    assert_eq!(found.verdict, ApprovalVerdict::Allow);
    assert_eq!(runtime.waiting_calls(waiting.session).await.unwrap(), []);
    let run = runtime.resume(session, &agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "done");
}

/// A tool that writes half of a file and is interrupted there.
fn pay(ran: &Arc<AtomicUsize>) -> Tool {
    let ran = ran.clone();
    Tool::builder("pay", "Pays.").unwrap().effect(Effect::External).handler(
        move |context, _: serde_json::Value| {
            let ran = ran.clone();
            async move {
                context.filesystem()?.write_bytes(&path("bill"), b"half", WriteMode::Overwrite)?;
                ran.fetch_add(1, Ordering::SeqCst);
                context.cancelled().await;
                Ok(ToolResult::ok("paid"))
            }
        },
    )
}

/// A decision that restores files is recorded if they are given, and otherwise left to the next run, which has them.
#[tokio::test]
async fn a_decision_about_files_is_made_where_the_files_are() {
    for is_given in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let files = Arc::new(MemoryFilesystem::new());
        let workspace = Arc::new(MemoryWorkspace::new(files.clone(), store.clone()));
        let (runtime, ran) = (Runtime::new(store), Arc::new(AtomicUsize::new(0)));
        let replies = vec![reply("", &[("pay", json!({}))]), reply("done", &[])];
        let agent = scripted(replies).tools([pay(&ran)]).workspace(workspace.clone());
        let session = killed_inside(&runtime, &agent, &ran, None).await;
        let ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call, .. } = ended else {
            panic!("{ended:?}")
        };
        assert!(files.read_bytes(&path("bill")).is_ok());
        let given = if is_given { OperationFiles::within(workspace) } else { OperationFiles::Recorded };
        let options = DecideOptions { files: given, ..DecideOptions::default() };
        let fail = Decision::Fail { reason: None };
        let decided = runtime.decide_with(session, call, fail, options).await.unwrap();
        assert_eq!(decided == DecisionState::Recorded, is_given, "{decided:?}");
        assert_eq!(files.read_bytes(&path("bill")).is_err(), is_given, "they are restored");
        let run = runtime.resume(session, &agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "done");
        assert!(files.read_bytes(&path("bill")).is_err());
    }
}

/// Whenever a caller is dropped, the session and its sub-agents can be decided about and driven.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_decision_is_made_or_not_and_holds_nothing() {
    for with_rule in [false, true] {
        for limit in 1.. {
            let runtime = Runtime::new(Arc::new(MemoryStore::new()));
            let (session, agent, waiting) = waiting_below(&runtime).await;
            let rule = with_rule.then(|| allow("keep"));
            let options = DecideOptions { rule, ..DecideOptions::default() };
            let deciding =
                runtime.decide_with(waiting.session, Some(waiting.call), Decision::Approve, options);
            let decided = polled(Box::pin(deciding), limit).await;
            let mut ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
            while matches!(ended, DriveOutcome::Paused { .. }) {
                assert!(decided.is_none(), "it was decided");
                // The dropped decision may be made at any moment, and this one is refused then.
                let _ = runtime.approve(waiting.session, waiting.call).await;
                ended = runtime.resume(session, &agent).await.unwrap().outcome().await.unwrap();
            }
            assert_eq!(ended.answer().unwrap().text, "done");
            if let Some(decided) = decided {
                assert_eq!(decided.unwrap(), DecisionState::Recorded);
                break;
            }
        }
    }
}

/// A tool that runs until it is let go.
fn hold(ran: &Arc<AtomicUsize>, go: &Arc<tokio::sync::Notify>) -> Tool {
    let (ran, go) = (ran.clone(), go.clone());
    let builder = Tool::builder("hold", "Holds.").unwrap().effect(Effect::Pure).workspace(WorkspaceUse::None);
    builder.handler(move |_, _: serde_json::Value| {
        let (ran, go) = (ran.clone(), go.clone());
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            go.notified().await;
            Ok(ToolResult::ok("held"))
        }
    })
}

/// A call may wait while others of its turn run.
#[tokio::test]
async fn a_decision_that_comes_during_a_run_is_not_lost() {
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let [held, kept] = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let go = Arc::new(tokio::sync::Notify::new());
    let calls = [("hold", json!({})), ("keep", json!({"text": "x"}))];
    let agent = scripted(vec![reply("", &calls), reply("done", &[])])
        .tools([hold(&held, &go), with_approval(keep(Effect::External, kept.clone()))]);
    let run = runtime.start(&agent, "sew").await.unwrap();
    until(&held, 1).await;
    let waiting = loop {
        if let Some(waiting) = runtime.waiting_calls(run.session()).await.unwrap().pop() {
            break waiting;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let decided = runtime.decide(waiting.session, Some(waiting.call), Decision::Approve, None).await.unwrap();
    assert!(matches!(decided, DecisionState::Sent(_)), "{decided:?}");
    go.notify_one();
    let mut ended = run.outcome().await.unwrap();
    if matches!(ended, DriveOutcome::Paused { .. }) {
        ended = runtime.resume(run.session(), &agent).await.unwrap().outcome().await.unwrap();
    }
    assert_eq!(ended.answer().unwrap().text, "done");
    assert_eq!(kept.load(Ordering::SeqCst), 1);
}
