//! `run` and `resume`: driving a session.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::journal::StopReason;
use backstitch::ports::Workspace;
use backstitch::{
    DriftPolicy, Fidelity, ResumeOptions, Runtime, RuntimeError, SessionOptions, SystemClock, entropy,
};
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::task::JoinHandle;

use super::Common;
use super::definition::{AgentFlags, ModelFlags, MovedTo, built, changed, definition_of};
use super::ending::{DriveReport, finish};
use super::holder::{WhenDriven, set_free};
use super::live::{AnnouncedRun, Screen};
use super::place::{OpenStore, short, uncovered, uncovered_paths};
use super::signals::Signals;
use crate::error::CommandError;
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Run {
    /// What is to be done.
    mission: String,
    #[command(flatten)]
    agent: AgentFlags,
}

impl Run {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let definition = self.agent.definition()?;
        // What cannot be put together is said before anything is made.
        let built = built(&definition)?;
        let mission = built.mission(&self.mission)?;
        let live = Screen::new(common.json);
        let here = std::env::current_dir()?;
        let place =
            OpenStore::existing_or_new(common, definition.workspace.path.as_deref().unwrap_or(&here))?;
        let stopper = Stopper::start(&place.runtime, &live)?;
        // The session is named first, so that errors about a directory that is in use name the session that holds it.
        let id: SessionId = entropy::fresh_ids(Arc::new(SystemClock::new()))?.next();
        let common = &common.naming(place.store.path());
        let workspace = place.workspace(&definition, id)?;
        let files = workspace.clone().map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace: files, id: Some(id), ..SessionOptions::default() };
        // Its mission is durable once this returns: what is announced can be resumed.
        let run = place.runtime.start_with(&built.agent, mission, options).await?;
        let model = model_of(&definition);
        let announced = live.begin(json!({"v": 1, "event": "started", "session": id, "model": model}));
        live.status(&format!("session {id} ({model})"));
        if let Some((workspace, paths)) =
            workspace.as_deref().and_then(|files| Some((files, uncovered(files)?)))
        {
            live.status(&format!("not covered, and so neither kept nor put back: {paths}"));
            let paths = uncovered_paths(workspace);
            live.event(json!({"v": 1, "event": "uncovered", "session": id, "paths": paths}));
        }
        let driven = stopper.driven(common, &live, run).await;
        announced.close(finish(common, &live, &place, &definition, id, driven).await)
    }
}

fn model_of(definition: &AgentDefinition) -> String {
    definition.model.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[derive(Args)]
pub(crate) struct Resume {
    /// The session, by the beginning or the end of its id; without it, the latest.
    session: Option<String>,
    #[command(flatten)]
    model: ModelFlags,
    /// Refuses when anything of the agent has changed since the session was started.
    #[arg(long)]
    strict: bool,
    /// Takes the session from the process that drives it. On this machine that process is killed.
    #[arg(long)]
    take_over: bool,
    /// What to do about files that changed while nobody drove the session. Without it they are kept as they are, unless the
    /// machine was restarted since: then the session asks.
    #[arg(long, value_enum)]
    files: Option<DriftChoice>,
    /// Takes an answer that reached its token limit as it is. Without this the model is asked to continue it.
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    moved: MovedTo,
}

/// What to do about files that changed meanwhile.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DriftChoice {
    /// Go on with them.
    Keep,
    /// Put them back to what they were.
    Restore,
}

impl Resume {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let session = self.session.as_deref();
        let opened = SessionToDrive::open(common, session, &self.model, &self.moved, self.take_over).await?;
        let id = opened.session;
        let fidelity = if self.strict { Fidelity::Strict } else { Fidelity::Compatible };
        let drift = self.files.map(|files| match files {
            DriftChoice::Keep => DriftPolicy::Adopt,
            DriftChoice::Restore => DriftPolicy::Restore,
        });
        let resume = ResumeOptions {
            fidelity,
            drift,
            budget: self.model.budget.as_ref().and_then(|budget| budget.limits()),
            deadline: self.model.deadline.map(|deadline| deadline.0),
            accept: self.accept,
            ..ResumeOptions::default()
        };
        let options = opened.options()?;
        let run = opened.place.runtime.resume_with(id, &opened.built.agent, resume, options).await?;
        let announced = opened.announce();
        let driven = opened.stopper.driven(common, &opened.live, run).await;
        if let Err(error) = &driven.ended
            && matches!(error.cause(), RuntimeError::ConversationNotFound { .. })
        {
            let ask = common.hint(format_args!("ask {} TEXT", short(id)));
            let error = CommandError::new(ErrorCode::NoMessages, format!("session {id} has no messages"));
            return announced.close(Err(error.with_hint(format!("`{ask}` asks it")).into()));
        }
        announced.close(opened.finish(common, driven).await)
    }
}

#[derive(Args)]
pub(crate) struct Ask {
    /// The session, by the beginning or the end of its id.
    session: String,
    /// What is asked.
    text: String,
    #[command(flatten)]
    model: ModelFlags,
    /// Takes the session from the process that holds it.
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    moved: MovedTo,
}

