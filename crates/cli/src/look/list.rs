//! `ls`: the sessions of a store, by its index. No journal is read, but for files that the index does not name.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backstitch::SystemClock;
use backstitch::agent_file::Span;
use backstitch::journal::EvaluationOutcome;
use backstitch::ports::{IndexedStatus, SessionQuery, TimeRange};
use backstitch::report::{ListOptions, ListedSession, SessionList};
use backstitch::stores::{self, StoreAddress};
use backstitch::time::{Clock as _, Timestamp};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde_json::json;

use super::table;
use crate::common::{Common, counted};
use crate::error::{ErrorCode, code_of, message_of};
use crate::open::{IndexedStore, OpenStore, in_any_session, with_store_hint};
use crate::terminal::{self, Pager, Role, Text};
use crate::usage::Usage;

/// How many sessions a terminal is shown by default, if it has so many rows.
const SHOWN: usize = 50;

/// Rows of a terminal around the sessions: the prompts, the header and the note about those that are left out.
const AROUND: usize = 4;

#[derive(Args)]
pub(crate) struct List {
    /// List the sessions of all projects.
    #[arg(long)]
    all: bool,
    /// List only sessions with this status; may be given several times.
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(IndexedStatus::ALL.map(IndexedStatus::as_str)))]
    status: Vec<String>,
    /// List only sessions whose latest evaluation ended with this outcome; may be given several times.
    #[arg(long, value_name = "OUTCOME", value_parser = PossibleValuesParser::new(EvaluationOutcome::ALL.map(EvaluationOutcome::as_str)))]
    outcome: Vec<String>,
    /// List only sessions with this tag; given several times, with all of them.
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
    /// List only sessions of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// List only sessions with files in this directory.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// List only sessions with calls that changed this file, or something in this directory. It is a path in the directory of any
    /// session; `./src` and absolute paths are places of this machine. Sessions of which that is not known any more are listed
    /// too.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// List only forks and sub-agents of this session.
    #[arg(long, value_name = "SESSION")]
    parent: Option<String>,
    /// List only sessions that changed since a time (RFC 3339), or in the last 2h, 3d and so on.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// List at most this many of the newest sessions; 0 lists all. The default is what fits on a terminal (at most 50), and all elsewhere.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// A line about a session of several stores.
#[derive(Serialize)]
struct LineOfStore<'a> {
    #[serde(flatten)]
    session: &'a ListedSession,
    store: &'a Path,
    project: &'a Path,
}

