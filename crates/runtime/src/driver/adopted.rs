//! Calls that were pending in a conversation which the session adopted.
//!
//! An export knows what was recorded when it was made, and not what was started afterwards. So each of its pending calls may
//! have run: it keeps its key, its tool is told that it is resumed, and one that may have had an effect outside waits until
//! its tool or a person says what became of it.

use backstitch_core::journal::{Effect, EvaluationStarted};
use backstitch_core::view::{Call, Evaluation};

use super::Driver;
use crate::agent::SubAgent;
use crate::tools::Tools;

impl Driver {
    /// The record that an evaluation which came with an export starts here. It keeps the contract that it was started with.
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
            // What it was started with is not known, and what it is resumed with is recorded as that.
            None => EvaluationStarted { fingerprint: None, tools: None, decider: None, ..started },
        }
    }
}

/// What a call without a result may have done to the world.
pub(super) fn effect_of(tools: &Tools, evaluation: Option<&Evaluation>, call: &Call) -> Effect {
    if call.intent.is_some() {
        return call.recorded_effect().unwrap_or_default();
    }
    if evaluation.is_some_and(|evaluation| was_not_offered(evaluation, &call.name)) {
        // The model made the name up, so there was nothing that could have run.
        return Effect::Pure;
    }
    // A call of a tool that nobody knows here may have done anything.
    let Some(tool) = tools.get(&call.name) else { return Effect::External };
    match call.recorded_effect().unwrap_or(tool.spec.effect) {
        // The sub-agent's session stayed behind, and with it the keys of its calls.
        Effect::Idempotent if SubAgent::behind(tool).is_some() => Effect::External,
        effect => effect,
    }
}

/// Whether it is known which tools an evaluation offered, and one of this name is not among them.
pub(super) fn was_not_offered(evaluation: &Evaluation, name: &str) -> bool {
    let offered = evaluation.started_with().and_then(|started| started.tools.as_ref());
    offered.is_some_and(|tools| !tools.contains_key(name))
}
