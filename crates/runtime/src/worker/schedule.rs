//! Schedules: missions that workers start at the times of a cron expression.
//!
//! A schedule is stored in the queue with its next time. The first worker that sees that the time has come enqueues a session under a
//! key made of name and time, so that several workers start one session, and moves the schedule on. Times that passed while no worker
//! ran are made up for by one session. A time at which the last session of the schedule has not ended is left out, unless its sessions
//! may overlap.
//!
//! Times are in UTC, unless the expression names a time zone after its five fields, as in `0 6 * * 1-5 Europe/Berlin`.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{Queue, QueueQuery, QueueState, Schedule, StoreError};
use backstitch_core::time::Timestamp;
use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::enqueue::EnqueueOptions;
use super::{Worker, WorkerEvent};
use crate::agent::Agent;
use crate::error::{Result, RuntimeError};
use crate::report::Version;
use crate::runtime::Runtime;

/// The most characters of the name of a schedule.
const LONGEST_NAME: usize = 100;

/// When and how the sessions of a schedule are started.
///
/// ```
/// use backstitch_runtime::ScheduleOptions;
///
/// // On working days at six in the morning, local time.
/// let options = ScheduleOptions::new("report", "0 6 * * 1-5 Europe/Berlin");
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleOptions {
    /// Its name. A schedule of the same name is replaced.
    pub name: String,
    /// A cron expression of five fields, and a time zone if it is not UTC.
    pub cron: String,
    /// The priority of its sessions.
    pub priority: i16,
    /// Labels of its sessions.
    pub tags: BTreeMap<String, String>,
    /// Whether a session starts while the last one has not ended. Otherwise that time is left out.
    pub overlaps: bool,
}

impl ScheduleOptions {
    /// Creates options with the priority 0 and without labels, for sessions that do not overlap.
    pub fn new(name: impl Into<String>, cron: impl Into<String>) -> Self {
        Self { name: name.into(), cron: cron.into(), priority: 0, tags: BTreeMap::new(), overlaps: false }
    }
}

/// A schedule, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ScheduledSession {
    /// The version of this form.
    pub v: Version,
    /// Its name.
    pub name: String,
    /// The cron expression, with its time zone.
    pub cron: String,
    /// The agent of its sessions.
    pub agent: String,
    /// What the agent is asked.
    pub mission: String,
    /// When the next session starts.
    #[schemars(with = "String")]
    pub next: Timestamp,
    /// The session that was started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<SessionId>,
    /// Whether its sessions may overlap.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlaps: bool,
}

/// All schedules of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ScheduleList {
    /// The version of this form.
    pub v: Version,
    /// The schedules, by name.
    pub schedules: Vec<ScheduledSession>,
}

/// What the sessions of a schedule are started with, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct ScheduledRequest {
    v: Version,
    agent: String,
    /// The definition of the agent as data, if it has one.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    definition: Value,
    mission: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    overlaps: bool,
    #[serde(flatten)]
    options: EnqueueOptions,
}

impl Runtime {
    /// Adds a schedule, or replaces the one of the same name. Workers that know the agent start its sessions.
    pub async fn add_schedule(
        &self,
        agent: &Agent,
        mission: &str,
        options: ScheduleOptions,
    ) -> Result<ScheduledSession> {
        let refuse = |reason: String| Err(RuntimeError::InvalidSchedule { reason });
        let ScheduleOptions { name, cron, priority, tags, overlaps } = options;
        if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            return refuse(format!(
                "its name needs 1 to {LONGEST_NAME} characters, without control characters"
            ));
        }
        if mission.trim().is_empty() {
            return Err(RuntimeError::EmptyMission);
        }
        let cron = with_zone(&cron);
        let next = next_time(&cron, self.clock().now())?;
        let request = ScheduledRequest {
            v: Version,
            agent: agent.definition.get("name").and_then(Value::as_str).unwrap_or(&agent.key).to_owned(),
            definition: agent.definition.clone(),
            mission: mission.to_owned(),
            overlaps,
            options: EnqueueOptions { priority, tags, ..EnqueueOptions::default() },
        };
        let request = match serde_json::to_value(request) {
            Ok(request) => request,
            Err(error) => return refuse(error.to_string()),
        };
        let schedule = Schedule { name, cron, request, next, last: None };
        self.queue()?.put_schedule(schedule.clone()).await?;
        ScheduledSession::of(schedule)
    }

    /// Returns all schedules, by name.
    pub async fn schedules(&self) -> Result<ScheduleList> {
        let schedules = self.queue()?.schedules().await?.into_iter().map(ScheduledSession::of);
        Ok(ScheduleList { v: Version, schedules: schedules.collect::<Result<_>>()? })
    }

    /// Removes a schedule, and returns whether there was one. Sessions that it started stay.
    pub async fn remove_schedule(&self, name: &str) -> Result<bool> {
        Ok(self.queue()?.remove_schedule(name).await?)
    }

    /// Enqueues the session of a schedule for its next time. `None` if its agent is not known here.
    async fn start_scheduled(&self, schedule: &Schedule) -> Result<Option<SessionId>> {
        let request = request_of(schedule)?;
        let Some(agents) = self.agents() else { return Ok(None) };
        let found = agents.defined(&request.agent, &request.definition).await;
        let found = found.map_err(|error| RuntimeError::InvalidSchedule { reason: error.to_string() })?;
        let Some(agent) = found else { return Ok(None) };
        let options = EnqueueOptions { key: Some(schedule.key()), ..request.options };
        Ok(Some(self.enqueue(&agent, request.mission, options).await?.session))
    }
}

