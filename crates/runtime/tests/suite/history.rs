//! Rewinds, undo, forks and decisions, with files, state and conversation together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Decision, Effect, PauseReason};
use backstitch_core::message::OptionResult;
use backstitch_core::ports::{Filesystem as _, Workspace, WriteMode};
use backstitch_core::tool::{Tool, ToolResult};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    Agent, DriveOutcome, Driver, PointSpec, Replay, ResumeOptions, Runtime, RuntimeError, SessionOptions,
    Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::findings::Finding;
use crate::index::is_current;
use crate::tailor::{reply, scripted};

/// A store, files in memory, and an agent that works on them.
pub(crate) struct Setting {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) runtime: Runtime,
    pub(crate) files: Arc<MemoryFilesystem>,
    pub(crate) ran: Arc<AtomicUsize>,
}

impl Setting {
    pub(crate) fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let runtime = Runtime::new(store.clone());
        Self { runtime, store, files: Arc::new(MemoryFilesystem::new()), ran: Arc::default() }
    }

    pub(crate) fn workspace(&self) -> Arc<dyn Workspace> {
        Arc::new(MemoryWorkspace::new(self.files.clone(), self.store.clone()))
    }

    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions::with_workspace(self.workspace())
    }

    /// An agent with three turns that each write a file and record a finding, then an answer.
    pub(crate) fn agent(&self, effect: Effect) -> Agent {
        let turn = |name: &str| reply(name, &[("sew", json!({"name": name}))]);
        let tools = Tools::new([sew(effect, self.ran.clone())]).unwrap();
        scripted(vec![turn("one"), turn("two"), turn("three"), reply("done", &[])]).tools(tools)
    }

    pub(crate) async fn finished(&self, effect: Effect) -> Driver {
        let driver = self.runtime.create(self.agent(effect), self.options()).await.unwrap();
        driver.start("sew").await.unwrap().answer().unwrap();
        driver
    }

    pub(crate) fn names(&self) -> Vec<String> {
        ["one", "two", "three"].into_iter().filter(|name| self.has(name)).map(str::to_owned).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.read_bytes(&FilePath::new(name).unwrap()).is_ok()
    }
}

pub(crate) fn sew(effect: Effect, ran: Arc<AtomicUsize>) -> Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Named {
        name: String,
    }
    let builder = Tool::builder("sew", "Sews something.").unwrap().effect(effect);
    builder.handler(move |context, named: Named| {
        let ran = ran.clone();
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            let path = FilePath::new(&named.name)?;
            context.filesystem()?.write_bytes(&path, b"sewn", WriteMode::Overwrite)?;
            context.session(|draft| draft.append(Finding(named.name.clone())).map(|_| ()))??;
            Ok(ToolResult::ok(format!("sewed {}", named.name)))
        }
    })
}

pub(crate) async fn findings(driver: &Driver) -> Vec<String> {
    let state = driver.session().state().await;
    state.session.all::<Finding>().unwrap().iter().map(|finding| finding.0.clone()).collect()
}

pub(crate) async fn call(runtime: &Runtime, session: SessionId, index: usize) -> CallId {
    runtime.view(session).await.unwrap().calls().nth(index).unwrap().call_id
}

pub(crate) fn before(call: CallId) -> PointSpec {
    PointSpec::Before(call.to_string())
}

#[tokio::test]
async fn a_rewind_restores_state_files_and_conversation_and_undo_reverts_it() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let session = driver.session().id();
    let second = call(&setting.runtime, session, 1).await;
    let said = setting.runtime.view(session).await.unwrap().transcript().unwrap().all().len();

    let done = driver.session().rewind(&before(second), Some("a wrong turn".into())).await.unwrap();
    assert!(done.rescue.is_some());
    assert_eq!(setting.names(), ["one"]);
    assert_eq!(findings(&driver).await, ["one"]);
    let view = setting.runtime.view(session).await.unwrap();
    assert!(view.transcript().unwrap().all().len() < said);
    assert_eq!(view.owed_files(), None);
    is_current(&setting.runtime).await;
    assert_eq!(view.pending_calls().map(|call| call.call_id).collect::<Vec<_>>(), [second]);

    driver.session().undo().await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"]);
    assert_eq!(findings(&driver).await, ["one", "two", "three"]);
    let view = setting.runtime.view(session).await.unwrap();
    assert_eq!(view.transcript().unwrap().all().len(), said);
    // The state in memory is the state that another process would read.
    let clock = driver.session().clock().clone();
    let state = driver.session().state().await;
    assert_eq!(state.view.content_digest(clock.clone()).unwrap(), view.content_digest(clock).unwrap());
}

