//! A turn: the prompt of an editor is driven to its end, with questions to the person on the way.
//!
//! A turn that is cancelled ends its evaluation: running calls are rolled back. If the editor is gone, or the process is to end, the
//! session only pauses, and a later process continues it.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use backstitch::code::ErrorCode;
use backstitch::host::{AskedCalls, reason_word};
use backstitch::journal::{PauseReason, RecordBody};
use backstitch::ports::Workspace;
use backstitch::{
    CancellationToken, DriveOutcome, ResumeOptions, Run, RuntimeError, SessionEvent, SessionOptions,
};

use crate::content::EditorPrompt;
use crate::error::{coded, invalid, of_runtime};
use crate::questions::Decisions;
use crate::replay::is_open;
use crate::session::{EditorSession, SessionState};
use crate::updates::TurnUpdates;

/// Tag of sessions that an editor started.
const TAG: (&str, &str) = ("started_by", "editor");

/// Whether a call begins to wait for approval.
fn is_approval(event: &SessionEvent) -> bool {
    let SessionEvent::Record(record) = event else { return false };
    matches!(&record.body, RecordBody::Paused(paused) if paused.reason == PauseReason::Approval)
}

impl EditorSession {
    /// Runs a prompt: a command of the conversation, or a message for the agent.
    pub(crate) async fn run_turn(
        &self,
        state: &mut SessionState,
        prompt: EditorPrompt,
        stop: &CancellationToken,
    ) -> Result<StopReason, Error> {
        let command = prompt.command().map(|(name, rest)| (name.to_owned(), rest.to_owned()));
        match command.as_ref().map(|(name, rest)| (name.as_str(), rest.as_str())) {
            Some(("resume", _)) => {
                let Some(run) = self.resume_open_turn(state).await? else { return Ok(StopReason::EndTurn) };
                return self.drive(state, run, stop).await;
            }
            Some((name @ ("rewind" | "undo" | "redo"), rest)) => {
                self.step_by_command(state, name, rest).await?;
                return Ok(StopReason::EndTurn);
            }
            _ => {}
        }
        tokio::select! {
            () = self.decide_servers(state) => {}
            () = stop.cancelled() => return Ok(StopReason::Cancelled),
            () = self.closed.cancelled() => return Ok(StopReason::Cancelled),
        }
        let mission = prompt.mission(&state.prepared.agent.built)?;
        let run = if state.prepared.is_stored {
            if !self.end_open_turn(state).await? {
                return Ok(StopReason::EndTurn);
            }
            self.record_agent(state).await?;
            let prepared = &state.prepared;
            prepared.runtime.ask(self.session, &prepared.agent.built.agent, mission).await
        } else {
            self.record_agent(state).await?;
            let tags = BTreeMap::from([(TAG.0.to_owned(), TAG.1.to_owned())]);
            let options = SessionOptions { id: Some(self.session), tags, ..SessionOptions::default() };
            let prepared = &state.prepared;
            prepared.runtime.start_with(&prepared.agent.built.agent, mission, options).await
        };
        let run = run.map_err(|error| of_runtime(&error))?;
        if !std::mem::replace(&mut state.prepared.is_stored, true)
            && state.prepared.agent.definition.workspace.isolated
        {
            // From here on the directory of the agent is the copy, as it is recorded.
            self.reload(state).await?;
        }
        self.drive(state, run, stop).await
    }

    /// Resumes the turn that has not ended.
    async fn resume_open_turn(&self, state: &mut SessionState) -> Result<Option<Run>, Error> {
        let failed = |error: RuntimeError| of_runtime(&error);
        if !state.prepared.is_stored
            || !is_open(&state.prepared.runtime.view(self.session).await.map_err(failed)?)
        {
            self.say("There is nothing to resume: the last turn has ended.");
            return Ok(None);
        }
        self.record_agent(state).await?;
        let prepared = &state.prepared;
        let run = prepared.runtime.resume(self.session, &prepared.agent.built.agent).await;
        run.map(Some).map_err(failed)
    }

    /// Ends a turn that has not ended, so that another message can be asked. Returns false if it waits for a decision that only
    /// its own command can make.
    async fn end_open_turn(&self, state: &SessionState) -> Result<bool, Error> {
        let failed = |error: RuntimeError| of_runtime(&error);
        let prepared = &state.prepared;
        if !is_open(&prepared.runtime.view(self.session).await.map_err(failed)?) {
            return Ok(true);
        }
        prepared.runtime.cancel(self.session).await.map_err(failed)?;
        let run = prepared.runtime.resume(self.session, &prepared.agent.built.agent).await.map_err(failed)?;
        let ended = run.outcome().await.map_err(failed)?;
        if let DriveOutcome::Paused { detail, .. } = &ended {
            let text =
                format!("The message was not sent: the turn before it waits for a decision. {detail}\n\n");
            self.say(&text);
            self.say_how_to_decide(state);
            return Ok(false);
        }
        Ok(true)
    }

