//! `show`: prints a session as it is, or as it was at a point.

use std::process::ExitCode;

use backstitch::SystemClock;
use backstitch::approval::ApprovalRule;
use backstitch::filesystem::format;
use backstitch::host::one_line;
use backstitch::host::{reason_word, unfinished};
use backstitch::journal::{InnerMessage, Role as Speaker, WorkspaceRevision};
use backstitch::message::Large;
use backstitch::ports::{IndexedStatus, ObjectOverlay, SessionPresence};
use backstitch::session::CaptureOptions;
use backstitch::view::{Call, CallStatus, DriverPresence, JournalView};
use clap::Args;
use serde_json::{Value, json};

use super::calls::{self, CallReport};
use super::failure::{attempts, evaluations, last_stop, text};
use super::target::{ShownPoint, ShownTarget};
use super::tool_result::result_line;
use super::turns;
use super::waiting::{self, PendingDecision, waiting};
use crate::common::{Common, counted};
use crate::open::definition::definition_of;
use crate::open::located::LocatedPoint;
use crate::open::place::{OpenStore, short};
use crate::open::rights::rights;
use crate::terminal::pager::Pager;
use crate::terminal::style::{Role, Text};
use crate::terminal::{self, columns};

/// How many messages are decoded at a time.
const PAGE: usize = 200;

#[derive(Args)]
pub(crate) struct Show {
    /// Session id, or at least 4 characters of its beginning or end. A call or a point of the latest session may stand
    /// here instead. Default: the latest session.
    session: Option<String>,
    /// Call to show in full, by its id, or point at which to show the session: a position, before:CALL, after:CALL,
    /// turn:N, start, head or rescue:POSITION. Default: head.
    point: Option<ShownPoint>,
    /// Show the items of all slices.
    #[arg(long)]
    state: bool,
    /// List the files of the workspace.
    #[arg(long)]
    files: bool,
    /// Show the turns of an agent that answers with programs: program, calls, printed text and result.
    #[arg(long)]
    turns: bool,
    /// With a call: show what it changed in files, line by line.
    #[arg(long)]
    diff: bool,
}