#[tokio::test]
async fn rewound_calls_run_again_if_their_effect_permits() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let second = call(&setting.runtime, driver.session().id(), 1).await;
    driver.session().rewind(&before(second), None).await.unwrap();
    assert_eq!(setting.ran.load(Ordering::SeqCst), 3);
    let answered = driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(answered.text, "done");
    assert_eq!(setting.ran.load(Ordering::SeqCst), 5);
    assert_eq!(findings(&driver).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn an_external_effect_is_not_repeated_without_a_decision() {
    for (decision, times) in [("use", 3), ("retry", 4), ("fail", 3)] {
        let setting = Setting::new();
        let driver = setting.finished(Effect::External).await;
        let session = driver.session().id();
        let second = call(&setting.runtime, session, 1).await;
        driver.session().rewind(&before(second), None).await.unwrap();
        let ended = driver.resume(ResumeOptions::default()).await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call: Some(paused), .. } = &ended
        else {
            panic!("{ended:?}")
        };
        assert_eq!(*paused, second);
        let error = ended.answer().unwrap_err();
        assert!(
            matches!(error, RuntimeError::ToolIdempotencyError { call, .. } if call == second),
            "{error}"
        );
        assert_eq!(setting.ran.load(Ordering::SeqCst), 3, "{decision}");

        let offered = driver.session().offered_result(second).await.unwrap().unwrap();
        assert_eq!(offered.content(), "sewed two");
        let decided = match decision {
            "use" => {
                Decision::Happened { result: Box::new(offered.message.option_result().unwrap().clone()) }
            }
            "retry" => Decision::Retry,
            _ => Decision::Fail { reason: None },
        };
        driver.session().resolve(Some(second), decided, Some("ada".into())).await.unwrap();
        // The model makes the third call again, as another call with the same arguments.
        let ended = driver.resume(ResumeOptions::default()).await.unwrap();
        let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call: Some(third), .. } = ended else {
            panic!("{ended:?}")
        };
        let offered = driver.session().offered_result(third).await.unwrap().unwrap();
        assert_eq!(offered.content(), "sewed three");
        let result = Box::new(offered.message.option_result().unwrap().clone());
        driver.session().resolve(Some(third), Decision::Happened { result }, None).await.unwrap();
        driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
        assert_eq!(setting.ran.load(Ordering::SeqCst), times, "{decision}");
    }
}

#[tokio::test]
async fn decisions_that_do_not_fit_are_refused() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::External).await;
    let live = driver.session();
    let first = call(&setting.runtime, live.id(), 0).await;
    for decision in [Decision::Retry, Decision::Approve, Decision::Continue] {
        let refused = live.resolve(Some(first), decision, None).await.unwrap_err();
        assert!(matches!(refused, RuntimeError::Unresolvable(_)), "{refused}");
    }
    assert!(matches!(live.resolve(None, Decision::Continue, None).await, Err(RuntimeError::Unresolvable(_))));
    live.rewind(&before(first), None).await.unwrap();
    let other = OptionResult::new(first, "knit", json!("a scarf"));
    let refused = live.resolve(Some(first), Decision::Happened { result: Box::new(other) }, None).await;
    assert!(matches!(refused, Err(RuntimeError::Unresolvable(_))));
}

