//! The processes that are killed: children that run the test binary again.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::points::{self, Crash};
use super::session::{Unseen, to_the_end};
use super::stage::{Place, Plot, Stage};
use super::tools::{DIE_IN, STOP_IN};
use super::{adoption, applying, erasure, garbage, hammer, history, rivals};

/// The variable with the directory of the stage.
pub(crate) const STAGE: &str = "BACKSTITCH_TEST_STAGE";
const ROLE: &str = "BACKSTITCH_TEST_ROLE";

/// The file of a stage whose processes have a supervisor.
const SUPERVISED: &str = "supervised";

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Resumes to the end; calls with unknown effects run again.
    End,
    /// Resumes to the end; calls with unknown effects count as failed.
    Fail,
    Rewind,
    /// Restores single files.
    Restore,
    Fork,
    /// Resumes the session once all rivals have started.
    Rival,
    /// Drives many sessions until a file asks it to stop.
    Hammer,
    /// Collects garbage.
    Collect,
    /// Runs the session once, and leaves checkpoints.
    Checkpointed,
    /// Executes a main loop, which leaves checkpoints.
    Loop,
    /// Redacts a value.
    Redact,
    /// Removes the session.
    Remove,
    /// Applies the changes of the session to another directory.
    Apply,
    /// Undoes that.
    UndoApply,
}

impl Role {
    const ALL: [Self; 14] = [
        Self::End,
        Self::Fail,
        Self::Rewind,
        Self::Restore,
        Self::Fork,
        Self::Rival,
        Self::Hammer,
        Self::Collect,
        Self::Checkpointed,
        Self::Loop,
        Self::Redact,
        Self::Remove,
        Self::Apply,
        Self::UndoApply,
    ];
}

/// Where a process dies, if it does.
#[derive(Debug, Clone, Default)]
pub(crate) enum Death {
    #[default]
    None,
    /// At a crash point.
    At(Crash),
    /// In a step of a tool.
    In(&'static str),
    /// It does not die, but is stopped in a step of a tool.
    StoppedIn(&'static str),
}

impl Stage {
    /// Gives the processes of this stage a supervisor, which records when they are killed.
    pub(crate) fn supervise(&self) {
        std::fs::write(self.path(SUPERVISED), "").unwrap();
    }

    /// Starts a process on this stage.
    pub(crate) fn start(&self, role: Role, death: &Death) -> Child {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(self.path("log")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::child::plays", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(STAGE, &self.root).env(ROLE, format!("{role:?} {:?} {:?}", self.place, self.plot));
        match death {
            Death::None => {}
            Death::At(crash) => drop(command.env(points::VARIABLE, crash.to_string())),
            Death::In(step) => drop(command.env(DIE_IN, step)),
            Death::StoppedIn(step) => drop(command.env(STOP_IN, step)),
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }

    /// Runs a process on this stage until it exits or is killed. Returns whether it was killed.
    pub(crate) fn play(&self, role: Role, death: &Death) -> bool {
        let status = self.start(role, death).wait().unwrap();
        self.died(status, &format!("{role:?} {death:?}"))
    }

    /// Whether a process was killed. Panics if it failed in another way.
    pub(crate) fn died(&self, status: ExitStatus, what: &str) -> bool {
        let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
        match status.signal() {
            Some(9) => true,
            _ => {
                assert!(status.success(), "{what}: {status}\n{}", log());
                false
            }
        }
    }

    /// How often the last process that was not killed has reached each crash point.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        serde_json::from_slice(&std::fs::read(self.path("hits")).unwrap()).unwrap()
    }
}

/// How many processes may miss a hit before the hit before it is tried.
const ROUNDS: usize = 3;

/// Kills a process at a hit of a point, and returns its stage and what was done. Not every process reaches a point equally often: snapshots are
/// written in the background, one at a time, and alone or in one transaction with an append. So a process that missed its hit is followed by
/// another one on a new stage.
pub(crate) async fn kill_at(
    role: Role,
    point: &str,
    hit: u64,
    new_stage: impl AsyncFn() -> Stage,
) -> (Stage, String) {
    for hit in (1..=hit).rev() {
        for _ in 0..ROUNDS {
            let stage = new_stage().await;
            if stage.play(role, &Death::At(Crash::at(point, hit))) {
                return (stage, format!("{role:?} killed at {point}, time {hit}"));
            }
        }
    }
    panic!("{role:?} was killed at none of the first {hit} hits of {point}");
}

/// Not a test: the entry point of the processes that other tests start and kill.
#[test]
#[ignore = "started by other tests"]
fn plays() {
    let Some(root) = std::env::var_os(STAGE).map(PathBuf::from) else { return };
    let told = std::env::var(ROLE).unwrap();
    let [role, place, plot] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told:?}") };
    let role = Role::ALL.into_iter().find(|known| format!("{known:?}") == role).unwrap();
    let place = if place == "Host" { Place::Host } else { Place::Memory };
    let plots = [Plot::Alone, Plot::Agents, Plot::Sections, Plot::Programs, Plot::Fallbacks];
    let plot = plots.into_iter().find(|known| format!("{known:?}") == plot).unwrap();
    let stage = Stage::existing(root, place, plot);
    points::arm();
    if stage.path(SUPERVISED).exists() {
        backstitch_runtime::set_supervisor(env!("CARGO_BIN_EXE_backstitch-supervisor"));
    }
    // On one thread, so that points are reached in the same order every time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role {
            Role::End => drop(to_the_end(&stage, &stage.open(), Unseen::Retry).await.unwrap()),
            Role::Fail => drop(to_the_end(&stage, &stage.open(), Unseen::Fail).await.unwrap()),
            Role::Rewind => history::rewinds(&stage).await,
            Role::Restore => history::restores(&stage).await,
            Role::Fork => history::forks(&stage).await,
            Role::Rival => rivals::competes(&stage).await,
            Role::Hammer => hammer::hammers(&stage).await,
            Role::Collect => garbage::collects(&stage),
            Role::Checkpointed => adoption::plays(&stage).await,
            Role::Loop => adoption::loops(&stage).await,
            Role::Redact => erasure::redacts(&stage).await,
            Role::Remove => erasure::removes(&stage).await,
            Role::Apply => applying::applies(&stage).await,
            Role::UndoApply => applying::undoes(&stage).await,
        }
    });
    std::fs::write(stage.path("hits"), serde_json::to_vec(&points::hits()).unwrap()).unwrap();
}
