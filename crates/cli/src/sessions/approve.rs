//! `approve` and `deny`: decide about the calls of a session and of its sub-agents that wait for approval.

use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::journal::{Decision, PauseReason};
use backstitch::ports::Store as _;
use backstitch::{SessionOptions, WaitingCall};
use clap::Args;
use serde_json::json;

use super::holder::{WhenDriven, set_free};
use super::in_place::not_waiting;
use super::place::{OpenStore, part_of_id, short};
use crate::common::Common;
use crate::terminal::exact_json;
use crate::usage::Usage;

/// Name of the policy of sessions whose calls a program outside makes.
pub(super) const SERVED: &str = "mcp";

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
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
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
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
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
        let is_served = is_served(&place, session).await?;
        for call in chosen.iter().filter(|call| !is_served || call.session != session) {
            set_free(common, &place, call.session, WhenDriven::Refuse).await?;
        }
        let by = Some(super::place::user_name());
        for call in &chosen {
            if is_served && call.session == session {
                place.runtime.decide(session, Some(call.call), decision.clone(), by.clone()).await?;
                continue;
            }
            let live = place.runtime.open_idle(call.session, SessionOptions::default()).await?;
            let decided = live.resolve(Some(call.call), decision.clone(), by.clone()).await;
            live.release().await?;
            decided?;
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
        if is_served {
            println!("the process that serves the session continues");
        } else {
            println!("`{}` continues", common.hint(format_args!("resume {}", short(session))));
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

/// Whether a process serves the session to a program outside, and so waits for the decision itself.
async fn is_served(place: &OpenStore, session: SessionId) -> anyhow::Result<bool> {
    if place.store.holder(session).await?.is_none() {
        return Ok(false);
    }
    let view = place.view(session).await?;
    // The calls of an engine wait while it is driven.
    if view.created().agent.get("engine").is_some() {
        return Ok(true);
    }
    let latest = view.latest_evaluation().and_then(|latest| latest.decider.as_ref());
    Ok(latest.is_some_and(|decider| decider.as_str() == SERVED))
}