#[tokio::test]
async fn every_kind_of_point_is_found() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let live = driver.session();
    let second = call(&setting.runtime, live.id(), 1).await;
    for (point, expected) in [
        ("start".to_owned(), vec![]),
        (format!("after:{second}"), vec!["one", "two"]),
        ("turn:1".to_owned(), vec!["one"]),
        ("turn:3".to_owned(), vec!["one", "two", "three"]),
    ] {
        live.rewind(&point.parse().unwrap(), None).await.unwrap();
        assert_eq!(setting.names(), expected, "{point}");
        assert_eq!(findings(&driver).await, expected, "{point}");
        live.undo().await.unwrap();
        assert_eq!(setting.names(), ["one", "two", "three"], "{point}");
    }
    let rewound = live.rewind(&before(second), None).await.unwrap();
    live.rewind(&PointSpec::Rescue(rewound.at), None).await.unwrap();
    assert_eq!(setting.names(), ["one", "two", "three"], "the rescued files are restored");
    assert_eq!(findings(&driver).await, ["one"], "the conversation does not change");
    for point in ["99999", "0", "turn:9", "rescue:0", "before:ffffffff-ffff"] {
        let error = live.rewind(&point.parse().unwrap(), None).await.unwrap_err();
        assert!(matches!(error, RuntimeError::NoSuchPoint { .. }), "{point}: {error}");
    }
}

#[tokio::test]
async fn a_fork_is_independent_of_its_parent() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let session = driver.session().id();
    let second = call(&setting.runtime, session, 1).await;
    let records = setting.runtime.view(session).await.unwrap().head();

    let files = Arc::new(MemoryFilesystem::new());
    let own = || -> SessionOptions {
        SessionOptions::with_workspace(Arc::new(MemoryWorkspace::new(files.clone(), setting.store.clone())))
    };
    let fork = setting.runtime.fork_session(session, before(second), own()).await.unwrap();
    let id = fork.id();
    assert!(files.read_bytes(&FilePath::new("one").unwrap()).is_ok(), "the fork has files of its own");
    assert!(files.read_bytes(&FilePath::new("two").unwrap()).is_err());
    fork.release().await.unwrap();

    let forked = setting.runtime.open(id, setting.agent(Effect::Workspace), own()).await.unwrap();
    forked.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
    assert_eq!(findings(&forked).await, ["one", "two", "three"]);
    is_current(&setting.runtime).await;
    assert_eq!(setting.runtime.view(session).await.unwrap().head(), records, "the parent is untouched");
    let keys = |view: &backstitch_core::view::JournalView| -> Vec<String> {
        let intents = view.calls().filter_map(|call| call.intent.as_ref());
        intents.map(|intent| intent.record.idempotency_key.to_string()).collect()
    };
    let (mine, theirs) =
        (setting.runtime.view(id).await.unwrap(), setting.runtime.view(session).await.unwrap());
    assert_eq!(keys(&mine)[0], keys(&theirs)[0], "shared calls have the same keys");
    assert!(keys(&mine)[1..].iter().all(|key| !keys(&theirs).contains(key)), "new calls have new keys");

    // A point before the fork belongs to the parent.
    let first = theirs.calls().next().unwrap().call_id;
    let refused = forked.session().rewind(&before(first), None).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::NoSuchPoint { .. }), "{refused}");
    let whole = vec![FilePath::root()];
    let refused = forked.session().restore_files(&before(first), whole).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::NoSuchPoint { .. }), "{refused}");
    assert!(files.read_bytes(&FilePath::new("one").unwrap()).is_ok(), "nothing is restored");
}

#[tokio::test]
async fn a_fork_does_not_repeat_an_effect_of_its_parent_without_a_decision() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::External).await;
    let second = call(&setting.runtime, driver.session().id(), 1).await;
    let files = Arc::new(MemoryFilesystem::new());
    let own = SessionOptions::with_workspace(Arc::new(MemoryWorkspace::new(files, setting.store.clone())));
    let fork = setting.runtime.fork_session(driver.session().id(), before(second), own).await.unwrap();
    let state = fork.state().await;
    let pause = state.view.pause().unwrap();
    assert_eq!((pause.reason, pause.call_id), (PauseReason::EffectUnknown, Some(second)));
    assert!(pause.offer.is_some());
    is_current(&setting.runtime).await;
}

