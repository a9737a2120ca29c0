//! A session with a memory store, an open evaluation, and the real tool runner. The tests of the facade
//! include this file too, so it contains only what both use.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, IdStream, SessionId};
use backstitch_core::journal::{EvaluationStarted, Origin, SessionCreated};
use backstitch_core::message::{Arguments, Content, Message, OptionCall, PolicyName, RoleHint};
use backstitch_core::ports::{Owner, Store, Workspace};
use backstitch_core::rng::Seed;
use backstitch_core::session::Session;
use backstitch_core::time::{Clock, FixedClock};
use backstitch_core::tool::Tool;
use backstitch_runtime::{CallOutcome, CallRequest, LiveSession, SessionEnvironment, ToolRunner, Tools};
use backstitch_store::MemoryStore;
use serde_json::Value;

/// A live session with an open evaluation, and the real tool runner.
pub(crate) struct Harness {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) runner: Arc<ToolRunner>,
    pub(crate) evaluation: EvaluationId,
    ids: IdStream,
}

impl Harness {
    pub(crate) async fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        Self::over(Arc::new(MemoryStore::new()), tools, None).await
    }

    pub(crate) async fn over(
        store: Arc<MemoryStore>,
        tools: impl IntoIterator<Item = Tool>,
        workspace: Option<Arc<dyn Workspace>>,
    ) -> Self {
        Self::with_resources(store, tools, workspace, Resources::default()).await
    }

    pub(crate) async fn with_resources(
        store: Arc<MemoryStore>,
        tools: impl IntoIterator<Item = Tool>,
        workspace: Option<Arc<dyn Workspace>>,
        resources: Resources,
    ) -> Self {
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        Self::with(store, clock, resources, tools, workspace, |_| {}).await
    }

    /// A harness with a clock, resources and reducers.
    pub(crate) async fn with(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        resources: Resources,
        tools: impl IntoIterator<Item = Tool>,
        workspace: Option<Arc<dyn Workspace>>,
        set_up: impl FnOnce(&mut Session),
    ) -> Self {
        // Processes are found by the id of their call, so tests in other processes have other ids.
        let mut seed = [1; 32];
        seed[..4].copy_from_slice(&std::process::id().to_le_bytes());
        let ids = IdStream::from_seed(seed, clock.clone());
        let session_id: SessionId = ids.next();
        let environment = SessionEnvironment {
            store,
            clock: clock.clone(),
            owner: Owner::new("test"),
            resources,
            workspace,
            snapshot_interval: 1,
        };
        let created = SessionCreated {
            session_id,
            created_at: ids.clock().now(),
            origin: Origin::Root,
            parent_head: None,
            directory: None,
            seed: Seed::new(7),
            agent: Value::Null,
            state: Vec::new(),
            adopted: None,
            tags: BTreeMap::new(),
            extra: Extra::default(),
        };
        let live = LiveSession::create(environment, created, set_up).await.unwrap();
        let evaluation: EvaluationId = ids.next();
        let started = EvaluationStarted::new(evaluation, "tests", "tools");
        live.record(vec![started.into()]).await.unwrap();
        let runner = ToolRunner::new(live.clone(), Tools::new(tools).unwrap());
        // A busy machine may need long to end a stopped call.
        let runner = runner.with_grace(std::time::Duration::from_secs(60));
        Self { live, runner: Arc::new(runner), evaluation, ids }
    }

    /// Records a call of the model, as the loop would, and returns the request to run it.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> CallRequest {
        let call_id: CallId = self.ids.next();
        let arguments = Arguments::from_object(arguments.as_object().cloned().unwrap());
        let call = OptionCall::new(call_id, name, arguments.clone());
        let mut message = Message::new(PolicyName::new("planner").unwrap(), Content::OptionCall(call));
        message.role_hint_for_llm = Some(RoleHint::Assistant);
        self.live.say(self.evaluation, 1, vec![message]).await.unwrap();
        CallRequest::new(call_id, self.evaluation, name, arguments).in_turn(1, Some(0))
    }

    /// Records a call of the model and runs it.
    pub(crate) async fn run(&self, name: &str, arguments: Value) -> CallOutcome {
        let call = self.call(name, arguments).await;
        self.runner.run(call).await.unwrap()
    }
}
