//! `run` and `ask`: drive a session. `resume` opens one in the same way.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::host::Fidelity;
use backstitch::journal::SessionName;
use backstitch::mode::AgentMode;
use backstitch::ports::SandboxMode;
use backstitch::{Mission, RuntimeError};
use clap::Args;
use serde_json::json;

use super::driving::{DrivenSession, NewSession, StartedSession, Stopper};
use super::ending::finish;
use super::live::{Screen, show_reasoning};
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::history::isolated::{copy_event, copy_lines};
use crate::input::{self, InputFlags, MessageParts};
use crate::look::list::tag;
use crate::open::definition::{
    AgentFlags, ModelFlags, MovedTo, build_agent, change_mode, change_sandbox, definition_of, first_line,
    pin_servers, with_served_models,
};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, day_budget, ensure_idle, mission, short, uncovered_paths};
use crate::people::in_place::server_questions;
use crate::trust::addresses;

#[derive(Args)]
pub(crate) struct Run {
    /// Task for the agent. `-` reads it from standard input.
    #[arg(required_unless_present = "mission_file")]
    mission: Option<String>,
    /// File that holds the task.
    #[arg(long, value_name = "FILE", conflicts_with = "mission")]
    mission_file: Option<PathBuf>,
    /// Tag of the session, by which `ls --tag` selects it. Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
    /// Name of the session, which can be typed wherever its id can.
    #[arg(long, value_name = "NAME")]
    name: Option<SessionName>,
    #[command(flatten)]
    input: InputFlags,
    #[command(flatten)]
    agent: AgentFlags,
}

impl Run {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let text = match &self.mission_file {
            Some(path) => mission::of_file(path)?,
            None => mission::of_argument("MISSION", self.mission.clone().unwrap_or_default())?,
        };
        let definition = pin_servers(common, self.agent.definition(common)?).await?;
        let definition = with_served_models(common, definition).await;
        // An agent that cannot be built is refused before anything is created.
        let mut built = build_driven(common, &definition)?;
        let is_read = self.mission.as_deref() == Some(mission::STDIN);
        let mission = with_input(common, (built.mission(&text)?, is_read), &self.input, &definition)?;
        show_reasoning(self.agent.model.reasoning);
        let live = Screen::new(common.json);
        let new = NewSession::open(common, &definition)?;
        let stopper = Stopper::start(&new.place.runtime, &live)?;
        if definition.engine.is_none() {
            built.agent.budget = day_budget::of_start(common, &new.place, &definition).await?;
        }
        let common = common.naming(&new.place.address);
        let tags = self.tag.into_iter().collect();
        let started = new.start(&built.agent, mission, tags, self.name.as_ref()).await?;
        let NewSession { place, id: session } = new;
        let (workspace, uncovered) = (started.workspace(), started.uncovered_line());
        let StartedSession { run, files } = started;
        let fidelity = Fidelity::Compatible;
        let driven =
            DrivenSession { common, place, definition, built, live, stopper, session, workspace, fidelity };
        let (common, live) = (&driven.common, &driven.live);
        let announced = driven.announce("started");
        live.status_text(&format!("session {session} ({})", driven.definition.answerer()).into());
        driven.show_rights();
        if let Some(opened) = &files {
            copy_lines(opened).iter().for_each(|line| live.status_text(&line.as_str().into()));
            copy_event(opened, session).into_iter().for_each(|event| live.event(event));
        }
        if let (Some(workspace), Some(line)) = (&driven.workspace, uncovered) {
            live.status(&line);
            let paths = uncovered_paths(&**workspace);
            live.event(json!({"v": 1, "event": "uncovered", "session": session, "paths": paths}));
        }
        let is_copy = files.is_some_and(|files| files.isolation.is_some());
        let ended = async {
            let code = finish(&driven, driven.drive(run).await?).await?;
            if is_copy {
                let id = short(session);
                let (show, apply) = (format_args!("diff {id} start"), format_args!("apply {id}"));
                let (show, apply) = (common.hint(show), common.hint(apply));
                live.status_text(
                    &format!("`{show}` shows the changes in the copy, `{apply}` applies them").into(),
                );
            }
            Ok(code)
        };
        announced.close(ended.await)
    }
}

/// Builds the mission of a text, with images and standard input. `is_read` says that the text was read from there.
fn with_input(
    common: &Common,
    (text, is_read): (String, bool),
    input: &InputFlags,
    definition: &AgentDefinition,
) -> anyhow::Result<Mission> {
    let mut parts = MessageParts::new(text);
    input::add_to(&mut parts, input, is_read, definition)?;
    if !common.quiet {
        parts.attached.iter().for_each(|attached| eprintln!("attached: {attached}"));
    }
    Ok(parts.mission())
}

/// Builds the agent of a session that this command drives: with the lasting rules of the user, and with the person at the terminal,
/// whom MCP servers may ask.
pub(super) fn build_driven(common: &Common, definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    let definition = AgentDefinition { person: server_questions::person(common), ..definition.clone() };
    Ok(with_rules(common, build_agent(&definition)?))
}

