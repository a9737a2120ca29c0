//! The conformance suite of tool callers, for two callers, each over files in memory and over a real
//! directory; and the comparison of these with a caller outside.
//!
//! All callers of tools (direct calls, loops, programs, other processes) use one entry point, so a call has the
//! same meaning for all of them.

mod conformance;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use backstitch_core::execution::{CompositeSnapshot, SnapshotMetadata};
use backstitch_core::id::CallId;
use backstitch_core::journal::{Effect, EvaluationFinished, EvaluationOutcome};
use backstitch_core::message::{OptionResult, PolicyName};
use backstitch_core::ports::{Filesystem, Workspace};
use backstitch_core::session::{BoxError, CaptureOptions, Session, SlicePolicy};
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{Tool, ToolContext, ToolResult, WorkspaceUse};
use backstitch_core::view::CallStatus;
use backstitch_filesystem::{FileOperations as _, FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    Agent, CallOutcome, CallRequest, Driver, FunctionPolicy, OutsideCall, OutsideCalls, RuntimeError,
    ToolRunner, Tools, load_view,
};
use backstitch_store::MemoryStore;
use backstitch_testkit::sample::Task;
use backstitch_testkit::tool::{Act, CallSpec, Counter, Outcome, Script, set_up, tools};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::disk::Disk;
use crate::harness::Harness;

/// Where the files are.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Memory,
    Directory,
}

/// How tools are called.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// By the runner, on one thread.
    Direct,
    /// By a service that reads turns from a queue and starts calls as they arrive, on several threads.
    Batch,
    /// By a program outside, which waits for each result, such as a client of a protocol.
    Outside,
}

/// A call and its conclusion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallReport {
    pub(crate) call_id: CallId,
    pub(crate) ending: CallConclusion,
}

/// How a call ended, in the terms that all callers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallConclusion {
    /// Its changes are committed.
    Succeeded,
    /// Its changes are rolled back, and the model sees an error.
    Failed,
    /// Sections have to be opened first. The call counts as never made.
    VisibilityExpansion,
}

/// Part of the error that a caller outside gets for a tool whose section is not open: it has no sections.
const NOT_AVAILABLE: &str = "is not available";

type Turn = (Vec<CallRequest>, oneshot::Sender<Vec<(CallId, CallOutcome)>>);

pub(crate) struct Caller {
    pub(crate) harness: Harness,
    pub(crate) workspace: Arc<dyn Workspace>,
    way: Way,
    queue: mpsc::UnboundedSender<Turn>,
    runtime: Runtime,
    outside: Option<Arc<OutsideCalls>>,
    _disk: Option<Disk>,
}

pub(crate) fn open(place: Place, way: Way, tools: Vec<Tool>) -> Caller {
    let runtime = match way {
        Way::Direct => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        Way::Batch | Way::Outside => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()
        }
    };
    let (store, workspace, disk): (_, Arc<dyn Workspace>, _) = match place {
        Place::Memory => {
            let store = Arc::new(MemoryStore::new());
            let files = Arc::new(MemoryFilesystem::new());
            (store.clone(), Arc::new(MemoryWorkspace::new(files, store)), None)
        }
        Place::Directory => {
            let disk = Disk::new();
            (disk.store.clone(), disk.workspace.clone(), Some(disk))
        }
    };
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let files = Some(workspace.clone());
    let resources = Counter::default().resources();
    let offered = tools.clone();
    let harness = runtime.block_on(Harness::with(store, clock, resources, tools, files, set_up));
    let outside = match way {
        Way::Outside => Some(runtime.block_on(outside(&harness, offered))),
        _ => None,
    };
    let (queue, turns) = mpsc::unbounded_channel();
    if let Way::Batch = way {
        runtime.spawn(serve(harness.runner.clone(), turns));
    }
    Caller { harness, workspace, way, queue, runtime, outside, _disk: disk }
}

/// Lets a program outside call these tools on the session.
async fn outside(harness: &Harness, tools: Vec<Tool>) -> Arc<OutsideCalls> {
    let ended = EvaluationFinished::new(harness.evaluation, EvaluationOutcome::Completed);
    harness.live.record(vec![ended.into()]).await.unwrap();
    let policy =
        FunctionPolicy::new(PolicyName::new("outside").unwrap(), |_| async { Err("no model".into()) });
    let agent = Agent::new("tests/tools").policy(policy).tools(Tools::new(tools).unwrap());
    OutsideCalls::open(Driver::new(harness.live.clone(), agent)).await.unwrap()
}

async fn serve(runner: Arc<ToolRunner>, mut turns: mpsc::UnboundedReceiver<Turn>) {
    while let Some((calls, answer)) = turns.recv().await {
        let runner = &runner;
        let running =
            calls.into_iter().map(|call| async move { (call.call_id, runner.run(call).await.unwrap()) });
        let ends = running.collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
        let _ = answer.send(ends);
    }
}

