//! A session with a memory store, an evaluation under way, and the real runner of tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch::execution::Resources;
use backstitch::extra::Extra;
use backstitch::id::{CallId, EvaluationId, IdStream, SessionId};
use backstitch::journal::{EvaluationStarted, InnerMessage, Origin, SessionCreated};
use backstitch::message::{Arguments, Content, Message, OptionCall, OptionResult, PolicyName, RoleHint};
use backstitch::ports::{Owner, Workspace};
use backstitch::rng::Seed;
use backstitch::store::MemoryStore;
use backstitch::time::FixedClock;
use backstitch::tool::Tool;
use backstitch::{CallEnd, CallRequest, LiveSession, Surroundings, ToolRunner, Tools};
use serde_json::Value;

pub(crate) struct Harness {
    pub(crate) live: Arc<LiveSession>,
    runner: ToolRunner,
    evaluation: EvaluationId,
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
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        let ids = IdStream::from_seed([1; 32], clock.clone());
        let session_id: SessionId = ids.next();
        let surroundings = Surroundings {
            store,
            clock: clock.clone(),
            owner: Owner::new("test"),
            resources: Resources::default(),
            workspace,
        };
        let created = SessionCreated {
            session_id,
            created_at: ids.clock().now(),
            origin: Origin::Root,
            seed: Seed::new(7),
            agent: Value::Null,
            state: Vec::new(),
            tags: BTreeMap::new(),
            extra: Extra::default(),
        };
        let live = LiveSession::create(surroundings, created, |_| {}).await.unwrap();
        let evaluation: EvaluationId = ids.next();
        let started = EvaluationStarted {
            evaluation_id: evaluation,
            prompt_ns: "tests".into(),
            prompt_key: "tools".into(),
            fingerprint: None,
            parent_evaluation: None,
            budget: None,
            deadline_millis: None,
            extra: Extra::default(),
        };
        live.record(vec![started.into()]).await.unwrap();
        let runner = ToolRunner::new(live.clone(), Tools::new(tools).unwrap());
        Self { live, runner, evaluation, ids }
    }

    /// Makes a call, as a model would.
    pub(crate) async fn run(&self, name: &str, arguments: Value) -> CallEnd {
        let call_id: CallId = self.ids.next();
        let arguments = Arguments::from_object(arguments.as_object().cloned().unwrap());
        let call = OptionCall::new(call_id, name, arguments.clone());
        let mut message = Message::new(PolicyName::new("planner").unwrap(), Content::OptionCall(call));
        message.role_hint_for_llm = Some(RoleHint::Assistant);
        self.live.say(self.evaluation, 1, vec![message]).await.unwrap();
        let call = CallRequest::new(call_id, self.evaluation, name, arguments).in_turn(1, Some(0));
        self.runner.run(call).await.unwrap()
    }

    /// Makes a call that succeeds, and gives what the model is told.
    pub(crate) async fn succeeds(&self, name: &str, arguments: Value) -> Value {
        match self.run(name, arguments).await {
            CallEnd::Succeeded(message) => told(&message).result.inline().cloned().unwrap(),
            other => panic!("{name} did not succeed: {other:?}"),
        }
    }

    /// Makes a call that fails, and gives the error's kind and text as the model is told.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> (String, String) {
        match self.run(name, arguments).await {
            CallEnd::Failed(message) => {
                let result = told(&message);
                (result.error_type.clone().unwrap(), result.error_message.clone().unwrap())
            }
            other => panic!("{name} did not fail: {other:?}"),
        }
    }
}

fn told(message: &InnerMessage) -> &OptionResult {
    match &message.message.content {
        Content::OptionResult(result) => result,
        other => panic!("no result: {other:?}"),
    }
}