/// Adds the lasting rules of the user.
pub(crate) fn with_rules(common: &Common, mut built: BuiltAgent) -> BuiltAgent {
    built.agent = built.agent.approval_rules(common.config.approval_rules());
    built
}

#[derive(Args)]
pub(crate) struct Ask {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Question or task. `-` reads it from standard input.
    text: String,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    input: InputFlags,
    /// Take over the session from the process that drives it. A process on this machine is killed.
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    moved: MovedTo,
}

impl Ask {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let is_read = self.text == mission::STDIN;
        let text = mission::of_argument("TEXT", self.text)?;
        let session = Some(self.session.as_str());
        let mut opened =
            DrivenSession::open(common, session, &self.model, &self.moved, (None, None), self.take_over)
                .await?;
        let text = opened.built.mission(&text)?;
        let mission = with_input(common, (text, is_read), &self.input, &opened.definition)?;
        if opened.definition.engine.is_none() {
            let mut limited = opened.definition.clone();
            limited.budget = self.model.budget.clone().unwrap_or(limited.budget);
            opened.built.agent.budget = day_budget::of_start(common, &opened.place, &limited).await?;
        }
        opened.open_workspace().await?;
        let options = opened.options(self.take_over);
        let asked = opened.place.runtime.ask_with(opened.session, &opened.built.agent, mission, options);
        let run = match asked.await {
            Err(error) if matches!(error.cause(), RuntimeError::EvaluationOpen { .. }) => {
                let id = short(opened.session);
                let hint = format!(
                    "`{}` continues, `{}` continues with another instruction, `{}` ends it",
                    common.hint(format_args!("resume {id}")),
                    common.hint(format_args!("resume {id} --message TEXT")),
                    common.hint(format_args!("cancel {id}"))
                );
                let message = format!("session {id} has not answered yet");
                return Err(CommandError::new(ErrorCode::EvaluationOpen, message).with_hint(hint).into());
            }
            asked => asked?,
        };
        let announced = opened.announce("resumed");
        let ended = async { finish(&opened, opened.drive(run).await?).await };
        announced.close(ended.await)
    }
}

impl DrivenSession {
    /// Opens a session to drive it again, and applies the flags to its agent.
    pub(super) async fn open(
        common: &Common,
        session: Option<&str>,
        model: &ModelFlags,
        moved: &MovedTo,
        (mode, sandbox): (Option<AgentMode>, Option<SandboxMode>),
        take_over: bool,
    ) -> anyhow::Result<Self> {
        let (place, session) = OpenStore::with_session(common, session).await?;
        let view = place.view(session).await?;
        refuse_to_drive(&view)?;
        let mut definition = definition_of(&place, &view).await?;
        let is_other_model = model.apply(&mut definition)?;
        if is_other_model {
            addresses::ask(common, &definition)?;
            definition = with_served_models(common, definition).await;
        }
        let is_moved = moved.apply(&mut definition)?;
        let mut is_other = is_other_model | is_moved;
        if let Some(mode) = mode {
            let here = std::env::current_dir()?;
            let directory = definition.workspace.path.clone().unwrap_or(here);
            change_mode(&mut definition, mode, common, &directory)?;
            is_other = true;
        }
        if let Some(files) = sandbox {
            change_sandbox(&common.config, &mut definition, files);
            is_other = true;
        }
        // Limits of flags apply to an evaluation that starts now; a resumed one receives them in its resume
        // options.
        let mut limited = definition.clone();
        limited.budget = model.budget.clone().unwrap_or(limited.budget);
        limited.deadline = model.deadline.or(limited.deadline);
        addresses::ask(common, &limited)?;
        let mut built = build_driven(common, &limited)?;
        if let Some(mut spec) = built.agent.workspace_spec().filter(|_| is_moved) {
            spec.in_place = true;
            built.agent = built.agent.workspace(spec);
        }
        show_reasoning(model.reasoning);
        let live = Screen::new(common.json);
        let stopper = Stopper::start(&place.runtime, &live)?;
        if take_over {
            place.runtime.end_holder(session).await?;
        } else {
            ensure_idle(common, &place, session).await?;
        }
        if is_other {
            place.runtime.record_agent(session, &definition).await?;
        }
        let (common, workspace, fidelity) = (common.clone(), None, Fidelity::Compatible);
        Ok(Self { common, place, definition, built, live, stopper, session, workspace, fidelity })
    }

    /// Prints what protects the session, to a person on a terminal and with `--verbose`.
    pub(super) fn show_rights(&self) {
        let is_shown = std::io::stderr().is_terminal() && !self.common.quiet;
        if is_shown || self.common.verbose > 0 {
            first_line(&self.definition).into_iter().for_each(|line| self.live.status(&line));
        }
    }

    pub(super) async fn open_workspace(&mut self) -> anyhow::Result<()> {
        let opened = self.place.open_files(&self.built.agent, self.session).await?;
        self.workspace = opened.map(|opened| opened.workspace);
        Ok(())
    }
}
