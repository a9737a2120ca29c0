//! Checks whether an agent can resume an evaluation that another one started.
//!
//! The contract of an evaluation is recorded when it starts: the name of its prompt, a fingerprint, the
//! contract of each tool, and the system message as it was sent. The comparison is the same whether the
//! evaluation was started in this session or came with a snapshot or a conversation.

use std::collections::BTreeMap;

use backstitch_core::digest::Digest;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::Role;
use backstitch_core::message::Arguments;
use backstitch_core::secrets::REDACTED;
use backstitch_core::view::{Call, Evaluation};

use super::Driver;
use super::open_calls::was_not_offered;
use crate::agent::{Fidelity, prompt_path};
use crate::error::{Result, RuntimeError};

impl Driver {
    /// Fails with [`RuntimeError::PromptMismatch`] if the agent cannot resume the evaluation.
    pub(super) async fn check_fidelity(&self, evaluation: EvaluationId, fidelity: Fidelity) -> Result<()> {
        if fidelity == Fidelity::Forced {
            return Ok(());
        }
        let view = self.live.view().await;
        let known = view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
        let pending = self.live.pending_calls(|call| call.evaluation_id == evaluation).await;
        let given = prompt_path(&self.agent.ns, &self.agent.key);
        let recorded = prompt_path(&known.prompt_ns, &known.prompt_key);
        let mut reason = (recorded != given).then(|| "it is another prompt".to_owned());
        if reason.is_none() && fidelity == Fidelity::Strict {
            reason = self.difference(known).await?;
        }
        for call in &pending {
            if reason.is_none() {
                reason = self.cannot_be_made(known, call).await?;
            }
        }
        match reason {
            Some(reason) => Err(RuntimeError::PromptMismatch { recorded, given, reason }),
            None => Ok(()),
        }
    }

    /// Returns the first difference between the prompt's contract now and when the evaluation started.
    async fn difference(&self, known: &Evaluation) -> Result<Option<String>> {
        let recorded = self.recorded_system(known.evaluation_id).await?;
        if !is_same_apart_from_redactions(recorded.as_deref(), self.agent.system.as_deref()) {
            return Ok(Some("its system message has changed".to_owned()));
        }
        let Some(started) = known.started_with() else {
            return Ok(Some(
                "nothing is recorded that its tools and its output could be compared with".to_owned(),
            ));
        };
        if let (Some(before), Ok(now)) = (&started.tools, self.agent.contracts())
            && let Some(changed) = changed_tool(before, &now)
        {
            return Ok(Some(changed));
        }
        Ok(match started.fingerprint {
            Some(recorded) if Some(recorded) == self.agent.fingerprint().ok() => None,
            Some(_) => Some("its text, its tools or its output have changed".to_owned()),
            None => Some("no fingerprint is recorded that it could be compared with".to_owned()),
        })
    }

    /// Returns the system message that an evaluation was started with.
    async fn recorded_system(&self, evaluation: EvaluationId) -> Result<Option<String>> {
        let transcript = self.content.live_transcript().await?;
        let first = transcript.inner_messages(evaluation).into_iter().next();
        let Some(first) = first.filter(|first| first.role() == Role::System) else { return Ok(None) };
        let first = self.content.message(&first).await?;
        Ok(Some(first.content()))
    }

    /// Returns why a call without a result can no longer run as it was made, if it cannot.
    async fn cannot_be_made(&self, known: &Evaluation, call: &Call) -> Result<Option<String>> {
        let name = &call.name;
        let contracts = known.started_with().and_then(|started| started.tools.as_ref());
        // A model may call a tool that does not exist, and receives an error. Without the contracts of an
        // older journal, that cannot be distinguished from a tool that was removed, unless the call was
        // started.
        if was_not_offered(known, name) || (contracts.is_none() && !call.may_have_run()) {
            return Ok(None);
        }
        let Some(tool) = self.agent.tools.get(name) else {
            return Ok(Some(format!("a call of {name} has no result, and there is no such tool any more")));
        };
        let before = contracts.and_then(|contracts| contracts.get(name)).copied();
        if before.is_some() && before == tool.spec.contract_digest().ok() {
            return Ok(None);
        }
        let arguments = Arguments::from_object(self.content.start_arguments(call).await?);
        let refused = self.calls.runner.accepts(tool, &arguments).err();
        Ok(refused.map(|problem| {
            format!("a call of {name} has no result, and cannot be made as it was: {problem}")
        }))
    }
}

/// Returns whether a recorded text is the given one, where the marker of a redaction stands for any text. The
/// fingerprint still covers the text as it was.
fn is_same_apart_from_redactions(recorded: Option<&str>, given: Option<&str>) -> bool {
    let (Some(recorded), Some(given)) = (recorded, given) else { return recorded == given };
    let mut pieces = recorded.split(REDACTED);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = given.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = Some(piece);
    }
    last.map_or(rest.is_empty(), |last| given.ends_with(last))
}

/// Describes the first tool that changed.
fn changed_tool(before: &BTreeMap<String, Digest>, now: &BTreeMap<String, Digest>) -> Option<String> {
    let changed = before.iter().find_map(|(name, contract)| match now.get(name) {
        Some(other) if other == contract => None,
        Some(_) => Some(format!("its tool {name} has changed")),
        None => Some(format!("its tool {name} is gone")),
    });
    changed.or_else(|| {
        let added = now.keys().find(|name| !before.contains_key(*name))?;
        Some(format!("it has a new tool {added}"))
    })
}
