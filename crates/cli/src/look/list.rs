//! `ls`: the sessions of a store, by its index. No journal is read.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backstitch::SystemClock;
use backstitch::agent_file::Span;
use backstitch::id::SessionId;
use backstitch::journal::EvaluationOutcome;
use backstitch::ports::{IndexedSession, IndexedStatus, OriginKind, SessionOrder, SessionQuery, TimeRange};
use backstitch::stores::{self, KnownStore, StoreAddress};
use backstitch::time::{Clock as _, Timestamp};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use super::session_json;
use super::table;
use crate::common::{Common, counted};
use crate::error::message_of;
use crate::open::index::SessionIndex;
use crate::open::place::{OpenStore, elsewhere};
use crate::terminal;
use crate::terminal::pager::Pager;
use crate::terminal::style::{Role, Text};
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

/// The sessions to print, oldest first, and how many older ones are not among them.
struct Listing {
    sessions: Vec<IndexedSession>,
    left_out: u64,
}

impl List {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let _pager = Pager::new();
        if !self.all {
            let index = SessionIndex::open(&OpenStore::address(common)?).await?;
            self.one(common, &index, None).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let all = stores::all().map_err(elsewhere)?;
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
            match (self.one_of_all(common, &known, &store).await, common.json) {
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

    async fn one_of_all(&self, common: &Common, known: &KnownStore, store: &Path) -> anyhow::Result<()> {
        let index = SessionIndex::open(&StoreAddress::File(store.to_owned())).await?;
        self.one(common, &index, Some(known)).await
    }

    async fn one(
        &self,
        common: &Common,
        index: &SessionIndex,
        of: Option<&KnownStore>,
    ) -> anyhow::Result<()> {
        let query = self.query(&index.place).await?;
        let is_filtered = query != SessionQuery::new();
        let limit = match self.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None if common.json || !std::io::stdout().is_terminal() => None,
            None => Some(SHOWN.min(terminal::rows().saturating_sub(AROUND)).max(1)),
        };
        let unreadable = if is_filtered { Vec::new() } else { index.unreadable().await };
        if common.json {
            let listing = newest(index, query, limit).await?;
            return session_json::print(&listing.sessions, &unreadable, of);
        }
        // Sub-agents are listed below their parents, and selected by themselves where something is selected.
        let has_all = is_filtered || limit.is_none();
        let tops = if has_all { query } else { SessionQuery::roots() };
        let mut listing = newest(index, tops, limit).await?;
        if !has_all {
            add_sub_agents(index, &mut listing.sessions).await?;
        }
        if listing.sessions.is_empty() && unreadable.is_empty() {
            if is_filtered {
                println!("no session matches");
            } else {
                println!("there are no sessions yet: `backstitch run` starts one");
            }
            return Ok(());
        }
        if listing.left_out > 0 {
            let all = common.hint("ls --limit 0");
            let what = counted(listing.left_out, "older session");
            terminal::line(&Text::new().add(Role::Dim, format!("{what} not shown: `{all}` lists all")));
        }
        table::print(&listing.sessions, &unreadable, SystemClock::default().now());
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

/// The newest sessions that a query selects, oldest first.
async fn newest(index: &SessionIndex, query: SessionQuery, limit: Option<usize>) -> anyhow::Result<Listing> {
    let Some(limit) = limit else {
        let sessions = index.all(query.with_order(SessionOrder::OldestFirst)).await?;
        return Ok(Listing { sessions, left_out: 0 });
    };
    let mut query = query.with_order(SessionOrder::NewestFirst).with_limit(limit);
    let page = index.sessions(query.clone()).await?;
    let mut listing = Listing { sessions: page.sessions, left_out: 0 };
    listing.sessions.reverse();
    query.after = page.next;
    if query.after.is_some() {
        listing.left_out = index.count(query).await?;
    }
    Ok(listing)
}

/// Adds the sessions of sub-agents, and of theirs.
async fn add_sub_agents(index: &SessionIndex, sessions: &mut Vec<IndexedSession>) -> anyhow::Result<()> {
    let mut parents: Vec<SessionId> = sessions.iter().map(IndexedSession::id).collect();
    while !parents.is_empty() {
        let mut query =
            SessionQuery::new().with_origin(OriginKind::Call).with_order(SessionOrder::OldestFirst);
        query.parents = parents;
        let found = index.all(query).await?;
        parents = found.iter().map(IndexedSession::id).collect();
        sessions.extend(found);
    }
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
