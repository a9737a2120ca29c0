//! `show`: prints a session as it is, or as it was at a point.

use std::process::ExitCode;

use backstitch::host::{SessionAt, message_text, money, one_line, reason_word, unfinished};
use backstitch::journal::{InnerMessage, Role as Speaker};
use backstitch::message::Large;
use backstitch::ports::IndexedStatus;
use backstitch::report::{FileDetail, SessionParts};
use backstitch::view::{Call, CallStatus, JournalView};
use clap::Args;

use super::call::call_lines;
use super::target::{ShownPoint, ShownTarget};
use super::tool_result::result_line;
use super::turns;
use super::waiting::call_text;
use crate::common::{Common, counted};
use crate::open::{OpenStore, short};
use crate::report::Report;
use crate::terminal::{self, Pager, Role, Text, columns};

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
        let detail = if self.diff { FileDetail::Diffs } else { FileDetail::Names };
        let target = ShownTarget::find(&place, self.session.as_deref(), self.point.as_ref(), detail).await?;
        let shown = match target {
            ShownTarget::Call(report) => {
                let _pager = Pager::new();
                return Ok(Report::new(&report).lines(call_lines(&report)).print(common));
            }
            ShownTarget::Session(shown) => shown,
        };
        if common.json {
            let parts = SessionParts { state: self.state, files: self.files, turns: self.turns };
            return Ok(Report::new(&shown.report(parts).await?).print(common));
        }
        let _pager = Pager::new();
        if self.turns {
            turns::print(&shown).await?;
            return Ok(ExitCode::SUCCESS);
        }
        // A long conversation starts to print at once, so not all of it is read before.
        print_overview(&shown).await?;
        print_conversation(&shown).await?;
        print_unfinished(&shown).await?;
        if self.state {
            println!();
            terminal::line(&Text::new().add(Role::Heading, "state:"));
            for (name, items) in shown.state()? {
                println!("  {name} ({})", items.len());
                items.iter().for_each(|item| println!("    {item}"));
            }
        }
        if self.files {
            println!();
            terminal::line(&Text::new().add(Role::Heading, "files:"));
            shown.files()?.iter().for_each(|path| println!("  {path}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn print_overview(shown: &SessionAt) -> anyhow::Result<()> {
    let (view, waits) = (shown.view(), shown.waiting().await?);
    let status = shown.status();
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
    let unpriced = view.evaluations().map(|evaluation| evaluation.unpriced_requests()).sum::<u64>();
    let money = match (spent.money_micros, unpriced) {
        (0, _) => String::new(),
        (micros, 0) => format!("; {} spent", money(micros)),
        (micros, _) => {
            format!("; {} spent, and {} without a price", money(micros), counted(unpriced, "request"))
        }
    };
    println!(
        "{}; {} tokens spent{cached}{money}",
        counted(view.calls().count(), "call"),
        spent.total_tokens()
    );
    for line in shown.rights().await {
        terminal::line(&Text::new().add(Role::Dim, "agent: ").plain(line));
    }
    for line in attempts(view) {
        terminal::line(&Text::new().add(Role::Warning, line));
    }
    if let Some(failure) = view.failure() {
        terminal::line(&Text::new().add(Role::Failure, format!("no answer: {failure}")));
    }
    for one in &waits {
        let reason = format!("waits ({}): ", reason_word(one.reason));
        terminal::line(&Text::new().add(Role::Warning, reason).plain(&one.detail));
        if let Some(call) = call_text(one, "  ") {
            println!("{call}");
        }
    }
    for rule in shown.rules().unwrap_or_default() {
        terminal::line(&Text::new().add(Role::Dim, "rule of this session: ").plain(rule.to_string()));
    }
    println!();
    Ok(())
}

/// Prints the messages page by page, so that a long conversation starts to print at once.
async fn print_conversation(shown: &SessionAt) -> anyhow::Result<()> {
    let count = shown.view().message_count();
    let mut system = None;
    for start in (0..count).step_by(PAGE) {
        for message in shown.messages(start..count.min(start + PAGE)).await? {
            // Each evaluation has its system message, which is nearly always that of the one before.
            let is_system = message.role() == Speaker::System && message.message.option_call().is_none();
            let text = is_system.then(|| message_text(&message));
            if text.is_some() && text == system {
                terminal::line(&Text::new().add(Role::Heading, "system:").add(Role::Dim, " as before"));
                continue;
            }
            system = text.or(system);
            print_message(shown.view(), &message);
        }
    }
    Ok(())
}

/// Prints what arrived of answers that did not come to their end: all of the latest, and the beginning of others.
async fn print_unfinished(shown: &SessionAt) -> anyhow::Result<()> {
    let view = shown.view();
    let open = view.latest_evaluation().and_then(|latest| latest.requests.last());
    let open = open.filter(|request| request.finished.is_none()).map(|request| request.started.point);
    for request in view.evaluations().flat_map(|evaluation| &evaluation.requests) {
        for kept in shown.kept_attempts(request).await? {
            let heading = format!("turn {}, attempt {}, not finished:", kept.turn, kept.attempt);
            let parts = [("reasoning: ", &kept.reasoning), ("", &kept.text), ("calls ", &kept.calls)];
            for (what, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
                let text = match open == Some(request.started.point) {
                    true => text.trim().to_owned(),
                    false => one_line(text.trim(), columns().saturating_sub(40).max(30)),
                };
                let mut lines = text.lines();
                let first = lines.next().unwrap_or_default();
                let line = Text::new().add(Role::Warning, &heading).plain(format!(" {what}{first}"));
                terminal::line(&line);
                lines.for_each(|next| terminal::line(&Text::new().plain(next)));
            }
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
            let text = result_line(&message_text(message), room.max(90));
            terminal::line(&Text::new().add(Role::Dim, "  <- ").add(Role::Dim, text));
        }
        (speaker, None) => {
            let who = match speaker {
                Speaker::System => "system",
                Speaker::User => "user",
                Speaker::Assistant | Speaker::Tool => "agent",
            };
            let content = message_text(message);
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

/// Formats the failed attempts of all requests, one line each.
fn attempts(view: &JournalView) -> Vec<String> {
    let requests = view.evaluations().flat_map(|evaluation| &evaluation.requests);
    let failures = requests.flat_map(|request| &request.failures);
    let failures = failures.map(|failure| {
        let failed = &failure.record;
        let then = match failed.then.wait() {
            Some(wait) => format!("retried after {:.1} s", wait.as_secs_f64()),
            None => "not retried".to_owned(),
        };
        let message = one_line(&failed.message, 200);
        format!(
            "turn {}: attempt {} failed ({}): {message}; {then}",
            failed.turn, failed.attempt, failed.kind
        )
    });
    failures.collect()
}