impl ScheduledSession {
    fn of(schedule: Schedule) -> Result<Self> {
        let ScheduledRequest { agent, mission, overlaps, .. } = request_of(&schedule)?;
        let Schedule { name, cron, next, last, .. } = schedule;
        Ok(Self { v: Version, name, cron, agent, mission, next, last, overlaps })
    }
}

impl Worker {
    /// Starts the sessions of schedules whose time has come. Returns the next time of one.
    pub(super) async fn apply_schedules(&self, queue: &dyn Queue) -> Result<Option<Timestamp>, StoreError> {
        let now = self.runtime.clock().now();
        let mut times = Vec::new();
        for schedule in queue.schedules().await? {
            if schedule.next > now {
                times.push(schedule.next);
                continue;
            }
            let open = open_session(queue, &schedule).await?;
            let started = match open {
                Some(session) => Ok(Some(session)),
                None => self.runtime.start_scheduled(&schedule).await,
            };
            let applied = started.and_then(|session| {
                session.map(|session| next_time(&schedule.cron, now).map(|next| (session, next))).transpose()
            });
            match applied {
                Ok(Some((session, next))) => {
                    times.push(next);
                    if queue.advance_schedule(&schedule.name, schedule.next, next, session).await? {
                        let schedule = schedule.name;
                        self.report(match open {
                            Some(session) => WorkerEvent::ScheduleSkipped { schedule, session },
                            None => WorkerEvent::Scheduled { schedule, session },
                        });
                    }
                }
                Ok(None) => {
                    if let Ok(request) = request_of(&schedule) {
                        self.note_unknown(&request.agent);
                    }
                }
                Err(error) => {
                    let error = error.to_string();
                    if self.is_new_refusal(&schedule.name, &error) {
                        self.report(WorkerEvent::ScheduleFailed { schedule: schedule.name, error });
                    }
                }
            }
        }
        Ok(times.into_iter().min())
    }

    /// Notes why a schedule could not be applied, and returns whether that was not known.
    fn is_new_refusal(&self, schedule: &str, error: &str) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(schedule.to_owned(), error.to_owned()).is_none_or(|before| before != error)
    }
}

/// Returns the last session of a schedule, if it has not ended and another one may not start before. One that workers gave up has.
async fn open_session(queue: &dyn Queue, schedule: &Schedule) -> Result<Option<SessionId>, StoreError> {
    let (Some(last), false) = (schedule.last, request_of(schedule).is_ok_and(|request| request.overlaps))
    else {
        return Ok(None);
    };
    let query = QueueQuery { session: Some(last), limit: 1, ..QueueQuery::default() };
    let found = queue.queued(query).await?.sessions;
    Ok(found.iter().any(|one| one.state != QueueState::Failed).then_some(last))
}

fn request_of(schedule: &Schedule) -> Result<ScheduledRequest> {
    serde_json::from_value(schedule.request.clone()).map_err(|error| {
        let reason = format!("the schedule {:?} cannot be read: {error}", schedule.name);
        RuntimeError::InvalidSchedule { reason }
    })
}

/// Adds the time zone that applies without one.
fn with_zone(cron: &str) -> String {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    let zone = if fields.len() == 5 { " UTC" } else { "" };
    format!("{}{zone}", fields.join(" "))
}

/// Returns the first time of an expression after a moment.
fn next_time(cron: &str, after: Timestamp) -> Result<Timestamp> {
    let refused = |reason: String| RuntimeError::InvalidSchedule { reason: format!("{cron:?}: {reason}") };
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    let parsed: Crontab =
        cronexpr::parse_crontab_with(cron, options).map_err(|error| refused(error.to_string()))?;
    let after =
        MakeTimestamp::from_microsecond(after.unix_micros()).map_err(|error| refused(error.to_string()))?;
    let next = parsed.find_next(after).map_err(|error| refused(error.to_string()))?;
    Timestamp::from_unix_micros(next.timestamp().as_microsecond()).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_zone_and_of_utc_without_one() {
        let after = "2026-05-04T03:00:00Z".parse().unwrap();
        for (cron, next) in [
            ("0 6 * * *", "2026-05-04T06:00:00Z"),
            ("0 6 * * * Europe/Berlin", "2026-05-04T04:00:00Z"),
            ("*/15 * * * *", "2026-05-04T03:15:00Z"),
        ] {
            assert_eq!(next_time(&with_zone(cron), after).unwrap(), next.parse().unwrap(), "{cron}");
        }
        assert_eq!(with_zone(" 0  6 * * * "), "0 6 * * * UTC");
    }

    #[test]
    fn expressions_without_a_time_are_refused() {
        let now = "2026-05-04T03:00:00Z".parse().unwrap();
        for cron in ["", "soon", "0 25 * * *", "0 6 * * * Moon/Base", "0 0 31 2 *"] {
            let refused = next_time(&with_zone(cron), now);
            assert!(matches!(refused, Err(RuntimeError::InvalidSchedule { .. })), "{cron}");
        }
    }
}
