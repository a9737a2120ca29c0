//! `run` and `resume`: driving a session.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::id::SessionId;
use backstitch::ports::Workspace;
use backstitch::{
    Drift, Ended, Evaluator, Fidelity, LiveSession, ResumeOptions, RuntimeError, SessionOptions, SystemClock,
    entropy,
};
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::task::JoinHandle;

use super::Common;
use super::definition::{AgentFlags, ModelFlags, MovedTo, built, changed, definition_of};
use super::ending::{Driven, finish};
use super::holder::{WhenDriven, set_free};
use super::live::{Announced, Announcement, Live};
use super::place::{Place, short, uncovered, uncovered_paths};
use super::signals::Signals;
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
        let live = Live::new(common.json);
        let prompt = built.asking(&self.mission)?;
        let evaluator = Evaluator::of(built.agent);
        let stopper = Stopper::start(&evaluator, &live)?;
        let here = std::env::current_dir()?;
        let place = Place::existing_or_new(common, definition.workspace.path.as_deref().unwrap_or(&here))?;
        // The session is named first, so that whoever finds its directory held is told by which session.
        let id: SessionId = entropy::fresh_ids(Arc::new(SystemClock::new()))?.next();
        let common = &common.naming(place.store.path());
        let workspace = place.workspace(&definition, id)?;
        let files = workspace.clone().map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions {
            workspace: files,
            id: Some(id),
            stored_with_mission: true,
            ..SessionOptions::default()
        };
        let session = evaluator.create_session(&place.runtime, options).await?;
        let model = definition.model.as_ref().map(ToString::to_string).unwrap_or_default();
        // It is announced once its mission is durable, so that what was announced can be resumed.
        let event = json!({"v": 1, "event": "started", "session": id, "model": model});
        let mut status = format!("session {id} ({model})");
        let mut uncovered_event = None;
        if let Some((workspace, paths)) =
            workspace.as_deref().and_then(|files| Some((files, uncovered(files)?)))
        {
            status.push_str(&format!("\nnot covered, and so neither kept nor put back: {paths}"));
            let paths = uncovered_paths(workspace);
            uncovered_event = Some(json!({"v": 1, "event": "uncovered", "session": id, "paths": paths}));
        }
        let announced = live.begin_when_asked(Announcement { event, status, more: uncovered_event });
        let driving = evaluator.evaluate(&prompt, &session, false);
        let driven = stopper.driven(common, &live, &session, driving).await;
        announced.close(finish(common, &live, &definition, &session, driven).await)
    }
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
    files: Option<Found>,
    /// Takes an answer that reached its token limit as it is. Without this the model is asked to continue it.
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    moved: MovedTo,
}

/// What to do about files that changed meanwhile.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Found {
    /// Go on with them.
    Keep,
    /// Put them back to what they were.
    Restore,
}

impl Resume {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let session = self.session.as_deref();
        let opened = Opened::open(common, session, &self.model, &self.moved, self.take_over).await?;
        let Opened { built, evaluator, session, .. } = &opened;
        let announced = opened.announce("resumed");
        let fidelity = if self.strict { Fidelity::Strict } else { Fidelity::Compatible };
        let drift = self.files.map(|files| match files {
            Found::Keep => Drift::Adopt,
            Found::Restore => Drift::Restore,
        });
        let options = ResumeOptions {
            fidelity,
            drift,
            budget: self.model.budget.as_ref().and_then(|budget| budget.limits()),
            deadline: self.model.deadline.map(|deadline| deadline.0),
            accept: self.accept,
            ..ResumeOptions::default()
        };
        let driven = opened.driven(common, evaluator.evaluate(&built.prompt, session, options)).await;
        if let Err(RuntimeError::ConversationNotFound { session: id }) = &driven.ended {
            session.release().await?;
            let ask = common.hint(format_args!("ask {} TEXT", short(id)));
            return announced.close(Err(anyhow!("session {id} has no messages; `{ask}` asks it")));
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
        let opened = Opened::open(common, session, &self.model, &self.moved, self.take_over).await?;
        let Opened { built, evaluator, session, .. } = &opened;
        let open = {
            let state = session.state().await;
            state.view.latest_evaluation().is_some_and(|latest| latest.finished.is_none())
        };
        if open {
            session.release().await?;
            let id = short(session.id());
            return Err(anyhow!(
                "session {id} has not answered yet: `{}` continues, `{}` adds to what was asked, `{}` ends it",
                common.hint(format_args!("resume {id}")),
                common.hint(format_args!("send {id} TEXT")),
                common.hint(format_args!("cancel {id}"))
            ));
        }
        let prompt = built.asking(&self.text)?;
        let announced = opened.announce("resumed");
        let driven = opened.driven(common, evaluator.evaluate(&prompt, session, false)).await;
        announced.close(opened.finish(common, driven).await)
    }
}

