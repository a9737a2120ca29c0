//! Transitions: one decision cycle each.
//!
//! The messages of an evaluation with one `step_num` are a transition: what a policy saw, chose and received.

use std::collections::HashMap;
use std::sync::Arc;

use super::transcript::Transcript;
use crate::id::EvaluationId;
use crate::journal::{InnerMessage, Role};
use crate::message::Content;

/// One decision cycle.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transition {
    /// Number of the step. A message without one is a transition of its own.
    pub step_num: Option<u64>,
    /// Messages that the policy saw.
    pub observed: Vec<Arc<InnerMessage>>,
    /// Text and calls of the policy.
    pub chosen: Vec<Arc<InnerMessage>>,
    /// Results of the calls.
    pub results: Vec<Arc<InnerMessage>>,
}

impl Transcript {
    /// Returns the transitions of an evaluation, in the order in which their steps began.
    pub fn transitions(&self, evaluation: EvaluationId) -> Vec<Transition> {
        let mut transitions: Vec<Transition> = Vec::new();
        let mut steps = HashMap::new();
        for message in self.inner_messages(evaluation) {
            let step_num = message.message.step_num;
            let next = transitions.len();
            let index = step_num.map_or(next, |step| *steps.entry(step).or_insert(next));
            if index == next {
                transitions.push(Transition { step_num, ..Transition::default() });
            }
            let transition = &mut transitions[index];
            match (&message.message.content, message.role()) {
                (Content::OptionResult(_), _) => transition.results.push(message),
                (Content::OptionCall(_), _) | (_, Role::Assistant) => transition.chosen.push(message),
                _ => transition.observed.push(message),
            }
        }
        transitions
    }
}