impl Show {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let (head, point) =
            match ShownTarget::find(&place, self.session.as_deref(), self.point.as_ref()).await? {
                ShownTarget::Call(report) => return self.call(common, &place, &report),
                ShownTarget::Session { view, point } => (view, point),
            };
        let session = head.session_id();
        let (view, files) = match &point {
            None => {
                let files = head.files();
                (*head, files)
            }
            Some(point) => {
                let found = LocatedPoint::find(&place, &head, point).await?;
                let files = found.files();
                (found.into_view(&place, &head).await?, files)
            }
        };
        let driver = match place.store.holder(session).await? {
            Some(_) => DriverPresence::Present,
            None => DriverPresence::Absent,
        };
        let waits = waiting(&*place.store, &view).await?;
        if common.json {
            let mut shown = self.as_json(&place, &view, files, driver)?;
            shown["waiting"] = waiting::as_json(&waits);
            shown["rights"] = json!(agent_rights(&place, &view).await);
            if self.turns {
                let all = turns::of(&place, &view).await?;
                let turns: Vec<_> = all.iter().flat_map(|of_one| &of_one.turns).collect();
                shown["turns"] = serde_json::to_value(&turns)?;
            }
            println!("{shown}");
            return Ok(ExitCode::SUCCESS);
        }
        let _pager = Pager::new();
        if self.turns {
            turns::print(&place, &view).await?;
        } else {
            print_overview(&view, driver, &waits, &agent_rights(&place, &view).await);
            print_conversation(&view)?;
            self.print_more(&place, &view, files)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn call(&self, common: &Common, place: &OpenStore, report: &CallReport) -> anyhow::Result<ExitCode> {
        if common.json {
            println!("{}", report.as_json(place, self.diff)?);
        } else {
            let _pager = Pager::new();
            calls::print(place, report, self.diff)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_more(
        &self,
        place: &OpenStore,
        view: &JournalView,
        files: Option<WorkspaceRevision>,
    ) -> anyhow::Result<()> {
        if self.state {
            println!();
            terminal::line(&Text::new().add(Role::Heading, "state:"));
            for (name, items) in slices(view)? {
                println!("  {name} ({})", items.len());
                items.iter().for_each(|item| println!("    {item}"));
            }
        }
        if self.files {
            println!();
            terminal::line(&Text::new().add(Role::Heading, "files:"));
            paths(place, files)?.iter().for_each(|path| println!("  {path}"));
        }
        Ok(())
    }

    fn as_json(
        &self,
        place: &OpenStore,
        view: &JournalView,
        files: Option<WorkspaceRevision>,
        driver: DriverPresence,
    ) -> anyhow::Result<Value> {
        let transcript = view.transcript()?;
        let messages: Vec<_> =
            transcript.all().iter().map(|message| serde_json::to_value(&**message)).collect();
        let calls: Vec<_> = view.calls().map(|call| {
            json!({"call": call.call_id, "name": call.name, "status": call.status(), "checkpoint": call.checkpoint()})
        }).collect();
        let mut shown = json!({
            "v": 1, "session": view.session_id(), "records": view.head(), "status": view.status(driver),
            "pauses": view.pauses().map(|pause| serde_json::to_value(&**pause)).collect::<Result<Vec<_>, _>>()?,
            "spent": view.ledger().charged(), "messages": messages.into_iter().collect::<Result<Vec<_>, _>>()?,
            "calls": calls, "root": files.map(|files| files.root), "failure": view.failure(),
            "last_stop": last_stop(view), "evaluations": evaluations(view),
        });
        if self.state {
            shown["state"] =
                slices(view)?.into_iter().map(|(name, items)| (name, Value::Array(items))).collect();
        }
        if self.files {
            shown["files"] = json!(paths(place, files)?);
        }
        Ok(shown)
    }
}

/// Describes what the agent of a session may do. Empty for a session of another program.
async fn agent_rights(place: &OpenStore, view: &JournalView) -> Vec<String> {
    if view.created().agent.is_null() {
        return Vec::new();
    }
    definition_of(place, view, None).await.map(|definition| rights(&definition)).unwrap_or_default()
}

fn print_overview(view: &JournalView, driver: DriverPresence, waits: &[PendingDecision], rights: &[String]) {
    let status = status_word(view, driver);
    let role = match status {
        IndexedStatus::Failed | IndexedStatus::Poisoned => Role::Failure,
        IndexedStatus::Idle => Role::Success,
        _ => Role::Warning,
    };
    let heading = Text::new().add(Role::Heading, "session ").add(Role::Id, view.session_id().to_string());
    let heading = heading.plain(" (").add(role, status.to_string());
    terminal::line(&heading.plain(format!("), {} records", view.head())));
    let spent = view.ledger().charged();
    let cached = match spent.cache_read_tokens {
        0 => String::new(),
        tokens => format!(", {tokens} of them read from a cache"),
    };
    let money = match spent.money_micros {
        0 => String::new(),
        micros => format!("; {} spent", calls::money(micros)),
    };
    println!(
        "{}; {} tokens spent{cached}{money}",
        counted(view.calls().count(), "call"),
        spent.total_tokens()
    );
    for line in rights {
        terminal::line(&Text::new().add(Role::Dim, "agent: ").plain(line));
    }
    for line in attempts(view) {
        terminal::line(&Text::new().add(Role::Warning, line));
    }
    if let Some(failure) = view.failure() {
        terminal::line(&Text::new().add(Role::Failure, format!("no answer: {}", text(&failure))));
    }
    for one in waits {
        let reason = format!("waits ({}): ", reason_word(one.reason));
        terminal::line(&Text::new().add(Role::Warning, reason).plain(&one.detail));
        if let Some(call) = &one.call {
            println!("{}", call.text("  "));
        }
    }
    if let Ok(rules) = view.session(std::sync::Arc::new(SystemClock::new())).all::<ApprovalRule>() {
        for rule in rules.iter() {
            terminal::line(&Text::new().add(Role::Dim, "rule of this session: ").plain(rule.to_string()));
        }
    }
    println!();
}

/// Prints the messages page by page, so that a long conversation starts to print at once.
fn print_conversation(view: &JournalView) -> anyhow::Result<()> {
    let count = view.message_count();
    let mut system = None;
    for start in (0..count).step_by(PAGE) {
        for message in view.messages(start..count.min(start + PAGE))? {
            // Each evaluation has its system message, which is nearly always that of the one before.
            let is_system = message.role() == Speaker::System && message.message.option_call().is_none();
            let text = is_system.then(|| message.content());
            if text.is_some() && text == system {
                terminal::line(&Text::new().add(Role::Heading, "system:").add(Role::Dim, " as before"));
                continue;
            }
            system = text.or(system);
            print_message(view, &message);
        }
    }
    Ok(())
}

fn print_message(view: &JournalView, message: &InnerMessage) {
    let room = columns().saturating_sub(40).max(30);
    match (message.role(), message.message.option_call()) {
        (_, Some(call)) => {
            let known = view.call(call.invocation_id);
            let (role, status) = match known.map_or(CallStatus::Pending, Call::status) {
                CallStatus::Pending => (Role::Warning, "pending"),
                CallStatus::Completed => (Role::Success, "ok"),
                CallStatus::Failed => (Role::Failure, "failed"),
            };
            let line = Text::new().plain("  -> ").add(Role::Accent, &call.option_name).plain(" ");
            let line = line.plain(one_line(&call.arguments.text(), room.max(70))).plain("  [");
            let line = line.add(Role::Id, short(call.invocation_id)).plain("] ").add(role, status);
            terminal::line(&line);
            if let Some(edited) = known.and_then(edited) {
                let edited = one_line(&edited, room.max(70));
                terminal::line(&Text::new().add(Role::Warning, "     edited; it ran with ").plain(edited));
            }
        }
        (Speaker::Tool, None) => {
            let text = result_line(&message.content(), room.max(90));
            terminal::line(&Text::new().add(Role::Dim, "  <- ").add(Role::Dim, text));
        }
        (speaker, None) => {
            let who = match speaker {
                Speaker::System => "system",
                Speaker::User => "user",
                Speaker::Assistant | Speaker::Tool => "agent",
            };
            let content = message.content();
            let mut lines = content.lines();
            let first = lines.next().unwrap_or_default();
            let mut line = Text::new().add(Role::Heading, format!("{who}:")).plain(format!(" {first}"));
            for next in lines {
                terminal::line(&line);
                line = Text::new().plain(next);
            }
            terminal::line(&line.add(Role::Warning, unfinished(message)));
        }
    }
}

/// Returns the arguments that ran in the place of the model's.
fn edited(call: &Call) -> Option<String> {
    Some(match call.intent.as_ref()?.record.arguments.as_ref()? {
        Large::Inline(arguments) => serde_json::to_string(arguments).unwrap_or_default(),
        Large::Object(object) => format!("arguments of {} bytes", object.length),
    })
}

/// Returns the names and items of a session's slices, without the transcript.
pub(crate) fn slices(view: &JournalView) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let session = view.session(std::sync::Arc::new(SystemClock::new()));
    let stored = session.snapshot_with(CaptureOptions::include_all()).stored_slices()?;
    let others = stored.into_iter().filter(|slice| slice.name != "inner_message" && !slice.items.is_empty());
    Ok(others.map(|slice| (slice.name, slice.items)).collect())
}

/// Returns the paths of recorded files.
fn paths(place: &OpenStore, files: Option<WorkspaceRevision>) -> anyhow::Result<Vec<String>> {
    let Some(files) = files else { return Ok(Vec::new()) };
    let nothing = backstitch::journal::WorkspaceRoot {
        tree: format::empty_tree().id(),
        manifest: format::Manifest::default().to_object().id(),
    };
    let brought = [format::empty_tree(), format::Manifest::default().to_object()];
    let known = ObjectOverlay::new(brought, &*place.objects);
    Ok(format::diff(&known, nothing, files.root)?.into_iter().map(|change| change.path).collect())
}

/// What a session is doing, in a word.
pub(crate) fn status_word(view: &JournalView, driver: DriverPresence) -> IndexedStatus {
    let presence = SessionPresence { is_held: driver == DriverPresence::Present, has_waiting: false };
    IndexedStatus::of(view.journal_state(), presence)
}