/// A session that was opened to be driven on, and what drives it.
struct Opened {
    definition: AgentDefinition,
    built: BuiltAgent,
    live: Live,
    evaluator: Evaluator,
    stopper: Stopper,
    session: Arc<LiveSession>,
}

impl Opened {
    async fn open(
        common: &Common,
        session: Option<&str>,
        model: &ModelFlags,
        moved: &MovedTo,
        take_over: bool,
    ) -> anyhow::Result<Self> {
        let place = Place::existing(common)?;
        let session = place.session(session).await?;
        let mut definition = definition_of(&place, &place.view(session).await?, None).await?;
        let is_other = model.apply(&mut definition)? | moved.apply(&mut definition)?;
        // What is said on the command line counts for an evaluation that starts now; one that goes on is given it as it is resumed.
        let mut limited = definition.clone();
        limited.budget = model.budget.clone().unwrap_or(limited.budget);
        limited.deadline = model.deadline.or(limited.deadline);
        let built = built(&limited)?;
        let live = Live::new(common.json);
        let evaluator = Evaluator::of(built.agent.clone());
        let stopper = Stopper::start(&evaluator, &live)?;
        let when = if take_over { WhenDriven::TakeOver } else { WhenDriven::Refuse };
        set_free(common, &place, session, when).await?;
        let workspace = place.workspace(&definition, session)?;
        let workspace = workspace.map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace, take_over, ..SessionOptions::default() };
        let session = evaluator.open_session(&place.runtime, session, options).await?;
        if is_other {
            session.record(vec![changed(&definition)]).await?;
        }
        Ok(Self { definition, built, live, evaluator, stopper, session })
    }

    fn announce(&self, event: &str) -> Announced {
        let model = self.definition.model.as_ref().map(ToString::to_string).unwrap_or_default();
        self.live.begin(json!({"v": 1, "event": event, "session": self.session.id(), "model": model}))
    }

    async fn driven(
        &self,
        common: &Common,
        driving: impl Future<Output = Result<Ended, RuntimeError>>,
    ) -> Driven {
        self.stopper.driven(common, &self.live, &self.session, driving).await
    }

    async fn finish(&self, common: &Common, driven: Driven) -> anyhow::Result<ExitCode> {
        finish(common, &self.live, &self.definition, &self.session, driven).await
    }
}

/// Stops a run cleanly when a person presses Ctrl-C, the terminal is closed or the process is asked to end: what runs is rolled back,
/// and the session pauses. A second signal ends it at once, and so does one that comes before the session was announced.
struct Stopper {
    listener: JoinHandle<()>,
    interrupted: Arc<AtomicBool>,
}

impl Stopper {
    /// Listens from now on.
    fn start(evaluator: &Evaluator, live: &Live) -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let (evaluator, live, flag) = (evaluator.clone(), live.clone(), interrupted.clone());
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        let listener = tokio::spawn(async move {
            loop {
                signals.next().await;
                // Whatever is half done is found by the next resume, as after any crash.
                if flag.swap(true, Ordering::SeqCst) || !live.is_announced() {
                    live.quit();
                }
                live.status("stopping: what runs is rolled back");
                evaluator.stop();
            }
        });
        Ok(Self { listener, interrupted })
    }

    /// Drives a session, and shows its events.
    async fn driven(
        &self,
        common: &Common,
        live: &Live,
        session: &LiveSession,
        driving: impl Future<Output = Result<Ended, RuntimeError>>,
    ) -> Driven {
        let (following, tick) = (live.follow(common, session.events()), live.tick());
        let ended = driving.await;
        tick.abort();
        following.finish().await;
        Driven { ended, interrupted: self.interrupted.load(Ordering::SeqCst) }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