/// The output of a future that is ready within `polls` polls.
pub(crate) async fn polled<F: Future>(mut future: Pin<&mut F>, polls: usize) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl Caller {
    /// Runs a future on the async runtime of the calls.
    pub(crate) fn block_on<R>(&self, work: impl Future<Output = R>) -> R {
        self.runtime.block_on(work)
    }

    async fn run(&self, calls: Vec<CallRequest>) -> Result<Vec<CallOutcome>, RuntimeError> {
        match self.way {
            Way::Direct | Way::Outside => self.harness.runner.run_all(calls).await.into_iter().collect(),
            Way::Batch => {
                let asked: Vec<_> = calls.iter().map(|call| call.call_id).collect();
                let (answer, ends) = oneshot::channel();
                self.queue.send((calls, answer)).unwrap();
                let mut ends = ends.await.unwrap();
                ends.sort_by_key(|(id, _)| asked.iter().position(|asked| asked == id));
                Ok(ends.into_iter().map(|(_, end)| end).collect())
            }
        }
    }
}

async fn call_outside(outside: &Arc<OutsideCalls>, asked: CallSpec) -> CallReport {
    let call = OutsideCall {
        call_id: outside.identify(None).await,
        id: None,
        name: asked.name,
        arguments: asked.arguments.as_object().cloned().unwrap(),
        cancel: CancellationToken::new(),
        approver: None,
    };
    let done = outside.call(call).await.unwrap();
    let result = done.message.message.option_result().unwrap();
    let ending = match (result.is_error, is_expansion(result)) {
        (_, true) => CallConclusion::VisibilityExpansion,
        (true, false) => CallConclusion::Failed,
        (false, false) => CallConclusion::Succeeded,
    };
    CallReport { call_id: done.call, ending }
}

fn is_expansion(result: &OptionResult) -> bool {
    result.error_message.as_ref().is_some_and(|message| message.contains(NOT_AVAILABLE))
}

impl Caller {
    /// Makes the calls of one turn, and returns their conclusions, in the order of the calls.
    pub(crate) fn turn(&self, calls: Vec<CallSpec>) -> Vec<CallReport> {
        if let Some(outside) = &self.outside {
            return self.runtime.block_on(async {
                let mut reports = Vec::new();
                for asked in calls {
                    reports.push(call_outside(outside, asked).await);
                }
                reports
            });
        }
        self.runtime.block_on(async {
            let mut requests = Vec::new();
            for asked in calls {
                requests.push(self.harness.call(&asked.name, asked.arguments).await);
            }
            let ids: Vec<_> = requests.iter().map(|request| request.call_id).collect();
            let ends = self.run(requests).await.unwrap();
            let ends = ids.into_iter().zip(ends).map(|(call_id, end)| {
                let ending = match end {
                    CallOutcome::Succeeded(_) => CallConclusion::Succeeded,
                    CallOutcome::Failed(_) => CallConclusion::Failed,
                    CallOutcome::VisibilityExpansion { .. } => CallConclusion::VisibilityExpansion,
                    other => panic!("{other:?}"),
                };
                CallReport { call_id, ending }
            });
            ends.collect()
        })
    }

    /// The current state: `State` slices and all resources, including the files. The transcript is not part of it.
    pub(crate) fn state(&self) -> CompositeSnapshot {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            let mut snapshot = state.snapshot(SnapshotMetadata::default()).unwrap();
            let capture = CaptureOptions::policies([SlicePolicy::State]);
            snapshot.session = state.session.snapshot_with(capture);
            snapshot
        })
    }

    /// The results in the transcript, in the order in which they were recorded.
    pub(crate) fn results(&self) -> Vec<OptionResult> {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            let transcript = state.view.transcript().unwrap();
            let all = transcript.all();
            let results = all.iter().filter_map(|message| message.message.option_result().cloned());
            results.filter(|result| !is_expansion(result)).collect()
        })
    }

    /// The status of a call, and whether it is open: started and without an outcome.
    pub(crate) fn status(&self, call: CallId) -> (CallStatus, bool) {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            let call = state.view.call(call).unwrap();
            (call.status(), call.is_open())
        })
    }

    /// Passes the session to a function.
    pub(crate) fn inspect(&self, inspect: &mut dyn FnMut(&Session)) {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            inspect(&state.session);
            // The state in memory is the state of the journal.
            let clock = self.harness.live.clock().clone();
            let session = state.view.session(clock);
            let digest = |session: &Session| {
                session
                    .snapshot_with(CaptureOptions::policies([SlicePolicy::State, SlicePolicy::Log]))
                    .content_digest()
            };
            assert_eq!(digest(&session).unwrap(), digest(&state.session).unwrap());
        });
    }

    /// The files of the session.
    pub(crate) fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.workspace.filesystem()
    }

    /// Rewinds the session to before a call.
    pub(crate) fn rewind_before(&self, call: CallId) -> Result<(), BoxError> {
        self.runtime.block_on(self.harness.live.rollback_to_tool(call))?;
        Ok(())
    }

    /// Makes a call, polls it `polls` times and drops it. Returns its id, and whether it had ended.
    pub(crate) fn abandon(&self, asked: CallSpec, polls: usize) -> (CallId, bool) {
        self.runtime.block_on(async {
            let call = self.harness.call(&asked.name, asked.arguments).await;
            let call_id = call.call_id;
            let runner = self.harness.runner.clone();
            let dropped = async move { polled(pin!(runner.run(call)), polls).await.is_some() };
            let had_ended = match self.way {
                Way::Direct => dropped.await,
                Way::Batch | Way::Outside => tokio::spawn(dropped).await.unwrap(),
            };
            (call_id, had_ended)
        })
    }
}

