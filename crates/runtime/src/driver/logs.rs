//! Events about an evaluation: that its prompt was rendered, and that it has an answer.

use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::EvaluationId;
use backstitch_core::machine::EvaluationResult;
use backstitch_core::slices::{PromptExecuted, PromptRendered, RunContext, excerpt, small};
use backstitch_core::view::JournalView;

use super::Driver;

impl Driver {
    /// Returns the event for the prompt, if the system message was rendered from one.
    pub(super) fn rendered(&self, evaluation: EvaluationId) -> Option<PromptRendered> {
        let prompt = self.agent.prompt.as_ref()?;
        let text = self.agent.system.as_deref().unwrap_or_default();
        Some(PromptRendered {
            prompt_ns: self.agent.ns.clone(),
            prompt_key: self.agent.key.clone(),
            prompt_name: prompt.name.clone(),
            adapter: self.agent.policy.name().to_string(),
            render_inputs: small(prompt.inputs.clone()),
            rendered: Digest::of(text.as_bytes()),
            rendered_bytes: text.len() as u64,
            descriptor: Some(prompt.descriptor),
            run: RunContext::new(self.live.id(), evaluation),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        })
    }

    /// Returns the event for an answer.
    pub(super) fn executed(
        &self,
        view: &JournalView,
        evaluation: EvaluationId,
        ending: &EvaluationResult,
    ) -> PromptExecuted {
        let messages = view.transcript().map(|transcript| transcript.inner_messages(evaluation));
        let text = messages.ok().and_then(|messages| messages.last().map(|message| message.content()));
        PromptExecuted {
            prompt_name: self.agent.prompt_name(),
            adapter: self.agent.policy.name().to_string(),
            text: text.filter(|text| !text.is_empty()).map(|text| excerpt(&text)),
            output: ending.output.clone().and_then(small),
            usage: None,
            run: RunContext::new(self.live.id(), evaluation),
            created_at: self.live.clock().now(),
            extra: Extra::default(),
        }
    }
}
