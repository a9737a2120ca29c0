//! The turns of a conversation: a message is sent, or an open turn is resumed, and what it came to is printed.

use std::collections::BTreeMap;

use anyhow::Context as _;
use backstitch::id::SessionId;
use backstitch::journal::PauseReason;
use backstitch::view::JournalView;
use backstitch::{DriveOutcome, Mission, ResumeOptions, Run, SessionOptions};

use super::conversation::{Conversation, Flow, agent_of, is_open};
use super::recap::context;
use crate::error::explain_hint;
use crate::history::isolated::copy_lines;
use crate::look::waiting::{explain, waiting};
use crate::open::{Signals, day_budget, ensure_idle, short};
use crate::terminal::{self, Role, Text};
use crate::work::driving::{DriveReport, NewSession};
use crate::work::ending::print_answer;
use crate::work::live::{Screen, status_line};

impl Conversation {
    pub(super) async fn try_resume(&mut self) -> anyhow::Result<Flow> {
        let (Some(place), Some(session)) = (&self.place, self.session) else {
            eprintln!("there is nothing to resume yet");
            return Ok(Flow::Continue);
        };
        if !is_open(&place.view(session).await?) {
            eprintln!("the last turn has ended; type a message");
            return Ok(Flow::Continue);
        }
        ensure_idle(&self.common, place, session).await?;
        let signals = Signals::listen()?;
        let view = place.view(session).await?;
        let budget = day_budget::of_resume(&self.common, place, &self.definition, &view).await?;
        let resume = ResumeOptions { budget, ..ResumeOptions::default() };
        let options = SessionOptions::default();
        let run = place.runtime.resume_with(session, &self.built.agent, resume, options).await?;
        self.drive(run, signals).await
    }

    /// Sends a message: the mission of a new session, or a follow-up. One that could not be built is not sent.
    pub(super) async fn send(&mut self, mission: anyhow::Result<Mission>) -> anyhow::Result<Flow> {
        let mission = match mission {
            Ok(mission) => mission,
            Err(error) => {
                eprintln!("{error:#}; nothing was sent");
                return Ok(Flow::Continue);
            }
        };
        let commands = self.commands.iter();
        let mission = commands.fold(mission, |mission, command| mission.with_text(command.text()));
        let signals = Signals::listen().context("signals cannot be handled here")?;
        let Some(session) = self.session else {
            let run = self.start(mission).await?;
            self.commands.clear();
            let flow = self.drive(run, signals).await?;
            // Not while it is driven: a run that ends releases the session.
            self.record_commands().await?;
            return Ok(flow);
        };
        let place = self.place()?;
        ensure_idle(&self.common, place, session).await?;
        if is_open(&place.view(session).await?) && !self.end_turn(session).await? {
            return Ok(Flow::Continue);
        }
        let mut agent = self.built.agent.clone();
        if self.definition.engine.is_none() {
            agent.budget = day_budget::of_start(&self.common, place, &self.definition).await?;
        }
        let run = place.runtime.ask(session, &agent, mission).await?;
        self.commands.clear();
        self.drive(run, signals).await
    }

    async fn start(&mut self, mission: Mission) -> anyhow::Result<Run> {
        if let Some(project) = &self.project {
            // Another conversation gets another copy of the project.
            self.definition.workspace.path = Some(project.clone());
            self.built = agent_of(&self.common, &self.definition)?;
        }
        let new = NewSession::open(&self.common, &self.definition)?;
        let mut agent = self.built.agent.clone();
        if self.definition.engine.is_none() {
            agent.budget = day_budget::of_start(&self.common, &new.place, &self.definition).await?;
        }
        let name = self.name.take();
        let started = new.start(&agent, mission, BTreeMap::new(), name.as_ref()).await?;
        started.files.iter().flat_map(copy_lines).for_each(|line| eprintln!("{line}"));
        let isolation = started.files.as_ref().and_then(|files| files.isolation.as_ref());
        if let (Some(isolation), Some(workspace)) = (isolation, started.workspace()) {
            // From here on the directory of the agent is the copy, as it is recorded.
            self.project = Some(isolation.project.clone());
            self.definition.workspace.path = workspace.host_directory();
            self.built = agent_of(&self.common, &self.definition)?;
        }
        self.common = self.common.naming(&new.place.address);
        eprintln!("session {}", short(new.id));
        started.uncovered_line().into_iter().for_each(|line| eprintln!("{line}"));
        (self.place, self.session) = (Some(new.place), Some(new.id));
        Ok(started.run)
    }

    /// Ends a turn that has not ended, so that another message can be asked. Returns false if it waits for a
    /// decision that only its own command can make.
    async fn end_turn(&self, session: SessionId) -> anyhow::Result<bool> {
        let place = self.place()?;
        place.runtime.cancel(session).await?;
        let run = place.runtime.resume(session, &self.built.agent).await?;
        match run.outcome().await? {
            DriveOutcome::Paused { .. } => {
                let view = place.view(session).await?;
                let waits = waiting(&*place.store, &view).await?;
                explain(&self.common, &view, &waits).iter().for_each(|line| eprintln!("{line}"));
                eprintln!("the message was not sent: the turn before it waits for this decision");
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Prints how a turn ended, and the status of the conversation.
    pub(super) async fn report(
        &self,
        screen: &Screen,
        session: SessionId,
        driven: DriveReport,
    ) -> anyhow::Result<()> {
        let place = self.place()?;
        let view = place.view(session).await?;
        let is_stop = |reason: &PauseReason| *reason == PauseReason::Asked;
        match driven.ended {
            Ok(DriveOutcome::Completed(answer)) => print_answer(screen, &self.definition, &answer),
            Ok(DriveOutcome::Paused { reason, .. }) if driven.interrupted && is_stop(&reason) => {
                screen.status(
                    "interrupted. A message continues the conversation; `/resume` continues the turn.",
                );
            }
            Ok(DriveOutcome::Paused { .. }) => {
                let waits = waiting(&*place.store, &view).await?;
                explain(&self.common, &view, &waits).iter().for_each(|line| screen.status(line));
                screen.status("then `/resume` continues the turn; a message ends it and asks something else");
            }
            Ok(DriveOutcome::Failed { failure, .. }) => {
                screen.status(&format!("the turn failed: {}", failure.message));
                screen.status(&explain_hint(failure.code()));
            }
            Ok(other) => screen.status(&other.to_string()),
            Err(error) => {
                screen.status(&format!("error: {error}"));
                screen.status(&explain_hint(error.code()));
                screen.status("`/resume` tries again; a message asks something else");
            }
        }
        self.print_status(&view);
        Ok(())
    }

    /// Prints the line above the prompt: model, turn, tokens, money and context.
    pub(super) fn print_status(&self, view: &JournalView) {
        let turn = view.evaluations().count();
        let context = context(view, self.definition.window);
        let line = status_line(&self.model(), turn, view.ledger().charged(), context);
        terminal::error_line(&Text::new().add(Role::Dim, line));
    }
}