    /// Drives a run to its end, and asks the person on the way.
    async fn drive(
        &self,
        state: &mut SessionState,
        run: Run,
        stop: &CancellationToken,
    ) -> Result<StopReason, Error> {
        let failed = |error: RuntimeError| of_runtime(&error);
        let runtime = state.prepared.runtime.clone();
        let window = state.prepared.agent.definition.window;
        let mut updates = TurnUpdates::new(runtime.clone(), self.session, state.files_directory(), window);
        let mut ended = self.follow(state, run, &mut updates, stop).await;
        while let Ok(DriveOutcome::Paused { reason, .. }) = &ended {
            let is_stopped = stop.is_cancelled() || self.closed.is_cancelled();
            if is_stopped || !reason.is_askable() {
                break;
            }
            let files = self.open_files(state).await?;
            let decided = tokio::select! {
                decided = self.ask_all(state, files.clone()) => decided.map_err(failed)?,
                () = stop.cancelled() => Decisions::LeftOpen,
                () = self.closed.cancelled() => Decisions::LeftOpen,
            };
            let Decisions::Made(drift) = decided else { break };
            let options = SessionOptions { workspace: files, ..SessionOptions::default() };
            let resume = ResumeOptions { drift, ..ResumeOptions::default() };
            let agent = &state.prepared.agent.built.agent;
            let run = runtime.resume_with(self.session, agent, resume, options).await.map_err(failed)?;
            ended = self.follow(state, run, &mut updates, stop).await;
        }
        if stop.is_cancelled() && matches!(ended, Ok(DriveOutcome::Paused { .. })) {
            // It was cancelled while it waited, so that nothing ran that could end it.
            if runtime.cancel(self.session).await.is_ok() {
                let agent = &state.prepared.agent.built.agent;
                let run = runtime.resume(self.session, agent).await.map_err(failed)?;
                ended = self.follow(state, run, &mut updates, stop).await;
            }
        }
        let waits = matches!(ended, Ok(DriveOutcome::Paused { .. })) && !stop.is_cancelled();
        if !waits {
            updates.close().into_iter().for_each(|update| self.send(update));
        }
        self.stop_reason(state, ended, stop)
    }

    /// Passes on what happens in a run until it has ended.
    async fn follow(
        &self,
        state: &SessionState,
        run: Run,
        updates: &mut TurnUpdates,
        stop: &CancellationToken,
    ) -> Result<DriveOutcome, RuntimeError> {
        let (mut run, mut asked) = (run.with_content(), AskedCalls::default());
        let (mut is_cancelled, mut is_paused) = (false, false);
        // The calls of an engine wait while it runs.
        let has_engine = state.prepared.agent.built.agent.engine_name().is_some();
        loop {
            tokio::select! {
                event = run.next() => {
                    let Some(event) = event else { break };
                    for update in updates.of_event(&event).await {
                        self.send(update);
                    }
                    if has_engine && is_approval(&event) {
                        let is_decided = tokio::select! {
                            decided = self.ask_while_driven(state, &mut asked) => decided?,
                            () = stop.cancelled() => true,
                            () = self.closed.cancelled() => false,
                        };
                        if !is_decided {
                            run.pause();
                        }
                    }
                }
                () = stop.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    // It may have ended already.
                    if run.cancel().await.is_err() {
                        run.pause();
                    }
                }
                () = self.closed.cancelled(), if !is_paused => {
                    is_paused = true;
                    run.pause();
                }
            }
        }
        run.outcome().await
    }

    /// Opens the files of the session, to show what a call would change.
    async fn open_files(&self, state: &SessionState) -> Result<Option<Arc<dyn Workspace>>, Error> {
        let prepared = &state.prepared;
        let Some(spec) = prepared.agent.built.agent.workspace_spec() else { return Ok(None) };
        let opened = prepared.runtime.open_workspace(&spec, self.session).await;
        opened.map(|opened| Some(opened.workspace)).map_err(|error| of_runtime(&error))
    }

    /// Names the commands that decide about what waits.
    fn say_how_to_decide(&self, state: &SessionState) {
        let command =
            |words: &str| self.host.command(&state.prepared.runtime, &format!("{words} {}", self.session));
        self.say(&format!(
            "> `{}` shows what waits, `{}` and `{}` decide; then `/resume` continues.\n\n",
            command("show"),
            command("approve"),
            command("deny")
        ));
    }

    /// Returns how a turn ended, for the editor.
    fn stop_reason(
        &self,
        state: &SessionState,
        ended: Result<DriveOutcome, RuntimeError>,
        stop: &CancellationToken,
    ) -> Result<StopReason, Error> {
        match ended {
            _ if stop.is_cancelled() => Ok(StopReason::Cancelled),
            Ok(DriveOutcome::Completed(_)) => Ok(StopReason::EndTurn),
            Ok(DriveOutcome::Cancelled { .. }) => Ok(StopReason::Cancelled),
            Ok(DriveOutcome::Paused { reason, detail, .. }) => {
                if self.closed.is_cancelled() {
                    return Ok(StopReason::Cancelled);
                }
                self.say(&format!("\n\n> The session is paused ({}): {detail}\n\n", reason_word(reason)));
                Ok(match reason {
                    PauseReason::Budget | PauseReason::Deadline => StopReason::MaxTurnRequests,
                    PauseReason::Truncated => StopReason::MaxTokens,
                    PauseReason::Asked => StopReason::EndTurn,
                    _ => {
                        self.say_how_to_decide(state);
                        StopReason::EndTurn
                    }
                })
            }
            Ok(DriveOutcome::Failed { failure, .. }) => match failure.code() {
                ErrorCode::MaxTurns => Ok(StopReason::MaxTurnRequests),
                ErrorCode::ContentFilter => Ok(StopReason::Refusal),
                code => Err(coded(code, &format!("the turn failed: {}", failure.message), None)),
            },
            Ok(other) => Err(invalid(other.to_string())),
            Err(error) => Err(of_runtime(&error)),
        }
    }
}
