//! `inbox`: everything that waits for a person, in all projects.
//!
//! A session waits if it needs a decision, was interrupted, or has a message that nobody has answered. Each is printed with what has to be
//! decided, whole, and with the commands that decide it, which can be executed unchanged. A store that cannot be read does not hide the
//! others.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use backstitch::journal::PauseReason;
use backstitch::ports::IndexedStatus;
use backstitch::report::{PendingDecision, PendingSession};
use clap::Args;
use serde::Serialize;

use crate::common::Common;
use crate::look::conversations::{PastConversation, now};
use crate::look::waiting::explain;
use crate::open::guarded::PROGRAM;
use crate::open::{IndexedStore, OpenStore, ProjectStore, short};
use crate::terminal::{self, Pager, Role, Text};

/// The indentation of lines about a session.
const BELOW: &str = "    ";

#[derive(Args)]
pub(crate) struct Inbox {
    /// List only what waits in this project.
    #[arg(long)]
    here: bool,
}

/// A line for programs.
#[derive(Serialize)]
struct InboxLine<'a> {
    #[serde(flatten)]
    pending: &'a PendingSession,
    store: String,
    project: Option<&'a PathBuf>,
    /// The commands that decide, or that continue.
    commands: Vec<String>,
}

impl Inbox {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let _pager = Pager::new();
        let stores = if self.here { ProjectStore::own(common)? } else { ProjectStore::all(common)? };
        let (mut count, mut is_whole) = (0, true);
        for store in stores {
            match show_store(common, &store).await {
                Ok(shown) => count += shown,
                Err(error) => {
                    store.print_error(common, &error);
                    is_whole = false;
                }
            }
        }
        if count == 0 && is_whole && !common.json {
            println!("nothing waits for you");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints what waits in a store, and returns how many sessions do.
async fn show_store(common: &Common, store: &ProjectStore) -> anyhow::Result<usize> {
    let place = IndexedStore::open(&store.address).await?.place;
    let mut pending = place.runtime.pending_sessions().await?;
    // Between two hooks no process holds the session of a guarded program, and only that program continues it.
    pending.retain(|one| !one.session.tags.contains_key(PROGRAM));
    if pending.is_empty() {
        return Ok(0);
    }
    let common = &store.hint_options(common);
    store.print_heading(common);
    for one in &pending {
        if common.json {
            let (address, project) = (store.address.to_string(), store.project.as_ref());
            let line = InboxLine { pending: one, store: address, project, commands: commands(common, one) };
            println!("{}", serde_json::to_string(&line)?);
        } else {
            show(common, &place, store, one).await?;
        }
    }
    Ok(pending.len())
}

/// Prints a session with what it waits for.
async fn show(
    common: &Common,
    place: &OpenStore,
    store: &ProjectStore,
    pending: &PendingSession,
) -> anyhow::Result<()> {
    let id = Text::new().plain("  ").add(Role::Id, short(pending.session.session)).plain("  ");
    let past = PastConversation { session: pending.session.clone(), store: store.address.clone() };
    terminal::line(&id.join(past.line(now())));
    if let Some(failure) = &pending.session.failure {
        terminal::line(&Text::new().plain("    ").add(Role::Dim, failure.to_string()));
    }
    if pending.decisions.is_empty() {
        commands(common, pending).iter().for_each(|command| println!("{BELOW}{command}"));
        return Ok(());
    }
    let view = place.view(pending.session.session).await?;
    explain(common, &view, &pending.decisions).iter().flat_map(|line| line.lines()).for_each(print_below);
    Ok(())
}

/// Prints a line below that of its session. On a terminal, prose is broken between words; commands and calls are not.
fn print_below(line: &str) {
    if line.starts_with(' ') || !std::io::stdout().is_terminal() {
        return println!("{BELOW}{line}");
    }
    let columns = terminal::columns().saturating_sub(BELOW.len());
    terminal::wrapped(line, columns).iter().for_each(|line| println!("{BELOW}{line}"));
}

/// Returns the commands that decide about a session, or that continue it.
fn commands(common: &Common, pending: &PendingSession) -> Vec<String> {
    let root = short(pending.session.session);
    let mut commands: Vec<String> =
        pending.decisions.iter().flat_map(|decision| deciding_commands(common, &root, decision)).collect();
    if commands.is_empty() || pending.session.status == IndexedStatus::Paused {
        commands.push(common.hint(format_args!("resume {root}")));
    }
    commands
}

fn deciding_commands(common: &Common, root: &str, decision: &PendingDecision) -> Vec<String> {
    let id = short(decision.session);
    let Some(call) = decision.call.map(short) else {
        return match decision.reason {
            PauseReason::Poisoned => vec![common.hint(format_args!("resolve {id} - continue"))],
            _ => Vec::new(),
        };
    };
    let all = match decision.reason {
        PauseReason::Approval => vec![format!("approve {root} {call}"), format!("deny {root} {call}")],
        PauseReason::EffectUnknown => ["happened --result done", "retry", "fail"]
            .map(|what| format!("resolve {id} {call} {what}"))
            .to_vec(),
        _ => Vec::new(),
    };
    all.into_iter().map(|command| common.hint(command)).collect()
}
