//! Answers that have to be data.
//!
//! Before an evaluation ends with an answer, the answer is found in what was said and checked. One that does not fit is told so,
//! once, and asked for again; that too is a message of the journal, so a process that dies in between goes on from there. A second
//! one that does not fit ends the evaluation. What fits is passed to its reducers in the batch that ends the evaluation.

use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Outcome, Role};
use backstitch_core::machine::Ending;
use backstitch_core::message::{MessageBuilder, PolicyName, RoleHint};
use backstitch_core::session::{Draft, Session};
use backstitch_core::view::Transcript;

use super::Driver;
use crate::error::RuntimeError;

/// How often an answer that does not fit is asked for again.
const REPAIRS: usize = 1;

/// What becomes of an evaluation that is about to end.
pub(super) enum Judged {
    /// It ends like this.
    Ends(Ending),
    /// The policy was told what is wrong with its answer.
    AsksAgain(Arc<InnerMessage>),
}

impl Driver {
    /// Checks the answer of an evaluation that is about to end with one.
    pub(super) async fn judge(
        &self,
        evaluation: EvaluationId,
        ending: Ending,
    ) -> Result<Judged, RuntimeError> {
        let contract = match &self.agent.output {
            Some(contract) if ending.outcome == Outcome::Completed => contract,
            _ => return Ok(Judged::Ends(ending)),
        };
        let transcript = Transcript::of(&self.live.state().await.execution.session)?;
        let transcript = self.hydrated.transcript(&**self.live.store(), transcript).await?;
        let messages = transcript.inner_messages(evaluation);
        let answer = messages.iter().rev().find(|message| message.role() == Role::Assistant);
        let text = answer.map(|message| message.content()).unwrap_or_default();
        let problem = match contract.judge(ending.output, &text) {
            Ok(value) => return Ok(Judged::Ends(Ending::completed(Some(value)))),
            Err(problem) => problem,
        };
        if messages.iter().filter(|message| is_by_runtime(message)).count() >= REPAIRS {
            return Ok(Judged::Ends(Ending::failed("invalid_output", problem)));
        }
        self.ask_again(evaluation, &problem).await.map(Judged::AsksAgain)
    }

    async fn ask_again(
        &self,
        evaluation: EvaluationId,
        problem: &str,
    ) -> Result<Arc<InnerMessage>, RuntimeError> {
        let (ids, turns) = {
            let state = self.live.state().await;
            let known = state.view.evaluation(evaluation).ok_or(RuntimeError::NoEvaluation { evaluation })?;
            (state.execution.session.ids().clone(), known.turns)
        };
        let mut builder = MessageBuilder::continue_step(turns + 1, &ids);
        builder.policy(PolicyName::runtime()).role_hint(RoleHint::User);
        builder.add_text(format!("{problem}\nAnswer again, with all of it and with nothing but the JSON."));
        let said = self.live.say(evaluation, turns, vec![builder.to_message()?]).await?;
        said.into_iter().next().ok_or(RuntimeError::NoEvaluation { evaluation })
    }

    /// What the answer of an evaluation changes. One that the reducers of its type refuse is none: the evaluation fails.
    pub(super) fn with_output(&self, session: &Session, ending: Ending) -> (Draft, Ending) {
        let mut draft = session.draft();
        let (Some(contract), Some(output)) = (&self.agent.output, &ending.output) else {
            return (draft, ending);
        };
        match contract.output().dispatch(output, &mut draft) {
            Ok(()) => (draft, ending),
            Err(error) => {
                let failed = Ending::failed("output_refused", format!("the answer was refused: {error}"));
                (session.draft(), failed)
            }
        }
    }
}

/// Whether the runtime itself says it to the policy.
pub(super) fn is_by_runtime(message: &InnerMessage) -> bool {
    message.role() == Role::User && message.message.policy.is_reserved()
}