impl Ask {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.text.trim().is_empty() {
            return Err(Usage("say what is asked".to_owned()).into());
        }
        let session = Some(self.session.as_str());
        let opened = SessionToDrive::open(common, session, &self.model, &self.moved, self.take_over).await?;
        let mission = opened.built.mission(&self.text)?;
        let options = opened.options()?;
        let asked = opened.place.runtime.ask_with(opened.session, &opened.built.agent, mission, options);
        let run = match asked.await {
            Err(error) if matches!(error.cause(), RuntimeError::EvaluationOpen { .. }) => {
                let id = short(opened.session);
                let hint = format!(
                    "`{}` continues, `{}` adds to the request, `{}` ends it",
                    common.hint(format_args!("resume {id}")),
                    common.hint(format_args!("send {id} TEXT")),
                    common.hint(format_args!("cancel {id}"))
                );
                let message = format!("session {id} has not answered yet");
                return Err(CommandError::new(ErrorCode::EvaluationOpen, message).with_hint(hint).into());
            }
            asked => asked?,
        };
        let announced = opened.announce();
        let driven = opened.stopper.driven(common, &opened.live, run).await;
        announced.close(opened.finish(common, driven).await)
    }
}

/// A session that is about to be driven again, with its agent as the flags change it.
struct SessionToDrive {
    place: OpenStore,
    definition: AgentDefinition,
    built: BuiltAgent,
    live: Screen,
    stopper: Stopper,
    session: SessionId,
    take_over: bool,
}

impl SessionToDrive {
    async fn open(
        common: &Common,
        session: Option<&str>,
        model: &ModelFlags,
        moved: &MovedTo,
        take_over: bool,
    ) -> anyhow::Result<Self> {
        let place = OpenStore::existing(common)?;
        let session = place.session(session).await?;
        let mut definition = definition_of(&place, &place.view(session).await?, None).await?;
        let is_other = model.apply(&mut definition)? | moved.apply(&mut definition)?;
        // Limits given as flags hold for an evaluation that starts now; one that is resumed is given them by its resume options.
        let mut limited = definition.clone();
        limited.budget = model.budget.clone().unwrap_or(limited.budget);
        limited.deadline = model.deadline.or(limited.deadline);
        let built = built(&limited)?;
        let live = Screen::new(common.json);
        let stopper = Stopper::start(&place.runtime, &live)?;
        let when = if take_over { WhenDriven::TakeOver } else { WhenDriven::Refuse };
        set_free(common, &place, session, when).await?;
        if is_other {
            let options = SessionOptions { take_over, ..SessionOptions::default() };
            let idle = place.runtime.open_idle(session, options).await?;
            let recorded = idle.record(vec![changed(&definition)]).await;
            idle.release().await.and(recorded)?;
        }
        Ok(Self { place, definition, built, live, stopper, session, take_over })
    }

    fn options(&self) -> anyhow::Result<SessionOptions> {
        let workspace = self.place.workspace(&self.definition, self.session)?;
        let workspace = workspace.map(|workspace| workspace as Arc<dyn Workspace>);
        Ok(SessionOptions { workspace, take_over: self.take_over, ..SessionOptions::default() })
    }

    fn announce(&self) -> AnnouncedRun {
        let model = model_of(&self.definition);
        self.live.begin(json!({"v": 1, "event": "resumed", "session": self.session, "model": model}))
    }

    async fn finish(&self, common: &Common, driven: DriveReport) -> anyhow::Result<ExitCode> {
        finish(common, &self.live, &self.place, &self.definition, self.session, driven).await
    }
}

/// Stops a run cleanly when a person presses Ctrl-C, the terminal is closed or the process is asked to end: running calls are rolled
/// back, and the session pauses. A second signal ends it at once, and so does one that comes before the session was announced.
struct Stopper {
    listener: JoinHandle<()>,
    interrupted: Arc<AtomicBool>,
}

impl Stopper {
    /// Listens from now on.
    fn start(runtime: &Runtime, live: &Screen) -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let (runtime, live, flag) = (runtime.clone(), live.clone(), interrupted.clone());
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        let listener = tokio::spawn(async move {
            loop {
                signals.next().await;
                // The next resume recovers what is half done, as after any crash.
                if flag.swap(true, Ordering::SeqCst) || !live.is_announced() {
                    live.quit();
                }
                live.status("stopping: what runs is rolled back");
                runtime.stop(StopReason::Signal);
            }
        });
        Ok(Self { listener, interrupted })
    }

    /// Shows the events of a run until it has ended.
    async fn driven(&self, common: &Common, live: &Screen, mut run: backstitch::Run) -> DriveReport {
        let tick = live.tick();
        while let Some(event) = run.next().await {
            live.show(common, run.session(), &event);
        }
        let ended = run.ended().await;
        tick.abort();
        DriveReport { ended, interrupted: self.interrupted.load(Ordering::SeqCst) }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
