//! Decisions about the calls of an engine: by rules, or by a person.
//!
//! What an engine may still spend is here as well, since it limits the same calls.

use backstitch_core::budget::Amounts;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::Decision;
use backstitch_core::view::JournalView;
use serde_json::{Map, Value};

use super::{CallAnswer, CallReply, Engine};
use crate::agent::AgentEngine;
use crate::driver::Driver;
use crate::error::Result;
use crate::observed::ObservedCall;
use crate::runner::{ApprovalNeed, rules_of};

/// A call that waits for a person.
pub(super) struct WaitingCall {
    pub(super) id: CallId,
    pub(super) call: ObservedCall,
    pub(super) reply: CallReply,
}

/// The key for all tools that are not named.
const OTHERS: &str = "default";

/// Returns what a call needs: what the rules say, else the setting of the agent.
pub(super) async fn need(
    driver: &Driver,
    engine: &dyn Engine,
    settings: &AgentEngine,
    call: &ObservedCall,
) -> Result<ApprovalNeed> {
    let rules = rules_of(driver.session(), &driver.agent().approval_rules).await?;
    let none = Map::new();
    let arguments = call.input.as_object().unwrap_or(&none);
    let others = || settings.approval.get(OTHERS).filter(|_| !engine.only_reads(&call.name));
    let asks = settings.approval.get(&call.name).or_else(others).copied().unwrap_or(false);
    Ok(ApprovalNeed::of(&rules, &call.name, arguments, asks))
}

/// Returns the decision about a call that waited, once there is one.
pub(super) async fn decision(driver: &Driver, call: CallId) -> Option<CallAnswer> {
    let state = driver.session().state().await;
    let still_waits = state.view.pauses().any(|pause| pause.call_id == Some(call));
    if still_waits {
        return None;
    }
    let decided = state.view.call(call)?.decision.as_ref().map(|resolved| resolved.decision.clone());
    Some(match decided {
        Some(Decision::Approve) => CallAnswer::Allow,
        Some(Decision::Edit { arguments }) => {
            CallAnswer::AllowWith(Value::Object(arguments.into_iter().collect()))
        }
        Some(Decision::Deny { reason }) => {
            CallAnswer::Deny(reason.unwrap_or_else(|| "a person denied this call".to_owned()))
        }
        _ => CallAnswer::Deny("nobody approved this call".to_owned()),
    })
}

/// What a call is charged with.
pub(super) const ONE_CALL: Amounts = Amounts { calls: 1, ..Amounts::ZERO };

/// Returns the limit that another request would exceed.
pub(super) fn exceeded(view: &JournalView, evaluation: EvaluationId) -> Option<String> {
    exceeded_by(view, evaluation, Amounts { input_tokens: 1, ..Amounts::ONE_TURN })
}

/// Returns the limit that more of something would exceed.
pub(super) fn exceeded_by(view: &JournalView, evaluation: EvaluationId, more: Amounts) -> Option<String> {
    let known = view.evaluation(evaluation)?;
    known.budget?.check(view.spent_by(known).plus(more)).err().map(|exceeded| exceeded.to_string())
}

/// Returns why a limit of money cannot be kept.
pub(super) fn unknown_price(provider: &str, model: &str) -> String {
    format!("the price of {provider}:{model} is unknown, so its money cannot be limited; set the price")
}

/// Returns the money that is left, in millionths.
pub(super) fn money_left(view: &JournalView, evaluation: EvaluationId) -> Option<u64> {
    let known = view.evaluation(evaluation)?;
    let limit = known.budget?.money_micros?;
    Some(limit.saturating_sub(view.spent_by(known).money_micros))
}
