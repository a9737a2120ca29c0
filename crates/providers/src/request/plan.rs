//! Decisions that are the same for every provider: which turns are replayed raw, the ids of calls, and the
//! results of open calls.

use std::collections::HashSet;

use backstitch_core::journal::ProviderSidecar;
use backstitch_core::message::{Large, OptionCall, Part};
use serde_json::Value;

use super::legal::{self, ResultText};
use super::options::OpenCalls;
use super::report::{Departure, DropReason};
use super::state::RenderState;
use super::thread::ThreadTurn;
use super::{RenderError, RequestInput};
use crate::provider::ModelTarget;

/// A call in a raw payload.
pub(crate) struct RawCall {
    /// The id from the provider, if it has one.
    pub(crate) id: Option<String>,
}

/// Finds the calls in a raw payload, in order; `None` when the payload cannot be sent back.
pub(crate) type RawCalls = fn(&Value) -> Option<Vec<RawCall>>;

pub(crate) struct PlannedTurn<'a> {
    pub(crate) parts: &'a [&'a Part],
    pub(crate) calls: Vec<PlannedCall<'a>>,
    /// The payload to send instead of texts and calls. It has exactly the calls of `calls`.
    pub(crate) raw: Option<Value>,
}

pub(crate) struct PlannedCall<'a> {
    pub(crate) call: &'a OptionCall,
    /// The id on the wire. Only a call that is replayed raw can have none.
    pub(crate) wire_id: Option<String>,
    pub(crate) result: ResultText,
    /// The texts and media of the result.
    pub(crate) parts: &'a [Part],
}

impl PlannedCall<'_> {
    /// The id on the wire, for providers whose calls always have one.
    pub(crate) fn id(&self) -> &str {
        self.wire_id.as_deref().unwrap_or_default()
    }

    /// The name of the option, in characters that every provider accepts.
    pub(crate) fn name(&self) -> String {
        legal::legal_name(&self.call.option_name)
    }
}

/// Plans a turn.
pub(crate) fn plan_turn<'a>(
    turn: &'a ThreadTurn<'a>,
    input: &RequestInput<'_>,
    raw_calls: RawCalls,
    rendering: &mut RenderState,
) -> Result<PlannedTurn<'a>, RenderError> {
    Planner { input, raw_calls, rendering }.plan_turn(turn)
}

/// A plan in the making.
struct Planner<'p> {
    input: &'p RequestInput<'p>,
    raw_calls: RawCalls,
    rendering: &'p mut RenderState,
}

impl Planner<'_> {
    fn plan_turn<'a>(mut self, turn: &'a ThreadTurn<'a>) -> Result<PlannedTurn<'a>, RenderError> {
        let is_ours =
            turn.sidecar.is_some_and(|sidecar| sidecar.provider == self.input.target.provider.as_str());
        let raw = self.replayable(turn)?;
        let mut calls = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            let id = call.call.invocation_id;
            let (result, parts) = match (call.result, self.input.options.open_calls) {
                (Some(result), _) => (legal::result_text(result)?, result.parts.as_slice()),
                (None, OpenCalls::Interrupted) => {
                    self.rendering.report.note(Departure::Interrupted { call: id });
                    (legal::interrupted(), &[][..])
                }
                (None, OpenCalls::Skip) => {
                    self.rendering.report.note(Departure::Skipped { call: id });
                    continue;
                }
            };
            let theirs = call.call.provider_call_id.clone().filter(|_| is_ours);
            let wire_id = if raw.is_some() {
                theirs
            } else {
                let fresh = theirs.filter(|id| legal::is_legal_id(id) && !self.rendering.used.contains(id));
                Some(fresh.unwrap_or_else(|| legal::minted_id(id)))
            };
            self.rendering.used.extend(wire_id.clone());
            calls.push(PlannedCall { call: call.call, wire_id, result, parts });
        }
        Ok(PlannedTurn { parts: &turn.parts, calls, raw })
    }

    /// The payload of a turn, if it can be sent back; otherwise the reason is added to the report.
    fn replayable(&mut self, turn: &ThreadTurn<'_>) -> Result<Option<Value>, RenderError> {
        let Some(sidecar) = turn.sidecar else { return Ok(None) };
        let judged = match (refused(self.input.target, sidecar), &sidecar.payload) {
            (None, None) if sidecar.payload_redacted => Err(DropReason::Secret),
            (_, None) => return Ok(None),
            (Some(reason), Some(_)) => Err(reason),
            (None, Some(Large::Inline(payload))) => self.judge(turn, payload),
            (None, Some(Large::Object(_))) => return Err(RenderError::NotHydrated { what: "a raw payload" }),
        };
        if let Err(reason) = judged {
            let (provider, model) = (sidecar.provider.clone(), sidecar.model.clone());
            self.rendering.report.note(Departure::PayloadDropped {
                turn: turn.number,
                provider,
                model,
                reason,
            });
        }
        Ok(judged.ok())
    }

    fn judge(&self, turn: &ThreadTurn<'_>, payload: &str) -> Result<Value, DropReason> {
        let raw: Value = serde_json::from_str(payload).map_err(|_| DropReason::NotUnderstood)?;
        let found = (self.raw_calls)(&raw).ok_or(DropReason::NotUnderstood)?;
        let is_open = turn.calls.iter().any(|call| call.result.is_none());
        let skips = is_open && self.input.options.open_calls == OpenCalls::Skip;
        let theirs = turn.calls.iter().map(|call| call.call.provider_call_id.as_ref());
        if skips || !found.iter().map(|call| call.id.as_ref()).eq(theirs) {
            return Err(DropReason::CallsDiffer);
        }
        let mut seen = HashSet::new();
        for id in found.iter().filter_map(|call| call.id.as_ref()) {
            if self.rendering.used.contains(id) || !seen.insert(id) {
                return Err(DropReason::IdsRepeat);
            }
            if !legal::is_legal_id(id) {
                return Err(DropReason::NotUnderstood);
            }
        }
        Ok(raw)
    }
}

/// The reason why a payload of this origin cannot be sent to this target; `None` when it can.
fn refused(target: &ModelTarget, sidecar: &ProviderSidecar) -> Option<DropReason> {
    if sidecar.provider != target.provider.as_str() {
        Some(DropReason::OtherProvider)
    } else if sidecar.model != target.model {
        Some(DropReason::OtherModel)
    } else if sidecar.endpoint != target.endpoint {
        Some(DropReason::OtherEndpoint)
    } else {
        None
    }
}
