//! Any interleaving of calls of two sessions in one directory, edits of a person, kills, rewinds, undos, redos and restores.
//!
//! - A path that a session never changed is not touched by its history.
//! - What others changed while no call of the session was open stays in the directory.
//! - All other content that leaves the directory is in files that the session has saved.
//! - A path that only the session changed since a point is as it was there, after a rewind to it.
//! - A rewind that is undone at once leaves no trace in the files.
//!
//! The store and the runtime are real, and the files are in memory. Each operation has an async runtime of its own, which is
//! dropped when it is done, or, as if the process were killed, inside of a call or after some polls. A session is driven
//! here, or another program works in it.
//!
//! By default few cases run. `BACKSTITCH_INTERLEAVED_CASES=N` runs N of them.

mod world;

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, IdStream, SessionId};
use backstitch_core::journal::{Effect, ObservationCause, Position, Record, RecordBody, WorkspaceRoot};
use backstitch_core::message::{Arguments, PolicyName};
use backstitch_core::ports::{ClaimMode, Owner, PolicyAnswer, ReversalConflicts, Store as _, Workspace as _};
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult};
use backstitch_filesystem::{FilePath, MemoryFilesystem, MemoryWorkspace};
use backstitch_runtime::{
    Agent, DriveOutcome, FunctionPolicy, LiveSession, ObservedCall, ObservedResult, ObservedSession,
    PointSpec, ResumeOptions, RewindReport, RewindScope, RewoundFiles, Runtime, RuntimeError, SessionOptions,
    read_records,
};
use backstitch_store::MemoryStore;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, json};

use self::world::{Files, PATHS, Permission, SESSIONS, World, files_of, path};

/// The variable that says how many cases run.
const CASES: &str = "BACKSTITCH_INTERLEAVED_CASES";

/// The most polls after which a process is killed. An operation takes fewer.
const MOST_POLLS: usize = 40;

/// The numbers of calls to choose from. A case has fewer calls, which are counted around.
const MOST_CALLS: usize = 64;

/// What a process does.
type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// An edit of a file. Its content is new each time.
#[derive(Debug, Clone, Copy)]
struct Edit {
    /// The index of the path.
    path: usize,
    deletes: bool,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Succeeds,
    Fails,
    /// Its process is killed. If it runs again, it succeeds.
    Dies,
}

/// What a call does.
#[derive(Debug, Clone)]
struct Plan {
    edits: Vec<Edit>,
    /// The edits of a person while it runs.
    meanwhile: Vec<Edit>,
    ending: Ending,
}

/// One step of a case.
#[derive(Debug, Clone)]
enum Operation {
    /// A person edits a file.
    Edit(Edit),
    /// Asks a session to make calls. What was interrupted is recovered first. Two calls of another program overlap.
    Work(Vec<Plan>),
    /// Recovers what was interrupted.
    Resume,
    /// Rewinds to before a call.
    Rewind(usize, Permission),
    Undo,
    Redo,
    /// Restores a path, or all that the session changed, to its state before a call.
    Restore(usize, Option<usize>),
}

/// A step: the session that it concerns, and the polls after which its process is killed.
type Step = (usize, Operation, Option<usize>);

fn edit() -> impl Strategy<Value = Edit> {
    let deletes = prop_oneof![4 => Just(false), 1 => Just(true)];
    (0..PATHS.len(), deletes).prop_map(|(path, deletes)| Edit { path, deletes })
}

