//! A live session has one state: the fold of its journal. After any sequence of commits its state in memory
//! is the state that another process reads from the store, and its slices exist once.

use std::sync::Arc;

use backstitch_core::execution::Resources;
use backstitch_core::id::CallId;
use backstitch_core::journal::{Effect, InnerMessage};
use backstitch_core::message::{Content, Message, Part, PolicyName, RoleHint};
use backstitch_core::ports::{ClaimMode, Owner};
use backstitch_core::rng::{Rng, Seed};
use backstitch_core::session::{CaptureOptions, Session, Slice, SliceOp, SlicePolicy, upsert_by};
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_runtime::{
    CallOutcome, LiveSession, PointSpec, SessionEnvironment, ToolRunner, Tools, load_view,
};
use backstitch_store::MemoryStore;
use backstitch_testkit::fold::assert_same;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commits::MovingClock;
use crate::findings::{Diagnosis, Finding};
use crate::harness::Harness;

/// An item of a slice with its own reducer. `scratch` is not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sketch {
    name: String,
    lines: u64,
    #[serde(skip)]
    scratch: u64,
}

impl Slice for Sketch {
    const NAME: &'static str = "sketch";
}

/// An item of a `Cache` slice, which is computed and not journaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Count(usize);

impl Slice for Count {
    const NAME: &'static str = "count";
    const POLICY: SlicePolicy = SlicePolicy::Cache;
}

fn set_up(session: &mut Session) {
    session.register::<Sketch, Sketch>(upsert_by(|sketch: &Sketch| sketch.name.clone()));
    // A reducer of another slice's event, which the fold does not know.
    session.register::<Diagnosis, Finding>(|_, finding, _| {
        Ok(SliceOp::append(Diagnosis(format!("found {}", finding.0))))
    });
    session.register::<Finding, Finding>(|_, finding, _| Ok(SliceOp::Append(finding.clone())));
    session.register_cache::<Count>(|session| Ok(vec![Count(session.all::<Finding>()?.len())]));
}

/// The arguments of a call that changes the state.
#[derive(Deserialize, JsonSchema)]
struct Change {
    kind: String,
    number: u64,
}

fn change(context: &ToolContext, change: &Change) -> Result<(), ToolError> {
    let text = format!("{}", change.number);
    context.session(|draft| {
        match change.kind.as_str() {
            "append" => draft.append(Finding(text))?,
            "log" => draft.append(Diagnosis(text))?,
            "sketch" => {
                let (name, lines) = (format!("{}", change.number % 3), change.number);
                draft.append(Sketch { name, lines, scratch: 7 })?
            }
            "seed" => draft.seed([Finding(text.clone()), Finding(text)])?,
            "clear" => draft.clear_where::<Finding>(|finding| finding.0.len() % 2 == 0)?,
            "cache" => draft.append(Count(usize::MAX))?,
            _ => draft,
        };
        Ok(())
    })?
}

/// Tools that change the state: one that succeeds, one that fails, and a pure one, whose records are
/// buffered.
fn tools() -> Vec<Tool> {
    let builder = |name: &str, effect| {
        Tool::builder(name, "Changes the state.").unwrap().effect(effect).workspace(WorkspaceUse::None)
    };
    let succeeding = |name: &str, effect| {
        builder(name, effect).handler(|context: ToolContext, given: Change| async move {
            change(&context, &given)?;
            Ok(ToolResult::ok("x".repeat(if given.number.is_multiple_of(5) { 70_000 } else { 10 })))
        })
    };
    let failing =
        builder("fail", Effect::Workspace).handler(|context: ToolContext, given: Change| async move {
            change(&context, &given)?;
            Err::<ToolResult, _>(ToolError::new("not today"))
        });
    vec![succeeding("change", Effect::Workspace), succeeding("look", Effect::Pure), failing]
}

struct Walk {
    harness: Harness,
    rng: Rng,
    calls: Vec<CallId>,
}

