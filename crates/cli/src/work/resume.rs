//! `resume`: continues a session that was interrupted or paused, or all of them.

use std::process::ExitCode;

use backstitch::host::{DriftPolicy, Fidelity};
use backstitch::mode::AgentMode;
use backstitch::ports::SandboxMode;
use backstitch::{ResumeOptions, RuntimeError};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::driving::DrivenSession;
use super::ending::finish;
use super::live::INTERRUPTED;
use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::look::conversations::{self, ToResume};
use crate::open::definition::{ModelFlags, MovedTo};
use crate::open::guarded::PROGRAM;
use crate::open::{OpenStore, day_budget, mission, short};
use crate::people::picker;
use crate::report::Report;

#[derive(Args)]
pub(crate) struct Resume {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: the session that was interrupted
    /// or waits, or the choice from a list if there are several and a terminal; if there is none, the latest session.
    session: Option<String>,
    /// Resume all sessions of this project that were interrupted, the oldest first, one after the other.
    #[arg(long, conflicts_with_all = ["session", "take_over", "message", "accept", "workspace"])]
    all_interrupted: bool,
    /// The most sessions that `--all-interrupted` resumes.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "all_interrupted")]
    limit: usize,
    #[command(flatten)]
    model: ModelFlags,
    /// Refuse to resume if anything of the agent has changed since the session was started.
    #[arg(long)]
    strict: bool,
    /// Take over the session from the process that drives it. A process on this machine is killed.
    #[arg(long)]
    take_over: bool,
    /// Treatment of files that changed while no process drove the session. Default: keep what others changed and
    /// restore what an interrupted call changed, or pause for a decision if that cannot be told apart.
    #[arg(long, value_enum)]
    files: Option<DriftChoice>,
    /// Message that the agent reads before it continues: at a rewound point, an instruction in place of what it did then.
    /// `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Accept an answer that reached its token limit as it is. Default: ask the model to continue it.
    #[arg(long)]
    accept: bool,
    /// What runs without a question from now on: plan, ask, auto or full. It is recorded. Default: that of the session.
    #[arg(long, value_name = "MODE", conflicts_with = "sandbox")]
    mode: Option<AgentMode>,
    /// Files that shell commands may write from now on: workspace (and $TMPDIR), read-only (only $TMPDIR), or off (all).
    /// It is recorded. Default: that of the session; for an imported one, the stricter of its own and yours.
    #[arg(long, value_name = "MODE")]
    sandbox: Option<SandboxMode>,
    #[command(flatten)]
    moved: MovedTo,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DriftChoice {
    /// Continue with the files as they are.
    Keep,
    /// Restore the files as they are recorded, except for what others certainly changed after an interrupted call.
    Restore,
}

impl Resume {
    pub(crate) async fn run(mut self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.all_interrupted {
            return self.run_all(common).await;
        }
        let message = self.message.take();
        let message = message.map(|text| mission::of_argument("--message", text)).transpose()?;
        let named = self.session.take();
        if named.is_some() || self.take_over {
            return self.resume(common, named.as_deref(), message).await;
        }
        let past = match conversations::to_resume(common).await? {
            ToResume::Latest => return self.resume(common, None, message).await,
            ToResume::Several(open) if common.can_ask() => {
                picker::choose(common, "Resume which session?", open).await?
            }
            ToResume::One(past) => Some(*past),
            ToResume::Several(open) => open.into_iter().next(),
        };
        let Some(past) = past else {
            eprintln!("nothing was resumed");
            return Ok(ExitCode::SUCCESS);
        };
        let session = past.session.session.to_string();
        self.resume(&past.options(common), Some(&session), message).await
    }

    /// Resumes a session, or the latest one.
    async fn resume(
        &self,
        common: &Common,
        session: Option<&str>,
        message: Option<String>,
    ) -> anyhow::Result<ExitCode> {
        let rights = (self.mode, self.sandbox);
        let mut opened =
            DrivenSession::open(common, session, &self.model, &self.moved, rights, self.take_over).await?;
        let id = opened.session;
        opened.fidelity = if self.strict { Fidelity::Strict } else { Fidelity::Compatible };
        let drift = self.files.map(|files| match files {
            DriftChoice::Keep => DriftPolicy::Adopt,
            DriftChoice::Restore => DriftPolicy::Restore,
        });
        let budget = match &self.model.budget {
            Some(budget) => budget.limits(),
            None => {
                let view = opened.place.view(id).await?;
                day_budget::of_resume(common, &opened.place, &opened.definition, &view).await?
            }
        };
        let resume = ResumeOptions {
            fidelity: opened.fidelity,
            drift,
            budget,
            deadline: self.model.deadline.map(|deadline| deadline.0),
            message,
            accept: self.accept,
            ..ResumeOptions::default()
        };
        opened.open_workspace().await?;
        let options = opened.options(self.take_over);
        let run = opened.place.runtime.resume_with(id, &opened.built.agent, resume, options).await?;
        let announced = opened.announce("resumed");
        opened.show_rights();
        let driven = match opened.drive(run).await {
            Ok(driven) => driven,
            Err(error) => return announced.close(Err(error)),
        };
        if let Err(error) = &driven.ended
            && matches!(error.cause(), RuntimeError::ConversationNotFound { .. })
        {
            let ask = common.hint(format_args!("ask {} TEXT", short(id)));
            let error = CommandError::new(ErrorCode::NoMessages, format!("session {id} has no messages"));
            return announced.close(Err(error.with_hint(format!("`{ask}` asks a question")).into()));
        }
        announced.close(finish(&opened, driven).await)
    }

    /// Resumes all sessions that were interrupted. One that fails does not stop the others; a signal does.
    async fn run_all(&self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let mut sessions = Vec::new();
        for session in place.runtime.recoverable().await? {
            // Only the program of a guarded session continues it.
            if !place.view(session).await?.created().tags.contains_key(PROGRAM) {
                sessions.push(session);
            }
        }
        drop(place);
        let left = sessions.len().saturating_sub(self.limit);
        let (mut answered, mut waiting, mut failed, mut is_stopped) = (0, 0, 0, false);
        for session in sessions.iter().take(self.limit) {
            let ended = self.resume(common, Some(&session.to_string()), None).await;
            let code = ended.unwrap_or_else(|error| crate::error::report(common, error, common.json));
            match code {
                code if code == ExitCode::SUCCESS => answered += 1,
                code if code == ExitCode::from(3) => waiting += 1,
                code if code == ExitCode::from(INTERRUPTED) => {
                    is_stopped = true;
                    break;
                }
                _ => failed += 1,
            }
        }
        let report = json!({
            "v": 1, "event": "all_resumed", "interrupted": sessions.len(), "answered": answered, "waiting": waiting,
            "failed": failed, "left": left,
        });
        let mut line = format!("{answered} of {} answered, {waiting} wait, {failed} failed", sessions.len());
        if left > 0 {
            line.push_str(&format!("; {left} more were left: `--limit N` resumes more"));
        }
        let line = if sessions.is_empty() { "nothing was interrupted".to_owned() } else { line };
        Report::new(&report).line(line).print(common);
        Ok(match (is_stopped, failed, waiting) {
            (true, ..) => ExitCode::from(INTERRUPTED),
            (_, 1.., _) => ExitCode::FAILURE,
            (_, _, 1..) => ExitCode::from(3),
            _ => ExitCode::SUCCESS,
        })
    }
}