fn plan() -> impl Strategy<Value = Plan> {
    let ending = prop_oneof![4 => Just(Ending::Succeeds), 1 => Just(Ending::Fails), 2 => Just(Ending::Dies)];
    let meanwhile = prop_oneof![3 => Just(Vec::new()), 1 => vec(edit(), 1..3)];
    (vec(edit(), 0..4), meanwhile, ending).prop_map(|(edits, meanwhile, ending)| Plan {
        edits,
        meanwhile,
        ending,
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let permission = prop_oneof![
        6 => Just(Permission::OwnOnly),
        1 => Just(Permission::Forced),
        1 => Just(Permission::AllFiles),
    ];
    let restored = prop_oneof![Just(None), (0..PATHS.len()).prop_map(Some)];
    prop_oneof![
        4 => edit().prop_map(Operation::Edit),
        4 => plan().prop_map(|plan| Operation::Work(vec![plan])),
        1 => (plan(), plan()).prop_map(|(first, second)| Operation::Work(vec![first, second])),
        1 => Just(Operation::Resume),
        3 => (0..MOST_CALLS, permission).prop_map(|(point, permission)| Operation::Rewind(point, permission)),
        2 => Just(Operation::Undo),
        1 => Just(Operation::Redo),
        1 => (0..MOST_CALLS, restored).prop_map(|(point, path)| Operation::Restore(point, path)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let killed = prop_oneof![5 => Just(None), 1 => (1..MOST_POLLS).prop_map(Some)];
    (0..SESSIONS, operation(), killed)
}

/// Who works in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is driven here.
    Driven,
    /// Another program, which reports its calls.
    Observed,
}

struct Shop {
    store: Arc<MemoryStore>,
    world: Arc<World>,
    sessions: [(SessionId, Kind); SESSIONS],
    /// The calls that the model of each session makes next, as the numbers of plans.
    queues: [Arc<Mutex<VecDeque<usize>>>; SESSIONS],
    /// The files of roots that were read before.
    roots: Mutex<HashMap<WorkspaceRoot, Files>>,
    /// The files before the latest operation of each session, if that was a rewind and nothing happened since.
    before_rewind: [Option<Files>; SESSIONS],
}

impl Shop {
    fn new(second: Kind) -> Self {
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        let ids = IdStream::from_seed([9; 32], clock);
        Self {
            store: Arc::new(MemoryStore::new()),
            world: Arc::new(World::new()),
            sessions: [(ids.next(), Kind::Driven), (ids.next(), second)],
            queues: Default::default(),
            roots: Mutex::default(),
            before_rewind: Default::default(),
        }
    }

    /// Runs a process until it is done, or dies in a call, or was polled this often. Returns `None` if it died.
    fn run<T>(&self, session: usize, polls: Option<usize>, work: Work<'_, T>) -> Option<T> {
        let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let done = tasks.block_on(async {
            tokio::select! {
                biased;
                done = limited(work, polls) => done,
                () = self.world.died.notified() => None,
            }
        });
        // What runs on other threads is done at once, and nothing else continues.
        tasks.shutdown_timeout(Duration::from_secs(60));
        if done.is_none() {
            self.release(session);
        }
        done
    }

    /// The store notices that the process of a session is dead.
    fn release(&self, session: usize) {
        let (store, session) = (self.store.clone(), self.sessions[session].0);
        block_on(async {
            let claim = store.claim(session, Owner::new("the store"), ClaimMode::TakeOver).await.unwrap();
            store.release(claim).await.unwrap();
        });
    }

    fn options(&self, session: usize) -> SessionOptions {
        let workspace = MemoryWorkspace::new(self.world.files.clone(), self.store.clone());
        SessionOptions {
            id: Some(self.sessions[session].0),
            ..SessionOptions::with_workspace(Arc::new(workspace))
        }
    }

    fn agent(&self, session: usize) -> Agent {
        let queue = self.queues[session].clone();
        let policy = FunctionPolicy::new(PolicyName::new("tailor").unwrap(), move |_| {
            let next = queue.lock().unwrap().pop_front();
            async move {
                Ok(match next {
                    Some(plan) => PolicyAnswer::default().call("work", arguments(plan)),
                    None => PolicyAnswer::text("done"),
                })
            }
        });
        Agent::new("tests/neighbour").policy(Arc::new(policy)).tools([self.tool(session)])
    }

    /// The tool, which does what its plan says.
    fn tool(&self, session: usize) -> Tool {
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct Planned {
            plan: usize,
        }
        let world = self.world.clone();
        let builder = Tool::builder("work", "Changes files.").unwrap().effect(Effect::Workspace);
        builder.handler(move |context: ToolContext, planned: Planned| {
            let world = world.clone();
            async move {
                match world.run_plan(session, context.call_id(), planned.plan) {
                    Ending::Succeeds => Ok(ToolResult::ok("done")),
                    Ending::Fails => Err(ToolError::new("it tore")),
                    Ending::Dies => {
                        world.died.notify_one();
                        std::future::pending().await
                    }
                }
            }
        })
    }

    /// Drives a session: what was interrupted, and the calls that wait for it.
    async fn drive(&self, session: usize) {
        let runtime = Runtime::new(self.store.clone());
        let opening =
            runtime.open(self.sessions[session].0, self.agent(session), self.options(session)).await;
        let driver = match opening {
            Err(RuntimeError::SessionNotFound { .. }) => {
                runtime.create(self.agent(session), self.options(session)).await.unwrap()
            }
            other => other.unwrap(),
        };
        let is_open = {
            let state = driver.session().state().await;
            state.view.latest_evaluation().is_some_and(|latest| latest.finished.is_none())
        };
        let ended = match is_open {
            true => driver.resume(ResumeOptions::default()).await.unwrap(),
            false => driver.start("work").await.unwrap(),
        };
        // A call in which the process was killed too often waits for a person.
        assert!(!matches!(ended, DriveOutcome::Failed { .. }), "{ended:?}");
        driver.session().release().await.unwrap();
    }

    /// Opens a session without an agent, if it exists.
    async fn open(&self, session: usize) -> Option<Arc<LiveSession>> {
        let runtime = Runtime::new(self.store.clone());
        match runtime.open_idle(self.sessions[session].0, self.options(session)).await {
            Err(RuntimeError::SessionNotFound { .. }) => None,
            opened => Some(opened.unwrap()),
        }
    }

    /// Another program works in a session: what has no reported end is closed, and then it makes the calls that wait.
    async fn observe(&self, session: usize) {
        let program = PolicyName::new("loom").unwrap();
        let observed = match self.open(session).await {
            Some(live) => ObservedSession::new(live, program),
            None => {
                let runtime = Runtime::new(self.store.clone());
                runtime.create_observed(json!(null), program, self.options(session)).await.unwrap()
            }
        };
        observed.record_start().await.unwrap();
        self.world.set_open(session, false);
        loop {
            let next: Vec<usize> = {
                let mut queue = self.queues[session].lock().unwrap();
                let most = queue.len().min(2);
                queue.drain(..most).collect()
            };
            let Some(first) = next.first().copied() else { break };
            let mut begun = Vec::new();
            for plan in next {
                let call = ObservedCall::new(format!("call {plan}"), "work", json!({}));
                let id = observed.record_call_start(call.clone()).await.unwrap();
                let outcome = match self.world.run_plan(session, id, plan) {
                    Ending::Succeeds => Ok(json!("done")),
                    Ending::Fails => Err("it tore".to_owned()),
                    Ending::Dies => {
                        self.world.died.notify_one();
                        std::future::pending().await
                    }
                };
                begun.push((call, ObservedResult { outcome, elapsed_micros: None }));
            }
            if first % 2 == 0 {
                begun.reverse();
            }
            for (call, result) in begun {
                observed.record_call_end(call, result).await.unwrap();
            }
            self.world.set_open(session, false);
        }
        observed.release().await.unwrap();
    }

    /// Drives or observes a session, and checks what happened to the files.
    fn work(&mut self, session: usize, polls: Option<usize>) {
        self.world.begin(session);
        let work: Work<'_, ()> = match self.sessions[session].1 {
            Kind::Driven => Box::pin(self.drive(session)),
            Kind::Observed => Box::pin(self.observe(session)),
        };
        self.run(session, polls, work);
        self.check(session, Permission::OwnOnly);
        self.before_rewind = Default::default();
    }

    /// Moves through the history of a session, and checks what happened to the files. Returns the report if it was done.
    fn travel(
        &self,
        session: usize,
        polls: Option<usize>,
        permission: Permission,
        travel: impl AsyncFnOnce(&LiveSession) -> Result<RewindReport, RuntimeError>,
    ) -> Option<RewindReport> {
        self.world.begin(session);
        let work = async {
            let live = self.open(session).await?;
            let done = travel(&live).await;
            live.release().await.unwrap();
            Some(done)
        };
        let done = self.run(session, polls, Box::pin(work));
        self.check(session, permission);
        if done.is_none() {
            // The next process of the session completes it, if it was recorded.
            self.world.add_owed(session, permission);
        }
        let refused = [
            ErrorCode::PointNotFound,
            ErrorCode::FileNotFound,
            ErrorCode::NothingToUndo,
            ErrorCode::NothingToRedo,
            ErrorCode::NothingToRewind,
        ];
        match done.flatten()? {
            Ok(report) => Some(report),
            Err(error) => {
                assert!(refused.contains(&error.code()), "{error}");
                None
            }
        }
    }

    /// Checks the moves of an operation, and that everything that it removed is saved.
    fn check(&self, session: usize, permission: Permission) {
        self.world.check_moves(session, permission);
        self.world.assert_sound();
        let records = self.records(session);
        let saved: Vec<Files> = records.iter().filter_map(saved).map(|root| self.files_at(root)).collect();
        for (name, content) in self.world.take_removed(session) {
            let is_saved = saved.iter().any(|files| files.get(name) == Some(&content));
            assert!(is_saved, "session {session}, {name}: {content} is neither there nor saved");
        }
        let view = block_on(async { Runtime::new(self.store.clone()).view(self.sessions[session].0).await });
        let Ok(view) = view else { return };
        self.world.set_open(session, view.calls().any(|call| call.is_open()));
        if view.owed_files().is_none() {
            self.world.clear_owed(session);
        }
    }

    fn records(&self, session: usize) -> Vec<Record> {
        let records = read_records(&*self.store, self.sessions[session].0, Position::START, None);
        block_on(records).unwrap_or_default()
    }

    /// Reads the files of a root.
    fn files_at(&self, root: WorkspaceRoot) -> Files {
        let mut roots = self.roots.lock().unwrap();
        let read = || {
            let files = Arc::new(MemoryFilesystem::new());
            MemoryWorkspace::new(files.clone(), self.store.clone()).restore(root).unwrap();
            files_of(&files)
        };
        roots.entry(root).or_insert_with(read).clone()
    }

    /// Chooses a call of a session.
    fn choose(&self, session: usize, number: usize) -> Option<CallId> {
        let calls = self.world.calls(session);
        (!calls.is_empty()).then(|| calls[number % calls.len()])
    }

    fn perform(&mut self, (session, operation, polls): Step) {
        // A rewind that is completed first is not undone with the next one.
        let before = Some(self.world.directory()).filter(|_| !self.world.has_owed(session));
        match operation {
            Operation::Edit(edit) => {
                self.world.edit_by_person(edit);
                self.before_rewind = Default::default();
            }
            Operation::Work(plans) => {
                for plan in plans {
                    let plan = self.world.add_plan(plan);
                    self.queues[session].lock().unwrap().push_back(plan);
                }
                self.work(session, polls);
            }
            Operation::Resume => self.work(session, polls),
            Operation::Rewind(point, permission) => {
                let Some(call) = self.choose(session, point) else { return };
                let scope = RewindScope {
                    files: match permission {
                        Permission::AllFiles => RewoundFiles::All,
                        _ => RewoundFiles::Own,
                    },
                    conflicts: match permission {
                        Permission::Forced => ReversalConflicts::TakeTarget,
                        _ => ReversalConflicts::LeaveAlone,
                    },
                    ..RewindScope::default()
                };
                let point = PointSpec::Before(call.to_string());
                let done = self.travel(session, polls, permission, async |live: &LiveSession| {
                    live.rewind_within(&point, None, scope).await
                });
                if let Some(report) = &done {
                    self.check_rewound(session, call, report, permission);
                }
                self.note_rewind(session, done.is_some(), before);
            }
            Operation::Undo => {
                let expected = self.before_rewind[session].take();
                let own = Permission::OwnOnly;
                let done = self.travel(session, polls, own, async |live: &LiveSession| live.undo().await);
                if let (Some(expected), true) = (expected, done.is_some()) {
                    assert_eq!(self.world.directory(), expected, "session {session}: undone at once");
                }
                self.before_rewind = Default::default();
            }
            Operation::Redo => {
                let own = Permission::OwnOnly;
                self.travel(session, polls, own, async |live: &LiveSession| live.redo().await);
                self.before_rewind = Default::default();
            }
            Operation::Restore(point, restored) => {
                let Some(call) = self.choose(session, point) else { return };
                let point = PointSpec::Before(call.to_string());
                let paths = vec![restored.map_or_else(FilePath::root, |index| path(PATHS[index]))];
                let permission = restored.map_or(Permission::OwnOnly, Permission::Path);
                let done = self.travel(session, polls, permission, async |live: &LiveSession| {
                    live.restore_files(&point, paths).await
                });
                self.note_rewind(session, done.is_some(), before);
            }
        }
    }

    fn note_rewind(&mut self, session: usize, is_done: bool, before: Option<Files>) {
        self.before_rewind = Default::default();
        self.before_rewind[session] = before.filter(|_| is_done);
    }

    /// Checks that what only the session changed since the point is as it was there.
    fn check_rewound(&self, session: usize, call: CallId, report: &RewindReport, permission: Permission) {
        let records = self.records(session);
        let root = records.iter().filter(|record| record.position >= report.to).find_map(|record| {
            match &record.body {
                RecordBody::CallStarted(started) if started.call_id == call => started.root,
                _ => None,
            }
        });
        let moment = root.and_then(|root| self.world.moment(session, call, &self.files_at(root)));
        if let Some(moment) = moment {
            self.world.check_rewound(session, &moment, permission);
        }
    }
}

/// Polls a future up to this often. Returns `None` if it is not done by then.
async fn limited<T>(mut work: Work<'_, T>, limit: Option<usize>) -> Option<T> {
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if Some(polls) == limit => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn arguments(plan: usize) -> Arguments {
    Arguments::from_object(Map::from_iter([("plan".to_owned(), json!(plan))]))
}

/// The files that a record saves before others are restored.
fn saved(record: &Record) -> Option<WorkspaceRoot> {
    match &record.body {
        RecordBody::WorkspaceObserved(observed) if observed.cause == ObservationCause::Interrupted => {
            Some(observed.root)
        }
        RecordBody::CallFinished(finished) => finished.rescue,
        RecordBody::Rewound(rewound) => rewound.rescue,
        _ => None,
    }
}

/// The number of cases, if it is not given.
fn cases() -> u32 {
    std::env::var(CASES).ok().and_then(|text| text.parse().ok()).unwrap_or(48)
}

#[test]
fn histories_move_only_what_their_session_changed() {
    let config =
        Config { cases: cases(), failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let kinds = select(vec![Kind::Driven, Kind::Observed]);
    // The few cases of every run are the same ones, so that no run depends on luck.
    let mut runner = match std::env::var_os(CASES) {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&(kinds, vec(step(), 1..16)), |(second, steps)| {
            let mut shop = Shop::new(second);
            steps.into_iter().for_each(|step| shop.perform(step));
            Ok(())
        })
        .unwrap();
}

/// The interleaving that people report as the loss of their work: a session is killed in a call, another session works, a
/// person edits, and the first one is resumed.
#[test]
fn what_others_did_after_a_kill_is_there_or_saved() {
    for second in [Kind::Driven, Kind::Observed] {
        let mut shop = Shop::new(second);
        let edits = |paths: &[usize]| paths.iter().map(|path| Edit { path: *path, deletes: false }).collect();
        let plan = |paths: &[usize], ending| {
            Operation::Work(vec![Plan { edits: edits(paths), meanwhile: Vec::new(), ending }])
        };
        let person = |path| Operation::Edit(Edit { path, deletes: false });
        shop.perform((0, plan(&[0], Ending::Dies), None));
        shop.perform((1, plan(&[1], Ending::Succeeds), None));
        shop.perform((0, person(2), None));
        shop.perform((0, Operation::Resume, None));
        shop.perform((1, plan(&[3], Ending::Succeeds), None));
        shop.perform((0, person(2), None));
        let others = shop.world.directory();
        let everything = Operation::Rewind(0, Permission::OwnOnly);
        shop.perform((0, everything, None));
        let after = shop.world.directory();
        assert_eq!(after.get("a"), None, "{second:?}");
        assert_eq!(
            (after.get("d/x"), after.get("d/y")),
            (others.get("d/x"), others.get("d/y")),
            "{second:?}"
        );
    }
}

/// The history moves files while a call is interrupted, and what people change since is not that call's.
#[test]
fn history_beside_an_interrupted_call_takes_nothing_of_others() {
    let edit = |path, deletes| Edit { path, deletes };
    let plan = |edits: &[Edit], ending| Plan { edits: edits.to_vec(), meanwhile: Vec::new(), ending };
    let work = |plan: Plan| Operation::Work(vec![plan]);
    let dies = |edits: &[Edit]| work(plan(edits, Ending::Dies));
    let (person, back) =
        (|path| Operation::Edit(edit(path, false)), Operation::Rewind(0, Permission::OwnOnly));
    let succeeds = || plan(&[], Ending::Succeeds);
    let cases = [
        // A rewind to before another attempt of the call.
        vec![
            dies(&[]),
            work(succeeds()),
            person(0),
            Operation::Rewind(3, Permission::OwnOnly),
            work(succeeds()),
        ],
        // An undo that brings the call back.
        vec![dies(&[]), back.clone(), person(0), Operation::Undo, dies(&[edit(0, true)])],
        // A restore of all files, where the call had changed them too.
        vec![
            work(succeeds()),
            dies(&[edit(0, false)]),
            Operation::Work(vec![plan(&[], Ending::Dies), succeeds()]),
            Operation::Restore(0, None),
            work(succeeds()),
            Operation::Rewind(7, Permission::OwnOnly),
        ],
        vec![
            dies(&[]),
            dies(&[edit(0, false)]),
            dies(&[edit(0, true), edit(1, false)]),
            Operation::Restore(36, None),
            work(succeeds()),
            Operation::Undo,
            Operation::Rewind(9, Permission::OwnOnly),
        ],
        // A rewind after one that left the call open.
        vec![
            dies(&[]),
            work(succeeds()),
            Operation::Rewind(27, Permission::OwnOnly),
            person(0),
            back.clone(),
            Operation::Undo,
        ],
        // A recovery of what an undo brought back, and a rewind over both.
        vec![
            dies(&[edit(0, false)]),
            dies(&[edit(0, false)]),
            back.clone(),
            Operation::Undo,
            work(succeeds()),
            Operation::Rewind(30, Permission::OwnOnly),
        ],
        // A restore of one path after an undo that brought the call back.
        vec![
            dies(&[]),
            back.clone(),
            person(2),
            person(1),
            Operation::Undo,
            Operation::Restore(0, Some(1)),
            work(succeeds()),
        ],
        // A rewind that moves no files, after an undo that brought the call back.
        vec![dies(&[]), back.clone(), person(0), Operation::Undo, person(0), back, Operation::Undo],
        // A rewind that moves no files, because a person had changed what the call changed too.
        vec![
            work(plan(&[edit(1, false)], Ending::Succeeds)),
            person(1),
            Operation::Work(vec![succeeds(), plan(&[edit(1, false)], Ending::Dies)]),
            Operation::Rewind(0, Permission::OwnOnly),
            Operation::Undo,
        ],
    ];
    for steps in cases {
        let mut shop = Shop::new(Kind::Driven);
        steps.into_iter().for_each(|step| shop.perform((0, step, None)));
    }
}