#[tokio::test]
async fn a_snapshot_or_a_conversation_is_enough_to_resume() {
    let setting = Setting::new();
    let agent = || {
        let turn = |name: &str| reply(name, &[("sew", json!({"name": name}))]);
        let tools = Tools::new([sew(Effect::Workspace, setting.ran.clone())]).unwrap();
        (vec![turn("one")], tools)
    };
    // Interrupted after the first call: the script has no more replies.
    let (replies, tools) = agent();
    let driver = setting.runtime.create(scripted(replies).tools(tools), setting.options()).await.unwrap();
    driver.start("sew").await.unwrap_err();
    let (snapshot, conversation) = {
        let state = driver.session().state().await;
        let transcript = state.view.transcript().unwrap();
        let evaluation = transcript.latest_evaluation_id().unwrap();
        let conversation = serde_json::to_string(&transcript.conversation(evaluation).unwrap()).unwrap();
        (state.session.snapshot().to_json().unwrap(), conversation)
    };
    // Another process, another store.
    let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
    let (mut replies, tools) = agent();
    replies.push(reply("done", &[]));
    let agent = scripted(replies).tools(tools);
    let snapshot = backstitch_core::session::Snapshot::from_json(&snapshot).unwrap();
    let adopted =
        elsewhere.adopt_snapshot(agent.clone(), &snapshot, SessionOptions::default()).await.unwrap();
    assert_eq!(findings(&adopted).await, ["one"]);
    assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");

    let conversation = serde_json::from_str(&conversation).unwrap();
    let adopted =
        elsewhere.adopt_conversation(agent, &conversation, SessionOptions::default()).await.unwrap();
    assert_eq!(adopted.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(setting.ran.load(Ordering::SeqCst), 1, "nothing runs twice");
    is_current(&elsewhere).await;
}

#[tokio::test]
async fn a_replay_shows_every_step_and_runs_nothing() {
    let setting = Setting::new();
    let driver = setting.finished(Effect::Workspace).await;
    let session = driver.session().id();
    let second = call(&setting.runtime, session, 1).await;
    driver.session().rewind(&before(second), None).await.unwrap();
    driver.session().undo().await.unwrap();
    let mut replay = Replay::of(&*setting.store, session).await.unwrap();
    let mut lengths = Vec::new();
    while let Some((record, view)) = replay.step().unwrap() {
        assert_eq!(view.head(), record.position.next());
        lengths.push(view.transcript().unwrap().all().len());
    }
    assert_eq!(lengths.len() as u64, setting.runtime.view(session).await.unwrap().head().number());
    assert!(lengths.windows(2).any(|pair| pair[1] < pair[0]), "the rewind is visible");
    assert_eq!(setting.ran.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let setting = Setting::new();
    let unknown = SessionId::from_uuid(uuid::Uuid::from_u128(7));
    let error = setting.runtime.view(unknown).await.unwrap_err();
    assert!(matches!(error, RuntimeError::SessionNotFound { session } if session == unknown));
    let error =
        setting.runtime.open(unknown, setting.agent(Effect::Pure), setting.options()).await.err().unwrap();
    assert!(matches!(error, RuntimeError::SessionNotFound { .. }));
    let driver = setting.runtime.create(setting.agent(Effect::Pure), setting.options()).await.unwrap();
    // A session without messages has its own error, unlike a missing session or any other refused operation.
    let error = driver.resume(ResumeOptions::default()).await.unwrap_err();
    let id = driver.session().id();
    assert!(matches!(error, RuntimeError::ConversationNotFound { session } if session == id), "{error}");
    assert!(
        matches!(driver.session().undo().await, Err(RuntimeError::NothingToUndo { session }) if session == id)
    );
    assert!(matches!(setting.runtime.cancel(id).await, Err(RuntimeError::NothingToCancel { .. })));
    assert!(matches!(setting.runtime.pause(id).await, Err(RuntimeError::NothingToPause { .. })));
    let there = driver.session().rewind(&backstitch_runtime::PointSpec::Head, None).await;
    assert!(matches!(there, Err(RuntimeError::NothingToRewind { session }) if session == id));
}
