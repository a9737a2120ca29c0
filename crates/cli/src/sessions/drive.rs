//! `run` and `resume`: driving a session.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::id::SessionId;
use backstitch::journal::{Effect, PauseReason};
use backstitch::ports::Workspace;
use backstitch::{
    Drift, Driver, Ended, Fidelity, ResumeOptions, SessionOptions, SystemClock, Telemetry, TelemetryEvent,
    entropy,
};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::Common;
use super::definition::{Definition, read_script};
use super::place::{Place, short, uncovered};

/// What the shell may do to the world.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellEffect {
    /// Anything: after a crash a person has to say what became of a command.
    External,
    /// Only the files of the workspace: after a crash they are put back, and the command runs again.
    Workspace,
}

impl From<ShellEffect> for Effect {
    fn from(effect: ShellEffect) -> Self {
        match effect {
            ShellEffect::External => Self::External,
            ShellEffect::Workspace => Self::Workspace,
        }
    }
}

#[derive(Args)]
pub(crate) struct Run {
    /// What is to be done.
    mission: String,
    /// Where the answers come from: a file of replies, as TOML or, with the ending `.json`, as JSON.
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// The directory that the agent works in; without it, this one.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The system message.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// What the shell may do to the world.
    #[arg(long, value_enum, default_value = "external")]
    shell_effect: ShellEffect,
    /// How many answers there may be.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
}

impl Run {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let directory = match self.workspace {
            Some(directory) => directory,
            None => std::env::current_dir()?,
        };
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("the workspace {} cannot be made", directory.display()))?;
        let directory = directory.canonicalize()?;
        let text = std::fs::read_to_string(&self.script)
            .with_context(|| format!("the script {} cannot be read", self.script.display()))?;
        let is_json = self.script.extension().is_some_and(|ending| ending == "json");
        let definition = Definition {
            script: read_script(&text, is_json).with_context(|| self.script.display().to_string())?,
            system: self.system,
            workspace: Some(directory.clone()),
            shell_effect: self.shell_effect.into(),
            max_turns: self.max_turns,
        };
        let place = Place::existing_or_new(common, &directory)?;
        // The session is named first, so that whoever finds its directory held is told by which session.
        let id: SessionId = entropy::fresh_ids(Arc::new(SystemClock::new()))?.next();
        let workspace = place.workspace(&definition, &id.to_string())?;
        let files = workspace.clone().map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace: files, id: Some(id), ..SessionOptions::default() };
        let runtime = place.runtime.clone().with_telemetry(progress(common));
        let driver = runtime.create(definition.agent()?, options).await?;
        if !common.json {
            eprintln!("session {}", driver.session().id());
            if let Some(paths) = workspace.as_deref().and_then(uncovered) {
                eprintln!("not covered, and so neither kept nor put back: {paths}");
            }
        }
        let ended = driven(&driver, driver.start(self.mission)).await;
        finish(common, &driver, ended).await
    }
}

#[derive(Args)]
pub(crate) struct Resume {
    /// The session, by the beginning or the end of its id; without it, the latest.
    session: Option<String>,
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
        let place = Place::existing(common)?;
        let session = place.session(self.session.as_deref()).await?;
        let definition = Definition::of(&place.view(session).await?)?;
        let workspace = place.workspace(&definition, &session.to_string())?;
        let workspace = workspace.map(|workspace| workspace as Arc<dyn Workspace>);
        let options = SessionOptions { workspace, take_over: self.take_over, ..SessionOptions::default() };
        let runtime = place.runtime.clone().with_telemetry(progress(common));
        let driver = runtime.open(session, definition.agent()?, options).await?;
        let fidelity = if self.strict { Fidelity::Strict } else { Fidelity::Compatible };
        let drift = self.files.map(|files| match files {
            Found::Keep => Drift::Adopt,
            Found::Restore => Drift::Restore,
        });
        let options = ResumeOptions { fidelity, drift, ..ResumeOptions::default() };
        let ended = driven(&driver, driver.resume(options)).await;
        finish(common, &driver, ended).await
    }
}

/// Drives, and stops cleanly when a person presses Ctrl-C: what runs is rolled back, and the session pauses.
async fn driven<T>(driver: &Driver, driving: impl Future<Output = T>) -> T {
    let stop = driver.stop_token();
    let listener = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            eprintln!("stopping: what runs is rolled back");
            stop.cancel();
        }
    });
    let ended = driving.await;
    listener.abort();
    ended
}

/// Says what each call did, as it happens.
fn progress(common: &Common) -> Telemetry {
    let telemetry = Telemetry::default();
    if !common.json {
        telemetry.subscribe(|event| {
            if let TelemetryEvent::ToolInvoked(invoked) = event {
                let mark = if invoked.success { "+" } else { "x" };
                let line = invoked.rendered_output.lines().next().unwrap_or_default();
                eprintln!("{mark} {}: {line}", invoked.name);
            }
        });
    }
    telemetry
}

async fn finish(
    common: &Common,
    driver: &Driver,
    ended: Result<Ended, backstitch::RuntimeError>,
) -> anyhow::Result<ExitCode> {
    let session = driver.session().id();
    let released = driver.session().release().await;
    let ended = ended.with_context(|| {
        format!("session {session} stopped; `backstitch resume {}` goes on", short(session))
    })?;
    released?;
    if common.json {
        println!("{}", as_json(&session.to_string(), &ended));
    } else {
        say(&session.to_string(), &ended);
    }
    Ok(match ended {
        Ended::Completed(_) => ExitCode::SUCCESS,
        Ended::Paused { .. } => ExitCode::from(3),
        _ => ExitCode::FAILURE,
    })
}

fn as_json(session: &str, ended: &Ended) -> serde_json::Value {
    match ended {
        Ended::Completed(answered) => json!({
            "v": 1, "session": session, "outcome": "completed", "text": answered.text, "output": answered.output,
        }),
        Ended::Paused { reason, call, detail, .. } => json!({
            "v": 1, "session": session, "outcome": "paused", "reason": reason, "call": call, "detail": detail,
        }),
        Ended::Failed { failure, .. } => json!({
            "v": 1, "session": session, "outcome": "failed", "kind": failure.kind, "message": failure.message,
        }),
        Ended::Cancelled { .. } => json!({"v": 1, "session": session, "outcome": "cancelled"}),
        _ => json!({"v": 1, "session": session, "outcome": "superseded"}),
    }
}

fn say(session: &str, ended: &Ended) {
    let id = short(session);
    match ended {
        Ended::Completed(answered) => println!("{}", answered.text),
        Ended::Paused { reason: PauseReason::EffectUnknown, call: Some(call), detail, .. } => {
            let call = short(call);
            println!("paused: it is not known whether {detail} (call {call}) has happened. Say so:");
            println!("  backstitch resolve {id} {call} happened --result TEXT");
            println!("  backstitch resolve {id} {call} retry");
            println!("  backstitch resolve {id} {call} fail");
        }
        Ended::Paused { reason: PauseReason::Approval, call: Some(call), detail, .. } => {
            let call = short(call);
            println!("paused: {detail}. Decide:");
            println!("  backstitch resolve {id} {call} approve");
            println!("  backstitch resolve {id} {call} deny --reason TEXT");
        }
        Ended::Paused { detail, .. } => println!("paused: {detail}; `backstitch resume {id}` goes on"),
        other => println!("{other}"),
    }
}