impl Walk {
    async fn new(seed: u64) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(MovingClock::default()));
        let harness = Harness::with(store, clock, Resources::default(), tools(), None, set_up).await;
        Self { harness, rng: Seed::new(seed).rng(), calls: Vec::new() }
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.rng.below(of.len() as u64)).unwrap()]
    }

    async fn step(&mut self) -> &'static str {
        match self.rng.below(9) {
            0 => {
                let text = "y".repeat(self.pick(&[5, 70_000]));
                let mut message = Message::new(
                    PolicyName::new("person").unwrap(),
                    Content::Parts(vec![Part::text(text)].into()),
                );
                message.role_hint_for_llm = Some(RoleHint::User);
                self.harness.live.say(self.harness.evaluation, 1, vec![message]).await.unwrap();
                "something is said"
            }
            1 => {
                let note = backstitch_core::journal::Note::new("test".to_owned(), "a note".to_owned());
                self.harness.live.record(vec![note.into()]).await.unwrap();
                "a record that changes no slice"
            }
            2 => {
                // Concurrently, so that a draft is committed over another state than it started from.
                let (one, other) = (self.request().await, self.request().await);
                self.calls.extend([one.call_id, other.call_id]);
                self.harness.run_all(vec![one, other]).await;
                "two concurrent calls"
            }
            3 if !self.calls.is_empty() => {
                let calls = std::mem::take(&mut self.calls);
                let at = usize::try_from(self.rng.below(calls.len() as u64)).unwrap();
                let point = PointSpec::After(calls[at].to_string());
                if self.harness.live.rewind(&point, None).await.is_ok() {
                    self.calls = calls[..=at].to_vec();
                }
                "a rewind"
            }
            4 => {
                self.reopen().await;
                "the session is opened again"
            }
            _ => {
                let call = self.request().await;
                self.calls.push(call.call_id);
                let end = self.harness.runner.run(call).await.unwrap();
                assert!(matches!(end, CallOutcome::Succeeded(_) | CallOutcome::Failed(_)), "{end:?}");
                "a call"
            }
        }
    }

    async fn request(&mut self) -> backstitch_runtime::CallRequest {
        let tool = self.pick(&["change", "change", "look", "fail"]);
        let kind = self.pick(&["append", "log", "sketch", "seed", "clear", "cache", "nothing"]);
        let number = self.rng.below(20);
        self.harness.call(tool, json!({"kind": kind, "number": number})).await
    }

    async fn reopen(&mut self) {
        let live = self.harness.live.clone();
        live.release().await.unwrap();
        let environment = SessionEnvironment {
            store: live.store().clone(),
            clock: live.clock().clone(),
            owner: Owner::new("test"),
            resources: Resources::default(),
            workspace: None,
            snapshot_interval: 1,
        };
        let live = LiveSession::open(environment, live.id(), ClaimMode::IfFree, set_up).await.unwrap();
        self.harness.runner = Arc::new(ToolRunner::new(live.clone(), Tools::new(tools()).unwrap()));
        self.harness.live = live;
    }
}

/// Asserts that the state of a session is that of its journal, and exists once.
async fn assert_one_state(live: &LiveSession, what: &str) {
    live.flush().await.unwrap();
    let stored = load_view(&**live.store(), live.id(), None).await.unwrap();
    let state = live.state().await;
    assert_same(&state.view, &stored, what);

    let session = &state.session;
    let mut folded = stored.session(live.clock().clone());
    set_up(&mut folded);
    let journaled = CaptureOptions::policies([SlicePolicy::State, SlicePolicy::Log, SlicePolicy::Journal]);
    let digest = |session: &Session| session.snapshot_with(journaled.clone()).content_digest().unwrap();
    assert_eq!(digest(session), digest(&folded), "{what}: the slices");
    // Digests cover only what is stored. Fields that are not stored must be equal too.
    assert_eq!(session.all::<Sketch>().unwrap(), folded.all::<Sketch>().unwrap(), "{what}: the sketches");

    let of_view = state.view.session(live.clock().clone());
    shares::<InnerMessage>(session, &of_view, what);
    shares::<Finding>(session, &of_view, what);
    shares::<Diagnosis>(session, &of_view, what);
    shares::<Sketch>(session, &of_view, what);
}

/// Asserts that two sessions share the items of a slice.
fn shares<S: Slice>(one: &Session, other: &Session, what: &str) {
    let (one, other) = (one.all::<S>().unwrap(), other.all::<S>().unwrap());
    assert_eq!(one.len(), other.len(), "{what}: {}", S::NAME);
    let are_shared = one.iter().zip(other.iter()).all(|(one, other)| Arc::ptr_eq(one, other));
    assert!(are_shared, "{what}: {} exists twice", S::NAME);
}

#[tokio::test]
async fn after_every_commit_a_session_is_the_fold_of_its_journal() {
    for seed in 0..12 {
        let mut walk = Walk::new(seed).await;
        for number in 0..40 {
            let step = walk.step().await;
            assert_one_state(&walk.harness.live, &format!("seed {seed}, step {number}, {step}")).await;
        }
    }
}

#[tokio::test]
async fn a_commit_drops_fields_of_an_item_that_are_not_stored() {
    let harness = Walk::new(0).await.harness;
    harness.run("change", json!({"kind": "sketch", "number": 4})).await;
    let state = harness.live.state().await;
    let sketch = state.session.latest::<Sketch>().unwrap().unwrap();
    assert_eq!(*sketch, Sketch { name: "1".into(), lines: 4, scratch: 0 });
}

#[tokio::test]
async fn caches_and_policies_of_a_session_stay_beside_its_journal() {
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(MovingClock::default()));
    let set_up = |session: &mut Session| {
        set_up(session);
        session.set_policy::<Finding>(SlicePolicy::Log);
    };
    let harness = Harness::with(store, clock, Resources::default(), tools(), None, set_up).await;
    harness.run("change", json!({"kind": "append", "number": 1})).await;
    harness.run("change", json!({"kind": "cache", "number": 1})).await;
    harness.run("change", json!({"kind": "log", "number": 1})).await;
    let state = harness.live.state().await;
    let session = &state.session;
    // The value computed at the first change, and the added item.
    assert_eq!(
        session.all::<Count>().unwrap().iter().map(|count| count.0).collect::<Vec<_>>(),
        [1, usize::MAX]
    );
    assert!(session.slice_names().any(|named| named == ("finding", SlicePolicy::Log)));
    assert!(state.view.session(harness.live.clock().clone()).all::<Count>().unwrap().is_empty());
}
