//! `enqueue`: starts a session that a worker drives.

use std::process::ExitCode;

use backstitch::agent_file::{BuiltAgent, Span};
use backstitch::time::{Clock as _, Timestamp};
use backstitch::{EnqueueOptions, SystemClock};
use clap::Args;

use crate::common::Common;
use crate::look::list::tag;
use crate::open::definition::{AgentFlags, build_agent, pin_servers, with_served_models};
use crate::open::{OpenStore, day_budget, mission, short};
use crate::report::Report;
use crate::usage::{self, Usage};
use crate::work::drive::with_rules;

#[derive(Args)]
pub(crate) struct Enqueue {
    /// Task for the agent. `-` reads it from standard input. With `--session`, a message to that session.
    #[arg(required_unless_present = "session")]
    mission: Option<String>,
    /// Existing session to continue: its id, at least 4 characters of its beginning or end, or its name.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["agent", "model", "tag"])]
    session: Option<String>,
    /// Earliest start: a time such as 2026-01-31T08:00:00Z, or a length of time from now such as 2h. Default: now.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Priority. Sessions of a higher one are taken first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    priority: i16,
    /// Word that is used once: a second session with it is not started, and the first one is printed.
    #[arg(long, value_name = "WORD")]
    key: Option<String>,
    /// Tag of the session, by which `ls --tag` selects it and `queue limit` limits it. Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
    #[command(flatten)]
    agent: AgentFlags,
}

impl Enqueue {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let at = self.at.as_deref().map(|text| start_time(text, SystemClock::new().now())).transpose()?;
        if self.key.as_deref().is_some_and(str::is_empty) {
            return usage::refuse("--key needs a word");
        }
        let options = EnqueueOptions {
            at,
            priority: self.priority,
            key: self.key,
            tags: self.tag.into_iter().collect(),
            ..EnqueueOptions::default()
        };
        let text = self.mission.map(|text| mission::of_argument("MISSION", text)).transpose()?;
        let (place, done) = match (&self.session, text) {
            (Some(session), text) => {
                let (place, session) = OpenStore::with_session(common, Some(session)).await?;
                let done = place.runtime.enqueue_again(session, text.as_deref(), options).await?;
                (place, done)
            }
            (None, text) => {
                let (place, built) = agent_for_workers(common, &self.agent).await?;
                let mission = built.mission(&text.unwrap_or_default())?;
                let done = place.runtime.enqueue(&built.agent, mission, options).await?;
                (place, done)
            }
        };
        let id = short(done.session);
        let line = match (done.is_new, at) {
            (true, None) => format!("session {id} waits for a worker"),
            (true, Some(at)) => format!("session {id} waits for a worker, from {at} on"),
            (false, _) => format!("the key was used before, for session {id}; nothing was changed"),
        };
        // A worker here would use another store, if the agent works in the directory of another project.
        let hint = common.naming(&place.address).hint("worker");
        Ok(Report::new(&done).line(line).line(format!("`{hint}` drives what waits")).print(common))
    }
}

/// Builds the agent of new sessions, and opens the store that they are kept in.
pub(super) async fn agent_for_workers(
    common: &Common,
    flags: &AgentFlags,
) -> anyhow::Result<(OpenStore, BuiltAgent)> {
    let definition = pin_servers(common, flags.definition(common)?).await?;
    let definition = with_served_models(common, definition).await;
    let mut built = with_rules(common, build_agent(&definition)?);
    let (here, files) = (std::env::current_dir()?, definition.workspace.path.as_deref());
    let place = OpenStore::existing_or_new_for(common, files.unwrap_or(&here), files)?;
    if definition.engine.is_none() {
        built.agent.budget = day_budget::of_start(common, &place, &definition).await?;
    }
    Ok((place, built))
}

/// Reads a time, or a length of time from now.
fn start_time(text: &str, now: Timestamp) -> Result<Timestamp, Usage> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let Span(after) = text.parse().map_err(|_| {
        Usage(format!(
            "--at {text:?} is not a time: write 2026-01-31T08:00:00Z, or 2h for a length of time from now"
        ))
    })?;
    let time = now.saturating_add(after);
    // The last time of all would stand for everything after it.
    if time.since(now).as_secs() < after.as_secs() {
        return Err(Usage(format!("--at {text:?} is after the last time that can be stored")));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_moments_or_lengths() {
        let now: Timestamp = "2026-01-31T08:00:00Z".parse().unwrap();
        assert_eq!(start_time("2026-02-01T00:00:00Z", now).unwrap(), "2026-02-01T00:00:00Z".parse().unwrap());
        assert_eq!(start_time("90m", now).unwrap(), "2026-01-31T09:30:00Z".parse().unwrap());
        assert!(start_time("soon", now).unwrap_err().0.contains("is not a time"));
        assert!(start_time("99999999d", now).unwrap_err().0.contains("is after the last time"));
    }
}
