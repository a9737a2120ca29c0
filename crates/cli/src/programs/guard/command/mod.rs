//! `guard -- COMMAND`: runs any command, and captures its files whenever they have been quiet for a moment after a change.
//!
//! The command has the terminal, the streams and the environment of this process, and its exit code is passed on. It
//! reports nothing, so its session has boundaries instead of calls: one at the start, one for each time that files changed
//! and then stayed as they are, and one at the end. A tree that is never quiet has a boundary at intervals.
//!
//! A watcher says when to look. It may miss changes, so it is only a hint: each boundary scans all files, and so does an
//! interval without a hint. Between boundaries this process holds neither the session nor the directory.

mod child;
mod quiet;
mod recorder;
mod tree;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use backstitch::agent_file::Span;
use clap::Args;
use serde_json::{Value, json};

use self::child::{CommandEnd, GuardedChild};
use self::quiet::{Due, QuietTracker};
use self::recorder::Recorder;
use self::tree::CoveredTree;
use self::watch::Watcher;
use crate::common::{Common, counted};
use crate::open::guarded::RunningGuard;
use crate::open::{OpenStore, short};
use crate::terminal;
use crate::usage;

/// How often all files are looked at while the watcher reports nothing.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(crate) struct GuardedCommand {
    /// Capture files once nothing has changed for this long, such as 500ms or 5s.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    quiet_for: Span,
    /// Capture files after this time although they still change.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    at_least_every: Span,
    /// Look for changes at intervals, without a watcher.
    #[arg(long)]
    no_watch: bool,
    /// The command to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// How changes are noticed.
struct ChangeDetector {
    tree: CoveredTree,
    /// The watcher, or why there is none.
    watcher: Result<Watcher, String>,
    /// Time between two looks without a watcher.
    interval: Duration,
    next_scan: Instant,
    stamp: u64,
}

impl GuardedCommand {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let interval = self.quiet_for.0.max(SHORTEST);
        if self.at_least_every.0 < interval {
            return usage::refuse("`--at-least-every` is shorter than `--quiet-for`");
        }
        let directory = std::env::current_dir()?.canonicalize()?;
        let place = OpenStore::existing_or_new_for(common, &directory, Some(&directory))?;
        super::install::collect(&place).await;
        recorder::record_killed(&place).await;
        // The claim comes first: a session whose guard is killed always has one.
        let session = place.runtime.new_id()?;
        let running = RunningGuard::new(&place.directory, session, &directory)?;
        let mut recorder = match Recorder::start(place, (&directory, session), &self.words).await {
            Ok(recorder) => recorder,
            Err(error) => {
                running.clear();
                return Err(
                    error.context("this directory cannot be guarded, and the command was not started")
                );
            }
        };
        let mut detector = ChangeDetector::new(&recorder, self.no_watch, interval);
        if let Some(text) = detector.text() {
            recorder.note(&text);
            say(common, &text);
        }
        let mut child = match GuardedChild::start(&self.words, &directory, recorder.session) {
            Ok(child) => child,
            Err(failed) => {
                running.clear_if_recorded(recorder.end(&failed.to_string(), false).await);
                crate::error::report(common, failed.to_error(), common.json);
                return Ok(failed.exit_code());
            }
        };
        let ending = self.watch_over(&mut child, &mut recorder, &mut detector).await?;
        running.clear_if_recorded(recorder.end(&ending.to_string(), ending.code().is_some()).await);
        report(common, &recorder, &detector, &ending);
        Ok(ending.exit_code())
    }

    /// Records boundaries until the command ends.
    async fn watch_over(
        &self,
        child: &mut GuardedChild,
        recorder: &mut Recorder,
        detector: &mut ChangeDetector,
    ) -> anyhow::Result<CommandEnd> {
        let mut tracker = QuietTracker::new(self.quiet_for.0.max(SHORTEST), self.at_least_every.0);
        loop {
            let until = tracker.next().map_or(detector.next_scan, |due| due.min(detector.next_scan));
            tokio::select! {
                ended = child.wait() => return ended,
                () = detector.hint() => tracker.note_change(Instant::now()),
                () = tokio::time::sleep_until(until.into()) => {}
            }
            let now = Instant::now();
            if now >= detector.next_scan && detector.scan().await {
                tracker.note_change(now);
            }
            if let Some(due) = tracker.take_due(now) {
                // Watched first, so that what is written during the capture is noticed.
                detector.refresh(recorder);
                if recorder.boundary(due.remark()).await {
                    continue;
                }
                // It could not be recorded: again after the next quiet moment.
                tracker.note_change(Instant::now());
            }
        }
    }
}

