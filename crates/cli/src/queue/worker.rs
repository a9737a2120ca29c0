//! `worker`: drives the sessions of the queue until it is stopped.
//!
//! The first signal lets running sessions reach an end or a pause, the second pauses them at once, and the third ends the process.
//! What it was doing then is recovered by another worker.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::Span;
use backstitch::host::{WorkerEvent, reason_word};
use backstitch::journal::StopReason;
use backstitch::{CancellationToken, Checkouts, Rest, WorkerOptions};
use clap::Args;
use serde_json::{Value, json};

use super::agents::RecordedAgents;
use crate::common::{Common, counted};
use crate::open::{OpenStore, Signals, short};
use crate::terminal::{self, Text};
use crate::work::live::INTERRUPTED;

#[derive(Args)]
pub(crate) struct WorkerCommand {
    /// The most sessions at a time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    concurrency: u16,
    /// Name of an agent whose sessions to drive. Repeatable. Default: all agents that are defined by files and options.
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Interval at which the queue is read.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    poll: Span,
    /// The most retries of a session that an error has stopped, with growing delays.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: u32,
    /// Directory in which this worker keeps the files of its sessions, each in a copy of its own. Default: sessions work in the
    /// directories that they name; those of another machine work below the state directory.
    #[arg(long, value_name = "DIRECTORY")]
    checkouts: Option<PathBuf>,
    /// Time that running sessions have to reach an end or a pause after a signal. Then they are paused for other workers.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    grace: Span,
}

impl WorkerCommand {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = Arc::new(OpenStore::existing_or_new(common, &std::env::current_dir()?)?);
        let mut options = WorkerOptions {
            concurrency: self.concurrency.into(),
            poll: self.poll.0.max(std::time::Duration::from_millis(10)),
            grace: self.grace.0,
            ..WorkerOptions::default()
        };
        options.retries.retries = self.retries;
        let agents = Arc::new(RecordedAgents::new(common, place.clone(), self.agent));
        let checkouts = match self.checkouts {
            Some(directory) => Some(Checkouts::at(std::path::absolute(directory)?)),
            None if place.address.is_server() => Some(Checkouts::for_others()?),
            None => None,
        };
        if let Some(checkouts) = &checkouts {
            checkouts.create(&place.address)?;
        }
        let runtime = place.runtime.clone().with_agents(agents);
        let runtime = checkouts.into_iter().fold(runtime, backstitch::Runtime::with_checkouts);
        let printed = common.clone();
        let worker = runtime.worker().with_options(options).with_report(move |event| print(&printed, &event));
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        let address = place.address.to_string();
        announce(
            common,
            json!({"event": "working", "store": address, "concurrency": self.concurrency}),
            format!("driving up to {} of {address}; Ctrl-C ends", counted(self.concurrency, "session")),
        );
        let stop = CancellationToken::new();
        let mut working = std::pin::pin!(worker.run(stop.clone()));
        let mut count = 0;
        loop {
            tokio::select! {
                ended = &mut working => {
                    ended?;
                    return Ok(if count > 1 { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS });
                }
                _ = signals.next() => count += 1,
            }
            match count {
                1 => {
                    stop.cancel();
                    let text = "stopping once the running sessions reach an end or a pause; another signal pauses them now";
                    announce(common, json!({"event": "draining"}), text.to_owned());
                }
                2 => {
                    runtime.stop(StopReason::Shutdown);
                    announce(common, json!({"event": "stopping"}), "pausing the running sessions".to_owned());
                }
                // Another worker recovers from this as from any crash.
                _ => std::process::exit(INTERRUPTED.into()),
            }
        }
    }
}

/// Prints an event: for programs to standard output, for people to standard error.
fn announce(common: &Common, mut event: Value, text: String) {
    if common.json {
        event["v"] = json!(1);
        println!("{event}");
    } else if !common.quiet {
        terminal::error_line(&Text::from(text));
    }
}

fn print(common: &Common, event: &WorkerEvent) {
    let (event, text) = match event {
        WorkerEvent::Taken { session, agent, attempts } => (
            json!({"event": "taken", "session": session, "agent": agent, "attempts": attempts}),
            match attempts {
                0 => format!("{}: driven with {agent}", short(session)),
                attempts => format!(
                    "{}: driven with {agent}, after {}",
                    short(session),
                    counted(*attempts, "attempt")
                ),
            },
        ),
        WorkerEvent::Rested { session, rest } => (
            json!({"event": "rested", "session": session, "rest": rest}),
            format!("{}: {}", short(session), describe(rest)),
        ),
        WorkerEvent::Retried { session, error, after } => (
            json!({"event": "retried", "session": session, "error": error, "after_millis": after.as_millis() as u64}),
            format!("{}: tried again in {:.0?}: {error}", short(session), after),
        ),
        WorkerEvent::GaveUp { session, error } => (
            json!({"event": "gave_up", "session": session, "error": error}),
            format!("{}: failed, and left alone: {error}", short(session)),
        ),
        WorkerEvent::Busy { session, error } => (
            json!({"event": "busy", "session": session, "error": error}),
            format!("{}: cannot be driven now, and is tried again: {error}", short(session)),
        ),
        WorkerEvent::Lost { session } => (
            json!({"event": "lost", "session": session}),
            format!("{}: another worker has it now", short(session)),
        ),
        WorkerEvent::UnknownAgent { agent } => (
            json!({"event": "unknown_agent", "agent": agent}),
            format!("sessions of the agent {agent:?} wait, which is not known here; they are left alone"),
        ),
        WorkerEvent::Recovered { sessions } => (
            json!({"event": "recovered", "sessions": sessions}),
            format!("{} of workers that have ended wait again", counted(*sessions, "session")),
        ),
        WorkerEvent::Scheduled { schedule, session } => (
            json!({"event": "scheduled", "schedule": schedule, "session": session}),
            format!("{}: started by the schedule {schedule}", short(session)),
        ),
        WorkerEvent::ScheduleSkipped { schedule, session } => (
            json!({"event": "schedule_skipped", "schedule": schedule, "session": session}),
            format!("the schedule {schedule} left out a time, because {} has not ended", short(session)),
        ),
        WorkerEvent::ScheduleFailed { schedule, error } => (
            json!({"event": "schedule_failed", "schedule": schedule, "error": error}),
            format!("the schedule {schedule} cannot be applied: {error}"),
        ),
        WorkerEvent::QueueFailed { error } => (
            json!({"event": "queue_failed", "error": error}),
            format!("the queue cannot be used now: {error}"),
        ),
        _ => return,
    };
    announce(common, event, text);
}

/// Says why a session rests.
fn describe(rest: &Rest) -> String {
    match rest {
        Rest::Idle => "nothing was asked".to_owned(),
        Rest::Finished => "finished".to_owned(),
        Rest::Failed { error, message } => format!("its evaluation failed ({error}): {message}"),
        Rest::Until { at } => format!("waits until {at}"),
        Rest::Signal { name } => format!("waits for the signal {name:?}"),
        Rest::Person { reason, detail } => {
            format!("waits for a person ({}): {detail}", reason_word(*reason))
        }
        Rest::Stopped => "paused for another worker".to_owned(),
        _ => "given back".to_owned(),
    }
}
