//! `guard points`, `guard rewind`, `guard undo` and `guard continue`: the points of a guarded conversation, for people, editors
//! and the commands of the plugin.
//!
//! Without a session they are about the conversation that started this command, or else about the latest guarded one.

use std::path::PathBuf;
use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::ports::SessionQuery;
use backstitch::time::Clock as _;
use backstitch::{PointSpec, SystemClock};
use backstitch_bridge::Program;
use clap::Args;
use serde_json::{Value, json};

use crate::common::Common;
use crate::error::{CommandError, ErrorCode};
use crate::history::points::points;
use crate::history::travel;
use crate::open::guarded::{Binding, GuardedSession, is_guarded};
use crate::open::{OpenStore, short};
use crate::report::Report;
use crate::usage;

/// The newest sessions that are looked at.
const NEWEST: usize = 100;

#[derive(Args)]
pub(crate) struct Points {
    /// Session id, or at least 4 characters of its beginning or end. Default: this conversation, or the latest guarded one.
    session: Option<String>,
}

#[derive(Args)]
pub(crate) struct GuardRewind {
    /// Point to return to, as `guard points` prints it.
    point: PointSpec,
    /// Rewind although the program may still change files, and restore also files that others changed, where the changes cannot
    /// be merged.
    #[arg(long)]
    force: bool,
}

impl Points {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = session_or_current(&place, self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let points = points(&place, &view, usize::MAX)?;
        let now = SystemClock::new().now();
        let values: Vec<Value> = points.iter().map(|point| point.to_json(now)).collect();
        let mut report = Report::new(&json!({"v": 1, "session": session, "points": values}));
        if points.is_empty() {
            report = report.line(format!("session {} has no calls yet", short(session)));
        }
        let mut prompt = String::new();
        for point in points.iter().rev() {
            if point.prompt() != prompt {
                prompt = point.prompt();
                report = report.line(prompt.clone());
            }
            report = report.line(format!("  {}", point.line(now)));
        }
        Ok(report.print(common))
    }
}

impl GuardRewind {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let session = current(&OpenStore::existing(common)?).await?;
        travel::Rewind::to(session, self.point, self.force).run(common).await
    }
}

/// Undoes the last rewind of the current session.
pub(super) async fn undo(common: &Common) -> anyhow::Result<ExitCode> {
    let session = current(&OpenStore::existing(common)?).await?;
    travel::Undo::of(session).run(common).await
}

/// Returns the session that a user names, or else the current one.
async fn session_or_current(place: &OpenStore, name: Option<&str>) -> anyhow::Result<SessionId> {
    match name {
        Some(name) => place.session(Some(name)).await,
        None => current(place).await,
    }
}

/// Returns the session of the conversation that started this command, or else the latest guarded one.
async fn current(place: &OpenStore) -> anyhow::Result<SessionId> {
    for program in Program::ALL {
        let Some(conversation) = program.conversation_variable().and_then(|name| std::env::var(name).ok())
        else {
            continue;
        };
        let binding = Binding::open(&place.directory, program, &conversation)?;
        if let Some(session) = super::session::find_bound(place, &binding).await {
            return Ok(session);
        }
    }
    let page = place.runtime.sessions(SessionQuery::roots().with_limit(NEWEST)).await?;
    let mut guarded =
        page.sessions.iter().filter(|session| is_guarded(session) && !session.summary.mission.is_empty());
    guarded.next().map(|session| session.id()).ok_or_else(|| {
        CommandError::new(ErrorCode::SessionNotFound, "no guarded session is recorded here")
            .with_hint("`backstitch guard install claude-code` records the next one")
            .into()
    })
}

#[derive(Args)]
pub(crate) struct GuardContinue {
    /// Session id, or at least 4 characters of its beginning or end. Default: this conversation, or the latest guarded one.
    session: Option<String>,
    /// Continue with this prompt, without a terminal. Default: the program asks for one.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Print the command that continues, and do not run it.
    #[arg(long)]
    print: bool,
    /// More arguments for the program, after `--`.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl GuardContinue {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = session_or_current(&place, self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let Some(guarded) = GuardedSession::of(&view) else {
            let advice = "`resume` continues others";
            return usage::refuse(format!("this needs a guarded session of Claude Code or Codex; {advice}"));
        };
        let directory = view.directory().map(PathBuf::from).filter(|directory| directory.is_dir());
        let here = std::env::current_dir()?;
        // Codex continues with a fork of its conversation, which it lists like any other. So the fork is made here, when a user
        // continues, and not by each rewind.
        let mut continues = guarded.continue_from(&view);
        continues.prepare(&place.directory, session, directory.as_deref().unwrap_or(&here)).await?;
        let continues = continues.with_arguments(self.prompt.as_deref(), &self.arguments);
        if !common.json {
            continues.caveat.iter().for_each(|caveat| eprintln!("{caveat}"));
        }
        if self.print || common.json {
            let line = continues.line();
            let value = json!({"v": 1, "session": session, "command": line, "caveat": continues.caveat});
            return Ok(Report::new(&value).line(line).print(common));
        }
        drop(place);
        continues.run(directory)
    }
}