impl Due {
    fn remark(self) -> Option<&'static str> {
        match self {
            Self::Quiet => None,
            Self::Busy => Some("still changing"),
        }
    }
}

impl ChangeDetector {
    fn new(recorder: &Recorder, no_watch: bool, interval: Duration) -> Self {
        let tree = CoveredTree::new(&recorder.directory, &recorder.place.directory, &recorder.uncovered);
        let network = backstitch::stores::network_file_system(&recorder.directory);
        let watcher = match network {
            _ if no_watch => Err("no watcher is wanted".to_owned()),
            Some(name) => Err(format!("a watcher does not see everything on {name}")),
            None => Watcher::start(&tree),
        };
        let stamp = tree.stamp();
        let mut detector = Self { tree, watcher, interval, next_scan: Instant::now(), stamp };
        detector.plan();
        detector
    }

    fn plan(&mut self) {
        let after = if self.watcher.is_ok() { LOOK_ANYWAY.max(self.interval) } else { self.interval };
        self.next_scan = Instant::now() + after;
    }

    /// Completes when the watcher has seen a change; never without one.
    async fn hint(&self) {
        match &self.watcher {
            Ok(watcher) => watcher.hint().await,
            Err(_) => std::future::pending().await,
        }
    }

    /// Looks at all files. Returns whether one has changed.
    async fn scan(&mut self) -> bool {
        let tree = self.tree.clone();
        let stamp = tokio::task::spawn_blocking(move || tree.stamp()).await.unwrap_or(self.stamp);
        self.plan();
        std::mem::replace(&mut self.stamp, stamp) != stamp
    }

    /// Watches directories that are new. If that fails, files are looked at in intervals from then on.
    fn refresh(&mut self, recorder: &mut Recorder) {
        self.tree.set_uncovered(&recorder.uncovered);
        let watcher = self.watcher.as_ref().ok();
        if let Some(problem) = watcher.and_then(|watcher| watcher.refresh(&self.tree).err()) {
            self.watcher = Err(problem);
            self.plan();
            recorder.note(&self.text().unwrap_or_default());
        }
    }

    /// Says that there is no watcher.
    fn text(&self) -> Option<String> {
        let reason = self.watcher.as_ref().err()?;
        Some(format!("files are looked at every {:?}: {reason}", self.interval))
    }
}

/// Prints a remark to standard error, which is free before and after the command.
fn say(common: &Common, text: &str) {
    if !common.json && !terminal::is_quiet() {
        eprintln!("guard: {text}");
    }
}

/// Reports the session. Standard output belongs to the command.
fn report(common: &Common, recorder: &Recorder, detector: &ChangeDetector, ending: &CommandEnd) {
    let session = recorder.session;
    if common.json {
        let boundaries: Vec<Value> = recorder.boundaries.iter().map(recorder::to_json).collect();
        eprintln!(
            "{}",
            json!({"v": 1, "session": session, "exit_code": ending.code(), "signal": ending.signal(), "boundaries": boundaries,
                "watched": detector.watcher.is_ok(), "reason": detector.watcher.as_ref().err(), "problems": recorder.problems})
        );
        return;
    }
    for problem in &recorder.problems {
        eprintln!("guard: {problem}");
    }
    let hint = |command: &str| common.hint(format_args!("{command} {}", short(session)));
    if recorder.boundaries.is_empty() {
        say(common, &format!("no file was changed; session {}", short(session)));
    } else {
        let count = counted(recorder.boundaries.len(), "change");
        let undo = common.hint(format_args!("rewind {} start", short(session)));
        say(common, &format!("{count} recorded: `{}`; to undo everything: `{undo}`", hint("log")));
    }
}