impl List {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let _pager = Pager::new();
        if !self.all {
            match OpenStore::address(common) {
                Ok(address) => self.one(common, &address, None).await?,
                // Before the first session there is nothing to list, and nothing is wrong.
                Err(error) if common.store.is_none() && code_of(&error) == ErrorCode::StoreNotFound => {
                    if !common.json {
                        println!("there are no sessions yet: `backstitch run` starts one");
                    }
                }
                Err(error) => return Err(error),
            }
            return Ok(ExitCode::SUCCESS);
        }
        let all = stores::all().map_err(with_store_hint)?;
        if all.is_empty() && !common.json {
            println!("there are no stores yet: `backstitch run` creates one");
        }
        for known in all {
            let (project, store) = (known.project.path(), known.store());
            if !common.json {
                let project = Text::new().add(Role::Heading, project.display().to_string());
                terminal::line(&project.plain(" ").add(Role::Dim, format!("({})", store.display())));
            }
            // A store that cannot be read does not hide the others.
            let of = Some((store.as_path(), project.as_path()));
            let listed = self.one(common, &StoreAddress::File(store.clone()), of).await;
            match (listed, common.json) {
                (Ok(()), _) => {}
                (Err(error), true) => {
                    println!(
                        "{}",
                        json!({"v": 1, "store": store, "project": project, "error": message_of(&error)})
                    );
                }
                (Err(error), false) => println!("unreadable: {}", message_of(&error)),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Lists the sessions of a store. With several stores, `of` is its path and that of its project.
    async fn one(
        &self,
        common: &Common,
        address: &StoreAddress,
        of: Option<(&Path, &Path)>,
    ) -> anyhow::Result<()> {
        let IndexedStore { place, index } = IndexedStore::open(address).await?;
        let query = self.query(&place).await?;
        let is_filtered = query != SessionQuery::new();
        let limit = match self.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None if common.json || !std::io::stdout().is_terminal() => None,
            None => Some(SHOWN.min(terminal::rows().saturating_sub(AROUND)).max(1)),
        };
        // For people, sub-agents are listed below their parents, and selected by themselves where something is selected.
        let with_sub_agents = !common.json && !is_filtered && limit.is_some();
        let query = if with_sub_agents { SessionQuery::roots() } else { query };
        let options = ListOptions { query, limit, with_sub_agents, with_unreadable: !is_filtered };
        let list = index.list(options).await?;
        if common.json {
            return print_lines(&list, of);
        }
        if list.sessions.is_empty() && list.unreadable.is_empty() {
            if is_filtered {
                println!("no session matches");
            } else {
                println!("there are no sessions yet: `backstitch run` starts one");
            }
            return Ok(());
        }
        if list.left_out > 0 {
            let all = common.hint("ls --limit 0");
            let what = counted(list.left_out, "older session");
            terminal::line(&Text::new().add(Role::Dim, format!("{what} not shown: `{all}` lists all")));
        }
        table::print(&list, SystemClock::default().now());
        Ok(())
    }

    /// What the options select.
    async fn query(&self, place: &OpenStore) -> anyhow::Result<SessionQuery> {
        let mut query = SessionQuery::new();
        query.statuses = self.status.iter().filter_map(|word| word.parse().ok()).collect();
        let outcome = |word: &String| EvaluationOutcome::ALL.into_iter().find(|one| one.as_str() == word);
        query.outcomes = self.outcome.iter().filter_map(outcome).collect();
        query.tags = self.tag.iter().cloned().collect();
        query.agent = self.agent.clone();
        if let Some(directory) = &self.workspace {
            // A directory that is gone is still named by its sessions.
            let directory = directory.canonicalize().or_else(|_| std::path::absolute(directory))?;
            query.workspace = Some(directory.to_string_lossy().into_owned());
        }
        if let Some(file) = &self.file {
            let file = in_any_session(file)?;
            // What the index does not list is compared once, where it can be written. No path begins with a slash.
            let is_listed = place.store.changing_sessions("/").await?.possible.is_empty();
            let writable = if is_listed { None } else { OpenStore::open(&place.address).ok() };
            let runtime = &writable.as_ref().unwrap_or(place).runtime;
            query.sessions = Some(runtime.sessions_that_changed(&file).await?);
        }
        if let Some(parent) = &self.parent {
            query.parents.push(place.session(Some(parent)).await?);
        }
        if let Some(since) = &self.since {
            query.updated = TimeRange::since(moment(since, SystemClock::default().now())?);
        }
        Ok(query)
    }
}

/// Reads a tag as it is written on a command line.
pub(crate) fn tag(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not a tag: write KEY=VALUE");
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(wrong)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A time, or a length of time before now.
pub(crate) fn moment(text: &str, now: Timestamp) -> Result<Timestamp, Usage> {
    let wrong = || {
        Usage(format!("{text:?} is not a time: write 2026-01-31T08:00:00Z, or 2h or 3d for the last ones"))
    };
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let Span(ago) = text.parse().map_err(|_| wrong())?;
    before(now, ago).ok_or_else(wrong)
}

fn before(now: Timestamp, ago: Duration) -> Option<Timestamp> {
    let micros = i64::try_from(ago.as_micros()).ok()?;
    Timestamp::from_unix_micros(now.unix_micros().checked_sub(micros)?).ok()
}

/// Prints a list for programs: one session in a line, with those that cannot be read before them.
fn print_lines(list: &SessionList, of: Option<(&Path, &Path)>) -> anyhow::Result<()> {
    let mut lines = String::new();
    for entry in &list.unreadable {
        lines.push_str(&serde_json::to_string(entry)?);
        lines.push('\n');
    }
    for session in &list.sessions {
        lines.push_str(&match of {
            Some((store, project)) => serde_json::to_string(&LineOfStore { session, store, project })?,
            None => serde_json::to_string(session)?,
        });
        lines.push('\n');
    }
    print!("{lines}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_time_or_a_length_of_time() {
        let now: Timestamp = "2026-01-31T08:00:00Z".parse().unwrap();
        let at = |text| moment(text, now).map(|time| time.to_string()).ok();
        assert_eq!(at("2026-01-01T00:00:00Z").as_deref(), Some("2026-01-01T00:00:00.000000Z"));
        assert_eq!(at("2h").as_deref(), Some("2026-01-31T06:00:00.000000Z"));
        assert_eq!(at("3d").as_deref(), Some("2026-01-28T08:00:00.000000Z"));
        for wrong in ["", "yesterday", "2x", "99999999999999d"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