mod direct_in_memory {
    super::conformance::tool_conformance!((super::Place::Memory, super::Way::Direct));
}

mod direct_in_a_directory {
    super::conformance::tool_conformance!((super::Place::Directory, super::Way::Direct));
}

mod batch_in_memory {
    super::conformance::tool_conformance!((super::Place::Memory, super::Way::Batch));
}

mod batch_in_a_directory {
    super::conformance::tool_conformance!((super::Place::Directory, super::Way::Batch));
}

#[test]
fn a_rewind_that_is_dropped_anywhere_happens_wholly_or_not_at_all() {
    for place in [Place::Memory, Place::Directory] {
        let caller = open(place, Way::Direct, tools());
        let call = |name: &str, outcome| {
            let acts = [Act::Append(name.into()), Act::Extend("file.txt".into(), name.into())];
            caller.turn(vec![Script::new(acts, outcome).asked("act")])[0].call_id
        };
        let tasks = || {
            let mut tasks = String::new();
            caller.inspect(&mut |session| {
                tasks = session.all::<Task>().unwrap().iter().map(|task| task.key.clone()).collect();
            });
            tasks
        };
        call("a", Outcome::Success);
        for polls in 0.. {
            let before = tasks();
            let second = call("b", Outcome::Success);
            let rewind =
                async { polled(pin!(caller.harness.live.rollback_to_tool(second)), polls).await.is_some() };
            let had_ended = caller.runtime.block_on(rewind);
            // The next call fails, so that its rollback shows which state it started from.
            call("c", Outcome::Error);
            let path = FilePath::new("file.txt").unwrap();
            assert_eq!(caller.filesystem().read_text(&path).unwrap(), tasks(), "after {polls} polls");
            assert!(tasks() == before || tasks() == format!("{before}b"), "after {polls} polls");
            if had_ended {
                assert_eq!(tasks(), before);
                break;
            }
        }
    }
}

#[test]
fn a_call_that_the_end_of_the_async_runtime_cuts_off_is_recovered_by_opening_the_session_again() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Arc::new(MemoryStore::new());
    let slow = Tool::builder("slow", "Does not end.")
        .unwrap()
        .effect(Effect::Workspace)
        .workspace(WorkspaceUse::None)
        .handler(|_: ToolContext, (): ()| async { std::future::pending::<Result<ToolResult, _>>().await });
    let first = runtime();
    let harness = first.block_on(Harness::over(store.clone(), vec![slow], None));
    first.block_on(async {
        let call = harness.call("slow", json!({})).await;
        let is_open = async || {
            let view = load_view(&*store, harness.live.id(), None).await.unwrap();
            view.calls().next().is_some_and(|call| call.is_open())
        };
        let intent = async {
            while !is_open().await {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = harness.runner.run(call) => panic!("the tool does not end"),
            () = intent => {}
        }
    });
    drop(first);
    runtime().block_on(async {
        let error = harness.live.flush().await.unwrap_err();
        assert!(matches!(error, RuntimeError::AheadOfStore { .. }), "{error}");
        let view = load_view(&*store, harness.live.id(), None).await.unwrap();
        assert!(view.calls().next().unwrap().is_open(), "the next process recovers from its intent");
    });
}

#[test]
fn the_state_of_a_live_session_is_a_copy_and_blocks_no_writer() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let harness = Harness::new(vec![]).await;
        let before = harness.live.state().await;
        assert_eq!(before.view.head(), harness.live.state().await.view.head());
        harness.call("anything", json!({})).await;
        assert_ne!(before.view.head(), harness.live.state().await.view.head(), "it is a copy");
    });
}

#[test]
fn all_callers_and_files_give_calls_the_same_meaning() {
    let direct = (Place::Memory, Way::Direct);
    for other in [
        (Place::Memory, Way::Batch),
        (Place::Directory, Way::Direct),
        (Place::Directory, Way::Batch),
        (Place::Memory, Way::Outside),
        (Place::Directory, Way::Outside),
    ] {
        conformance::parity(direct, other);
    }
}
