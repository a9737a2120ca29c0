//! `approve` and `deny`: decide about the calls of a session and of its sub-agents that wait for approval.

use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::journal::{Decision, PauseReason};
use backstitch::{DecisionState, WaitingCall};
use clap::Args;
use serde_json::json;

use super::in_place::not_waiting;
use crate::common::Common;
use crate::open::place::{OpenStore, part_of_id, short};
use crate::terminal::exact_json;
use crate::usage::Usage;

#[derive(Args)]
struct Calls {
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
pub(crate) struct Approve {
    #[command(flatten)]
    calls: Calls,
}

impl Approve {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.calls.decide(common, "approved", Decision::Approve).await
    }
}

#[derive(Args)]
pub(crate) struct Deny {
    #[command(flatten)]
    calls: Calls,
    /// Reason, which the model receives. Default: none.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Deny {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        self.calls.decide(common, "denied", Decision::Deny { reason: self.reason }).await
    }
}

impl Calls {
    /// Decides about all named calls, or about none if one of them does not wait for approval.
    async fn decide(self, common: &Common, word: &str, decision: Decision) -> anyhow::Result<ExitCode> {
        part_of_id(&self.session)?;
        let place = OpenStore::existing(common)?;
        let session = place.session(Some(&self.session)).await?;
        let waiting = place.runtime.waiting_calls(session).await?;
        let waiting: Vec<_> =
            waiting.into_iter().filter(|call| call.reason == PauseReason::Approval).collect();
        let chosen = self.chosen(session, &waiting)?;
        let by = Some(crate::open::place::user_name());
        let mut is_driven = false;
        for call in &chosen {
            let decided =
                place.runtime.decide(call.session, Some(call.call), decision.clone(), by.clone()).await?;
            is_driven |= decided != DecisionState::Recorded;
        }
        if common.json {
            let decided: Vec<_> = chosen.iter().map(|call| {
                json!({"session": call.session, "call": call.call, "name": call.name, "arguments": call.arguments})
            }).collect();
            println!("{}", json!({"v": 1, "session": session, "decision": word, "decided": decided}));
            return Ok(ExitCode::SUCCESS);
        }
        for call in &chosen {
            println!("{word}: {} {}  [{}]", call.name, exact_json(&call.arguments), short(call.call));
        }
        let left = waiting.len() - chosen.len();
        if left > 0 {
            println!("{left} more wait for approval");
        }
        let resume = common.hint(format_args!("resume {}", short(session)));
        if is_driven {
            println!("the process that drives the session continues; if it has paused, `{resume}` does");
        } else {
            println!("`{resume}` continues");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the named calls.
    fn chosen<'a>(
        &self,
        session: SessionId,
        waiting: &'a [WaitingCall],
    ) -> anyhow::Result<Vec<&'a WaitingCall>> {
        if waiting.is_empty() {
            return Err(
                not_waiting(format!("no call of session {} waits for approval", short(session))).into()
            );
        }
        if self.all {
            return Ok(waiting.iter().collect());
        }
        if self.calls.is_empty() {
            if let [only] = waiting {
                return Ok(vec![only]);
            }
            let names: Vec<_> =
                waiting.iter().map(|call| format!("{} [{}]", call.name, short(call.call))).collect();
            let message = format!(
                "{} calls wait for approval: {}; name one of them, or all with `--all`",
                names.len(),
                names.join(", ")
            );
            return Err(Usage(message).into());
        }
        let mut chosen: Vec<&WaitingCall> = Vec::new();
        for name in &self.calls {
            let part = part_of_id(name)?;
            let matching = waiting.iter().filter(|call| {
                let id = call.call.to_string();
                id.starts_with(&part) || id.ends_with(&part)
            });
            match &matching.collect::<Vec<_>>()[..] {
                [one] if chosen.iter().any(|known| known.call == one.call) => {}
                [one] => chosen.push(one),
                [] => {
                    let message = format!("no call {name} of session {} waits for approval", short(session));
                    return Err(not_waiting(message).into());
                }
                several => {
                    let count = several.len();
                    return Err(Usage(format!("`{name}` matches {count} calls; type more of the id")).into());
                }
            }
        }
        Ok(chosen)
    }
}
