//! `run` and `resume`: driving a session.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use backstitch::agent_file::{AgentDefinition, AnswerMode, BuiltAgent};
use backstitch::id::SessionId;
use backstitch::journal::PauseReason;
use backstitch::ports::Workspace;
use backstitch::{
    Drift, Ended, Evaluator, Fidelity, LiveSession, ResumeOptions, RuntimeError, SessionOptions, SystemClock,
    entropy,
};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Common;
use super::definition::{AgentFlags, ModelFlags, changed, definition_of};
use super::live::Live;
use super::place::{Place, short, uncovered};
use crate::usage::Usage;

/// The exit code of a command that a person interrupted.
const INTERRUPTED: u8 = 130;

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
        let built = definition.build()?;
        let live = Live::new(common.json);
        let prompt = built.asking(&self.mission)?;
        let evaluator = live.follow(Evaluator::of(live.watch(built.agent)));
        let here = std::env::current_dir()?;
        let place = Place::existing_or_new(common, definition.workspace.path.as_deref().unwrap_or(&here))?;
        // The session is named first, so that whoever finds its directory held is told by which session.
        let id: SessionId = entropy::fresh_ids(Arc::new(SystemClock::new()))?.next();
        let workspace = place.workspace(&definition, &id.to_string())?;
        let files = workspace.clone().map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace: files, id: Some(id), ..SessionOptions::default() };
        let session = evaluator.create_session(&place.runtime, options).await?;
        let model = definition.model.as_ref().map(ToString::to_string).unwrap_or_default();
        live.event(json!({"v": 1, "event": "started", "session": id, "model": model}));
        live.status(&format!("session {id} ({model})"));
        if let Some(paths) = workspace.as_deref().and_then(uncovered) {
            live.status(&format!("not covered, and so neither kept nor put back: {paths}"));
        }
        let driving = evaluator.evaluate(&prompt, &session, false);
        let driven = driven(&evaluator, &live, &session, driving).await;
        finish(&live, &definition, &session, driven).await
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
    /// Takes the session from the process that holds it.
    #[arg(long)]
    take_over: bool,
    /// What to do about files that changed while nobody drove the session. Without it they are kept as they are, unless the
    /// machine was restarted since: then the session asks.
    #[arg(long, value_enum)]
    files: Option<Found>,
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
        let opened = Opened::open(common, self.session.as_deref(), &self.model, self.take_over).await?;
        let Opened { definition, built, live, evaluator, session } = &opened;
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
            ..ResumeOptions::default()
        };
        let driving = evaluator.evaluate(&built.prompt, session, options);
        let driven = driven(evaluator, live, session, driving).await;
        if let Err(RuntimeError::ConversationNotFound { session: id }) = &driven.ended {
            session.release().await?;
            let message =
                format!("session {id} has no messages; `backstitch ask {} TEXT` asks it", short(id));
            return Err(anyhow!(message));
        }
        finish(live, definition, session, driven).await
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
}

impl Ask {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.text.trim().is_empty() {
            return Err(Usage("say what is asked".to_owned()).into());
        }
        let opened = Opened::open(common, Some(&self.session), &self.model, self.take_over).await?;
        let Opened { definition, built, live, evaluator, session } = &opened;
        let open = {
            let state = session.state().await;
            state.view.latest_evaluation().is_some_and(|latest| latest.finished.is_none())
        };
        if open {
            session.release().await?;
            let id = short(session.id());
            return Err(anyhow!(
                "session {id} has not answered yet: `backstitch resume {id}` continues, `backstitch send {id} TEXT` adds to what was \
                 asked, `backstitch cancel {id}` ends it"
            ));
        }
        let prompt = built.asking(&self.text)?;
        let driving = evaluator.evaluate(&prompt, session, false);
        let driven = driven(evaluator, live, session, driving).await;
        finish(live, definition, session, driven).await
    }
}

/// A session that was opened to be driven on, and what drives it.
struct Opened {
    definition: AgentDefinition,
    built: BuiltAgent,
    live: Live,
    evaluator: Evaluator,
    session: Arc<LiveSession>,
}

impl Opened {
    async fn open(
        common: &Common,
        session: Option<&str>,
        model: &ModelFlags,
        take_over: bool,
    ) -> anyhow::Result<Self> {
        let place = Place::existing(common)?;
        let session = place.session(session).await?;
        let mut definition = definition_of(&place, &place.view(session).await?, None).await?;
        let is_other = model.apply(&mut definition)?;
        // What is said on the command line counts for an evaluation that starts now; one that goes on is given it as it is resumed.
        let mut limited = definition.clone();
        limited.budget = model.budget.clone().unwrap_or(limited.budget);
        limited.deadline = model.deadline.or(limited.deadline);
        let built = limited.build()?;
        let live = Live::new(common.json);
        let evaluator = live.follow(Evaluator::of(live.watch(built.agent.clone())));
        let workspace = place.workspace(&definition, &session.to_string())?;
        let workspace = workspace.map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace, take_over, ..SessionOptions::default() };
        let session = evaluator.open_session(&place.runtime, session, options).await?;
        if is_other {
            session.record(vec![changed(&definition)]).await?;
        }
        Ok(Self { definition, built, live, evaluator, session })
    }
}

/// What came of driving.
struct Driven {
    ended: Result<Ended, RuntimeError>,
    /// Whether a person stopped it.
    interrupted: bool,
}

