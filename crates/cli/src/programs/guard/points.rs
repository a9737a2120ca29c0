//! `guard points`, `guard rewind`, `guard undo` and `guard continue`: the points of a guarded conversation, for people, editors
//! and the commands of the plugin.
//!
//! Without a session they are about the conversation that started this command, or else about the latest guarded one.

use std::path::PathBuf;
use std::process::ExitCode;

use backstitch::filesystem::format;
use backstitch::host::{message_text, one_line};
use backstitch::id::SessionId;
use backstitch::journal::Role;
use backstitch::message::Content;
use backstitch::ports::{PathChange, SessionQuery};
use backstitch::time::Clock as _;
use backstitch::view::{Call, JournalView};
use backstitch::{PointSpec, SystemClock};
use backstitch_bridge::Program;
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode};
use crate::history::travel;
use crate::open::guarded::{Binding, GuardedSession, is_guarded};
use crate::open::{OpenStore, short};
use crate::report::Report;
use crate::terminal::time::relative;
use crate::usage;

/// The newest sessions that are looked at.
const NEWEST: usize = 100;

/// The most files that a line names.
const NAMED: usize = 4;

/// The most characters of a prompt in a line.
const SHOWN: usize = 60;

#[derive(Args)]
pub(crate) struct Points {
    /// Session id, or at least 4 characters of its beginning or end. Default: this conversation, or the latest guarded one.
    session: Option<String>,
}

#[derive(Args)]
pub(crate) struct GuardRewind {
    /// Point to return to, as `guard points` prints it.
    point: PointSpec,
    /// Rewind although the program may still change files.
    #[arg(long)]
    force: bool,
}

/// A call, with what it changed.
struct CallPoint<'a> {
    call: &'a Call,
    prompt: String,
    changes: Vec<PathChange>,
}

impl Points {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let session = session_or_current(&place, self.session.as_deref()).await?;
        let view = place.view(session).await?;
        let points = points(&place, &view)?;
        let now = SystemClock::new().now();
        let values: Vec<Value> = points.iter().map(|point| point.to_json(now)).collect();
        let mut report = Report::new(&json!({"v": 1, "session": session, "points": values}));
        if points.is_empty() {
            report = report.line(format!("session {} has no calls yet", short(session)));
        }
        let mut prompt = "";
        for point in points.iter().rev() {
            if point.prompt != prompt {
                prompt = &point.prompt;
                report = report.line(one_line(prompt, SHOWN));
            }
            let age = point.started().map(|at| relative(at, now)).unwrap_or_default();
            let (call, files) = (short(point.call.call_id), point.files());
            report = report.line(format!("  before:{call}  {}  {files}  {age}", point.call.name));
        }
        Ok(report.print(common))
    }
}

impl CallPoint<'_> {
    fn started(&self) -> Option<backstitch::time::Timestamp> {
        self.call.intent.as_ref().map(|intent| intent.at)
    }

    fn files(&self) -> String {
        let names: Vec<&str> = self.changes.iter().take(NAMED).map(|change| change.path.as_str()).collect();
        match self.changes.len() {
            0 => "no files".to_owned(),
            count if count > NAMED => format!("{}: {}, ...", counted(count, "file"), names.join(", ")),
            count => format!("{}: {}", counted(count, "file"), names.join(", ")),
        }
    }

    fn to_json(&self, now: backstitch::time::Timestamp) -> Value {
        let id = self.call.call_id;
        let age = self.started().map(|at| now.since(at).as_secs());
        json!({"point": format!("before:{id}"), "call": id, "tool": self.call.name, "prompt": self.prompt,
            "at": self.started(), "age_seconds": age, "files": self.changes})
    }
}

/// Returns the calls of a session, the oldest first, with what each of them changed.
fn points<'a>(place: &OpenStore, view: &'a JournalView) -> anyhow::Result<Vec<CallPoint<'a>>> {
    let mut points = Vec::new();
    for call in view.calls().filter(|call| call.intent.is_some()) {
        let before = call.intent.as_ref().and_then(|intent| intent.record.root);
        let after = call.finished.as_ref().and_then(|finished| finished.record.root);
        let changes = match (before, after) {
            (Some(before), Some(after)) => format::diff(&*place.objects, before, after)?,
            _ => Vec::new(),
        };
        let messages = view.messages_of(call.evaluation_id)?;
        let mut prompts = messages.iter().filter(|message| {
            message.role() == Role::User && matches!(message.message.content, Content::Parts(_))
        });
        let prompt = prompts.next().map(|message| message_text(message)).unwrap_or_default();
        points.push(CallPoint { call, prompt, changes });
    }
    Ok(points)
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
