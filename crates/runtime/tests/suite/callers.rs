//! The suite of all callers: two of them, each over files in memory and over a real directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::execution::{CompositeSnapshot, ExecutionStateError, SnapshotMetadata};
use backstitch_core::filesystem::{MemoryFilesystem, MemoryWorkspace};
use backstitch_core::id::CallId;
use backstitch_core::message::OptionResult;
use backstitch_core::ports::{Filesystem, Workspace};
use backstitch_core::session::{Capture, Session, SlicePolicy};
use backstitch_core::tool::Tool;
use backstitch_runtime::{CallEnd, CallRequest, RuntimeError, ToolRunner};
use backstitch_store::MemoryStore;
use backstitch_testkit::tool::{Asked, Counter, Ended, Ending, ToolCaller};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::disk::Disk;
use crate::harness::Harness;

/// Where the files are.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Memory,
    Directory,
}

/// Which way tools are called in.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// By the runner, in one thread.
    Direct,
    /// By a service that takes turns from a queue and starts calls as they come, in several threads.
    Batch,
}

type Turn = (Vec<CallRequest>, oneshot::Sender<Vec<(CallId, CallEnd)>>);

pub(crate) struct Caller {
    pub(crate) harness: Harness,
    pub(crate) workspace: Arc<dyn Workspace>,
    way: Way,
    queue: mpsc::UnboundedSender<Turn>,
    runtime: Runtime,
    /// Whether state in memory was taken back without a record, so that it no longer is what the journal says.
    gone_back: AtomicBool,
    _disk: Option<Disk>,
}

pub(crate) fn open(place: Place, way: Way, tools: Vec<Tool>) -> Caller {
    let runtime = match way {
        Way::Direct => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        Way::Batch => {
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
    let resources = Counter::default().resources();
    let harness = runtime.block_on(Harness::with_resources(store, tools, Some(workspace.clone()), resources));
    let (queue, turns) = mpsc::unbounded_channel();
    if let Way::Batch = way {
        runtime.spawn(serve(harness.runner.clone(), turns));
    }
    Caller { harness, workspace, way, queue, runtime, gone_back: AtomicBool::new(false), _disk: disk }
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

impl Caller {
    /// Runs something where the calls run.
    pub(crate) fn block_on<R>(&self, work: impl Future<Output = R>) -> R {
        self.runtime.block_on(work)
    }

    async fn run(&self, calls: Vec<CallRequest>) -> Result<Vec<CallEnd>, RuntimeError> {
        match self.way {
            Way::Direct => self.harness.runner.run_all(calls).await,
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

impl ToolCaller for Caller {
    fn turn(&self, calls: Vec<Asked>) -> Vec<Ended> {
        self.runtime.block_on(async {
            let mut requests = Vec::new();
            for asked in calls {
                requests.push(self.harness.call(&asked.name, asked.arguments).await);
            }
            let ids: Vec<_> = requests.iter().map(|request| request.call_id).collect();
            let ends = self.run(requests).await.unwrap();
            let ends = ids.into_iter().zip(ends).map(|(call_id, end)| {
                let ending = match end {
                    CallEnd::Succeeded(_) => Ending::Succeeded,
                    CallEnd::Failed(_) => Ending::Failed,
                    CallEnd::VisibilityExpansion { .. } => Ending::VisibilityExpansion,
                    other => panic!("{other:?}"),
                };
                Ended { call_id, ending }
            });
            ends.collect()
        })
    }

    fn state(&self) -> CompositeSnapshot {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            let mut snapshot = state.execution.snapshot(SnapshotMetadata::default()).unwrap();
            let capture = Capture::policies([SlicePolicy::State]);
            snapshot.session = state.execution.session.snapshot_with(capture);
            snapshot
        })
    }

    fn results(&self) -> Vec<OptionResult> {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            let transcript = state.view.transcript().unwrap();
            transcript.all().iter().filter_map(|message| message.message.option_result().cloned()).collect()
        })
    }

    fn look(&self, look: &mut dyn FnMut(&Session)) {
        self.runtime.block_on(async {
            let state = self.harness.live.state().await;
            look(&state.execution.session);
            // What is in memory is what the journal says.
            let clock = self.harness.live.clock().clone();
            let session = state.view.session(clock);
            let digest = |session: &Session| {
                session
                    .snapshot_with(Capture::policies([SlicePolicy::State, SlicePolicy::Log]))
                    .content_digest()
            };
            if !self.gone_back.load(Ordering::SeqCst) {
                assert_eq!(digest(&session).unwrap(), digest(&state.execution.session).unwrap());
            }
        });
    }

    fn filesystem(&self) -> Arc<dyn Filesystem> {
        self.workspace.filesystem()
    }

    fn go_back_to(&self, call: CallId) -> Result<(), ExecutionStateError> {
        self.gone_back.store(true, Ordering::SeqCst);
        self.runtime.block_on(async { self.harness.live.state().await.execution.rollback_to_tool(call) })
    }
}

fn factory(place: Place, way: Way) -> impl Fn(Vec<Tool>) -> Box<dyn ToolCaller> {
    move |tools| Box::new(open(place, way, tools))
}

mod direct_in_memory {
    backstitch_testkit::tool_conformance!(super::factory(super::Place::Memory, super::Way::Direct));
}

mod direct_in_a_directory {
    backstitch_testkit::tool_conformance!(super::factory(super::Place::Directory, super::Way::Direct));
}

mod batch_in_memory {
    backstitch_testkit::tool_conformance!(super::factory(super::Place::Memory, super::Way::Batch));
}

mod batch_in_a_directory {
    backstitch_testkit::tool_conformance!(super::factory(super::Place::Directory, super::Way::Batch));
}

#[test]
fn calls_mean_the_same_in_either_way_and_over_either_files() {
    use backstitch_testkit::tool::conformance::parity;
    let direct = factory(Place::Memory, Way::Direct);
    parity(&direct, &factory(Place::Memory, Way::Batch));
    parity(&direct, &factory(Place::Directory, Way::Direct));
    parity(&direct, &factory(Place::Directory, Way::Batch));
}
