//! `ls`: lists the sessions of a store.

use std::process::ExitCode;

use backstitch::journal::{Origin, Role};
use backstitch::one_line;
use backstitch::ports::Store as _;
use backstitch::stores::{self, KnownStore};
use backstitch::view::{DriverPresence, JournalView, SessionStatus};
use clap::Args;
use serde_json::json;

use super::Common;
use super::failure::Failure;
use super::place::{OpenStore, elsewhere, short};

#[derive(Args)]
pub(crate) struct List {
    /// List the sessions of all projects. Default: those of this project.
    #[arg(long)]
    all: bool,
}

impl List {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if !self.all {
            return Self::one(common, &OpenStore::for_reading(common)?, None).await;
        }
        let all = stores::all().map_err(elsewhere)?;
        if all.is_empty() && !common.json {
            println!("there are no stores yet: `backstitch run` creates one");
        }
        for known in all {
            let (project, store) = (known.project.path(), known.store());
            if !common.json {
                println!("{} ({})", project.display(), store.display());
            }
            let listed = match OpenStore::reading(&store) {
                Ok(place) => Self::one(common, &place, Some(&known)).await,
                Err(error) => Err(error),
            };
            // An unreadable store does not hide the others.
            match (listed, common.json) {
                (Ok(_), _) => {}
                (Err(error), true) => {
                    println!(
                        "{}",
                        json!({"v": 1, "store": store, "project": project, "error": format!("{error:#}")})
                    );
                }
                (Err(error), false) => println!("unreadable: {error:#}"),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn one(common: &Common, place: &OpenStore, of: Option<&KnownStore>) -> anyhow::Result<ExitCode> {
        let sessions = place.store.sessions().await?;
        if sessions.is_empty() && !common.json {
            println!("there are no sessions yet: `backstitch run` starts one");
        }
        for session in sessions {
            let holder = place.store.holder(session).await?;
            let driver = if holder.is_some() { DriverPresence::Present } else { DriverPresence::Absent };
            // An unreadable session is listed too, so that it can be found.
            let view = match place.view(session).await {
                Ok(view) => view,
                Err(error) => {
                    if common.json {
                        println!("{}", json!({"v": 1, "session": session, "error": format!("{error:#}")}));
                    } else {
                        println!("{}  unreadable: {error:#}", short(session));
                    }
                    continue;
                }
            };
            let status = view.status(driver);
            let created = view.created();
            let parent = match created.origin {
                Origin::Fork { session, position } => Some(json!({"session": session, "position": position})),
                _ => None,
            };
            if common.json {
                let mut line = json!({
                    "v": 1, "session": session, "created_at": created.created_at, "records": view.head(),
                    "mission": mission(&view), "holder": holder, "fork_of": parent,
                    "failure": Failure::of(&view), "stopped": view.stopped(),
                });
                if let (Some(line), Ok(serde_json::Value::Object(status))) =
                    (line.as_object_mut(), serde_json::to_value(status))
                {
                    line.extend(status);
                }
                if let Some(known) = of {
                    (line["store"], line["project"]) = (json!(known.store()), json!(known.project.path()));
                }
                println!("{line}");
            } else {
                let fork = if parent.is_some() { " (fork)" } else { "" };
                let when = created.created_at.to_string();
                let when = when.get(..16).unwrap_or(&when).replace('T', " ");
                println!("{}  {when}  {:<12} {}{fork}", short(session), word(&view, driver), mission(&view));
                if let Some(failure) = Failure::of(&view) {
                    println!("              {}", failure.text());
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the word for the status of a session. One that stopped for a recorded reason is not `interrupted`.
pub(super) fn word(view: &JournalView, driver: DriverPresence) -> &'static str {
    match view.status(driver) {
        SessionStatus::Interrupted if view.stopped().is_some() => "stopped",
        SessionStatus::Running => "running",
        SessionStatus::Paused { .. } => "paused",
        SessionStatus::Interrupted => "interrupted",
        SessionStatus::Idle => "idle",
        SessionStatus::Poisoned => "poisoned",
    }
}

/// Returns the first message of the user, as one line.
fn mission(view: &JournalView) -> String {
    let transcript = view.transcript().unwrap_or_default();
    let first = transcript.all().iter().find(|message| message.role() == Role::User);
    first.map(|message| one_line(&message.content(), 60)).unwrap_or_default()
}
