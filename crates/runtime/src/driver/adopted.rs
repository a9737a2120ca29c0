//! Calls that were pending in an adopted conversation.
//!
//! An export holds what was recorded when it was made, and not what was started afterwards. So each of its
//! pending calls may have run: it keeps its key, and its tool sees that it is resumed. A call that may have
//! had an effect outside waits until its tool or a person reports the outcome.

use backstitch_core::journal::{Effect, EvaluationStarted};
use backstitch_core::view::{Call, Evaluation};

use super::Driver;
use crate::agent::SubAgent;
use crate::tools::Tools;

impl Driver {
    /// Returns the record that starts an adopted evaluation here. It keeps the contract that it was started
    /// with.
    pub(super) fn started_again(&self, evaluation: &Evaluation) -> EvaluationStarted {
        let started = self.started(evaluation.evaluation_id, None);
        match &evaluation.adopted_start {
            Some(before) => EvaluationStarted {
                prompt_ns: before.prompt_ns.clone(),
                prompt_key: before.prompt_key.clone(),
                fingerprint: before.fingerprint,
                tools: before.tools.clone(),
                parent_evaluation: before.parent_evaluation,
                follows: before.follows,
                decider: before.decider.clone(),
                ..started
            },
            // The original contract is not known. The contract that it is resumed with is recorded in its
            // place.
            None => EvaluationStarted { fingerprint: None, tools: None, decider: None, ..started },
        }
    }
}

/// Returns the effect class of a call without a result.
pub(super) fn effect_of(tools: &Tools, evaluation: Option<&Evaluation>, call: &Call) -> Effect {
    if call.intent.is_some() {
        return call.recorded_effect().unwrap_or_default();
    }
    if evaluation.is_some_and(|evaluation| was_not_offered(evaluation, &call.name)) {
        // The model made up the name, so nothing can have run.
        return Effect::Pure;
    }
    // A call of an unknown tool may have done anything.
    let Some(tool) = tools.get(&call.name) else { return Effect::External };
    match call.recorded_effect().unwrap_or(tool.spec.effect) {
        // The sub-agent's session is not part of the export, nor are the keys of its calls.
        Effect::Idempotent if SubAgent::behind(tool).is_some() => Effect::External,
        effect => effect,
    }
}

/// True if the tools of an evaluation are known, and none has this name.
pub(super) fn was_not_offered(evaluation: &Evaluation, name: &str) -> bool {
    let offered = evaluation.started_with().and_then(|started| started.tools.as_ref());
    offered.is_some_and(|tools| !tools.contains_key(name))
}