/// Drives, and stops cleanly when a person presses Ctrl-C or the process is asked to end: what runs is rolled back, and the session
/// pauses. Who does not want to wait for that presses again.
async fn driven(
    evaluator: &Evaluator,
    live: &Live,
    session: &LiveSession,
    driving: impl Future<Output = Result<Ended, RuntimeError>>,
) -> Driven {
    let interrupted = Arc::new(AtomicBool::new(false));
    let (evaluator, said, flag) = (evaluator.clone(), live.clone(), interrupted.clone());
    let listener = tokio::spawn(async move {
        while asked_to_end().await {
            if flag.swap(true, Ordering::SeqCst) {
                // Whatever is half done is found by the next resume, as after any crash.
                std::process::exit(INTERRUPTED.into());
            }
            said.status("stopping: what runs is rolled back");
            evaluator.stop();
        }
    });
    let beside = [listener, live.tick(), live.retries(session)];
    let ended = driving.await;
    beside.iter().for_each(tokio::task::JoinHandle::abort);
    Driven { ended, interrupted: interrupted.load(Ordering::SeqCst) }
}

/// Completes when the process is asked to end; `false` when that cannot be heard.
#[cfg(unix)]
async fn asked_to_end() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return tokio::signal::ctrl_c().await.is_ok();
    };
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.is_ok(),
        told = terminate.recv() => told.is_some(),
    }
}

#[cfg(not(unix))]
async fn asked_to_end() -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}

async fn finish(
    live: &Live,
    definition: &AgentDefinition,
    session: &LiveSession,
    driven: Driven,
) -> anyhow::Result<ExitCode> {
    let id = session.id();
    let released = session.release().await;
    let goes_on = format!("`backstitch resume {}` goes on", short(id));
    let ended = match driven.ended {
        Err(error) if driven.interrupted => {
            live.status(&format!("interrupted: {error}; {goes_on}"));
            live.event(json!({"v": 1, "event": "ended", "session": id, "outcome": "interrupted"}));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        ended => ended.with_context(|| format!("session {id} stopped; {goes_on}"))?,
    };
    released?;
    live.event(as_json(&id.to_string(), &ended));
    let was_stopped =
        driven.interrupted && matches!(&ended, Ended::Paused { reason: PauseReason::Asked, .. });
    if was_stopped {
        live.status(&format!("paused; {goes_on}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    say(live, definition, &short(id), &ended);
    Ok(match ended {
        Ended::Completed(_) => ExitCode::SUCCESS,
        Ended::Paused { .. } => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    })
}

fn as_json(session: &str, ended: &Ended) -> Value {
    let mut line = match ended {
        Ended::Completed(answered) => {
            json!({"outcome": "completed", "text": answered.text, "output": answered.output})
        }
        Ended::Paused { reason, call, detail, session, .. } => {
            json!({"outcome": "paused", "reason": reason, "call": call, "detail": detail, "waits": session})
        }
        Ended::Failed { failure, .. } => {
            json!({"outcome": "failed", "kind": failure.kind, "message": failure.message})
        }
        Ended::Cancelled { .. } => json!({"outcome": "cancelled"}),
        _ => json!({"outcome": "superseded"}),
    };
    (line["v"], line["event"], line["session"]) = (json!(1), json!("ended"), json!(session));
    line
}

fn say(live: &Live, definition: &AgentDefinition, id: &str, ended: &Ended) {
    // What is decided for a session that works for a call is decided there.
    let waits = |session: &Option<SessionId>| session.map_or_else(|| id.to_owned(), short);
    match ended {
        // An answer that has to be data is printed as data, whatever was said around it.
        Ended::Completed(answered) => match &answered.output {
            Some(output) if definition.output.is_some() || definition.mode == AnswerMode::Lisp => {
                live.answer(&format!("{output:#}"), false);
            }
            _ => live.answer(&answered.text, true),
        },
        Ended::Paused { reason: PauseReason::EffectUnknown, call: Some(call), detail, session, .. } => {
            let (call, waits) = (short(call), waits(session));
            live.status(&format!(
                "paused: it is not known whether {detail} (call {call}) has happened. Say so:"
            ));
            live.status(&format!("  backstitch resolve {waits} {call} happened --result TEXT"));
            live.status(&format!("  backstitch resolve {waits} {call} retry"));
            live.status(&format!("  backstitch resolve {waits} {call} fail"));
        }
        Ended::Paused { reason: PauseReason::Approval, call: Some(call), detail, session, .. } => {
            let (call, waits) = (short(call), waits(session));
            live.status(&format!("paused: {detail}. Decide, then `backstitch resume {id}` goes on:"));
            live.status(&format!("  backstitch resolve {waits} {call} approve"));
            live.status(&format!("  backstitch resolve {waits} {call} deny --reason TEXT"));
            live.status(&format!("  backstitch resolve {waits} {call} edit --arguments JSON"));
        }
        Ended::Paused { reason: PauseReason::Budget, detail, .. } => {
            live.status(&format!(
                "paused: {detail}. `backstitch resume {id} --budget LIMITS` goes on with more"
            ));
        }
        Ended::Paused { detail, .. } => {
            live.status(&format!("paused: {detail}; `backstitch resume {id}` goes on"));
        }
        other => live.status(&other.to_string()),
    }
}
