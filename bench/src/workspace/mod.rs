//! Snapshots and restores of a directory, beside a bare walk and beside git, in one run and one directory.
//!
//! The subjects are measured alternately, round by round, and ratios are medians over the rounds, because
//! other programs use the disk too. A snapshot does not store its objects, which is the task of the store; a
//! restore is durable when it returns. Git syncs all that it stores. Without `git` it has no rows, and the
//! reason is printed.

mod files;
mod git;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::ports::Workspace as _;
use backstitch_testkit::filesystem::StoredObjects;
use backstitch_workspace::{HostWorkspace, OpenOptions};
use serde_json::json;

use crate::aims;
use crate::measure::{Samples, Scope};
use crate::report::Report;
use files::Files;
pub(crate) use files::walk;
use git::Git;

const FILES: usize = 10_000;
const ROUNDS: usize = 11;

/// After this time a capture trusts the modification time of a written file, and does not read it again.
const SETTLED: Duration = Duration::from_millis(120);

/// The samples of all rounds.
#[derive(Default)]
struct Measured {
    walk: Samples,
    unchanged: Samples,
    one: Samples,
    walk_and_read: Samples,
    hundred: Samples,
    restore: Samples,
    commit_one: Samples,
    commit_hundred: Samples,
    reset: Samples,
}

pub(crate) fn run(report: &mut Report) {
    let keep = tempfile::tempdir().expect("a temporary directory can be made");
    let files = Files::make(keep.path().join("work"), FILES);
    let git = Git::init(files.root());
    if let Err(reason) = &git {
        eprintln!("workspace: no rows for git: {reason}");
    }
    let objects: Arc<StoredObjects> = Arc::default();
    let mut options = OpenOptions::new(files.root(), keep.path().join("store"), objects.clone());
    options.locks = Some(keep.path().join("locks"));
    let workspace = HostWorkspace::open(options).expect("the directory can be a workspace");
    let mut bench = Bench { files, workspace, objects, git: git.ok(), measured: Measured::default() };
    bench.settle();
    for _ in 0..ROUNDS {
        bench.round();
    }
    bench.print(report);
}

struct Bench {
    files: Files,
    workspace: HostWorkspace,
    objects: Arc<StoredObjects>,
    git: Option<Git>,
    measured: Measured,
}

impl Bench {
    /// Captures all files until the stat cache knows each, and none is so new that it is read again.
    fn settle(&self) {
        self.snapshot(&mut Samples::default());
        std::thread::sleep(SETTLED);
        self.snapshot(&mut Samples::default());
    }

    fn round(&mut self) {
        let mut measured = std::mem::take(&mut self.measured);
        let git = self.git.take();
        let walk = |samples: &mut Samples, root: &Path| {
            samples.measure(Scope::Thread, || files::walk(root));
        };
        walk(&mut measured.walk, self.files.root());
        self.snapshot(&mut measured.unchanged);

        self.files.change(1);
        walk(&mut measured.walk, self.files.root());
        self.snapshot(&mut measured.one);
        if let Some(git) = &git {
            measured.commit_one.measure(Scope::Children, || git.commit());
        }

        self.files.change(100);
        measured
            .walk_and_read
            .measure(Scope::Thread, || files::walk(self.files.root()) + self.files.read_changed(100) as u64);
        let base = self.snapshot(&mut measured.hundred);
        if let Some(git) = &git {
            measured.commit_hundred.measure(Scope::Children, || git.commit());
        }

        // The second one finds the disk busy with the writes of the first, so the order alternates.
        let restore_first = measured.restore.len().is_multiple_of(2);
        if restore_first {
            self.restore(&mut measured.restore, base);
        }
        if let Some(git) = &git {
            // Git, too, has an up-to-date index before files change.
            git.refresh();
            self.files.change(100);
            measured.reset.measure(Scope::Children, || git.reset());
        }
        if !restore_first {
            std::thread::sleep(SETTLED);
            self.snapshot(&mut Samples::default());
            self.restore(&mut measured.restore, base);
        }
        std::thread::sleep(SETTLED);
        self.snapshot(&mut Samples::default());
        (self.measured, self.git) = (measured, git);
    }

    fn restore(&mut self, samples: &mut Samples, base: WorkspaceRoot) {
        self.files.change(100);
        let restored =
            samples.measure(Scope::Process, || self.workspace.restore(base).expect("it can be restored"));
        assert_eq!(restored.changed.len(), 100);
    }

    fn snapshot(&self, samples: &mut Samples) -> WorkspaceRoot {
        let captured =
            samples.measure(Scope::Thread, || self.workspace.capture().expect("it can be captured"));
        self.objects.insert(captured.objects);
        captured.root
    }

    fn print(&self, report: &mut Report) {
        let measured = &self.measured;
        let params = |changed: usize| json!({ "files": FILES, "changed": changed });
        report.time("workspace_walk_and_stat", json!({ "files": FILES }), &measured.walk.timing());
        for (changed, samples) in [(0, &measured.unchanged), (1, &measured.one), (100, &measured.hundred)] {
            report.time("workspace_snapshot", params(changed), &samples.timing());
            let ratio = samples.timing().median / measured.walk.timing().median;
            report.value("workspace_snapshot_per_walk_and_stat", params(changed), 100.0 * ratio, "%");
            let ratio = samples.timing().cpu / measured.walk.timing().cpu;
            report.value("workspace_snapshot_per_walk_and_stat_cpu", params(changed), 100.0 * ratio, "%");
        }
        report.time("workspace_walk_and_read", params(100), &measured.walk_and_read.timing());
        let ratio = measured.hundred.median_ratio(&measured.walk_and_read);
        aims::SNAPSHOT.judge(report, params(100), ratio);
        report.time("workspace_restore", params(100), &measured.restore.timing());
        if self.git.is_none() {
            return;
        }
        let mut git = Report::of("git");
        git.time("add_and_commit", params(1), &measured.commit_one.timing());
        git.time("add_and_commit", params(100), &measured.commit_hundred.timing());
        git.time("reset_hard", params(100), &measured.reset.timing());
        for (changed, ours, theirs) in
            [(1, &measured.one, &measured.commit_one), (100, &measured.hundred, &measured.commit_hundred)]
        {
            let ratio = ours.median_ratio(theirs);
            report.value("workspace_snapshot_per_git_add_and_commit", params(changed), 100.0 * ratio, "%");
        }
        let ratio = measured.restore.median_ratio(&measured.reset);
        aims::RESTORE.judge(report, params(100), ratio);
    }
}
