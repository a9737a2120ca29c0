//! `approve` and `deny`: decide about the calls of a session and of its sub-agents that wait for approval.

use std::process::ExitCode;

use backstitch::WaitingCall;
use backstitch::code::ErrorCode;
use backstitch::host::IdPart;
use backstitch::id::{CallId, SessionId};
use backstitch::journal::{Decision, PauseReason};
use backstitch::report::DecisionReport;
use clap::Args;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::place::{OpenStore, short, user_name};
use crate::report::Report;
use crate::terminal::exact_json;
use crate::usage;

#[derive(Args)]
pub(crate) struct Approve {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Call ids, or at least 4 characters of the beginning or end of each. Calls of sub-agents are included.
    /// Default: the call that waits, if it is the only one.
    #[arg(value_name = "CALL", conflicts_with = "all")]
    calls: Vec<String>,
    /// Decide about all calls that wait for approval.
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    calls: Approve,
    /// Reason, which the model receives. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.calls.decide(common, Decision::Deny { reason: self.reason }).await
    }
}

impl Approve {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.decide(common, Decision::Approve).await
    }

    /// Decides about all named calls, or about none if one of them does not wait for approval.
    async fn decide(self, common: &Common, decision: Decision) -> anyhow::Result<ExitCode> {
        self.session.parse::<IdPart>()?;
        let (place, session) = OpenStore::with_session(common, Some(&self.session)).await?;
        let waiting = place.runtime.waiting_calls(session).await?;
        let waiting: Vec<_> =
            waiting.into_iter().filter(|call| call.reason == PauseReason::Approval).collect();
        let calls = self.chosen(session, &waiting)?;
        let done = place.runtime.decide_calls(session, &calls, decision, Some(user_name())).await?;
        Ok(report(common, &done).print(common))
    }

    /// Returns the named calls.
    fn chosen(&self, session: SessionId, waiting: &[WaitingCall]) -> anyhow::Result<Vec<CallId>> {
        if waiting.is_empty() {
            return Err(not_waiting(format!("no call of session {} waits for approval", short(session))));
        }
        if self.all {
            return Ok(waiting.iter().map(|call| call.call).collect());
        }
        if self.calls.is_empty() {
            if let [only] = waiting {
                return Ok(vec![only.call]);
            }
            let names: Vec<_> =
                waiting.iter().map(|call| format!("{} [{}]", call.name, short(call.call))).collect();
            let message = format!(
                "{} calls wait for approval: {}; name one of them, or all with `--all`",
                names.len(),
                names.join(", ")
            );
            return usage::refuse(message);
        }
        let mut chosen = Vec::new();
        for name in &self.calls {
            let part: IdPart = name.parse()?;
            let matching = waiting.iter().filter(|call| part.matches(call.call));
            match &matching.collect::<Vec<_>>()[..] {
                [one] => chosen.push(one.call),
                [] => {
                    let message = format!("no call {name} of session {} waits for approval", short(session));
                    return Err(not_waiting(message));
                }
                several => {
                    let count = several.len();
                    return usage::refuse(format!("`{name}` matches {count} calls; type more of the id"));
                }
            }
        }
        Ok(chosen)
    }
}

fn not_waiting(message: String) -> anyhow::Error {
    CommandError::new(ErrorCode::DecisionRefused, message).into()
}

/// Reports the decisions, and how the session continues.
fn report(common: &Common, done: &DecisionReport) -> Report {
    let word = done.decision.as_str();
    let decided = done
        .decided
        .iter()
        .map(|call| format!("{word}: {} {}  [{}]", call.name, exact_json(&call.arguments), short(call.call)));
    let left = (done.waiting > 0).then(|| format!("{} more wait for approval", done.waiting));
    let resume = common.hint(format_args!("resume {}", short(done.session)));
    Report::new(done).lines(decided).lines(left).line(if done.sent {
        format!("the process that drives the session continues; if it has paused, `{resume}` does")
    } else {
        format!("`{resume}` continues")
    })
}
