//! `schedule`: sessions that workers start again and again.

use std::process::ExitCode;

use backstitch::host::ScheduleOptions;
use clap::{Args, Subcommand};
use serde_json::json;

use super::enqueue::agent_for_workers;
use crate::common::Common;
use crate::look::list::tag;
use crate::open::definition::AgentFlags;
use crate::open::{OpenStore, mission, short};
use crate::report::Report;
use crate::usage;

#[derive(Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Add a schedule, or replace the one of the same name.
    #[command(
        after_help = "Examples:\n  backstitch schedule add report \"0 6 * * 1-5\" \"Write the report\" --agent reporter.toml\n  backstitch schedule add tidy \"30 22 * * * Europe/Berlin\" \"Tidy up\" --model openai:MODEL"
    )]
    Add(Box<AddSchedule>),
    /// List the schedules.
    #[command(after_help = "Example:\n  backstitch schedule list --json")]
    List,
    /// Remove a schedule. Sessions that it started stay.
    #[command(after_help = "Example:\n  backstitch schedule remove report")]
    Remove {
        /// Name of the schedule.
        name: String,
    },
}

#[derive(Args)]
pub(crate) struct AddSchedule {
    /// Name of the schedule.
    name: String,
    /// Cron expression: minute, hour, day of the month, month and day of the week, in UTC unless a time zone follows.
    cron: String,
    /// Task for the agent. `-` reads it from standard input.
    mission: String,
    /// Priority of its sessions. Those of a higher one are taken first.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    priority: i16,
    /// Tag of its sessions. Repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
    /// Also start a session while the last one of the schedule has not ended. By default that time is left out.
    #[arg(long)]
    overlap: bool,
    #[command(flatten)]
    agent: AgentFlags,
}

impl ScheduleCommand {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self {
            Self::Add(add) => add.run(common).await,
            Self::List => list(common).await,
            Self::Remove { name } => {
                let place = OpenStore::existing(common)?;
                if !place.runtime.remove_schedule(&name).await? {
                    return usage::refuse(format!(
                        "there is no schedule {name:?}; `{}` lists them",
                        common.hint("schedule list")
                    ));
                }
                let line = format!("the schedule {name} is removed");
                Ok(Report::new(&json!({"v": 1, "name": name, "removed": true})).line(line).print(common))
            }
        }
    }
}

impl AddSchedule {
    async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let text = mission::of_argument("MISSION", self.mission)?;
        let (place, built) = agent_for_workers(common, &self.agent).await?;
        let options = ScheduleOptions {
            priority: self.priority,
            tags: self.tag.into_iter().collect(),
            overlaps: self.overlap,
            ..ScheduleOptions::new(self.name, self.cron)
        };
        let added = place.runtime.add_schedule(&built.agent, &built.mission(&text)?, options).await?;
        let line = format!("{} ({}): next at {}", added.name, added.cron, added.next);
        let hint = common.naming(&place.address).hint("worker");
        Ok(Report::new(&added).line(line).line(format!("`{hint}` starts its sessions")).print(common))
    }
}

async fn list(common: &Common) -> anyhow::Result<ExitCode> {
    let list = OpenStore::existing(common)?.runtime.schedules().await?;
    let lines = list.schedules.iter().map(|one| {
        let last = one.last.map(|last| format!(", last session {}", short(last))).unwrap_or_default();
        format!("{} ({}): next at {}{last}: {}", one.name, one.cron, one.next, one.mission)
    });
    let none = list.schedules.is_empty().then(|| "there are no schedules".to_owned());
    Ok(Report::new(&list).lines(lines).lines(none).print(common))
}
